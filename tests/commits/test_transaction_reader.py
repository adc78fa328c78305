"""What a change reads through: all that the commits beneath it add, and nothing with which it could write."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from lineup import lined_up

from faulty_backend import FaultyBackend
from headwater.commits import Transaction, commit_change, read_head
from headwater.commits.commit import PendingReader
from headwater.errors import CorruptionError
from headwater.index import IndexValue
from headwater.store import RealmReader, RealmStore, StoredObject, object_type


@object_type("test-reader-note")
class ReaderNote(StoredObject, frozen=True, kw_only=True):
    text: str = ""


@object_type("test-reader-other")
class OtherNote(StoredObject, frozen=True, kw_only=True):
    text: str = ""


def public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def put_note(tx: Transaction) -> None:
    tx.index("things").put(b"k", IndexValue(tx.add_object(ReaderNote(text="hello"))))


def test_reader_of_a_change_has_only_reading_methods() -> None:
    assert public(PendingReader) == public(RealmReader)
    assert [name for name in public(RealmReader) if not hasattr(RealmStore, name) and name not in ("realm", "key")] == []


@pytest.mark.parametrize(
    "name", sorted(name for name in public(RealmStore) if name.split("_")[0] in {"write", "swap", "delete", "create", "move"})
)
def test_change_that_writes_fails(rows: RealmStore, name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        commit_change(rows, "main", lambda tx: getattr(tx.reader, name))

    assert read_head(rows, "main") is None


def test_reader_gives_pending_objects_every_way(faulty: RealmStore, faults: FaultyBackend) -> None:
    def read(tx: Transaction) -> list[Any]:
        note = tx.index("things").get(b"k").object_id
        cold = tx.reader.without_cache()
        return [
            tx.reader.find_object(note, ReaderNote),
            cold.read_object(note, ReaderNote),
            *tx.reader.read_each([note], ReaderNote),
        ]

    with lined_up(faulty, faults, [partial(commit_change, faulty, "main", change) for change in (put_note, read)]) as line:
        pass

    assert line.commits[1].result().result == [ReaderNote(text="hello")] * 3


def test_pending_object_of_another_type_is_unreadable(faulty: RealmStore, faults: FaultyBackend) -> None:
    def read(tx: Transaction) -> str:
        [fault] = tx.reader.read_each([tx.index("things").get(b"k").object_id], OtherNote)
        assert isinstance(fault, CorruptionError)
        return str(fault)

    with lined_up(faulty, faults, [partial(commit_change, faulty, "main", change) for change in (put_note, read)]) as line:
        pass

    assert "is a ReaderNote, not a OtherNote" in line.commits[1].result().result
