r"""Conditions on the text of a content key, as ranges of the index.

Text and index sort differently: a dot between elements is 0x00 in the index, and ``\.`` is a plain dot. So a range of texts is no
range of the index, and what is found here holds all keys of the range, and perhaps others.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import NamedTuple

from headwater.index import after_prefix

__all__ = ["EVERYTHING", "KeyRange", "of_prefix", "of_text", "of_texts_between"]


_PLAIN = re.compile(r"(?:[^\\\x00-\x1f\x7f\ud800-\udfff]|\\[\\.])*")
"""What the text of a key, or its beginning, consists of."""
_PARTS = re.compile(r"\\.|.", re.DOTALL)
_UNESCAPED = {".": "\0", "\\.": ".", "\\\\": "\\"}
_MAY_RISE = re.compile(r"[^.\\-\U0010ffff]")
"""Characters of a lower bound that a dot or a backslash of a greater text may go below."""
_MAY_FALL = re.compile(r"[.\\]")
"""Characters of an upper bound below which a smaller text may not stay."""


class KeyRange(NamedTuple):
    """Index keys with ``start`` <= key < ``end``; None leaves that side open.

    is_exact      every key in it fulfils the condition that it was made for
    """

    start: bytes | None
    end: bytes | None
    is_exact: bool = True

    def within(self, other: KeyRange) -> KeyRange:
        """What both have."""
        start = max((side for side in (self.start, other.start) if side is not None), default=None)
        end = min((side for side in (self.end, other.end) if side is not None), default=None)
        return KeyRange(start, end, self.is_exact and other.is_exact)

    def has(self, key: bytes) -> bool:
        return (self.start is None or key >= self.start) and (self.end is None or key < self.end)

    @property
    def is_empty(self) -> bool:
        return self.start is not None and self.end is not None and self.start >= self.end


EVERYTHING = KeyRange(None, None)


def of_prefix(text: str) -> KeyRange:
    """The keys whose text begins with this."""
    stem, is_whole = _stem(text)
    return KeyRange(stem or None, after_prefix(stem), is_whole)


def of_text(text: str) -> KeyRange:
    """The key with this text."""
    stem, is_whole = _stem(text)
    return KeyRange(stem, stem + b"\0", is_whole) if is_whole else of_prefix(text)


def of_texts_between(low: str | None, high: str | None) -> KeyRange:
    r"""The keys with ``low`` <= text <= ``high``, and perhaps others; None leaves that side open.

    All texts of the range share what ``low`` and ``high`` begin with. Behind that the index goes up with the text but for this: a
    dot may go down to 0x00, below a character that sorts before it, and a backslash to the dot that it escapes. A bound is cut
    before the first character at which that could matter.
    """
    shared = "" if low is None or high is None else _common(low, high)
    start = b"" if low is None else _stem(shared + _before(low[len(shared) :], _MAY_RISE))[0]
    if high is None:
        return KeyRange(start or None, None, False)
    rest = high[len(shared) :]
    plain = _before(rest, _MAY_FALL)
    last, is_told = _stem(shared + plain)
    return KeyRange(start or None, last + b"\0" if is_told and plain == rest else after_prefix(last), False)


def _common(one: str, other: str) -> str:
    """What both begin with."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _before(text: str, mark: re.Pattern[str]) -> str:
    """The text up to the first mark in it."""
    found = mark.search(text)
    return text if found is None else text[: found.start()]


def _stem(text: str) -> tuple[bytes, bool]:
    """The bytes of an index key that begins as the text does; and whether all of the text could be told."""
    found = _PLAIN.match(text)
    told = found[0] if found else ""
    parts = (_UNESCAPED.get(part, part) for part in _PARTS.findall(told))
    return "".join(parts).encode(), len(told) == len(text)
