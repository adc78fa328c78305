"""The page on imports says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.catalogs.importer.import_report import REPORT_COLUMNS
from headwater.iceberg import ChoiceRule, QuarantineCode

PAGE = (Path(__file__).parents[2] / "docs" / "concepts" / "importing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", [*QuarantineCode, *ChoiceRule])
def test_every_reason_and_every_rule_is_told(word: str) -> None:
    assert f"`{word}`" in PAGE


@pytest.mark.parametrize("column", REPORT_COLUMNS)
def test_every_column_of_the_report_is_told(column: tuple[str, str, str]) -> None:
    name, kind, meaning = column

    assert f"| `{name}` | {kind} | {meaning} |" in PAGE
