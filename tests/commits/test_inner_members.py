"""Inner members of groups: commits without indexes, which read as their group's base and the operations up to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from faulty_backend import FaultyBackend
from headwater.commits import Commit, CommitResult, commit_change, read_commit, read_head
from headwater.errors import CorruptionError, ExpiredError, HeadwaterError
from headwater.index import IndexValue
from headwater.store import ObjectId, RealmStore, StoredObject, object_type
from stored_groups import Edits, write_group, write_group_on

Put = Callable[..., CommitResult[None]]


@object_type("test-gem")
class Gem(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@pytest.fixture
def store_url() -> str:
    """How they are read has nothing to do with the database."""
    return "memory://"


def held(rows: RealmStore, commit_id: ObjectId, index: str = "things") -> dict[bytes, bytes]:
    return {key: value.data for key, value in read_commit(rows, commit_id).index(index).range()}


def numbered(count: int) -> list[Edits]:
    """One put each, of the key of its number."""
    return [{b"%03d" % number: IndexValue(None, b"new")} for number in range(count)]


def remove(rows: RealmStore, *gone: ObjectId) -> None:
    """What a collection does, or a fault."""
    rows.delete_unchanged([key for batch in rows.scan_objects() for key in batch if key.id in gone])


def test_inner_member_reads_as_its_base_and_its_operations(rows: RealmStore, put: Put) -> None:
    put(rows, b"a", b"1")
    put(rows, b"b", b"2")
    first, second, third = write_group(
        rows, [{b"c": IndexValue(None, b"3")}, {b"a": None, b"b": IndexValue(None, b"4")}, {b"a": IndexValue(None, b"5")}]
    )

    assert held(rows, first) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert held(rows, second) == {b"b": b"4", b"c": b"3"}
    assert held(rows, third) == {b"a": b"5", b"b": b"4", b"c": b"3"}
    assert [len(read_commit(rows, one).index("things")) for one in (first, second, third)] == [3, 2, 3]


def test_group_may_be_the_beginning_of_history(rows: RealmStore) -> None:
    ids = write_group(rows, numbered(3))

    assert [len(held(rows, one)) for one in ids] == [1, 2, 3]
    assert held(rows, ids[0], "never") == {}


@pytest.mark.parametrize("depth", [1, 2, 20, 21, 22, 41, 63])
def test_inner_member_of_any_depth_reads_all_before_it(rows: RealmStore, put: Put, depth: int) -> None:
    put(rows, b"base")
    ids = write_group(rows, numbered(64))

    assert sorted(held(rows, ids[depth - 1])) == [b"%03d" % number for number in range(depth)] + [b"base"]


def test_index_that_no_member_touched_reads_as_it_does_beneath(rows: RealmStore, put: Put) -> None:
    put(rows, b"a", b"1")
    inner, _ = write_group(rows, [{b"x": IndexValue(None)}, {b"y": IndexValue(None)}], index="others")

    assert held(rows, inner) == {b"a": b"1"}
    assert read_commit(rows, inner).names == ["others", "things"]


def test_group_on_an_inner_member_reads_down_to_indexes(rows: RealmStore, put: Put) -> None:
    put(rows, b"base", b"0")
    inner, _ = write_group(rows, [{b"a": IndexValue(None, b"1")}, {b"b": IndexValue(None)}])
    above, _ = write_group_on(read_commit(rows, inner), rows, [{b"c": IndexValue(None, b"2")}, {b"d": IndexValue(None)}])
    again, last = write_group_on(read_commit(rows, above), rows, [{b"a": None}, {b"e": IndexValue(None, b"3")}])

    assert held(rows, again) == {b"base": b"0", b"c": b"2"}
    assert held(rows, last) == {b"base": b"0", b"c": b"2", b"e": b"3"}


def test_inner_member_points_to_its_puts_and_its_base(rows: RealmStore, put: Put) -> None:
    base = put(rows).commit_id
    gems = rows.new_ids(3)
    rows.write_objects([(gem, Gem(text="x")) for gem in gems])
    ids = write_group(rows, [{b"%d" % n: IndexValue(gem)} for n, gem in enumerate(gems)])

    assert set(rows.read_object(ids[0], Commit).points_to()) == {gems[0], base}
    assert set(rows.read_object(ids[1], Commit).points_to()) == {gems[1], ids[0], base}
    assert set(rows.read_object(ids[2], Commit).points_to()) == set(gems)


@pytest.mark.parametrize("lost", [0, 1, 21])
def test_inner_member_without_its_base_is_an_error(rows: RealmStore, put: Put, lost: int) -> None:
    base = put(rows).commit_id
    ids = [base, *write_group(rows, numbered(45))]
    remove(rows, ids[lost])
    with pytest.raises(CorruptionError, match=r"not there: run `headwater fsck`"):
        held(rows, ids[42])

    assert len(held(rows, ids[45])) == 46


def test_inner_member_collected_after_it_was_read_has_expired(rows: RealmStore, put: Put) -> None:
    base = put(rows).commit_id
    ids = write_group(rows, numbered(3))
    read = read_commit(rows, ids[1])
    remove(rows, base, *ids)
    with pytest.raises(ExpiredError, match="was collected"):
        read.index("things")


@pytest.mark.parametrize(
    "altered",
    [
        {"depth": 2},
        {"depth": 9},
        {"base": None},
        {"tail": ()},
        {"seq": 7},
    ],
)
def test_inner_member_unfit_for_its_group_is_an_error(rows: RealmStore, put: Put, altered: dict[str, object]) -> None:
    put(rows)
    ids = write_group(rows, numbered(4))
    found = rows.read_object(ids[2], Commit)
    wrong = {field: getattr(found, field) for field in found.__struct_fields__} | altered
    strange = rows.new_id()
    rows.write_objects([(strange, Commit(**wrong))])  # type: ignore[arg-type]  # any field
    with pytest.raises(HeadwaterError, match="not of its group"):
        held(rows, strange)


def test_reading_the_deepest_member_costs_a_round_trip_for_twenty(faulty: RealmStore, faults: FaultyBackend, put: Put) -> None:
    put(faulty)
    ids = write_group(faulty, numbered(64))
    faulty.store.cache.clear()
    found = read_commit(faulty, ids[62])
    faults.calls.clear()
    found.index("things")
    found.index("others")

    assert faults.calls == ["read_objects"] * 4


def test_head_may_be_an_inner_member(rows: RealmStore, put: Put) -> None:
    put(rows, b"a", b"1")
    inner, _ = write_group(rows, numbered(2))
    rows.move_reference(rows.read_reference("main", fresh=True), inner)
    newest = read_head(rows, "main", fresh=True)

    assert newest is not None
    assert newest.index("things").get(b"a") == IndexValue(None, b"1")


def test_commit_on_an_inner_member_holds_all_indexes_again(rows: RealmStore, put: Put) -> None:
    put(rows, b"a", b"1")
    inner, _ = write_group(rows, [{b"x": IndexValue(None, b"2")}, {b"y": IndexValue(None)}], index="others")
    rows.move_reference(rows.read_reference("main", fresh=True), inner)
    done = commit_change(rows, "main", lambda tx: tx.index("third").put(b"z", IndexValue(None, b"3")))
    found = rows.read_object(done.commit_id, Commit)

    assert (found.depth, sorted(found.indexes)) == (0, ["others", "things", "third"])
    assert [held(rows, done.commit_id, name) for name in sorted(found.indexes)] == [{b"x": b"2"}, {b"a": b"1"}, {b"z": b"3"}]
