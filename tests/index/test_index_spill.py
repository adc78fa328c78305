"""What moves into stripes, and how these are divided and merged."""

from __future__ import annotations

from random import Random

import pytest
from shelves import MANY, ROOMY, TINY, Shelf, commit, filled, numbered, reopened, stripes_below

from headwater.index import IndexEditor, IndexLimits, IndexValue, StoredIndex, Stripe, StripeList
from headwater.store import ObjectId


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def put(shelf: Shelf, stored: StoredIndex, changes: dict[bytes, IndexValue | None], limits: IndexLimits) -> StoredIndex:
    return commit(shelf, reopened(shelf, stored), changes, limits)


def in_order(shelf: Shelf, count: int, step: int, limits: IndexLimits) -> StoredIndex:
    """An index that was filled with so many entries, some in each commit."""
    content = list(numbered(count).items())
    stored = filled(shelf, 0, limits)
    for at in range(0, count, step):
        stored = put(shelf, stored, dict(content[at : at + step]), limits)
    return stored


def kinds(stored: StoredIndex) -> list[str]:
    return [value.type_name for _, value in stored.objects]


def test_index_within_its_limit_lies_in_the_commit_alone(shelf: Shelf) -> None:
    stored = filled(shelf, 10, ROOMY)

    assert (stored.container.levels, stored.container.spilled, stored.objects) == (0, b"", [])


def test_entries_beyond_the_limit_move_into_stripes(shelf: Shelf) -> None:
    stored = filled(shelf, 100, ROOMY)

    assert set(kinds(stored)) == {"stripe"}
    assert (stored.container.levels, len(stored.container.embedded) <= ROOMY.embedded_bytes) == (1, True)


def test_no_stripe_is_larger_than_its_limit(shelf: Shelf) -> None:
    stored = filled(shelf, 3000, ROOMY)

    assert max(len(stripe.entries) for stripe in stripes_below(shelf, stored.container)) <= ROOMY.stripe_bytes


def test_many_stripes_get_lists(shelf: Shelf) -> None:
    stored = filled(shelf, 2000, MANY)

    assert stored.container.levels == 2
    assert set(kinds(stored)) == {"stripe", "stripe-list"}
    assert list(reopened(shelf, stored).range()) == sorted(numbered(2000).items())


def test_fullest_range_alone_moves_and_the_rest_stays_embedded(shelf: Shelf) -> None:
    before = filled(shelf, 100, ROOMY)
    hot: dict[bytes, IndexValue | None] = {b"000003": IndexValue(None, b"hot")}
    crowd: dict[bytes, IndexValue | None] = {b"000090/%d" % number: IndexValue(None) for number in range(60)}
    after = put(shelf, before, hot | crowd, ROOMY)

    assert after.container.page.between(0, after.container.page.count) == [*hot.items()]
    assert reopened(shelf, after).get(b"000003") == IndexValue(None, b"hot")


def test_change_that_fits_writes_nothing_but_the_commit(shelf: Shelf) -> None:
    after = put(shelf, filled(shelf, 2000, MANY), {b"000200": IndexValue(None, b"new")}, MANY)

    assert after.objects == []


def test_spill_into_lists_leaves_their_stripes_alone(shelf: Shelf) -> None:
    before = filled(shelf, 2000, MANY)
    after = put(shelf, before, {b"%06d" % number: IndexValue(None) for number in range(0, 2000, 25)}, MANY)

    assert set(kinds(after)) == {"stripe-list"}


def test_spill_reads_each_level_in_one_go(shelf: Shelf) -> None:
    index = reopened(shelf, filled(shelf, 2000, MANY))
    editor = IndexEditor(index)
    editor.get_many([key + b"/new" for key in numbered(2000)])
    for key in numbered(2000):
        editor.put(key + b"/new", IndexValue(None))
    shelf.asked.clear()
    editor.stored(shelf.new_ids, MANY)

    assert [{shelf.rows[object_id][0] for object_id in asked} for asked in shelf.asked] == [{"stripe-list"}, {"stripe"}]


def test_entry_too_large_to_stay_embedded_moves_at_once(shelf: Shelf) -> None:
    stored = filled(shelf, 10, IndexLimits(embedded_bytes=2000, stripe_bytes=2000))
    after = put(shelf, stored, {b"large": IndexValue(None, bytes(1001))}, IndexLimits(embedded_bytes=2000, stripe_bytes=2000))

    assert (stored.container.levels, after.container.levels) == (0, 1)


def test_entry_larger_than_a_stripe_gets_one_of_its_own(shelf: Shelf) -> None:
    large = Random(1).randbytes(5000)
    after = put(shelf, filled(shelf, 100, ROOMY), {b"000050/large": IndexValue(None, large)}, ROOMY)
    counts = {len(stripe.entries) > ROOMY.stripe_bytes: stripe.page.count for stripe in stripes_below(shelf, after.container)}

    assert counts[True] == 1
    assert reopened(shelf, after).get(b"000050/large") == IndexValue(None, large)


