"""Filters of content entries, and the listings that they bound.

Some conditions that have to be true say where in the index a chosen entry can stand: its type, how deep it is, how its key begins.
The Java client asks for the namespaces of one level in these words. They are recognized and checked without an evaluation, and what is
deeper than wanted is leapt over, so that a level is listed without what stands below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

from headwater.catalogs.content import ContentKey, ContentType, ContentValue, type_text
from headwater.catalogs.content_operations import CONTENT
from headwater.catalogs.content_pages import ContentEntry, ContentPage
from headwater.catalogs.filter_program import FilterExpression
from headwater.catalogs.filter_text import SCALAR, FilterToken, split_conjuncts
from headwater.catalogs.key_variables import KEY_FIELDS, index_prefix, key_variables
from headwater.commits import Head, IndexListing, PageToken, take_page
from headwater.index import Index, IndexValue, after_prefix
from headwater.store import ObjectId


@dataclass(frozen=True)
class EntryExpression(FilterExpression[ContentEntry]):
    """A filter of content entries."""

    VARIABLES = {"entry": {**KEY_FIELDS, "contentType": SCALAR, "contentId": SCALAR}}
    SAMPLE = ContentEntry(ContentKey.of("a", "b"), ContentValue(ContentType.NAMESPACE, UUID(int=0), b"", ObjectId(0)))

    def variables_of(self, entry: ContentEntry, /) -> dict[str, Any]:
        own = {"contentType": type_text(entry.type), "contentId": str(entry.content_id)}
        return {"entry": key_variables(entry.key) | own}

    @cached_property
    def bounds(self) -> EntryBounds:
        """What the filter demands of an entry before it is evaluated."""
        return _bounds(self.program.tokens)


@dataclass(frozen=True, slots=True)
class EntryBounds:
    """Where the entries that a filter chooses can stand.

    types         the names of their types; None: any
    depth         how many elements their keys have; None: any number
    prefix        how their index keys begin; None: there are none
    is_whole      the filter demands nothing else: what is within the bounds is chosen
    """

    types: frozenset[str] | None = None
    depth: int | None = None
    prefix: bytes | None = b""
    is_whole: bool = True

    def both(self, other: EntryBounds) -> EntryBounds:
        """The bounds of what is within these and within others."""
        types = other.types if self.types is None else self.types if other.types is None else self.types & other.types
        prefix = _longer_prefix(self.prefix, other.prefix)
        if self.depth not in (None, other.depth) and other.depth is not None:
            prefix = None
        return EntryBounds(types, other.depth if self.depth is None else self.depth, prefix, self.is_whole and other.is_whole)

    def has_type(self, kind: ContentType | int) -> bool:
        return self.types is None or type_text(kind) in self.types


def _longer_prefix(one: bytes | None, other: bytes | None) -> bytes | None:
    if one is None or other is None:
        return None
    return one if one.startswith(other) else other if other.startswith(one) else None


_ANYWHERE = EntryBounds(is_whole=False)


def _bounds(tokens: Sequence[FilterToken]) -> EntryBounds:
    bounds = EntryBounds()
    for conjunct in split_conjuncts(tokens):
        bounds = bounds.both(_recognized(conjunct))
    return bounds


_FORMS = {
    "types": r"entry \. contentType == '|' == entry \. contentType|entry \. contentType in \[ '(?: , ')* \]",
    "depth": r"size \( entry \. keyElements \) == 0|0 == size \( entry \. keyElements \)|entry \. keyElements \. size \( \) == 0",
    "begin": r"entry \. encodedKey \. startsWith \( ' \)",
    "below": r"entry \. namespace == '|' == entry \. namespace",
    "either": r"\( entry \. encodedKey == ' \|\| entry \. encodedKey \. startsWith \( ' \) \)",
    "start": r"entry \. encodedKey == '|' == entry \. encodedKey|entry \. namespace \. startsWith \( ' \)",
}
_FORM = re.compile("|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items()))
"""The forms that are recognized, with every text as a quote and every number as 0."""


def _recognized(conjunct: Sequence[FilterToken]) -> EntryBounds:
    """The bounds that a condition means, or those that it implies; no bounds where it is of another form."""
    spelled = " ".join("'" if token.kind == "text" else "0" if token.kind == "number" else token.value for token in conjunct)
    form = _FORM.fullmatch(spelled)
    if form is None:
        return _ANYWHERE
    texts = [token.value for token in conjunct if token.kind == "text"]
    numbers = [token.value for token in conjunct if token.kind == "number"]
    if form["types"]:
        return EntryBounds(types=frozenset(texts))
    if form["depth"]:
        return EntryBounds(depth=int(numbers[0])) if re.fullmatch("[0-9]{1,9}", numbers[0]) else _ANYWHERE
    if form["below"]:
        depth = texts[0].count(".") + 2 if texts[0] else 1
        return EntryBounds(depth=depth, prefix=index_prefix(texts[0] + "." if texts[0] else ""))
    if form["either"] and not texts[1].startswith(texts[0]):
        return _ANYWHERE
    return EntryBounds(prefix=index_prefix(texts[0]), is_whole=bool(form["begin"]))


_WHERE = "?"
"""Stands in no ref."""


def listing_name(of: str, expression: EntryExpression | None) -> str:
    """The name of a listing for its page tokens: the ref, and the filter, which goes on with it."""
    return of if expression is None else f"{of}{_WHERE}{expression.text}"


def read_listing_name(name: str) -> tuple[str, EntryExpression | None]:
    """The ref and the filter of a listing. Raises as ``EntryExpression.parse`` does."""
    of, _, text = name.partition(_WHERE)
    return of, EntryExpression.parse(text) if text else None


def filtered_page(
    head: Head, listing: IndexListing, expression: EntryExpression, *, limit: int | None, after: bytes | None = None
) -> ContentPage:
    """Read the entries of a listing that a filter chooses, in its order, beyond the key ``after``. Raises as ``read_page`` does.

    A page may have fewer entries than its limit, or none, and be followed by another: it ends after so many entries that are not
    chosen that looking at them takes about a tenth of a second.
    """
    scan = _EntryScan(head.index(CONTENT), listing, expression, after)
    read, has_more = take_page(head, lambda _: scan.pick(None if limit is None else _BUDGET), limit=limit)
    entries = tuple(entry for entry in read if isinstance(entry, ContentEntry))
    last = read[-1] if has_more or len(read) > len(entries) else None
    if isinstance(last, ContentEntry):
        last = last.key.to_index()
    return ContentPage(entries, None if last is None else PageToken(head.id, listing, last).as_text(), head.id)


_BUDGET = 100_000
"""Microseconds that a page may spend on entries that are not chosen before it ends: estimated, so that a page is the same every time."""
_ENTRY = 4
"""Microseconds to read one, measured."""


class _EntryScan:
    """One walk over the entries of a listing that may be chosen."""

    def __init__(self, content: Index, listing: IndexListing, expression: EntryExpression, after: bytes | None) -> None:
        self._content = content
        self._reverse = listing.reverse
        self._expression = expression
        self._bounds = bounds = expression.bounds
        prefix = bounds.prefix or b""
        lasts = (listing.end, after_prefix(prefix), after if listing.reverse else None)
        self._start = max(listing.start or b"", prefix, b"" if after is None or listing.reverse else after + b"\0")
        self._end = min((bound for bound in lasts if bound is not None), default=None)
        self._is_empty = bounds.prefix is None or bounds.depth == 0 or bounds.types == frozenset()

    def pick(self, budget: int | None) -> Iterator[ContentEntry | bytes]:
        """The chosen entries. When the budget is used up, the index key of the last one looked at, and no more."""
        spent, evaluation = 0, self._expression.program.micros
        for key, stored in () if self._is_empty else self._within():
            value = None if stored is None else ContentValue.from_value(stored)
            spent += _ENTRY
            if value is not None and self._bounds.has_type(value.type):
                entry = ContentEntry(ContentKey.from_index(key), value)
                if self._bounds.is_whole or self._expression.chooses(entry):
                    yield entry
                    continue
                spent += evaluation
            if budget is not None and spent >= budget:
                yield key
                return

    def _within(self) -> Iterator[tuple[bytes, IndexValue | None]]:
        """The entries; None for one of the wrong depth. Leaps over what is deeper: it stands together, right behind what it is below."""
        start, end, depth = self._start, self._end, self._bounds.depth
        while True:
            for key, value in self._content.range(start or None, end, reverse=self._reverse):
                elements = key.count(b"\0") + 1
                yield key, value if depth in (None, elements) else None
                if depth is not None and elements > depth:
                    above = b"\0".join(key.split(b"\0", depth)[:depth])
                    start, end = (start, above + b"\0") if self._reverse else (above + b"\x01", end)
                    break
            else:
                return
