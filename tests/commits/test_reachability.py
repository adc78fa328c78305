"""The walk over what objects say that they point to."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from headwater.commits import mark_reachable
from headwater.errors import CorruptionError
from headwater.store import ObjectId, RealmStore, StoredObject, UnknownObject, object_type


@object_type("test-node")
class Node(StoredObject, frozen=True, kw_only=True):
    targets: tuple[ObjectId, ...] = ()

    def points_to(self) -> Iterable[ObjectId]:
        return self.targets


class Marks(dict[ObjectId, ObjectId | None]):
    def mark(self, object_id: ObjectId, parent: ObjectId | None) -> bool:
        is_new = object_id not in self
        self.setdefault(object_id, parent)
        return is_new


def node(*targets: int) -> Node:
    return Node(targets=tuple(ObjectId(target) for target in targets))


@pytest.fixture
def marks() -> Marks:
    return Marks()


def test_objects_are_marked_just_if_the_roots_lead_there(rows: RealmStore, marks: Marks) -> None:
    graph = {1: node(2, 3), 2: node(4), 3: node(4, 1), 4: node(), 5: node(4), 6: node()}
    rows.write_objects([(ObjectId(number), made) for number, made in graph.items()])
    mark_reachable(rows, [ObjectId(1), ObjectId(6)], marks.mark)

    assert set(marks) == {1, 2, 3, 4, 6}
    assert (marks[1], marks[2], marks[6]) == (None, 1, None)


def test_long_chain_and_a_wide_fan_are_walked(rows: RealmStore, marks: Marks) -> None:
    chain = [(ObjectId(number), node(number + 1)) for number in range(1, 1500)]
    fan = [(ObjectId(number), node()) for number in range(1501, 2000)]
    rows.write_objects([*chain, (ObjectId(1500), node(*range(1501, 2000))), *fan])
    mark_reachable(rows, [ObjectId(1)], marks.mark)

    assert len(marks) == 1999


def test_missing_object_on_the_way_stops_the_walk(rows: RealmStore, marks: Marks) -> None:
    rows.write_objects([(ObjectId(1), node(2))])
    with pytest.raises(CorruptionError, match=r"0000000000000002 .*not there"):
        mark_reachable(rows, [ObjectId(1)], marks.mark)


def test_unknown_type_on_the_way_stops_the_walk(rows: RealmStore, marks: Marks) -> None:
    rows.write_objects([(ObjectId(1), node(2)), (ObjectId(2), UnknownObject(name="from-the-future", body=b"\x80"))])
    with pytest.raises(CorruptionError, match="'from-the-future', which this release does not know"):
        mark_reachable(rows, [ObjectId(1)], marks.mark)
