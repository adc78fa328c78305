"""Write the tables of `docs/performance.md` anew from the latest full runs: ``python -m benchmarks.pages``, or ``make docs``."""

from __future__ import annotations

import re

from benchmarks.report import ROOT, markdown, read_results

__all__ = ["page_with_tables"]

PAGE = ROOT / "docs" / "performance.md"
TABLE = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def page_with_tables(page: str) -> str:
    """The page, with what stands between ``<!-- results: suite -->`` and ``<!-- end -->`` taken from the results of that suite."""

    def table(found: re.Match[str]) -> str:
        results = read_results(found[2])
        shown = "Not measured yet.\n" if results is None else markdown(results)
        return f"{found[1]}\n{shown}\n{found[3]}"

    return TABLE.sub(table, page)


if __name__ == "__main__":
    main()
