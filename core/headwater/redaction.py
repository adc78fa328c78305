"""Makes texts of others safe to show: without logins in URLs, and without characters that terminals, or cells that spreadsheets, act on.

In doubt it removes too much.
"""

from __future__ import annotations

import re

MASK = "***"
URL_LOGIN = re.compile(r"([a-z][a-z0-9+.\-]*://)([^\s\"'<>]*)@", re.IGNORECASE)
"""Up to the last @, also behind a slash: a password may hold both, and a path with an @ is rare."""
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls (C0, DEL, C1), line separators, marks of direction, and halves of characters, which cannot be written."""
_COMPUTED = re.compile(r"[=+\-@\t\r](?!\d*\.?\d*\Z)")
"""What a spreadsheet takes for a formula; a number is none."""


def without_logins(text: str) -> str:
    """A text whose URLs have stars where a user and a password would stand."""
    return URL_LOGIN.sub(rf"\1{MASK}@", text)


def printable(text: str) -> str:
    """A text in which every character that a terminal obeys instead of showing it is written as ``\\x1b``.

    Who may write into a catalog must not move the cursor of who reads it, or turn the direction of what stands beside.
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def inert_cell(text: str) -> str:
    """A text as a cell of CSV that no spreadsheet computes: one that begins like a formula gets an apostrophe before it."""
    return f"'{text}" if _COMPUTED.match(text) else text
