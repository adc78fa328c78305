"""Links to other sites are listed with the date on which somebody last looked them up: nothing follows them here."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

FOLDER = Path(__file__).parents[2]
LIST = FOLDER / "docs" / "develop" / "outside-links.md"
LINK = re.compile(r"\]\((https?://[^)#\s]+)")
MADE_UP = re.compile(r"//[^/]*(example\.(com|org)|127\.0\.0\.1|localhost)")
ROW = re.compile(r"^\| (\d{4}-\d\d-\d\d) \| <(\S+)> \|$", re.MULTILINE)


def test_outside_links_are_the_links_of_the_pages() -> None:
    pages = [*FOLDER.glob("*.md"), *(FOLDER / "docs").rglob("*.md"), *(FOLDER / "charts").rglob("*.md")]
    used = {link for page in pages for link in LINK.findall(page.read_text(encoding="utf-8")) if not MADE_UP.search(link)}
    listed = [link for _, link in ROW.findall(LIST.read_text(encoding="utf-8"))]

    assert listed == sorted(used)


def test_dates_of_outside_links_are_dates() -> None:
    assert [date.fromisoformat(day) for day, _ in ROW.findall(LIST.read_text(encoding="utf-8"))]
