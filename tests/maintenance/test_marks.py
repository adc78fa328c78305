"""The compact set of marks: exact within its budget, a filter beyond, and the same again after it was persisted."""

import random
from collections.abc import Iterator

import pytest

from headwater.errors import UnreadableError
from headwater.maintenance.garbage.marks import CHUNK_BYTES, Marks
from headwater.maintenance.garbage.retention import Why
from headwater.store import ObjectId

LOTS = 1 << 20
REASONS = (Why.HEAD, Why.GRACE, Why.RETENTION, Why.RECORD)


def shuffled(count: int) -> list[ObjectId]:
    """Even ids; the odd ones between them are never marked."""
    ids = [ObjectId(place * 2) for place in range(count)]
    random.Random(count).shuffle(ids)
    return ids


def full(exact: int, leaves: int, *, expected: int = 0, salt: int = 0) -> Marks:
    marks = Marks(exact * 10, expected=expected, salt=salt)
    for object_id in range(0, leaves * 2, 2):
        marks.add_leaf(ObjectId(object_id), Why.HEAD)
    return marks


@pytest.fixture
def many() -> Marks:
    marks = Marks(LOTS)
    for place, object_id in enumerate(shuffled(20_000)):
        marks.add(object_id, REASONS[place % 4])
    return marks


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_every_order_of_adding_makes_the_same_set(order: str) -> None:
    ids = shuffled(20_000)
    ids = ids if order == "shuffled" else sorted(ids, reverse=order == "descending")
    marks = Marks(LOTS)

    assert all(marks.add(object_id, Why.HEAD) for object_id in ids)
    assert not any(marks.add(object_id, Why.GRACE) for object_id in ids)
    assert marks.judge([ObjectId(place) for place in range(40_000)]) == [Why.HEAD, None] * 20_000


def test_the_first_reason_holds() -> None:
    marks = Marks(LOTS)
    marks.add(ObjectId(5), Why.GRACE)
    marks.add(ObjectId(5), Why.HEAD)

    assert marks.find(ObjectId(5)) is Why.GRACE


def test_a_batch_from_all_over_is_judged_as_one_by_one(many: Marks) -> None:
    batch = [ObjectId(39_998), ObjectId(3), ObjectId(0), ObjectId(20_000), ObjectId(1 << 62)]

    assert many.judge(batch) == [many.find(object_id) for object_id in batch]
    assert [why is None for why in many.judge(batch)] == [False, True, False, False, True]


def test_a_batch_of_a_scan_is_judged_with_the_reason_of_each(many: Marks) -> None:
    expected = {object_id: REASONS[place % 4] for place, object_id in enumerate(shuffled(20_000))}
    batch = [ObjectId(place) for place in range(9_000, 10_000)]

    assert many.judge(batch) == [expected.get(object_id) for object_id in batch]


def test_nothing_is_judged_by_empty_marks() -> None:
    assert Marks(LOTS).judge([ObjectId(1), ObjectId(2)]) == [None, None]
    assert Marks(LOTS).judge([]) == []


def test_leaves_beyond_the_budget_go_to_the_filter_and_none_is_denied() -> None:
    marks = full(exact=1000, leaves=3000)

    assert marks.is_full
    assert marks.filter_bytes > 0
    assert marks.judge([ObjectId(place * 2) for place in range(3000)]) == [Why.HEAD] * 1000 + [Why.FILTER] * 2000
    assert 2950 < len(marks) < 3050


def test_what_points_to_something_is_exact_beyond_the_budget_also_where_the_filter_claims_it() -> None:
    marks = full(exact=10, leaves=1000)

    assert marks.find(ObjectId(1998)) is Why.FILTER
    assert marks.add(ObjectId(1998), Why.GRACE)
    assert marks.find(ObjectId(1998)) is Why.GRACE


def test_a_filter_sized_right_errs_as_seldom_as_it_says() -> None:
    marks = full(exact=1000, leaves=21_000, expected=21_000)

    wrong = sum(why is not None for why in marks.judge([ObjectId(place * 2 + 1) for place in range(21_000)]))
    assert wrong <= 4
    assert marks.fpp == pytest.approx(1e-5, rel=0.3)
    assert not marks.is_overfull


def test_a_filter_that_got_more_than_it_was_sized_for_is_over_full() -> None:
    assert full(exact=1000, leaves=4000).is_overfull


def test_with_another_salt_a_filter_errs_in_others() -> None:
    odd = [ObjectId(place * 2 + 1) for place in range(20_000)]
    first, second = (
        full(exact=1, leaves=4000, salt=salt).judge(odd) for salt in (1_763_000_000_000_000, 1_763_600_000_000_000)
    )
    wrong = [sum(why is not None for why in judged) for judged in (first, second)]
    both = sum(one is not None and other is not None for one, other in zip(first, second, strict=True))

    assert min(wrong) > 1000
    assert both < 1.5 * wrong[0] * wrong[1] / len(odd)


def test_a_filter_of_which_every_bit_is_set_still_tells_a_number() -> None:
    marks = full(exact=1, leaves=40_000)

    assert marks.is_overfull
    assert marks.fpp == 1.0
    assert 25_000 < len(marks) < 60_000


def persisted(marks: Marks) -> Iterator[bytes]:
    for chunk in marks.chunks():
        assert len(chunk) <= CHUNK_BYTES
        yield chunk


def test_exact_marks_are_the_same_after_they_were_persisted() -> None:
    marks = Marks(LOTS)
    for place, object_id in enumerate(shuffled(70_000)):
        marks.add(object_id, REASONS[place % 4])
    again = Marks.from_chunks(persisted(marks))

    batch = [ObjectId(place) for place in range(140_000)]
    assert again.judge(batch) == marks.judge(batch)
    assert again.add(ObjectId(70_001), Why.HEAD)
    assert not again.add(ObjectId(70_000), Why.HEAD)


def test_a_filter_is_the_same_after_it_was_persisted() -> None:
    marks = full(exact=1000, leaves=150_000, expected=150_000, salt=99)
    again = Marks.from_chunks(persisted(marks))

    batch = [ObjectId(place) for place in range(0, 300_000, 7)]
    assert again.judge(batch) == marks.judge(batch)
    assert (again.is_full, again.is_overfull, len(again)) == (True, False, len(marks))
    assert list(again.chunks()) == list(marks.chunks())


def test_empty_marks_survive_too() -> None:
    assert len(Marks.from_chunks(Marks(LOTS).chunks())) == 0


@pytest.mark.parametrize("lost", [0, 1, 2, -2, -1])
def test_marks_with_a_chunk_missing_are_refused(lost: int) -> None:
    chunks = list(full(exact=70_000, leaves=200_000).chunks())
    del chunks[lost]

    with pytest.raises(UnreadableError, match="marks of a collection cannot be read"):
        Marks.from_chunks(chunks)


def test_marks_with_a_chunk_too_many_are_refused(many: Marks) -> None:
    chunks = list(many.chunks())

    with pytest.raises(UnreadableError):
        Marks.from_chunks([*chunks, chunks[-1]])


def test_marks_with_a_damaged_chunk_are_refused(many: Marks) -> None:
    header, first, *rest = many.chunks()

    with pytest.raises(UnreadableError, match="damaged"):
        Marks.from_chunks([header, first[:-1] + b"\3", *rest])
