"""What goes over the wire, what lies in the collections, and what is read of documents that are not ours."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bson import Binary
from bson import ObjectId as BsonId
from pymongo import MongoClient, monitoring

from headwater.clock import Micros
from headwater.errors import CorruptionError
from headwater.store import ROW_BYTES, Backend, ObjectId, RealmKey, ReferenceMove, ReferenceRow, ScanSplit
from headwater.store.backends.mongodb import MongodbBackend
from headwater.store.backends.mongodb.backend import split_ends
from headwater.store.backends.mongodb.row_documents import object_id, object_position
from servers.mongodb import MongodbServer
from specimens import REALM, find_reference, in_parts, key, read_object, reference, row, scan

pytestmark = pytest.mark.long

LARGEST = (1 << 63) - 1
Documents = dict[str, Any]


class Wire(monitoring.CommandListener):
    """The commands of every client that is made while it listens, but for those about the connection itself."""

    def __init__(self) -> None:
        self.commands: list[Documents] = []
        self.is_listening = False

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if self.is_listening and event.command_name not in ("hello", "endSessions", "configureFailPoint"):
            self.commands.append(dict(event.command))

    def succeeded(self, event: object) -> None: ...
    def failed(self, event: object) -> None: ...


@pytest.fixture
def wire() -> Iterator[Wire]:
    listener = Wire()
    before = list(monitoring._LISTENERS.command_listeners)
    monitoring.register(listener)
    yield listener
    monitoring._LISTENERS.command_listeners[:] = before


@pytest.fixture
def stored(server: MongodbServer, database: str) -> Iterator[MongoClient[Documents]]:
    with server.client() as client:
        yield client


@pytest.fixture
def listened(wire: Wire, direct: MongodbBackend) -> MongodbBackend:
    """A store whose commands ``wire`` keeps, from here on."""
    direct.write_objects([row(1, token="a")])
    direct.create_reference(reference())
    wire.is_listening = True
    return direct


CALLS: dict[str, tuple[Callable[[Backend], object], list[str]]] = {
    "create_reference": (lambda backend: backend.create_reference(reference("new")), ["insert"]),
    "create_references": (lambda b: b.create_references([reference(f"{n}") for n in range(500)]), ["insert"]),
    "read_references": (lambda b: b.read_references(REALM, ["main", *map(str, range(300))]), ["find"]),
    "swap_reference": (lambda backend: backend.swap_reference(reference(), reference(version=6)), ["update"]),
    "remove_reference": (lambda backend: backend.remove_reference(reference()), ["delete"]),
    "read_objects": (lambda b: b.read_objects(REALM, [(ObjectId(n), 0) for n in range(1, 300)]), ["find"]),
    "write_objects": (lambda backend: backend.write_objects([row(n) for n in range(2, 1000)]), ["insert"]),
    "write_objects again": (lambda backend: backend.write_objects([row(1, token="a")]), ["insert", "update"]),
    "insert_object": (lambda backend: backend.insert_object(row(2, token="a")), ["insert"]),
    "update_object": (lambda backend: backend.update_object(row(1, token="b"), "a"), ["update"]),
    "delete_objects": (lambda backend: backend.delete_objects([key(row(1, token="a"))]), ["delete"]),
    "scan_references": (lambda backend: backend.scan_references(ScanSplit(), None, 200), ["find"]),
    "scan_objects": (lambda backend: backend.scan_objects(ScanSplit(), None, 200), ["find"]),
}


@pytest.mark.parametrize(("call", "commands"), CALLS.values(), ids=CALLS)
def test_call_is_one_round_trip_to_a_majority(
    listened: MongodbBackend, wire: Wire, call: Callable[[Backend], object], commands: list[str]
) -> None:
    call(listened)

    assert [next(iter(command)) for command in wire.commands] == commands
    for command in wire.commands:
        if "find" in command:
            assert command["readConcern"]["level"] == "majority"
        else:
            assert command["writeConcern"] == {"w": "majority", "j": True}
        assert command.get("$readPreference", {"mode": "primary"})["mode"] in ("primary", "primaryPreferred")
        assert 0 < command["maxTimeMS"] <= 10_000
        assert "txnNumber" not in command


def test_five_hundred_rows_come_in_one_answer(listened: MongodbBackend, wire: Wire) -> None:
    listened.write_objects([row(number) for number in range(2, 502)])
    wire.commands.clear()
    found = listened.read_objects(REALM, [(ObjectId(number), 0) for number in range(1, 502)])

    assert None not in found
    assert [next(iter(command)) for command in wire.commands] == ["find"]


def test_rewriting_with_fewer_parts_takes_a_third_round_trip(listened: MongodbBackend, wire: Wire) -> None:
    listened.write_objects(in_parts(2, b"0", b"1", b"2", b"3"))
    wire.commands.clear()
    listened.write_objects(in_parts(2, b"0", b"1"))

    assert [next(iter(command)) for command in wire.commands][:2] == ["insert", "update"]
    assert [one.part for one in scan(listened) if one.id == 2] == [0, 1]


NAMES = ["a", "a" * 499, "a/b", "ab", "b", "b\U0001f642", "Z", "z", "é", "éa", "\uffff", "\U0001f600", "中" * 166, "~"]


def test_names_are_in_the_order_of_their_bytes(direct: MongodbBackend) -> None:
    direct.create_references([reference(name, realm=realm) for name in NAMES for realm in (0, 9, 10, 1 << 40, LARGEST)])
    found = direct.scan_references(ScanSplit(), None, 1000)

    assert [one.position for one in found] == sorted(
        (one.position for one in found), key=lambda position: (position[0], position[1].encode())
    )
    assert [one.name for one in direct.scan_references(ScanSplit(RealmKey(LARGEST)), None, 99)] == sorted(NAMES, key=str.encode)


def test_server_orders_keys_of_objects_as_it_does_numbers(direct: MongodbBackend, database: str, stored: Any) -> None:
    numbers = [0, 1, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 63) - 1]
    rows = [row(number, part, realm=realm) for number in numbers for realm in numbers for part in (0, 1, 256)]
    random.Random(4).shuffle(rows)
    direct.write_objects(rows)
    ids = [document["_id"] for document in stored[database].objs.find({}, {"_id": 1}, sort=[("_id", 1)])]

    assert [object_position(one, "") for one in ids] == sorted((made.realm, made.id, made.part) for made in rows)
    assert {len(one) for one in ids} == {20}


def test_row_lies_there_as_the_page_of_formats_says(direct: MongodbBackend, database: str, stored: Any) -> None:
    direct.write_objects([row(1, realm=2, token="t", value=b"v"), row(3, realm=2)])
    full = ReferenceRow(
        realm=RealmKey(2),
        name="é",
        pointer=ObjectId(5),
        version=6,
        created=Micros(7),
        recent=(ObjectId(8),),
        moves=(ReferenceMove(ObjectId(9), Micros(10)),),
        deleted=Micros(11),
    )
    direct.create_reference(full)
    direct.create_reference(reference("none", realm=2, pointer=None))
    objs = list(stored[database].objs.find(sort=[("_id", 1)]))
    refs = list(stored[database].refs.find(sort=[("_id", 1)]))

    assert objs[0] == {"_id": bytes.fromhex("0000000000000002000000000000000100000000")} | {
        "t": "note",
        "c": 50,
        "v": "t",
        "n": 1,
        "d": b"v",
    }
    assert set(objs[1]) == {"_id", "t", "c", "n", "d"}
    assert refs[0] == {"_id": "0000000000000002none", "v": 5, "c": 3}
    assert refs[1] == {"_id": "0000000000000002é"} | {
        "p": 5,
        "v": 6,
        "c": 7,
        "r": (8).to_bytes(8, "big"),
        "m": (9).to_bytes(8, "big") + (10).to_bytes(8, "big"),
        "x": 11,
    }


def test_largest_values_are_kept(direct: MongodbBackend) -> None:
    rows = [row(number, value=random.Random(number).randbytes(ROW_BYTES)) for number in range(1, 60)]
    direct.write_objects(rows)

    assert direct.read_objects(REALM, [(made.id, 0) for made in rows]) == rows
    assert {one.bytes for one in scan(direct)} == {ROW_BYTES}


class TestHiddenParts:
    """The first part of an object whose others may still be there."""

    def test_hidden_part_is_no_row(self, direct: MongodbBackend, database: str, stored: Any) -> None:
        rows = in_parts(5, b"0", b"1", b"2")
        direct.write_objects(rows)
        assert direct.delete_objects([key(rows[0])]) == 1

        assert stored[database].objs.count_documents({"x": True}) == 1
        assert read_object(direct, 5) is None
        assert [one.part for one in scan(direct)] == [1, 2]
        assert direct.delete_objects([key(rows[0])]) == 0
        direct.insert_object(row(5, token="a"))
        assert read_object(direct, 5) == row(5, token="a")

    def test_it_goes_with_the_last_other_part(self, direct: MongodbBackend, database: str, stored: Any) -> None:
        rows = in_parts(5, b"0", b"1", b"2")
        direct.write_objects(rows)
        deleted = [direct.delete_objects([key(part)]) for part in rows]

        assert deleted == [1, 1, 1]
        assert stored[database].objs.count_documents({}) == 0

    def test_nothing_is_left_when_all_parts_go_at_once(self, direct: MongodbBackend, database: str, stored: Any) -> None:
        direct.write_objects([*in_parts(5, b"0", b"1", b"2"), *in_parts(6, b"0", b"1"), row(7)])

        assert direct.delete_objects(scan(direct)) == 6
        assert stored[database].objs.count_documents({}) == 0

    def test_it_goes_with_its_realm_and_is_not_counted(self, direct: MongodbBackend, database: str, stored: Any) -> None:
        rows = in_parts(5, b"0", b"1", b"2")
        direct.write_objects(rows)
        direct.delete_objects([key(rows[0])])

        assert [direct.delete_realm(REALM, 2) for _ in range(2)] == [2, 0]
        assert stored[database].objs.count_documents({}) == 0


KEY = object_id(REALM, ObjectId(1), 0)
RIGHT: Documents = {"_id": KEY, "t": "note", "c": 50, "v": "a", "n": 1, "d": b"value"}
RIGHT_REFERENCE: Documents = {"_id": "000000000000000amain", "p": 7, "v": 5, "c": 3}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("t", value) for value in (None, 5, b"note")],
        *[("c", value) for value in (None, "50", 50.0, True)],
        *[("v", value) for value in (5, b"a")],
        *[("n", value) for value in (None, 1.0, "1")],
        *[("d", value) for value in (None, "value", 5, Binary(b"value", 5))],
    ],
)
def test_foreign_object_is_unreadable_and_named(
    direct: MongodbBackend, database: str, stored: Any, field: str, value: Any
) -> None:
    stored[database].objs.insert_one({**RIGHT, field: value})

    with pytest.raises(CorruptionError, match=rf"collection objs: .*object 0+1, part 0, realm key 10.*its field {field}"):
        read_object(direct, 1)
    if not isinstance(value, Binary | str) or field != "d":
        with pytest.raises(CorruptionError, match=f"its field {field}"):
            scan(direct)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *[("p", value) for value in ("7", 7.5, False)],
        *[("v", value) for value in (None, "5", 5.0)],
        *[("c", value) for value in (None, "3")],
        *[("x", value) for value in ("1", 1.5)],
        *[("r", value) for value in ("1", [1], b"123")],
        *[("m", value) for value in (5, b"12345678")],
    ],
)
def test_foreign_reference_is_unreadable_and_named(
    direct: MongodbBackend, database: str, stored: Any, field: str, value: Any
) -> None:
    stored[database].refs.insert_one({**RIGHT_REFERENCE, field: value})

    with pytest.raises(CorruptionError, match=rf"collection refs: .*0amain.*(field {field}|cut off)"):
        find_reference(direct)


@pytest.mark.parametrize("key", [b"short", b"x" * 19, 5, "text", {"r": 1}])
def test_document_with_a_foreign_key_is_unreadable(direct: MongodbBackend, database: str, stored: Any, key: Any) -> None:
    stored[database].objs.insert_one({**RIGHT, "_id": key})
    with pytest.raises(CorruptionError, match="is not a key of a row: a key is 20 bytes"):
        scan(direct)


@pytest.mark.parametrize("key", [5, "short", "zzzzzzzzzzzzzzzzmain", BsonId()])
def test_reference_with_a_foreign_key_is_unreadable(direct: MongodbBackend, database: str, stored: Any, key: Any) -> None:
    stored[database].refs.insert_one({**RIGHT_REFERENCE, "_id": key})
    with pytest.raises(CorruptionError, match="is not a key of a reference"):
        direct.scan_references(ScanSplit(), None, 9)


def test_numbers_written_long_by_other_tools_are_the_same(direct: MongodbBackend, database: str, stored: Any) -> None:
    from bson import Int64

    stored[database].objs.insert_one({**RIGHT, "c": Int64(50), "n": Int64(1)})
    found = read_object(direct, 1)

    assert found == row(1, token="a")
    assert direct.delete_objects([key(row(1, token="a"))]) == 1


class TestDrawnSplits:
    @pytest.fixture
    def rows(self, direct: MongodbBackend) -> MongodbBackend:
        """A thousand rows of one realm, mostly within one of a million milliseconds, and a few of another."""
        ids = random.Random(6).sample(range(1 << 50, (1 << 50) + 5000), 900) + random.Random(6).sample(range(1 << 62), 100)
        direct.write_objects([*(row(number) for number in ids), *(row(number, realm=11) for number in range(5))])
        return direct

    def ends(self, backend: MongodbBackend, within: Documents, count: int) -> list[Any]:
        def cut(collections: Any) -> list[Any]:
            return split_ends(collections.objs, within, lambda one: object_position(one, ""), count, exact_rows=10)

        return backend._calls.run_read("cut", cut)

    def test_they_are_fair_without_reading_all_keys(self, rows: MongodbBackend) -> None:
        ends = self.ends(rows, {}, 4)
        splits = [ScanSplit(None, after, until) for after, until in zip([None, *ends], [*ends, None], strict=True)]
        sizes = [len(rows.scan_objects(split, None, 9999)) for split in splits]

        assert sum(sizes) == 1005
        assert min(sizes) > 150

    def test_realm_of_which_too_few_were_drawn_is_counted(self, rows: MongodbBackend) -> None:
        within = {"_id": {"$gte": object_id(RealmKey(11), ObjectId(0), 0), "$lt": object_id(RealmKey(12), ObjectId(0), 0)}}

        assert len(self.ends(rows, within, 5)) == 4
