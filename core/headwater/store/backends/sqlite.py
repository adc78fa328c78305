"""A store in one SQLite file: WAL, synchronous FULL, one connection per thread, several processes on one machine."""

from __future__ import annotations

import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater.clock import Micros
from headwater.errors import BeatenError, RefusedError, UnavailableError, UnknownOutcomeError, UnreadableError
from headwater.store.backend import (
    Capabilities,
    Move,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferencePosition,
    ReferenceRow,
    Split,
)
from headwater.store.identity import ObjectId, RealmKey
from headwater.store.turnstile import Turnstile
from headwater.store.urls import BackendKind, StoreUrl

__all__ = ["KIND", "SqliteBackend"]

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS refs (
    realm INTEGER NOT NULL, name TEXT NOT NULL, pointer INTEGER, version INTEGER NOT NULL, created INTEGER NOT NULL,
    recent BLOB NOT NULL, moves BLOB NOT NULL, deleted INTEGER, PRIMARY KEY (realm, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objs (
    realm INTEGER NOT NULL, id INTEGER NOT NULL, part INTEGER NOT NULL, type TEXT NOT NULL, created INTEGER NOT NULL,
    token TEXT, parts INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (realm, id, part));
"""
_BUSY_SECONDS = 10.0
_FIND_OBJECT = "SELECT type, value, created, token, parts FROM objs WHERE realm = ? AND id = ? AND part = ?"
_REFERENCE = "SELECT realm, name, pointer, version, created, recent, moves, deleted FROM refs"
_REFERENCE_KEY = "SELECT realm, name, pointer, version, created, deleted FROM refs"
_OBJECT_KEY = "SELECT realm, id, part, type, created, token, parts, length(value) FROM objs"


class SqliteBackend:
    """The two row spaces as two tables."""

    capabilities = Capabilities(ordered_keys=True, bulk_realm_deletion=True)

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()
        if not path.parent.is_dir():
            raise RefusedError(f"the folder of {path} does not exist: create it, or name another file in the store's URL")
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._local = threading.local()
        self._turnstile = Turnstile()
        self._lock = threading.Lock()
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            with self._lock:
                self._close_those_of(lambda thread: not thread.is_alive())
                self._open.append((threading.current_thread(), connection))
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _close_those_of(self, is_meant: Callable[[threading.Thread], bool]) -> None:
        kept = []
        for thread, connection in self._open:
            if is_meant(thread):
                connection.close()
            else:
                kept.append((thread, connection))
        self._open = kept

    def _set_up(self) -> None:
        with self._faults("set up"):
            found = self._connection().execute("PRAGMA user_version").fetchone()[0]
            if found > SCHEMA_VERSION:
                raise RefusedError(
                    f"{self._path} was written by a newer Headwater (schema {found}, this one knows {SCHEMA_VERSION}): upgrade this one"
                )
            if found < SCHEMA_VERSION:
                with self._transaction() as connection:
                    for statement in _SCHEMA.split(";")[:-1]:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    @contextmanager
    def _faults(self, what: str) -> Iterator[None]:
        with self._turnstile:
            try:
                yield
            except sqlite3.OperationalError as fault:
                raise UnavailableError(f"{self._path}: {what}: {fault}") from fault
            except sqlite3.DatabaseError as fault:
                raise UnreadableError(f"{self._path}: {what}: {fault}") from fault

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction. Only a COMMIT that fails for another reason than a busy database leaves the outcome open."""
        connection = self._connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
        except BaseException:
            if connection.in_transaction:  # some faults roll back by themselves
                connection.execute("ROLLBACK")
            raise
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as fault:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
                raise
            raise UnknownOutcomeError(f"{self._path}: commit: {fault}") from fault

    def _write(self, what: str, statement: str, values: Sequence[Any]) -> int:
        with self._faults(what), self._transaction() as connection:
            return connection.execute(statement, values).rowcount

    def create_reference(self, row: ReferenceRow) -> None:
        statement = "INSERT INTO refs VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        if not self._write("create a reference", statement, _reference_values(row)):
            raise BeatenError(f"reference {row.name!r} of realm key {row.realm} is there already")

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        statement = "INSERT INTO refs VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self._faults("create references"), self._transaction() as connection:
            return [connection.execute(statement, _reference_values(row)).rowcount == 1 for row in rows]

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        with self._faults("read references"):
            connection = self._connection()
            found = (
                connection.execute(f"{_REFERENCE} WHERE realm = ? AND name = ?", (realm, name)).fetchone() for name in names
            )
            return [None if row is None else _reference_row(row) for row in found]

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        statement = (
            "UPDATE refs SET pointer = ?, version = ?, created = ?, recent = ?, moves = ?, deleted = ?"
            " WHERE realm = ? AND name = ? AND version = ? AND pointer IS ?"
        )
        values = (*_reference_values(new)[2:], seen.realm, seen.name, seen.version, seen.pointer)
        if not self._write("swap a reference", statement, values):
            raise _beaten(seen)

    def remove_reference(self, seen: ReferenceRow) -> None:
        statement = "DELETE FROM refs WHERE realm = ? AND name = ? AND version = ? AND pointer IS ?"
        if not self._write("remove a reference", statement, (seen.realm, seen.name, seen.version, seen.pointer)):
            raise _beaten(seen)

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        with self._faults("read objects"):
            connection = self._connection()
            return [_object_row(connection, realm, object_id, part) for object_id, part in keys]

    def write_objects(self, rows: Sequence[ObjectRow]) -> None:
        statement = (
            "INSERT OR REPLACE INTO objs (realm, id, part, type, created, token, parts, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        with self._faults("write objects"), self._transaction() as connection:
            connection.executemany(statement, [_object_values(row) for row in rows])
            connection.executemany(
                "DELETE FROM objs WHERE realm = ? AND id = ? AND part >= ?",
                [(row.realm, row.id, row.parts) for row in rows if row.part == 0],
            )

    def insert_object(self, row: ObjectRow) -> None:
        statement = (
            "INSERT INTO objs (realm, id, part, type, created, token, parts, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING"
        )
        if not self._write("insert an object", statement, _object_values(row)):
            raise BeatenError(f"object {row.id:016x} of realm key {row.realm} is there already")

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        statement = (
            "UPDATE objs SET type = ?, created = ?, token = ?, parts = ?, value = ?"
            " WHERE realm = ? AND id = ? AND part = ? AND token = ?"
        )
        values = (*_object_values(row)[3:], row.realm, row.id, row.part, seen_token)
        if not self._write("update an object", statement, values):
            raise BeatenError(f"object {row.id:016x} of realm key {row.realm} was changed by another")

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        statement = "DELETE FROM objs WHERE realm = ? AND id = ? AND part = ? AND created = ? AND token IS ?"
        with self._faults("delete objects"), self._transaction() as connection:
            return connection.executemany(statement, [(k.realm, k.id, k.part, k.created, k.token) for k in keys]).rowcount

    def scan_references(
        self, split: Split[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        condition, values = _scan_condition(split, after, "(realm, name)", "(?, ?)")
        with self._faults("scan references"):
            found = self._connection().execute(f"{_REFERENCE_KEY}{condition} ORDER BY realm, name LIMIT ?", (*values, limit))
            return [ReferenceKey._make(row) for row in found]

    def scan_objects(self, split: Split[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        condition, values = _scan_condition(split, after, "(realm, id, part)", "(?, ?, ?)")
        with self._faults("scan objects"):
            found = self._connection().execute(f"{_OBJECT_KEY}{condition} ORDER BY realm, id, part LIMIT ?", (*values, limit))
            return [ObjectKey._make(row) for row in found]

    def split_references(self, realm: RealmKey | None, count: int) -> list[Split[ReferencePosition]]:
        return [Split(realm, after, until) for after, until in self._cut("refs", "realm, name", realm, count)]

    def split_objects(self, realm: RealmKey | None, count: int) -> list[Split[ObjectPosition]]:
        return [Split(realm, after, until) for after, until in self._cut("objs", "realm, id, part", realm, count)]

    def _cut(self, table: str, key: str, realm: RealmKey | None, count: int) -> list[tuple[Any, Any]]:
        """The ends of splits: every so many-th key, all of which SQLite counts along the index."""
        condition, values = ("", ()) if realm is None else (" WHERE realm = ?", (realm,))
        with self._faults("split a scan"):
            connection = self._connection()
            rows = connection.execute(f"SELECT count(*) FROM {table}{condition}", values).fetchone()[0]
            size = max(1, -(-rows // count))
            numbered = f"SELECT {key}, row_number() OVER (ORDER BY {key}) AS number FROM {table}{condition}"
            ends = connection.execute(
                f"SELECT {key} FROM ({numbered}) WHERE number % ? = 0 AND number < ? ORDER BY number", (*values, size, rows)
            ).fetchall()
        return list(zip([None, *ends], [*ends, None], strict=True))

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        deleted = 0
        with self._faults("delete a realm's rows"), self._transaction() as connection:
            statement = "DELETE FROM refs WHERE realm = ? AND name IN (SELECT name FROM refs WHERE realm = ? LIMIT ?)"
            deleted += connection.execute(statement, (realm, realm, limit)).rowcount
            statement = "DELETE FROM objs WHERE rowid IN (SELECT rowid FROM objs WHERE realm = ? LIMIT ?)"
            deleted += connection.execute(statement, (realm, limit - deleted)).rowcount
        return deleted

    def before_fork(self) -> None:
        """Close every connection, when no call is under way.

        SQLite keeps for each file what locks its process holds, and a forked child inherits the note without the locks: it would
        write into a log that the parent, who sees no other process there, deletes when it closes its last connection.
        """
        self._turnstile.shut()
        self.close()

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._begin()
        else:
            self._turnstile.open()

    def close(self) -> None:
        with self._lock:
            self._close_those_of(lambda _: True)
            self._local = threading.local()


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch a new file over. SQLite does not wait for a busy file here, so two processes that create one have to be patient."""
    for pause in (0.01, 0.05, 0.2, 0.5, 1.0, 2.0):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            time.sleep(pause)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _beaten(seen: ReferenceRow) -> BeatenError:
    return BeatenError(f"reference {seen.name!r} of realm key {seen.realm} is not at version {seen.version} any more")


def _scan_condition(split: Split[Any], after: tuple[Any, ...] | None, key: str, place: str) -> tuple[str, tuple[Any, ...]]:
    parts: list[tuple[str, tuple[Any, ...]]] = []
    if split.realm is not None:
        parts.append(("realm = ?", (split.realm,)))
    parts += [(f"{key} > {place}", start) for start in (split.after, after) if start is not None]
    if split.until is not None:
        parts.append((f"{key} <= {place}", split.until))
    condition = " WHERE " + " AND ".join(text for text, _ in parts) if parts else ""
    return condition, tuple(value for _, values in parts for value in values)


def _reference_values(row: ReferenceRow) -> tuple[Any, ...]:
    recent = struct.pack(f">{len(row.recent)}q", *row.recent)
    moves = b"".join(struct.pack(">qq", *move) for move in row.moves)
    return (row.realm, row.name, row.pointer, row.version, row.created, recent, moves, row.deleted)


def _reference_row(values: tuple[Any, ...]) -> ReferenceRow:
    realm, name, pointer, version, created, recent, moves, deleted = values
    return ReferenceRow(
        realm=realm,
        name=name,
        pointer=pointer,
        version=version,
        created=created,
        recent=tuple(ObjectId(i) for i in struct.unpack(f">{len(recent) // 8}q", recent)),
        moves=tuple(Move(ObjectId(pointer), Micros(time)) for pointer, time in struct.iter_unpack(">qq", moves)),
        deleted=deleted,
    )


def _object_values(row: ObjectRow) -> tuple[Any, ...]:
    return (row.realm, row.id, row.part, row.type, row.created, row.token, row.parts, row.value)


def _object_row(connection: sqlite3.Connection, realm: RealmKey, object_id: ObjectId, part: int) -> ObjectRow | None:
    found = connection.execute(_FIND_OBJECT, (realm, object_id, part)).fetchone()
    if found is None:
        return None
    type_name, value, created, token, parts = found
    return ObjectRow(
        realm=realm, id=object_id, part=part, type=type_name, value=value, created=created, token=token, parts=parts
    )


def _open(url: StoreUrl, options: Mapping[str, Any]) -> SqliteBackend:
    if url.place or not url.path.strip("/"):
        raise RefusedError(f"store {url.shown!r}: write sqlite:///file.db, or sqlite:////folder/file.db for an absolute path")
    return SqliteBackend(Path(url.path).absolute())


KIND = BackendKind(example="sqlite:///file.db", open=_open)
