"""What the same work costs at least: each database through its bare driver, at the durability that a store has, doing fixed rows.

Nothing of Headwater is in here. Tables have the shape of a store's, so that both sides move the same bytes. Of the ways to do a
thing with a driver, the one that was fastest when tried is the floor; what it was tried against stands beside it (1,000 rows of
300 bytes, psycopg 3.3 with PostgreSQL 15, SQLite 3.40).
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

__all__ = [
    "TYPE",
    "Floor",
    "MemoryFloor",
    "MongodbFloor",
    "ObjectValues",
    "PostgresqlFloor",
    "SqliteFloor",
    "drop_database",
    "drop_schema",
    "object_values",
]

ObjectValues = tuple[int, int, int, str, int, str | None, int, bytes]
"""Realm, id, part, type, created, token, parts, value."""
DeletionKey = tuple[int, int, int, int, str | None]
"""Realm, id, part, created, token."""
Pointer = tuple[int, int]
"""Where a reference points, and its version."""

TYPE = "bench"
CREATED = 1_790_000_000_000_000
RECENT_POINTERS = 20
RECENT = struct.pack(f">{RECENT_POINTERS}q", *range(RECENT_POINTERS))
"""The former pointers that a reference which is in use carries."""
FEW = 5
OBJECT_COLUMNS = "realm, id, part, type, created, token, parts, value"


def object_values(realm: int, number: int, *, token: str | None = None, value: bytes | None = None) -> ObjectValues:
    """A row of 300 bytes that do not compress."""
    return (realm, number, 0, TYPE, CREATED, token, 1, os.urandom(300) if value is None else value)


class Floor(Protocol):
    """What every bare driver is made to do. Whatever writes is on disk when it comes back (but in memory)."""

    def write(self, rows: Sequence[ObjectValues]) -> None: ...
    def read(self, realm: int, numbers: Sequence[int]) -> Sequence[Any]:
        """Many rows with their values, in whatever order they come."""
        ...

    def read_one(self, realm: int, number: int) -> Any: ...
    def insert(self, row: ObjectValues) -> None: ...
    def update(self, row: ObjectValues, seen_token: str) -> None: ...
    def create_reference(self, realm: int, name: str, pointer: Pointer) -> None: ...
    def swap(self, realm: int, name: str, seen: Pointer, new: Pointer) -> None: ...
    def commit(self, rows: Sequence[ObjectValues], realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        """A few rows and a swap: together, where the database can do both at once."""
        ...

    def delete(self, keys: Sequence[DeletionKey]) -> int:
        """Those whose creation time and token are as they were; all in one go."""
        ...

    def delete_realm(self, realm: int) -> int: ...
    def delete_some(self, realm: int, limit: int) -> int:
        """So many rows of a realm at most, whichever they are: 0 when none is left."""
        ...

    def scan(self) -> int:
        """Every row's columns but the value, in the order of keys, by the driver's cursor; returns how many there were."""
        ...

    def settle(self) -> None:
        """After much was written: what the database does sooner or later by itself, now."""
        ...

    def bytes_used(self) -> int:
        """By the rows of objects with their index, after ``settle``."""
        ...

    def close(self) -> None: ...


class MemoryFloor:
    """Operations of plain dictionaries."""

    def __init__(self) -> None:
        self.objects: dict[tuple[int, int, int], ObjectValues] = {}
        self.references: dict[tuple[int, str], Pointer] = {}

    def write(self, rows: Sequence[ObjectValues]) -> None:
        for row in rows:
            self.objects[row[:3]] = row

    def read(self, realm: int, numbers: Sequence[int]) -> Sequence[Any]:
        return [self.objects[realm, number, 0] for number in numbers]

    def read_one(self, realm: int, number: int) -> Any:
        return self.objects[realm, number, 0]

    def insert(self, row: ObjectValues) -> None:
        assert self.objects.setdefault(row[:3], row) is row

    def update(self, row: ObjectValues, seen_token: str) -> None:
        assert self.objects[row[:3]][5] == seen_token
        self.objects[row[:3]] = row

    def create_reference(self, realm: int, name: str, pointer: Pointer) -> None:
        self.references[realm, name] = pointer

    def swap(self, realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        assert self.references[realm, name] == seen
        self.references[realm, name] = new

    def commit(self, rows: Sequence[ObjectValues], realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        self.write(rows)
        self.swap(realm, name, seen, new)

    def delete(self, keys: Sequence[DeletionKey]) -> int:
        for realm, number, part, created, token in keys:
            row = self.objects.pop((realm, number, part))
            assert (row[4], row[5]) == (created, token)
        return len(keys)

    def delete_realm(self, realm: int) -> int:
        keys = [key for key in self.objects if key[0] == realm]
        for key in keys:
            del self.objects[key]
        return len(keys)

    def delete_some(self, realm: int, limit: int) -> int:
        keys = list(islice((key for key in self.objects if key[0] == realm), limit))
        for key in keys:
            del self.objects[key]
        return len(keys)

    def scan(self) -> int:
        """Sorted anew, for a dictionary keeps no order."""
        return sum(1 for key in sorted(self.objects) for row in (self.objects[key],) if (*row[:7], len(row[7])))

    def settle(self) -> None:
        """Nothing to do."""

    def bytes_used(self) -> int:
        return 0

    def close(self) -> None:
        self.objects.clear()


class SqliteFloor:
    """One connection: WAL, synchronous FULL, each call a transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(SQLITE_TABLES)

    def write(self, rows: Sequence[ObjectValues]) -> None:
        """3.5 ms; executemany 5.1."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(rows)
        self._connection.execute("COMMIT")

    def _insert(self, rows: Sequence[ObjectValues]) -> None:
        for start in range(0, len(rows), 250):
            some = rows[start : start + 250]
            places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(some))
            statement = f"INSERT INTO objs ({OBJECT_COLUMNS}) VALUES {places}"
            self._connection.execute(statement, [value for row in some for value in row])

    def read(self, realm: int, numbers: Sequence[int]) -> Sequence[Any]:
        """5.0 ms; json_each 5.3, literals 5.6, a join with VALUES 7.2, one statement for each row 10.2."""
        places = ", ".join("?" * len(numbers))
        statement = f"SELECT {OBJECT_COLUMNS} FROM objs WHERE realm = ? AND part = 0 AND id IN ({places})"
        return self._connection.execute(statement, (realm, *numbers)).fetchall()

    def read_one(self, realm: int, number: int) -> Any:
        statement = "SELECT type, created, token, parts, value FROM objs WHERE realm = ? AND id = ? AND part = 0"
        return self._connection.execute(statement, (realm, number)).fetchone()

    def insert(self, row: ObjectValues) -> None:
        statement = f"INSERT INTO objs ({OBJECT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        self._connection.execute(statement, row)

    def update(self, row: ObjectValues, seen_token: str) -> None:
        statement = "UPDATE objs SET created = ?, token = ?, value = ? WHERE realm = ? AND id = ? AND part = 0 AND token = ?"
        values = (row[4], row[5], row[7], row[0], row[1], seen_token)
        assert self._connection.execute(statement, values).rowcount == 1

    def create_reference(self, realm: int, name: str, pointer: Pointer) -> None:
        values = (realm, name, *pointer, CREATED, RECENT, b"", None)
        self._connection.execute("INSERT INTO refs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def swap(self, realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        statement = (
            "UPDATE refs SET pointer = ?, version = ?, recent = ? WHERE realm = ? AND name = ? AND pointer = ? AND version = ?"
        )
        assert self._connection.execute(statement, (*new, RECENT, realm, name, *seen)).rowcount == 1

    def commit(self, rows: Sequence[ObjectValues], realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        """One transaction, so one sync of the log: 154 µs; two transactions 253."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._insert(rows)
        self.swap(realm, name, seen, new)
        self._connection.execute("COMMIT")

    def delete(self, keys: Sequence[DeletionKey]) -> int:
        statement = "DELETE FROM objs WHERE realm = ? AND id = ? AND part = ? AND created = ? AND token IS ?"
        self._connection.execute("BEGIN IMMEDIATE")
        deleted = self._connection.executemany(statement, keys).rowcount
        self._connection.execute("COMMIT")
        return deleted

    def delete_realm(self, realm: int) -> int:
        return self._connection.execute("DELETE FROM objs WHERE realm = ?", (realm,)).rowcount

    def delete_some(self, realm: int, limit: int) -> int:
        """``DELETE ... LIMIT`` is not compiled into what Python brings."""
        statement = "DELETE FROM objs WHERE rowid IN (SELECT rowid FROM objs WHERE realm = ? LIMIT ?)"
        return self._connection.execute(statement, (realm, limit)).rowcount

    def scan(self) -> int:
        """By a thousand; one by one is as fast."""
        cursor = self._connection.execute(
            "SELECT realm, id, part, type, created, token, parts, length(value) FROM objs ORDER BY realm, id, part"
        )
        return sum(len(some) for some in iter(lambda: cursor.fetchmany(1000), []))

    def settle(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def bytes_used(self) -> int:
        return self._path.stat().st_size

    def close(self) -> None:
        self._connection.close()


class PostgresqlFloor:
    """One connection that commits each statement by itself, binary both ways, and finds each row by the primary key.

    Without these settings the server plans by counts of rows that are out of date: deleting 1,000 by their keys then took 2.5 times as
    long as a store takes, and 6.3 ms on tables just analyzed, either way.
    """

    def __init__(self, url: str, schema: str) -> None:
        import psycopg

        settings = " ".join(f"-c {name}={value}" for name, value in POSTGRESQL_SETTINGS.items())
        self._connection = psycopg.connect(url, autocommit=True, options=settings)
        if not self._connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
            self._connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
        self._connection.execute(f'SET search_path = "{schema}"'.encode())
        self._connection.execute(POSTGRESQL_TABLES)
        self._cursor = self._connection.cursor(binary=True)

    def write(self, rows: Sequence[ObjectValues]) -> None:
        """5.4 ms; COPY as text 6.1, INSERT from unnest 9.8, executemany 16.7, one INSERT with all values 36.

        Two rows: one INSERT 0.23 ms, COPY 0.32.
        """
        if len(rows) <= FEW:
            places = ", ".join(["(%b, %b, %b, %b, %b, %b, %b, %b)"] * len(rows))
            statement = f"INSERT INTO objs ({OBJECT_COLUMNS}) VALUES {places}"
            self._cursor.execute(statement.encode(), [value for row in rows for value in row])
            return
        with self._cursor.copy(f"COPY objs ({OBJECT_COLUMNS}) FROM STDIN BINARY".encode()) as copy:
            copy.set_types(["int8", "int8", "int4", "text", "int8", "text", "int4", "bytea"])
            for row in rows:
                copy.write_row(row)

    def read(self, realm: int, numbers: Sequence[int]) -> Sequence[Any]:
        """6.5 ms; as text 9.1, a join with unnest 7.5, IN with literals 7.6."""
        statement = f"SELECT {OBJECT_COLUMNS} FROM objs WHERE realm = %b AND part = 0 AND id = ANY(%b)"
        return self._cursor.execute(statement.encode(), (realm, numbers)).fetchall()

    def read_one(self, realm: int, number: int) -> Any:
        """119 µs; with a cursor for each call 124, as text 133."""
        statement = b"SELECT type, created, token, parts, value FROM objs WHERE realm = %b AND id = %b AND part = 0"
        return self._cursor.execute(statement, (realm, number)).fetchone()

    def insert(self, row: ObjectValues) -> None:
        self.write([row])

    def update(self, row: ObjectValues, seen_token: str) -> None:
        statement = (
            b"UPDATE objs SET created = %b, token = %b, value = %b WHERE realm = %b AND id = %b AND part = 0 AND token = %b"
        )
        values = (row[4], row[5], row[7], row[0], row[1], seen_token)
        assert self._cursor.execute(statement, values).rowcount == 1

    def create_reference(self, realm: int, name: str, pointer: Pointer) -> None:
        columns = b"realm, name, pointer, version, created, recent, moves"
        values = (realm, name, *pointer, CREATED, RECENT, b"")
        self._cursor.execute(b"INSERT INTO refs (" + columns + b") VALUES (%b, %b, %b, %b, %b, %b, %b)", values)

    def swap(self, realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        statement = (
            b"UPDATE refs SET pointer = %b, version = %b, recent = %b"
            b" WHERE realm = %b AND name = %b AND pointer = %b AND version = %b"
        )
        assert self._cursor.execute(statement, (*new, RECENT, realm, name, *seen)).rowcount == 1

    def commit(self, rows: Sequence[ObjectValues], realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        """One statement, so one round trip and one sync of the log."""
        places = ", ".join(["(%b, %b, %b, %b, %b, %b, %b, %b)"] * len(rows))
        statement = (
            f"WITH swapped AS (UPDATE refs SET pointer = %b, version = %b, recent = %b"
            f" WHERE realm = %b AND name = %b AND pointer = %b AND version = %b RETURNING 1)"
            f" INSERT INTO objs ({OBJECT_COLUMNS}) SELECT v.* FROM (VALUES {places}) AS v, swapped"
        )
        values = (*new, RECENT, realm, name, *seen, *(value for row in rows for value in row))
        assert self._cursor.execute(statement.encode(), values).rowcount == len(rows)

    def delete(self, keys: Sequence[DeletionKey]) -> int:
        """8.6 ms; executemany 15.5."""
        statement = (
            b"DELETE FROM objs USING unnest(%b::int8[], %b::int8[], %b::int4[], %b::int8[], %b::text[])"
            b" AS seen (realm, id, part, created, token) WHERE objs.realm = seen.realm AND objs.id = seen.id"
            b" AND objs.part = seen.part AND objs.created = seen.created AND objs.token IS NOT DISTINCT FROM seen.token"
        )
        return self._cursor.execute(statement, [list(column) for column in zip(*keys, strict=True)]).rowcount

    def delete_realm(self, realm: int) -> int:
        return self._cursor.execute(b"DELETE FROM objs WHERE realm = %b", (realm,)).rowcount

    def delete_some(self, realm: int, limit: int) -> int:
        statement = b"DELETE FROM objs WHERE ctid = ANY (ARRAY (SELECT ctid FROM objs WHERE realm = %b LIMIT %b))"
        return self._cursor.execute(statement, (realm, limit)).rowcount

    def scan(self) -> int:
        """A cursor of the server, by a thousand: 1.15 M rows/s; by a hundred 1.15, by ten thousand 0.9, COPY to here 0.5.

        ``stream`` with chunks of a thousand gives 1.47, but only where libpq is of version 17, and no other call can be under way.
        """
        with self._connection.transaction(), self._connection.cursor(name="scan", binary=True) as cursor:
            cursor.execute(
                b"SELECT realm, id, part, type, created, token, parts, octet_length(value) FROM objs ORDER BY realm, id, part"
            )
            return sum(len(some) for some in iter(lambda: cursor.fetchmany(1000), []))

    def settle(self) -> None:
        self._connection.execute("VACUUM ANALYZE objs")

    def bytes_used(self) -> int:
        found = self._connection.execute("SELECT pg_total_relation_size('objs')").fetchone()
        assert found is not None
        return int(found[0])

    def close(self) -> None:
        self._connection.close()


class MongodbFloor:
    """Two collections; writes are acknowledged by a majority and its journals, reads are what a majority has."""

    def __init__(self, url: str, database: str) -> None:
        from pymongo import MongoClient

        self._client: Any = MongoClient(url, w="majority", readConcernLevel="majority", readPreference="primary")
        self._database = self._client[database]
        self._objects, self._references = self._database["objs"], self._database["refs"]

    def write(self, rows: Sequence[ObjectValues]) -> None:
        """``bulk_write`` of inserts goes to the server as the same command."""
        self._objects.insert_many([_document(row) for row in rows], ordered=False)

    def read(self, realm: int, numbers: Sequence[int]) -> Sequence[Any]:
        keys = [_key(realm, number) for number in numbers]
        return [tuple(found.values()) for found in self._objects.find({"_id": {"$in": keys}}, batch_size=len(keys))]

    def read_one(self, realm: int, number: int) -> Any:
        return tuple(self._objects.find_one({"_id": _key(realm, number)}).values())

    def insert(self, row: ObjectValues) -> None:
        self._objects.insert_one(_document(row))

    def update(self, row: ObjectValues, seen_token: str) -> None:
        document = _document(row)
        assert self._objects.replace_one({"_id": document["_id"], "v": seen_token}, document).matched_count == 1

    def create_reference(self, realm: int, name: str, pointer: Pointer) -> None:
        document = {"_id": _name(realm, name), "p": pointer[0], "v": pointer[1], "c": CREATED, "r": RECENT}
        self._references.insert_one(document)

    def swap(self, realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        condition = {"_id": _name(realm, name), "p": seen[0], "v": seen[1]}
        change = {"$set": {"p": new[0], "v": new[1], "r": RECENT}}
        assert self._references.update_one(condition, change).matched_count == 1

    def commit(self, rows: Sequence[ObjectValues], realm: int, name: str, seen: Pointer, new: Pointer) -> None:
        """Two calls: a transaction takes more, and only a replica set has it."""
        self.write(rows)
        self.swap(realm, name, seen, new)

    def delete(self, keys: Sequence[DeletionKey]) -> int:
        from pymongo import DeleteOne

        conditions = [
            {"_id": _key(realm, number, part), "c": created, "v": token} for realm, number, part, created, token in keys
        ]
        return int(self._objects.bulk_write([DeleteOne(one) for one in conditions], ordered=False).deleted_count)

    def delete_realm(self, realm: int) -> int:
        return int(self._objects.delete_many({"_id": {"$gte": _key(realm, 0), "$lt": _key(realm + 1, 0)}}).deleted_count)

    def delete_some(self, realm: int, limit: int) -> int:
        within = {"_id": {"$gte": _key(realm, 0), "$lt": _key(realm + 1, 0)}}
        keys = [found["_id"] for found in self._objects.find(within, {"_id": 1}, limit=limit, batch_size=limit)]
        return int(self._objects.delete_many({"_id": {"$in": keys}}).deleted_count) if keys else 0

    def scan(self) -> int:
        columns = {"t": 1, "c": 1, "v": 1, "n": 1, "b": {"$binarySize": "$d"}}
        return sum(1 for _ in self._objects.find({}, columns, batch_size=1000).sort("_id", 1))

    def settle(self) -> None:
        """Nothing that can be asked for."""

    def bytes_used(self) -> int:
        told = self._database.command("collStats", "objs")
        return int(told["storageSize"]) + int(told["totalIndexSize"])

    def close(self) -> None:
        self._client.close()


def _key(realm: int, number: int, part: int = 0) -> bytes:
    """Bytes of one length are ordered as they are."""
    return struct.pack(">QQI", realm, number, part)


def _name(realm: int, name: str) -> str:
    return f"{realm:016x}{name}"


def _document(row: ObjectValues) -> dict[str, Any]:
    realm, number, part, type_name, created, token, parts, value = row
    versioned = {} if token is None else {"v": token}
    return {"_id": _key(realm, number, part), "t": type_name, "c": created, **versioned, "n": parts, "d": value}


SQLITE_TABLES = """
CREATE TABLE IF NOT EXISTS refs (
    realm INTEGER NOT NULL, name TEXT NOT NULL, pointer INTEGER, version INTEGER NOT NULL, created INTEGER NOT NULL,
    recent BLOB NOT NULL, moves BLOB NOT NULL, deleted INTEGER, PRIMARY KEY (realm, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objs (
    realm INTEGER NOT NULL, id INTEGER NOT NULL, part INTEGER NOT NULL, type TEXT NOT NULL, created INTEGER NOT NULL,
    token TEXT, parts INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (realm, id, part));
"""

POSTGRESQL_SETTINGS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}

POSTGRESQL_TABLES = """
CREATE TABLE IF NOT EXISTS refs (
    realm bigint NOT NULL, pointer bigint, version bigint NOT NULL, created bigint NOT NULL, deleted bigint,
    name text COLLATE "C" NOT NULL, recent bytea NOT NULL, moves bytea NOT NULL, PRIMARY KEY (realm, name)) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS objs (
    realm bigint NOT NULL, id bigint NOT NULL, created bigint NOT NULL, part int NOT NULL, parts int NOT NULL,
    type text COLLATE "C" NOT NULL, token text COLLATE "C", value bytea NOT NULL, PRIMARY KEY (realm, id, part));
ALTER TABLE refs ALTER recent SET STORAGE EXTERNAL, ALTER moves SET STORAGE EXTERNAL;
ALTER TABLE objs ALTER value SET STORAGE EXTERNAL;
"""


def drop_schema(url: str, schema: str) -> None:
    """Forget a schema of PostgreSQL and all that is in it."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())


def drop_database(url: str, database: str) -> None:
    """Forget a database of MongoDB."""
    from pymongo import MongoClient

    client: Any = MongoClient(url)
    client.drop_database(database)
    client.close()
