"""Every backend: new objects that meet others under their ids, as where two processes make ids with one node number."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from headwater.errors import CollisionError
from headwater.store import Backend, ObjectRow
from specimens import find_reference, in_parts, key, read_object, reference, row, scan

NEW = reference(pointer=100, version=6)
Write = Callable[[Backend, list[ObjectRow]], None]


def commit(backend: Backend, rows: list[ObjectRow]) -> None:
    backend.write_and_swap(rows, reference(), NEW)


def write(backend: Backend, rows: list[ObjectRow]) -> None:
    backend.write_objects(rows, are_new=True)


@pytest.fixture(autouse=True)
def _branch(backend: Backend) -> None:
    backend.create_reference(reference())


@pytest.mark.parametrize("write", [commit, write])
@pytest.mark.parametrize("others", [0, 1, 8, 300])
@pytest.mark.parametrize(
    "there",
    [[row(100, value=b"other")], [msgspec.structs.replace(row(100), type="other")], in_parts(100, b"other", b"parts")],
    ids=["another value", "another type", "in parts"],
)
def test_new_object_that_meets_other_bytes_replaces_nothing(
    backend: Backend, there: list[ObjectRow], others: int, write: Write
) -> None:
    backend.write_objects(there)
    with pytest.raises(
        CollisionError, match="already exists with different content: another process uses the same node number"
    ):
        write(backend, [*(row(number) for number in range(200, 200 + others)), row(100)])

    assert read_object(backend, 100) == there[0]
    assert find_reference(backend) == reference()
    assert sorted(one for one in scan(backend) if one.id == 100) == [key(one) for one in there]


@pytest.mark.parametrize("others", [0, 8])
def test_commit_that_collides_writes_no_objects_where_it_is_declared(backend: Backend, others: int) -> None:
    backend.write_objects([row(100, value=b"other")])
    with pytest.raises(CollisionError):
        commit(backend, [*(row(number) for number in range(200, 200 + others)), row(100)])

    assert len(scan(backend)) == 1 or not backend.capabilities.atomic_commits


@pytest.mark.parametrize("write", [commit, write])
def test_object_that_meets_its_own_bytes_was_written_before(backend: Backend, write: Write) -> None:
    rows = [row(100), row(101, token="a"), *in_parts(50, b"a", b"b")]
    backend.write_objects(rows[:2])
    write(backend, rows)

    assert sorted(scan(backend)) == sorted(key(one) for one in rows)


def test_one_that_is_replaced_on_purpose_meets_no_collision(backend: Backend) -> None:
    backend.write_objects([row(100, value=b"other")])
    backend.write_objects([row(100)])

    assert read_object(backend, 100) == row(100)
