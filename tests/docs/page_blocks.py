"""The blocks of a Markdown page that its readers run, and what says how.

Comments in the page, each on a line of its own before a block:

    <!-- setup: lake -->        the page begins with the realm ``acme`` and the catalog ``lake`` of the quick start; ``warehouse`` has
                                the tables alone
    <!-- exit: 6 -->            the last command of the next block ends with this code
    <!-- terminal: serve -->    the next block goes on in a terminal of its own, until the page ends
    <!-- not run: reason -->    the next block cannot be run here; ``<!-- not run below: reason -->`` is all from here on

A block with a ``title`` is a file, which is written. ``bash`` has commands that succeed. ``console`` has commands after ``$``, and what
they print. ``python`` blocks of a page share their names; a ``text`` block after one is what it prints. In what is printed, ``…`` stands
for anything, and a line ``…`` for any lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks_of", "matches"]

FENCE = re.compile(r"^( *)```([a-z]*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
DIRECTIVE = re.compile(r"^ *<!-- (setup|exit|terminal|not run|not run below): (.+?) -->$", re.MULTILINE)
TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its line in the page, its language and text, and what the comments before it say."""

    line: int
    language: str
    text: str
    file: str = ""
    terminal: str = ""
    exit_code: int = 0
    not_run: str = ""


def blocks_of(page: Path) -> tuple[str, list[Block]]:
    """The setup that a page asks for, or an empty text, and its blocks in order."""
    text = page.read_text(encoding="utf-8")
    setup, below, blocks, at = "", "", [], 0
    for fence in FENCE.finditer(text):
        said = dict(DIRECTIVE.findall(text[at : fence.start()]))
        at, setup, below = fence.end(), setup or said.get("setup", ""), said.get("not run below", below)
        indent, language, info, body = fence.groups()
        title = TITLE.search(info)
        blocks.append(
            Block(
                line=text.count("\n", 0, fence.start()) + 1,
                language=language,
                text=re.sub(rf"^{indent}", "", body, flags=re.MULTILINE),
                file=title[1] if title else "",
                terminal=said.get("terminal", ""),
                exit_code=int(said.get("exit", "0")),
                not_run=said.get("not run", below),
            )
        )
    return setup, blocks


def matches(expected: str, printed: str) -> bool:
    """Whether a page shows what was printed; runs of blanks and blanks at the ends of lines do not count."""
    lines = [re.sub(r"\s+", " ", line.strip()) for line in expected.strip().splitlines()]
    shown = "".join(re.sub(r"[ \t]+", " ", line.strip()) + "\n" for line in printed.strip().splitlines())
    pattern = "".join("(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + "\n" for line in lines)
    return re.fullmatch(pattern, shown) is not None
