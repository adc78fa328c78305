"""What a walk reads of objects: what they point to, and of leaves no more than their type."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest

from headwater.errors import CorruptionError
from headwater.store import ObjectId, Pointers, RealmStore, StoredObject, UnknownObject, is_leaf, object_type

INNER, LEAF, STRANGE, ABSENT = ObjectId(1001), ObjectId(1002), ObjectId(1003), ObjectId(1004)


@object_type("test-pointing-inner")
class Inner(StoredObject, frozen=True, kw_only=True):
    targets: tuple[ObjectId, ...] = ()
    padding: bytes = b""

    def points_to(self) -> Iterable[ObjectId]:
        return self.targets


@object_type("test-pointing-leaf")
class Leaf(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@pytest.fixture(params=["cold", "warm"])
def walked(rows: RealmStore, request: pytest.FixtureRequest) -> RealmStore:
    rows.write_objects(
        [(INNER, Inner(targets=(LEAF, ABSENT))), (LEAF, Leaf()), (STRANGE, UnknownObject(name="from-afar", body=b"\x80"))]
    )
    return rows.without_cache() if request.param == "cold" else rows


def alter(rows: RealmStore, object_id: ObjectId) -> None:
    [row] = rows.store.backend.read_objects(rows.key, [(object_id, 0)])
    assert row is not None
    rows.store.backend.write_objects([msgspec.structs.replace(row, value=row.value[:-1])])


def test_object_tells_what_it_points_to(walked: RealmStore) -> None:
    [found] = walked.read_pointing([INNER])

    assert found is not None
    assert found[:3] == Pointers("test-pointing-inner", (LEAF, ABSENT))[:3]


def test_answers_come_in_the_order_asked(walked: RealmStore) -> None:
    leaf, absent, strange, again = walked.read_pointing([LEAF, ABSENT, STRANGE, LEAF])

    assert absent is None
    assert leaf == again
    assert leaf is not None
    assert leaf[:3] == Pointers("test-pointing-leaf", (), is_leaf=True)[:3]
    assert strange is not None
    assert (strange.type, strange.targets, strange.is_leaf) == ("from-afar", None, False)


def test_object_in_parts_is_read_whole(rows: RealmStore) -> None:
    rows.write_objects([(INNER, Inner(targets=(LEAF,), padding=random.Random(1).randbytes(900_000)))])
    [found] = rows.without_cache().read_pointing([INNER])

    assert found is not None
    assert found.targets == (LEAF,)


def test_leaf_is_not_decoded(rows: RealmStore) -> None:
    rows.write_objects([(LEAF, Leaf(text="some"))])
    alter(rows, LEAF)
    [found] = rows.without_cache().read_pointing([LEAF])

    assert found is not None
    assert found.is_leaf


def test_object_that_may_point_on_is_refused_when_altered(rows: RealmStore) -> None:
    rows.write_objects([(INNER, Inner(targets=(LEAF,)))])
    alter(rows, INNER)

    with pytest.raises(CorruptionError, match="checksum"):
        rows.without_cache().read_pointing([INNER])


def test_leaves_are_known_types_that_name_no_targets() -> None:
    assert is_leaf("test-pointing-leaf")
    assert not is_leaf("test-pointing-inner")
    assert not is_leaf("never-heard-of")
