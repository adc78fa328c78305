"""A scan over many indexes that share stripes: it reads each stripe once, not once for each index."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from headwater.index.index_nodes import Children, EntryPage, IndexContainer, Stripe, StripeList, StripeReader, load_stripes
from headwater.store import ObjectId

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
