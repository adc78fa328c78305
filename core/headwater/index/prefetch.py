"""Loads stripes and lists, with read-ahead. A missing stripe is an error, never an absent key.

A shared scan over many indexes reads each stripe once, not once for each index.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from headwater.errors import CorruptionError
from headwater.index.index_nodes import Children, IndexContainer, Stripe, StripeList, StripeReader
from headwater.index.page import EntryPage
from headwater.store import ObjectId, id_text

P = TypeVar("P", Stripe, StripeList)
_MOST = 16


def load_stripes(objects: StripeReader | None, object_ids: Sequence[ObjectId], cls: type[P]) -> list[P]:
    """Load parts of an index in one bulk read.

    raises        CorruptionError that names the part, when one is missing or damaged
    """
    present = _present(objects)
    found = present.read_many(object_ids, cls)
    return [_opened(present, object_id, part, cls) for object_id, part in zip(object_ids, found, strict=True)]


def load_stripe(objects: StripeReader | None, object_id: ObjectId, cls: type[P]) -> P:
    """Load one part of an index; see ``load_stripes``."""
    present = _present(objects)
    return _opened(present, object_id, present.read_many((object_id,), cls)[0], cls)


class ReadAheadWindow:
    """How many objects a range reads ahead: 1, 2, 4 ... 16, and no more than it takes for what is left to be read.

    left          how many entries are wanted yet; None: all
    """

    def __init__(self, left: int | None) -> None:
        self._left = left
        self._next = 1
        self._read = 0
        self._entries = 0

    def step(self) -> int:
        """How many objects to read now."""
        step, self._next = self._next, min(2 * self._next, _MOST)
        if self._left is not None and self._read:
            each = max(self._entries // self._read, 1)
            step = min(step, max(-(-self._left // each), 1))
        return step

    def record_read(self, objects: int, entries: int) -> None:
        """So many were read, with so many entries in the range."""
        self._read += objects
        self._entries += entries
        if self._left is not None:
            self._left -= entries


def load_ahead(
    objects: StripeReader | None, object_ids: Sequence[ObjectId], cls: type[P], pace: ReadAheadWindow
) -> Iterator[P]:
    """Yield parts one after another, reading ahead in growing bulks."""
    at = 0
    while at < len(object_ids):
        step = pace.step()
        yield from load_stripes(objects, object_ids[at : at + step], cls)
        at += step


def _present(objects: StripeReader | None) -> StripeReader:
    if objects is None:
        raise CorruptionError("an index with spilled parts was opened without the objects that hold them")
    return objects


def _opened(objects: StripeReader, object_id: ObjectId, part: P | None, cls: type[P]) -> P:
    """Check that a part exists and holds a page of this release."""
    fault: Exception | None = None
    if part is not None:
        if vars(part):  # it was opened before
            return part
        try:
            assert part.page
            return part
        except CorruptionError as raised:
            fault = raised
    realm = getattr(objects, "realm", None)
    place = "" if realm is None else f" in realm {realm!r}"
    raise CorruptionError(
        f"{cls.type_name} {id_text(object_id)} of an index{place}: {fault or 'it is not there'}. Run `headwater fsck`"
    ) from fault


_AT_ONCE = 8


class SharedIndexScan:
    """Visits indexes one after another and yields the data of their entries.

    An entry that an index hides (by a change above its stripe) is not yielded for that index. So a stripe of which an index hides
    nothing is yielded in full, once; other stripes are yielded again for each index that hides some of their entries.

    is_new        records an object, and returns whether this was the first time
    was_met       returns whether an object was recorded
    """

    def __init__(
        self, objects: StripeReader, *, is_new: Callable[[ObjectId], bool], was_met: Callable[[ObjectId], bool]
    ) -> None:
        self._objects = objects
        self._is_new = is_new
        self._was_met = was_met

    def data(self, container: IndexContainer) -> Iterator[Sequence[bytes]]:
        """The data of the entries of an index, in no order, in batches; without those in stripes that were yielded in full.

        raises        CorruptionError when a part is missing or damaged
        """
        yield _alive(container.page, ())
        hidden = _keys(container.page)
        if container.levels == 1:
            yield from self._stripes(container.children, hidden)
        elif container.levels == 2:
            yield from self._lists(container.children, hidden)

    def _lists(self, children: Children, hidden: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        for some in _handfuls(self._wanted(children, hidden)):
            ids = [object_id for object_id, _ in some]
            for (object_id, above), found in zip(some, load_stripes(self._objects, ids, StripeList), strict=True):
                yield _alive(found.page, above)
                yield from self._stripes(found.children, sorted({*above, *_keys(found.page)}))
                if not above:
                    self._is_new(object_id)

    def _stripes(self, children: Children, hidden: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        for some in _handfuls(self._wanted(children, hidden)):
            ids = [object_id for object_id, _ in some]
            for (object_id, above), found in zip(some, load_stripes(self._objects, ids, Stripe), strict=True):
                yield _alive(found.page, above) if above else found.page.all_data()
                if not above:
                    self._is_new(object_id)

    def _wanted(self, children: Children, hidden: Sequence[bytes]) -> list[tuple[ObjectId, Sequence[bytes]]]:
        """The children that were not yielded in full yet, each with the keys above it that hide its entries."""
        ends = [bisect_left(hidden, bound) for bound in children.bounds[1:]]
        spans = zip([0, *ends], [*ends, len(hidden)], strict=True)
        return [
            (object_id, hidden[start:end])
            for object_id, (start, end) in zip(children.object_ids, spans, strict=True)
            if not self._was_met(object_id)
        ]


def _alive(page: EntryPage, hidden: Sequence[bytes]) -> list[bytes]:
    """The data of a page's entries, without removals and without what is hidden."""
    gone = {page.position(key) for key in hidden}
    values = page.values(0, page.count)
    return [value.data for at, value in enumerate(values) if value is not None and at not in gone]


def _keys(page: EntryPage) -> list[bytes]:
    return page.keys.between(0, page.count)


def _handfuls(wanted: list[tuple[ObjectId, Sequence[bytes]]]) -> Iterator[list[tuple[ObjectId, Sequence[bytes]]]]:
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]
