"""The suite of metadata: each part gives rows, of documents that are sound."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headwater.iceberg.spec import check_table

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.metadata

    return benchmarks


def test_every_part_of_the_suite_of_metadata_gives_rows(suite: Any) -> None:
    module = suite.metadata
    found = list(module.measure(module.Scale(2, 30, 2, 1), suite.options.read_options([], module.PARTS)))

    assert {row.unit for row in found} == {"KiB", "µs"}
    assert all(row.value > 0 for row in found)


def test_measured_metadata_is_a_sound_table(suite: Any) -> None:
    facts = check_table(json.loads(suite.metadata.document(3, 8)))

    assert (facts.version, facts.snapshot_id) == (2, suite.metadata.snapshot(7)["snapshot-id"])
