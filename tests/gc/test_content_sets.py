"""The compact set of content ids that decides which claims are released."""

import random
from uuid import UUID

import pytest

from headwater.gc.live_set import ContentIdSet

COUNT = 30_000


def ids(seed: int, count: int = COUNT) -> list[UUID]:
    chance = random.Random(seed)
    return [UUID(int=chance.getrandbits(128)) for _ in range(count)]


@pytest.fixture
def contents() -> ContentIdSet:
    """All of the first ids, the first half of them twice."""
    made = ContentIdSet()
    made.add_ids(one.bytes for one in ids(1) + ids(1)[: COUNT // 2])
    return made


def test_element_that_was_added_is_there_and_counted_once(contents: ContentIdSet) -> None:
    assert all(one in contents for one in ids(1))
    assert len(contents) == COUNT


def test_element_that_was_not_added_is_not_there(contents: ContentIdSet) -> None:
    assert not any(one in contents for one in ids(2))


def test_ids_that_follow_one_another_are_told_apart() -> None:
    made = ContentIdSet()
    made.add_ids(number.to_bytes(16, "big") for number in range(0, 2000, 2))

    assert [UUID(int=number) in made for number in range(2000)] == [True, False] * 1000


def test_set_is_the_same_after_it_was_persisted(contents: ContentIdSet) -> None:
    again = ContentIdSet.from_chunks(contents.chunks())

    assert all(one in again for one in ids(1))
    assert len(again) == COUNT


def test_more_can_be_added_to_what_was_persisted(contents: ContentIdSet) -> None:
    again = ContentIdSet.from_chunks(contents.chunks())
    again.add_ids(one.bytes for one in ids(2))

    assert len(again) == 2 * COUNT
