"""The page about Spark says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater_workers.pipeline.source import OPTIONS, TABLES

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", TABLES)
def test_page_has_every_column(table: str) -> None:
    part = PAGE.partition(f"\n### {table}\n")[2].partition("\n### ")[0]

    rows = [f"| `{name}` | `{kind}` | {purpose} |" for name, kind, purpose in TABLES[table].columns]
    assert [line for line in part.splitlines() if line.startswith("| `")] == rows


def test_page_has_every_option() -> None:
    part = PAGE.partition("\n## Options\n")[2].partition("\n## ")[0]

    assert [line for line in part.splitlines() if line.startswith("| `")] == [
        f"| `{n}` | {text} |" for n, text in OPTIONS.items()
    ]
