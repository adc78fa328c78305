"""Write the tables and pictures of the documentation from the latest full runs: ``python -m benchmarks.pages``, or ``make docs``."""

from __future__ import annotations

import re

from benchmarks.contention_tables import contention_table, part_table
from benchmarks.pictures import curve_of, picture
from benchmarks.report import RESULTS, ROOT, markdown, read_results

__all__ = ["PAGES", "page_with_tables", "pictures"]

PAGES = (
    ROOT / "docs" / "operate" / "performance.md",
    ROOT / "docs" / "concepts" / "file-references.md",
    ROOT / "docs" / "develop" / "decisions" / "0034-where-file-references-lie.md",
)
PICTURES = ROOT / "docs" / "pictures"
PREFIX = "bench-"
"""Of our pictures, which lie among others."""
TABLE = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
CONTENTION = re.compile(r"(<!-- (contention|part): (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    for page in PAGES:
        page.write_text(page_with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for stale in PICTURES.glob(f"{PREFIX}*.svg"):
        stale.unlink()
    for name, text in pictures().items():
        (PICTURES / name).write_text(text, encoding="utf-8")


def pictures() -> dict[str, str]:
    """What the curves of all suites look like, by the name of the file."""
    found = {}
    for file in sorted(RESULTS.glob("*.json")):
        for curve in (read_results(file.stem) or {}).get("curves", ()):
            found[f"{PREFIX}{curve['name']}.svg"] = picture(curve_of(curve))
    return found


def page_with_tables(page: str) -> str:
    """The page, with what stands between ``<!-- results: suite -->`` and ``<!-- end -->`` taken from the results of that suite.

    ``<!-- contention: part -->`` has the cases of a part of the suite ``files``, a line each, and ``<!-- part: name -->`` its rows.
    """

    def table(found: re.Match[str]) -> str:
        results = read_results(found[2])
        shown = "Not measured yet.\n" if results is None else markdown(results)
        return f"{found[1]}\n{shown}\n{found[3]}"

    def file_table(found: re.Match[str]) -> str:
        shown = (contention_table if found[2] == "contention" else part_table)(read_results("files"), found[3])
        return f"{found[1]}\n{shown}\n{found[4]}"

    return CONTENTION.sub(file_table, TABLE.sub(table, page))


if __name__ == "__main__":
    main()
