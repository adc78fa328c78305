"""What is read of an index, in how many goes; and that what cannot be read is never an absent key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shelves import MANY, Shelf, filled, numbered, reopened

from headwater.errors import CorruptionError
from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue, Stripe, StripeList
from headwater.store import ObjectId, id_text
from headwater.store.stored_objects import encode_object

KEY = b"001000"


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def index(shelf: Shelf) -> Index:
    """Numbers 0 to 1999, in stripes of about 7 below lists."""
    made = reopened(shelf, filled(shelf, 2000, MANY))
    shelf.asked.clear()
    return made


def bulks(shelf: Shelf, kind: str) -> list[int]:
    """How many objects of a kind every bulk read asked for."""
    return [len(asked) for asked in shelf.asked if shelf.rows[asked[0]][0] == kind]


def stripe_of(shelf: Shelf, index: Index, key: bytes) -> ObjectId:
    shelf.asked.clear()
    index.get(key)
    return shelf.asked[-1][0]


def test_point_is_read_from_one_list_and_one_stripe(shelf: Shelf, index: Index) -> None:
    assert index.get(KEY) == numbered(2000)[KEY]
    assert (bulks(shelf, "stripe-list"), bulks(shelf, "stripe")) == ([1], [1])


def test_many_points_are_read_with_one_bulk_a_level(shelf: Shelf, index: Index) -> None:
    wanted = [*reversed(numbered(2000)), b"absent"]

    assert index.get_many(wanted) == numbered(2000)
    assert (len(bulks(shelf, "stripe-list")), len(bulks(shelf, "stripe"))) == (1, 1)


def test_points_are_given_in_the_order_of_asking(index: Index) -> None:
    assert list(index.get_many([b"000900", b"000100", b"000900"])) == [b"000900", b"000100"]


@pytest.mark.parametrize("reverse", [False, True])
def test_range_is_read_ahead_in_growing_bulks(shelf: Shelf, index: Index, reverse: bool) -> None:
    assert sum(1 for _ in index.range(reverse=reverse)) == 2000
    assert bulks(shelf, "stripe")[:4] == [1, 2, 4, 8]
    assert max(bulks(shelf, "stripe")) == 16


@pytest.mark.parametrize("reverse", [False, True])
def test_range_reads_no_more_than_its_limit_asks_for(shelf: Shelf, index: Index, reverse: bool) -> None:
    assert sum(1 for _ in index.range(b"000300", b"001700", reverse=reverse, limit=40)) == 40
    assert sum(bulks(shelf, "stripe")) <= 40 / 7 + 3


def test_range_reads_no_stripe_beyond_its_bounds(shelf: Shelf, index: Index) -> None:
    assert list(index.keys(KEY, KEY + b"\0")) == [KEY]
    assert bulks(shelf, "stripe") == [1]


def test_empty_range_reads_nothing(shelf: Shelf, index: Index) -> None:
    assert (list(index.range(b"2", b"1")), list(index.range(KEY, KEY)), list(index.range(limit=0))) == ([], [], [])
    assert shelf.asked == []


def test_range_that_is_not_read_on_reads_nothing_more(shelf: Shelf, index: Index) -> None:
    reading = index.range()
    next(reading)

    assert sum(bulks(shelf, "stripe")) == 1


@pytest.mark.parametrize(
    "read",
    [
        lambda index: index.get(KEY),
        lambda index: KEY in index,
        lambda index: index.get_many([KEY]),
        lambda index: list(index.range(limit=2000)),
        lambda index: list(index.keys(KEY, reverse=True)),
        lambda index: IndexEditor(index).put(KEY, IndexValue(None)),
        lambda index: IndexEditor(index).remove(KEY),
    ],
)
def test_missing_stripe_is_an_error_that_names_it(shelf: Shelf, index: Index, read: Callable[[Index], object]) -> None:
    missing = stripe_of(shelf, index, KEY)
    del shelf.rows[missing]
    with pytest.raises(CorruptionError, match=f"stripe {id_text(missing)} of an index in realm 'acme': it is not there"):
        read(index)


def test_spill_that_cannot_read_a_stripe_stores_nothing(shelf: Shelf, index: Index) -> None:
    editor = IndexEditor(index)
    for key in numbered(2000):
        editor.put(key, IndexValue(None))
    del shelf.rows[stripe_of(shelf, index, KEY)]
    with pytest.raises(CorruptionError, match="is not there"):
        editor.stored(shelf.new_ids, MANY)


def test_changed_byte_of_a_stripe_is_noticed(shelf: Shelf, index: Index) -> None:
    damaged = stripe_of(shelf, index, KEY)
    kind, envelope = shelf.rows[damaged]
    for at in range(len(envelope)):
        shelf.rows[damaged] = (kind, envelope[:at] + bytes([envelope[at] ^ 1]) + envelope[at + 1 :])
        with pytest.raises(CorruptionError, match=id_text(damaged)):
            index.get(KEY)


def test_stripe_of_a_later_format_is_named(shelf: Shelf, index: Index) -> None:
    later = stripe_of(shelf, index, KEY)
    shelf.rows[later] = encode_object(later, Stripe(entries=b"\3" + bytes(20)))
    with pytest.raises(CorruptionError, match=f"stripe {id_text(later)} .*: index format 3; this release reads 2"):
        index.get(KEY)


def test_index_of_more_levels_is_of_a_later_release() -> None:
    container = filled(Shelf(), 0, MANY).container
    later = Index(IndexContainer(1, container.embedded, container.embedded, 3), Shelf())
    with pytest.raises(CorruptionError, match="3 levels"):
        later.get(KEY)


def test_spilled_index_needs_the_objects_that_hold_it(shelf: Shelf, index: Index) -> None:
    alone = Index(filled(shelf, 2000, MANY).container)

    assert len(alone) == 2000
    with pytest.raises(CorruptionError, match="without the objects"):
        alone.get(KEY)


def test_stripe_that_its_writer_knows_is_not_decoded_again(shelf: Shelf) -> None:
    stored = filled(shelf, 2000, MANY)

    assert {"page", "children"} <= vars(stored.container).keys()
    assert all("page" in vars(part) for _, part in stored.objects)


def test_stripes_are_stored_as_they_are(shelf: Shelf) -> None:
    limits = IndexLimits(embedded_bytes=1024, stripe_bytes=65536)
    filled(shelf, 1000, limits)

    assert {kind: envelope[1] for kind, envelope in shelf.rows.values()} == {"stripe": 0}
    assert (Stripe.compressed, StripeList.compressed) == (False, False)
