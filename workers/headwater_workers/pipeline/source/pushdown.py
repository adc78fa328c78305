r"""Pushdown: which conditions of a query the source fulfils or uses to read less, and conditions on a key's text as index ranges. Pure.

Text and index sort differently: a dot between elements is 0x00 in the index, and ``\.`` is a plain dot. So a range of texts is no
range of the index, and the range that is found here holds all keys of the range of texts, and perhaps others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, NamedTuple

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.index import after_prefix

_PLAIN = re.compile(r"(?:[^\\\x00-\x1f\x7f\ud800-\udfff]|\\[\\.])*")
"""The characters of a key's text, or of its beginning."""
_PARTS = re.compile(r"\\.|.", re.DOTALL)
_UNESCAPED = {".": "\0", "\\.": ".", "\\\\": "\\"}
_MAY_RISE = re.compile(r"[^.\\-\U0010ffff]")
"""Characters of a lower bound that a dot or a backslash of a greater text may sort below."""
_MAY_FALL = re.compile(r"[.\\]")
"""Characters of an upper bound that a smaller text may sort above."""


class KeyRange(NamedTuple):
    """Index keys with ``start`` <= key < ``end``; None leaves that side open.

    is_exact      every key in it fulfils the condition that it was made for
    """

    start: bytes | None
    end: bytes | None
    is_exact: bool = True

    def within(self, other: KeyRange) -> KeyRange:
        """The intersection of both ranges."""
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
    """The common prefix of both texts."""
    return "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _before(text: str, mark: re.Pattern[str]) -> str:
    """The text before the first mark in it."""
    match = mark.search(text)
    return text if match is None else text[: match.start()]


def _stem(text: str) -> tuple[bytes, bool]:
    """The bytes of an index key that begins as the text does; and whether they represent the whole text."""
    match = _PLAIN.match(text)
    literal = match[0] if match else ""
    parts = (_UNESCAPED.get(part, part) for part in _PARTS.findall(literal))
    return "".join(parts).encode(), len(literal) == len(text)


@dataclass(frozen=True, slots=True)
class Span:
    """Texts from ``low`` to ``high``, both inclusive; None leaves that side open."""

    low: str | None = None
    high: str | None = None

    def within(self, other: Span) -> Span:
        lows = [side for side in (self.low, other.low) if side is not None]
        highs = [side for side in (self.high, other.high) if side is not None]
        return Span(max(lows, default=None), min(highs, default=None))


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to read: those for which all of this holds. None means no restriction.

    among         values of the columns realm, catalog, ref and kind
    keys          the range of the content index
    texts         of keys, which narrow that range
    ids, names    of objects and references
    since, seq    the oldest commits wanted: those before it are not read
    """

    among: dict[str, frozenset[str]]
    keys: KeyRange = EVERYTHING
    texts: Span = Span()
    ids: Span = Span()
    names: Span = Span()
    since: Micros | None = None
    seq: int | None = None

    def allows(self, **values: str) -> bool:
        """Whether rows with these values may be selected."""
        return all(name not in self.among or value in self.among[name] for name, value in values.items())

    @property
    def key_range(self) -> KeyRange:
        return self.keys if self.texts == Span() else self.keys.within(of_texts_between(self.texts.low, self.texts.high))


_PLACES = {
    "objects": ("realm",),
    "references": ("realm", "catalog"),
    "commits": ("realm", "catalog", "ref", "kind"),
    "changes": ("realm", "catalog", "ref", "kind"),
    "entries": ("realm", "catalog", "ref", "kind"),
    "contents": ("realm", "catalog", "ref", "kind"),
}
_KEYED = ("changes", "entries", "contents")
_Narrowed = tuple[Selection, bool]
"""Returns the selection with one more condition, and whether everything it reads fulfils the condition."""


def asked_for(table: str, *, prefix: str | None) -> list[Filter]:
    """The conditions that the option ``prefix`` stands for.

    raises        RefusedError for keys of a table that has none, and for a text with which no range of keys begins
    """
    if prefix is None:
        return []
    if table not in _KEYED:
        raise RefusedError(f"table {table} has no keys: leave the option prefix away")
    if not of_prefix(prefix).is_exact:
        raise RefusedError(
            f"the option prefix is {prefix!r}: end it with a dot, and a name's backslash with what it stands before"
        )
    return [StringStartsWith(("key",), prefix)]


def select(table: str, filters: Sequence[Filter]) -> tuple[Selection, list[Filter]]:
    """The selection on a table, and the conditions that Spark still has to check."""
    selection, rest = Selection({}), []
    for condition in filters:
        selection, is_fulfilled = _narrowed(table, selection, condition)
        if not is_fulfilled:
            rest.append(condition)
    return selection, rest


def _narrowed(table: str, selection: Selection, condition: Filter) -> _Narrowed:
    column: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(column) != 1:
        return selection, False
    name = column[0]
    if name in _PLACES[table]:
        return _among(selection, name, condition)
    narrow = _BY_COLUMN.get((table, name)) or (_BY_KEY.get(name) if table in _KEYED else None)
    return (selection, False) if narrow is None else narrow(selection, condition)


def _among(selection: Selection, name: str, condition: Filter) -> _Narrowed:
    values = _values(condition)
    if values is None:
        return selection, False
    wanted = frozenset(values) & selection.among.get(name, frozenset(values))
    return replace(selection, among=selection.among | {name: wanted}), True


def _by_key(selection: Selection, condition: Filter) -> _Narrowed:
    if isinstance(condition, StringStartsWith):
        keys = of_prefix(condition.value)
    elif isinstance(condition, EqualTo | EqualNullSafe) and isinstance(condition.value, str):
        keys = of_text(condition.value)
    else:
        return _by_span("texts", _texts(condition))(selection, condition)
    return replace(selection, keys=selection.keys.within(keys)), keys.is_exact


def _by_namespace(selection: Selection, condition: Filter) -> _Narrowed:
    """Select a namespace's descendants, which are more than its members: Spark checks again."""
    values = _values(condition)
    if values is None or len(values) != 1:
        return selection, False
    below = of_prefix(f"{values[0]}.") if of_text(values[0]).is_exact else EVERYTHING
    return replace(selection, keys=selection.keys.within(below)), False


