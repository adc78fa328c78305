"""The page about Spark says what the format of file tables takes."""

from __future__ import annotations

from pathlib import Path

from headwater_workers.pipeline.files import FILE_OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")


def test_page_has_every_option_of_file_tables() -> None:
    part = PAGE.partition("\n### The format headwater-files\n")[2].partition("\n### ")[0]

    assert [line for line in part.splitlines() if line.startswith("| `")] == [
        f"| `{n}` | {text} |" for n, text in FILE_OPTIONS.items()
    ]
