"""What of a query's conditions the source fulfils, or uses to read less. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

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
from headwater_workers.pipeline.source.keys import EVERYTHING, KeyRange, of_prefix, of_text, of_texts_between

__all__ = ["Selection", "Span", "asked_for", "select"]


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
    """What is read: rows for which all of this holds. None: whatever they are.

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
        """Whether these columns may have these values."""
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
"""The selection with one more condition; and whether all that it reads fulfils the condition."""


def asked_for(table: str, *, prefix: str | None) -> list[Filter]:
    """What the option ``prefix`` asks for, as conditions that a selection fulfils.

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
    """What to read of a table, and those of the conditions that Spark has yet to look at."""
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
        found = of_prefix(condition.value)
    elif isinstance(condition, EqualTo | EqualNullSafe) and isinstance(condition.value, str):
        found = of_text(condition.value)
    else:
        return _by_span("texts", _texts(condition))(selection, condition)
    return replace(selection, keys=selection.keys.within(found)), found.is_exact


def _by_namespace(selection: Selection, condition: Filter) -> _Narrowed:
    """What stands below a namespace is more than what stands in it: Spark looks again."""
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
    """The texts of which a column must have one; None for another kind of condition."""
    if isinstance(condition, EqualTo | EqualNullSafe):
        return [condition.value] if isinstance(condition.value, str) else None
    if isinstance(condition, In):
        return [value for value in condition.value if isinstance(value, str)]
    return None


def _texts(condition: Any) -> Span:
    """Between which texts a column must be, as far as a condition says so."""
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
"""Behind every character of a name."""
