"""What is said of a library that is not installed, or not as it must be."""

from __future__ import annotations

import sys

import pytest

from headwater.extras import missing_extra


def test_absent_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    refused = missing_extra(ModuleNotFoundError(name="pyspark.sql"))

    assert "'pyspark', which is not installed: pip install 'headwater[spark]'" in str(refused)


def test_library_that_lacks_a_module_does_not_fit() -> None:
    refused = missing_extra(ModuleNotFoundError(name="pyspark.nothing"))

    assert "'pyspark' does not fit, for it has no module 'pyspark.nothing': pip install -U" in str(refused)


def test_module_of_no_extra_is_a_bug() -> None:
    assert missing_extra(ModuleNotFoundError(name="headwater.nothing")) is None
