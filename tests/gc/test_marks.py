"""The compact set of marks: exact within its budget, a filter beyond, and the same again after it was persisted."""

import random
from collections.abc import Iterator

import pytest

from headwater.errors import CorruptionError
from headwater.gc.live_set import CHUNK_BYTES, LiveSet
from headwater.gc.retention import KeepReason
from headwater.store import ObjectId

LOTS = 1 << 20
REASONS = (KeepReason.HEAD, KeepReason.GRACE, KeepReason.RETENTION, KeepReason.RECORD)


def shuffled(count: int) -> list[ObjectId]:
    """Even ids; the odd ones between them are never marked."""
    ids = [ObjectId(place * 2) for place in range(count)]
    random.Random(count).shuffle(ids)
    return ids


def full(exact: int, leaves: int, *, expected: int = 0, salt: int = 0) -> LiveSet:
    marks = LiveSet(exact * 10, expected=expected, salt=salt)
    for object_id in range(0, leaves * 2, 2):
        marks.mark_leaf(ObjectId(object_id), KeepReason.HEAD)
    return marks


@pytest.fixture
def many() -> LiveSet:
    marks = LiveSet(LOTS)
    for place, object_id in enumerate(shuffled(20_000)):
        marks.mark(object_id, REASONS[place % 4])
    return marks


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_every_order_of_adding_makes_the_same_set(order: str) -> None:
    ids = shuffled(20_000)
    ids = ids if order == "shuffled" else sorted(ids, reverse=order == "descending")
    marks = LiveSet(LOTS)

    assert all(marks.mark(object_id, KeepReason.HEAD) for object_id in ids)
    assert not any(marks.mark(object_id, KeepReason.GRACE) for object_id in ids)
    assert marks.reasons_of([ObjectId(place) for place in range(40_000)]) == [KeepReason.HEAD, None] * 20_000


def test_first_reason_holds() -> None:
    marks = LiveSet(LOTS)
    marks.mark(ObjectId(5), KeepReason.GRACE)
    marks.mark(ObjectId(5), KeepReason.HEAD)

    assert marks.reason_of(ObjectId(5)) is KeepReason.GRACE


def test_batch_from_all_over_is_judged_as_one_by_one(many: LiveSet) -> None:
    batch = [ObjectId(39_998), ObjectId(3), ObjectId(0), ObjectId(20_000), ObjectId(1 << 62)]

    assert many.reasons_of(batch) == [many.reason_of(object_id) for object_id in batch]
    assert [why is None for why in many.reasons_of(batch)] == [False, True, False, False, True]


def test_batch_of_a_scan_is_judged_with_reasons(many: LiveSet) -> None:
    expected = {object_id: REASONS[place % 4] for place, object_id in enumerate(shuffled(20_000))}
    batch = [ObjectId(place) for place in range(9_000, 10_000)]

    assert many.reasons_of(batch) == [expected.get(object_id) for object_id in batch]


def test_empty_marks_judge_nothing() -> None:
    assert LiveSet(LOTS).reasons_of([ObjectId(1), ObjectId(2)]) == [None, None]
    assert LiveSet(LOTS).reasons_of([]) == []


def test_leaves_beyond_the_budget_are_in_the_filter() -> None:
    marks = full(exact=1000, leaves=3000)

    assert marks.is_full
    assert marks.filter_bytes > 0
    assert (
        marks.reasons_of([ObjectId(place * 2) for place in range(3000)])
        == [KeepReason.HEAD] * 1000 + [KeepReason.FILTER] * 2000
    )
    assert 2950 < len(marks) < 3050


def test_pointers_beyond_the_budget_are_exact_despite_the_filter() -> None:
    marks = full(exact=10, leaves=1000)

    assert marks.reason_of(ObjectId(1998)) is KeepReason.FILTER
    assert marks.mark(ObjectId(1998), KeepReason.GRACE)
    assert marks.reason_of(ObjectId(1998)) is KeepReason.GRACE


def test_filter_sized_right_errs_as_seldom_as_it_says() -> None:
    marks = full(exact=1000, leaves=21_000, expected=21_000)

    wrong = sum(why is not None for why in marks.reasons_of([ObjectId(place * 2 + 1) for place in range(21_000)]))
    assert wrong <= 4
    assert marks.fpp == pytest.approx(1e-5, rel=0.3)
    assert not marks.is_overfull


def test_filter_that_got_too_much_is_over_full() -> None:
    assert full(exact=1000, leaves=4000).is_overfull


def test_filter_with_another_salt_errs_in_others() -> None:
    odd = [ObjectId(place * 2 + 1) for place in range(20_000)]
    first, second = (
        full(exact=1, leaves=4000, salt=salt).reasons_of(odd) for salt in (1_763_000_000_000_000, 1_763_600_000_000_000)
    )
    wrong = [sum(why is not None for why in judged) for judged in (first, second)]
    both = sum(one is not None and other is not None for one, other in zip(first, second, strict=True))

    assert min(wrong) > 1000
    assert both < 1.5 * wrong[0] * wrong[1] / len(odd)


def test_filter_with_every_bit_set_still_tells_a_number() -> None:
    marks = full(exact=1, leaves=40_000)

    assert marks.is_overfull
    assert marks.fpp == 1.0
    assert 25_000 < len(marks) < 60_000


def persisted(marks: LiveSet) -> Iterator[bytes]:
    for chunk in marks.chunks():
        assert len(chunk) <= CHUNK_BYTES
        yield chunk


def test_exact_marks_are_the_same_after_they_were_persisted() -> None:
    marks = LiveSet(LOTS)
    for place, object_id in enumerate(shuffled(70_000)):
        marks.mark(object_id, REASONS[place % 4])
    again = LiveSet.from_chunks(persisted(marks))

    batch = [ObjectId(place) for place in range(140_000)]
    assert again.reasons_of(batch) == marks.reasons_of(batch)
    assert again.mark(ObjectId(70_001), KeepReason.HEAD)
    assert not again.mark(ObjectId(70_000), KeepReason.HEAD)


def test_filter_is_the_same_after_it_was_persisted() -> None:
    marks = full(exact=1000, leaves=150_000, expected=150_000, salt=99)
    again = LiveSet.from_chunks(persisted(marks))

    batch = [ObjectId(place) for place in range(0, 300_000, 7)]
    assert again.reasons_of(batch) == marks.reasons_of(batch)
    assert (again.is_full, again.is_overfull, len(again)) == (True, False, len(marks))
    assert list(again.chunks()) == list(marks.chunks())


def test_empty_marks_survive_too() -> None:
    assert len(LiveSet.from_chunks(LiveSet(LOTS).chunks())) == 0


@pytest.mark.parametrize("lost", [0, 1, 2, -2, -1])
def test_marks_with_a_chunk_missing_are_refused(lost: int) -> None:
    chunks = list(full(exact=70_000, leaves=200_000).chunks())
    del chunks[lost]

    with pytest.raises(CorruptionError, match="marks of a collection cannot be read"):
        LiveSet.from_chunks(chunks)


def test_marks_with_a_chunk_too_many_are_refused(many: LiveSet) -> None:
    chunks = list(many.chunks())

    with pytest.raises(CorruptionError):
        LiveSet.from_chunks([*chunks, chunks[-1]])


def test_marks_with_a_damaged_chunk_are_refused(many: LiveSet) -> None:
    header, first, *rest = many.chunks()

    with pytest.raises(CorruptionError, match="damaged"):
        LiveSet.from_chunks([header, first[:-1] + b"\3", *rest])