def test_changed_value_leaves_the_packed_keys_of_its_stripe(shelf: Shelf) -> None:
    limits = IndexLimits(embedded_bytes=256, stripe_bytes=4096)
    before = filled(shelf, 200, limits)
    after = put(shelf, before, {b"%06d" % number: IndexValue(ObjectId(7), b"%d" % number) for number in range(20)}, limits)
    (one, *_), (other, *_) = stripes_below(shelf, before.container), stripes_below(shelf, after.container)

    assert one.entries != other.entries
    assert one.entries[-one.page.key_bytes :] == other.entries[-other.page.key_bytes :]


def test_stripes_with_equal_entries_have_equal_bytes(shelf: Shelf) -> None:
    limits = IndexLimits(embedded_bytes=64, stripe_bytes=1 << 20)
    content = list(numbered(300).items())
    stored = filled(shelf, 0, limits)
    Random(1).shuffle(content)
    for at in range(0, 300, 30):
        wrong: dict[bytes, IndexValue | None] = {key: IndexValue(ObjectId(1 << 50), b"else") for key, _ in content[at : at + 5]}
        gone: dict[bytes, IndexValue | None] = {b"gone": IndexValue(None, b"soon")}
        stored = put(shelf, stored, wrong | gone, limits)
        stored = put(shelf, stored, dict(content[at : at + 30]) | dict.fromkeys(gone), limits)

    assert stripes_below(shelf, stored.container) == stripes_below(shelf, filled(shelf, 300, limits).container)


def test_small_neighbours_are_merged(shelf: Shelf) -> None:
    before = filled(shelf, 1000, ROOMY)
    after = put(shelf, before, {b"%06d" % number: None for number in range(1000) if number % 10}, ROOMY)
    stripes = stripes_below(shelf, after.container)

    assert len(stripes) < len(stripes_below(shelf, before.container)) / 3
    assert list(reopened(shelf, after).keys()) == [b"%06d" % number for number in range(0, 1000, 10)]


def test_stripes_that_lost_all_entries_are_dropped(shelf: Shelf) -> None:
    before = filled(shelf, 1000, ROOMY)
    after = put(shelf, before, {b"%06d" % number: None for number in range(500)}, ROOMY)

    assert all(stripe.page.count for stripe in stripes_below(shelf, after.container))
    assert next(reopened(shelf, after).keys()) == b"000500"


def test_index_without_entries_has_no_stripes(shelf: Shelf) -> None:
    after = put(shelf, filled(shelf, 2000, MANY), dict.fromkeys(numbered(2000)), MANY)

    assert (after.container, after.objects) == (filled(shelf, 0, ROOMY).container, [])


def test_index_that_was_emptied_can_be_filled_again(shelf: Shelf) -> None:
    stored = filled(shelf, 1000, TINY)
    for _ in range(2):
        stored = put(shelf, stored, dict.fromkeys(numbered(1000)), TINY)
        stored = put(shelf, stored, dict(numbered(1000)), TINY)

    assert list(reopened(shelf, stored).range()) == sorted(numbered(1000).items())


def test_keys_that_come_in_order_fill_their_stripes(shelf: Shelf) -> None:
    limits = IndexLimits(embedded_bytes=256, stripe_bytes=2048)
    stored = in_order(shelf, 600, 5, limits)
    sizes = [len(stripe.entries) for stripe in stripes_below(shelf, stored.container)]

    assert sum(sizes) / len(sizes) > 0.7 * limits.stripe_bytes
    assert list(reopened(shelf, stored).range()) == list(numbered(600).items())


def test_keys_that_come_in_order_fill_their_lists(shelf: Shelf) -> None:
    stored = in_order(shelf, 1500, 30, TINY)

    assert len(stripes_below(shelf, stored.container)) / len(stored.container.children) > 30


def test_removal_in_a_list_hides_the_entry_in_its_stripe(shelf: Shelf) -> None:
    gone = dict.fromkeys(list(numbered(2000))[::25])
    after = put(shelf, filled(shelf, 2000, MANY), gone, MANY)
    index = reopened(shelf, after)

    assert set(kinds(after)) == {"stripe-list"}
    assert (len(index), index.get_many(gone)) == (1920, {})
    assert gone.keys().isdisjoint(index.keys())


def test_length_is_known_without_reading_a_stripe(shelf: Shelf) -> None:
    index = reopened(shelf, filled(shelf, 1000, TINY))
    shelf.asked.clear()

    assert (len(index), shelf.asked) == (1000, [])


def test_index_points_to_its_children_and_to_their_targets(shelf: Shelf) -> None:
    before = filled(shelf, 2000, MANY)
    stored = put(shelf, before, {b"000007": IndexValue(ObjectId(99_999)), b"000008": None}, MANY)
    waiting, found = list(stored.container.points_to()), set[ObjectId]()
    while waiting:
        found.add(object_id := waiting.pop())
        if object_id in shelf.rows:
            cls = Stripe if shelf.rows[object_id][0] == "stripe" else StripeList
            waiting += [target for part in shelf.read_many([object_id], cls) if part for target in part.points_to()]

    assert found == {*range(1, 2001), 99_999, *(object_id for object_id, _ in before.objects)}