def _by_span(field: str, span: Span) -> Callable[[Selection, Filter], _Narrowed]:
    return lambda selection, _: (replace(selection, **{field: getattr(selection, field).within(span)}), False)


def _by_id(selection: Selection, condition: Filter) -> _Narrowed:
    return _by_span("ids", _texts(condition))(selection, condition)


def _by_name(selection: Selection, condition: Filter) -> _Narrowed:
    return _by_span("names", _texts(condition))(selection, condition)


def _by_time(selection: Selection, condition: Filter) -> _Narrowed:
    if isinstance(condition, GreaterThan | GreaterThanOrEqual | EqualTo) and isinstance(condition.value, datetime):
        since = Micros((condition.value - _EPOCH) // _MICRO)
        return replace(selection, since=max(since, selection.since or since)), False
    return selection, False


def _by_seq(selection: Selection, condition: Filter) -> _Narrowed:
    if isinstance(condition, GreaterThan | GreaterThanOrEqual | EqualTo) and isinstance(condition.value, int):
        return replace(selection, seq=max(condition.value, selection.seq or condition.value)), False
    return selection, False


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_MICRO = timedelta(microseconds=1)
_BY_KEY = {"key": _by_key, "namespace": _by_namespace}
_BY_COLUMN = {
    ("objects", "id"): _by_id,
    ("references", "name"): _by_name,
    ("commits", "time"): _by_time,
    ("commits", "seq"): _by_seq,
    ("changes", "time"): _by_time,
    ("changes", "seq"): _by_seq,
}


def _values(condition: Filter) -> list[str] | None:
    """The texts that a column may have; None for another kind of condition."""
    if isinstance(condition, EqualTo | EqualNullSafe):
        return [condition.value] if isinstance(condition.value, str) else None
    if isinstance(condition, In):
        return [value for value in condition.value if isinstance(value, str)]
    return None


def _texts(condition: Any) -> Span:
    """The bounds of a column's texts, as far as a condition gives them."""
    if isinstance(condition, In):
        texts = _values(condition) or []
        return Span(min(texts), max(texts)) if texts else Span()
    value = getattr(condition, "value", None)
    if not isinstance(value, str):
        return Span()
    if isinstance(condition, EqualTo | EqualNullSafe):
        return Span(value, value)
    if isinstance(condition, StringStartsWith):
        return Span(value, value + _LAST)
    if isinstance(condition, GreaterThan | GreaterThanOrEqual):
        return Span(low=value)
    if isinstance(condition, LessThan | LessThanOrEqual):
        return Span(high=value)
    return Span()


_LAST = "\U0010ffff"
"""A character that sorts after every character of a name."""
