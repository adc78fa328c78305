"""The PostgreSQL backend: references and objects as two tables, each call one statement that commits by itself.

Also splits a scan into parts of about as many rows each, and creates the tables, once for all that open a store at the same time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

import psycopg

from headwater.clock import Micros
from headwater.errors import (
    CorruptionError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.store.backend import (
    BULK_BYTES,
    Capabilities,
    ObjectKey,
    ObjectPosition,
    ObjectRow,
    ReferenceKey,
    ReferenceMove,
    ReferencePosition,
    ReferenceRow,
    ScanSplit,
    chunks,
    in_chunks,
)
from headwater.store.backends.postgresql.errors import is_lost, is_to_be_replaced, statement_error
from headwater.store.backends.postgresql.pool import (
    OPTIONS,
    BoundedConnection,
    ConnectionPool,
    NoAnswerError,
    PoolLimits,
    open_pool,
)
from headwater.store.backends.postgresql.statements import (
    FEW,
    SCHEMA_VERSION,
    BigintArray,
    ByteaArray,
    IntArray,
    NullableBigintArray,
    TableNames,
    TextArray,
    scan,
    set_up,
    statements_of,
)
from headwater.store.ids import ObjectId, RealmKey
from headwater.store.urls import BackendKind, StoreUrl

_EXACT_INDEX_BYTES = 128 << 20
"""Up to this index size all keys are counted, about a second's work; for a larger one, a sample of pages is read."""
_SAMPLED_PAGES = 5000
_SAMPLED_ROWS_PER_SPLIT = 50


def split_scan(connection: BoundedConnection, table: TableNames, realm: RealmKey | None, count: int) -> list[ScanSplit[Any]]:
    """Up to ``count`` splits of a realm, or of all."""
    index_bytes, pages = connection.only_row(
        "SELECT pg_relation_size(%s::regclass), pg_relation_size(%s::regclass) / current_setting('block_size')::bigint",
        (table.primary_key, table.name),
    )
    ends: list[Any] | None = None
    if index_bytes > _EXACT_INDEX_BYTES:
        ends = _sampled(connection, table, realm, count, pages)
    if ends is None:
        ends = _exact(connection, table, realm, count)
    return [ScanSplit(realm, after, until) for after, until in zip([None, *ends], [*ends, None], strict=True)]


def _exact(connection: BoundedConnection, table: TableNames, realm: RealmKey | None, count: int) -> list[Any]:
    where, values = _where(realm)
    (rows,) = connection.only_row(f"SELECT count(*) FROM {table.name}{where}", values)
    return _every(connection, table, f"{table.name}{where}", values, rows, count)


def _sampled(
    connection: BoundedConnection, table: TableNames, realm: RealmKey | None, count: int, pages: int
) -> list[Any] | None:
    """Estimate the ends from a sample of pages; None when it has too few rows of a realm, which then is small."""
    where, values = _where(realm)
    values["percent"] = min(100.0, 100.0 * _SAMPLED_PAGES / max(1, pages))
    source = f"{table.name} TABLESAMPLE SYSTEM (%(percent)s) REPEATABLE (1){where}"
    (rows,) = connection.only_row(f"SELECT count(*) FROM {source}", values)
    if rows < _SAMPLED_ROWS_PER_SPLIT * count:
        return None
    return _every(connection, table, source, values, rows, count)


def _every(
    connection: BoundedConnection, table: TableNames, source: str, values: dict[str, Any], rows: int, count: int
) -> list[Any]:
    """The last key of each of ``count`` equal shares of the rows, except the last share."""
    size = max(1, -(-rows // count))
    numbered = f"SELECT {table.columns}, row_number() OVER (ORDER BY {table.columns}) AS number FROM {source}"
    return connection.execute(
        f"SELECT {table.columns} FROM ({numbered}) AS n WHERE number %% %(size)s = 0 AND number < %(rows)s ORDER BY number",
        values | {"size": size, "rows": rows},
    ).fetchall()


def _where(realm: RealmKey | None) -> tuple[str, dict[str, Any]]:
    return ("", {}) if realm is None else (" WHERE realm = %(realm)s", {"realm": realm})


_ROW_BYTES = 64
"""About how many bytes a row takes on the wire in addition to its value."""
_TRIES = 3
T = TypeVar("T")
_position = attrgetter("realm", "id", "part")
_object_of = attrgetter("realm", "id")
_columns = attrgetter("realm", "id", "created", "part", "parts", "type", "token", "value")
_reference_position = attrgetter("realm", "name")


_SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class PostgresqlBackend:
    """Two tables over a pool of connections."""

    capabilities = Capabilities(ordered_keys=True, bulk_realm_deletion=True, atomic_commits=True, parallel_scans=True)

    def __init__(
        self, pool: ConnectionPool, *, place: str, schema: str, open_pool: Callable[[PoolLimits], ConnectionPool]
    ) -> None:
        """``open_pool`` makes another pool to the same database, for tables beside those of rows."""
        self._pool = pool
        self.place = self._place = place
        self.schema = schema
        self.open_pool = open_pool
        self._sql = statements_of(schema)

    def create_reference(self, row: ReferenceRow) -> None:
        if not self.create_references([row])[0]:
            raise SwapConflictError(f"reference {row.name!r} of realm key {row.realm} is there already")

    def create_references(self, rows: Sequence[ReferenceRow]) -> list[bool]:
        inserted: set[tuple[RealmKey, str]] = set()

        def create(chunk: Sequence[ReferenceRow]) -> None:
            statement, values = self._sql.create_references, _reference_arrays(chunk)
            inserted.update(self._call("create references", lambda c: c.answer(statement, values).fetchall(), writes=True))

        # Sorted, so that all calls lock rows in the same order: two bulk calls for the same names cannot deadlock.
        in_chunks(create, sorted(rows, key=_reference_position), size=_reference_bytes)
        return [_reference_position(row) in inserted for row in rows]

    def read_references(self, realm: RealmKey, names: Sequence[str]) -> list[ReferenceRow | None]:
        if not names:
            return []
        if len(names) == 1:
            columns = self._find("read a reference", self._sql.read_reference, (realm, names[0]))
        else:
            columns = self._fetch("read references", self._sql.read_references, {"realm": realm, "names": TextArray(names)})
        rows = {row[1]: self._reference_row(row) for row in columns}
        return [rows.get(name) for name in names]

    def swap_reference(self, seen: ReferenceRow, new: ReferenceRow) -> None:
        if not self._change("swap a reference", self._sql.swap_reference, _swap_values(seen, new)):
            raise _beaten(seen)

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        what = "write objects and swap a reference"
        rows = sorted(rows, key=_position)  # all calls lock rows in the same order and cannot deadlock
        if not rows:
            is_swapped = self._change(what, self._sql.swap_reference, _swap_values(seen, new)) > 0
        elif sum(len(row.value) for row in rows) > BULK_BYTES:
            is_swapped = self._call(what, partial(self._write_in_chunks, rows, seen, new), writes=True)
        else:
            is_swapped = self._change(what, *self._at_once(rows, seen, new)) > 0
        if not is_swapped:
            raise _beaten(seen)

    def _at_once(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> tuple[str, Sequence[Any]]:
        """The statement that writes these rows and swaps the reference, and its values."""
        swap = _swap_values(seen, new)
        if len(rows) <= FEW:
            return self._sql.write_few_and_swap[len(rows) - 1], (*swap, *chain.from_iterable(map(_columns, rows)))
        return self._sql.write_and_swap, (*swap, *_object_arrays(rows).values())

    def _write_in_chunks(
        self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow, connection: BoundedConnection
    ) -> bool:
        """Write and swap in one transaction of several round trips. The swap locks the reference, so it comes last."""
        with connection.transaction():
            for chunk in chunks(rows, size=_object_bytes, group=_object_of):
                connection.answer(self._sql.add_objects, _object_arrays(chunk))
            if not connection.answer(self._sql.swap_reference, _swap_values(seen, new)).rowcount:
                raise psycopg.Rollback  # the objects of the earlier chunks go with it: a lost swap leaves nothing behind
            return True
        return False

    def remove_reference(self, seen: ReferenceRow) -> None:
        values = {"realm": seen.realm, "name": seen.name, "seen_version": seen.version, "seen_pointer": seen.pointer}
        if not self._change("remove a reference", self._sql.remove_reference, values):
            raise _beaten(seen)

    def read_objects(self, realm: RealmKey, keys: Sequence[tuple[ObjectId, int]]) -> list[ObjectRow | None]:
        if not keys:
            return []
        if len(keys) == 1:
            stored = self._find("read an object", self._sql.read_object, (realm, *keys[0]))
            return [_object_row(realm, *keys[0], *stored[0]) if stored else None]
        ids, part = zip(*keys, strict=True)
        values = {"realm": realm, "ids": BigintArray(ids), "part": IntArray(part)}
        rows: list[ObjectRow | None] = [None] * len(keys)
        for place, *columns in self._fetch("read objects", self._sql.read_objects, values):
            rows[place - 1] = _object_row(realm, *keys[place - 1], *columns)
        return rows

    def write_objects(self, rows: Sequence[ObjectRow], *, are_new: bool = False) -> None:
        statement = self._sql.add_objects if are_new else self._sql.write_objects

        def write(chunk: Sequence[ObjectRow]) -> None:
            self._change("write objects", statement, _object_arrays(chunk))

        # Sorted against deadlocks. The group keeps the parts of an object in one statement, so they are written together.
        in_chunks(write, sorted(rows, key=_position), size=_object_bytes, group=_object_of)

    def insert_object(self, row: ObjectRow) -> None:
        if not self._change("insert an object", self._sql.insert_object, _object_values(row)):
            raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} is there already")

    def update_object(self, row: ObjectRow, seen_token: str) -> None:
        values = _object_values(row) | {"seen_token": seen_token}
        if not self._change("update an object", self._sql.update_object, values):
            raise SwapConflictError(f"object {row.id:016x} of realm key {row.realm} was changed by another")

    def delete_objects(self, keys: Sequence[ObjectKey]) -> int:
        deleted = 0

        def delete(chunk: Sequence[ObjectKey]) -> None:
            nonlocal deleted
            deleted += self._change("delete objects", self._sql.delete_objects, _key_arrays(chunk))

        in_chunks(delete, sorted(keys, key=_position), size=lambda _: _ROW_BYTES)
        return deleted

    def scan_references(
        self, split: ScanSplit[ReferencePosition], after: ReferencePosition | None, limit: int
    ) -> list[ReferenceKey]:
        text, values = scan(self._sql.refs, split, after)
        values["limit"] = limit
        return self._fetch("scan references", text, values, _reference_key)

    def scan_objects(self, split: ScanSplit[ObjectPosition], after: ObjectPosition | None, limit: int) -> list[ObjectKey]:
        text, values = scan(self._sql.objs, split, after)
        values["limit"] = limit
        return self._fetch("scan objects", text, values, _object_key)

    def split_references(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ReferencePosition]]:
        return self._read("split a scan of references", lambda c: split_scan(c, self._sql.refs, realm, count))

    def split_objects(self, realm: RealmKey | None, count: int) -> list[ScanSplit[ObjectPosition]]:
        return self._read("split a scan of objects", lambda c: split_scan(c, self._sql.objs, realm, count))

    def delete_realm(self, realm: RealmKey, limit: int) -> int:
        for _ in range(_TRIES):
            deleted = self._delete_some(realm, limit)
            # A row that is replaced concurrently has another ctid and is not deleted. So 0 deleted rows do not prove that none is
            # left, and a purge that believed it would forget the realm too early.
            if (
                deleted
                or limit < 1
                or self._fetch("look for a realm's rows", self._sql.has_realm, {"realm": realm}) == [(False,)]
            ):
                return deleted
        raise UnavailableError(f"{self._place}: delete a realm's rows: others write to realm key {realm}")

    def _delete_some(self, realm: RealmKey, limit: int) -> int:
        values = {"realm": realm, "limit": limit}
        [(deleted,)] = self._call(
            "delete a realm's rows", lambda c: c.answer(self._sql.delete_realm, values).fetchall(), writes=True
        )
        return int(deleted)

    def server_time(self) -> Micros | None:
        [(now,)] = self._find("read the server's clock", _SERVER_TIME, ())
        return Micros(now)

    def before_fork(self) -> None:
        """Do nothing: calls of other threads go on in the parent, and do not exist in a child, which has connections of its own."""

    def after_fork(self, *, is_child: bool) -> None:
        if is_child:
            self._pool = self._pool.anew()

    def close(self) -> None:
        self._pool.close()

    def _read(self, what: str, read: Callable[[BoundedConnection], T]) -> T:
        """Read, and repeat on a new connection if the pooled one was broken, which shows only when it is used."""
        try:
            return self._call(what, read, writes=False)
        except _LostError:
            # After a server restart all idle connections are broken. A read may be repeated, a write never: it may have happened.
            self._pool.close_idle()
        try:
            return self._call(what, read, writes=False)
        except _LostError as fault:
            raise fault.error from fault

    def _find(self, what: str, statement: str, values: Sequence[Any]) -> list[Any]:
        """Fetch a short result through the connection's own cursor."""
        return self._read(what, lambda connection: connection.answer(statement, values).fetchall())

    def _fetch(
        self, what: str, statement: str, values: Sequence[Any] | dict[str, Any], row_factory: Any = psycopg.rows.tuple_row
    ) -> list[Any]:
        return self._read(what, lambda connection: _execute(connection, statement, values, row_factory).fetchall())

    def _change(self, what: str, statement: str, values: Sequence[Any] | dict[str, Any]) -> int:
        """Run a writing statement. Returns how many rows it wrote or deleted."""
        return self._call(what, lambda connection: connection.answer(statement, values).rowcount, writes=True)

    def _call(self, what: str, act: Callable[[BoundedConnection], T], *, writes: bool) -> T:
        """Borrow a connection and call ``act`` with it.

        raises        a Headwater error; _LostError for a read whose connection was lost at once
        """
        pool = self._pool  # the connection goes back to the pool that lent it
        connection = pool.borrow()
        try:
            result = act(connection)
        except psycopg.Error as fault:
            if is_to_be_replaced(fault):
                pool.throw_away(connection)
            else:
                pool.give_back(connection)
            error = statement_error(fault, place=self._place, what=what, writes=writes)
            if not writes and is_lost(fault) and not isinstance(fault, NoAnswerError):
                raise _LostError(error) from fault
            raise error from fault
        except BaseException:
            # Ctrl-C may leave an unread answer on the connection: the next caller would take it for its own.
            pool.throw_away(connection)
            raise
        pool.give_back(connection)
        return result

    def _reference_row(self, values: tuple[Any, ...]) -> ReferenceRow:
        realm, name, pointer, version, created, recent, moves, deleted = values
        try:
            return ReferenceRow(
                realm=realm,
                name=name,
                pointer=pointer,
                version=version,
                created=created,
                recent=struct.unpack(f">{len(recent) // 8}q", recent),
                moves=tuple(
                    ReferenceMove(ObjectId(pointer), Micros(time)) for pointer, time in struct.iter_unpack(">qq", moves)
                ),
                deleted=deleted,
            )
        except struct.error as fault:
            raise CorruptionError(
                f"{self._place}: reference {name!r} of realm key {realm}: its recent pointers or moves are cut off"
            ) from fault


class _LostError(Exception):
    """A read's connection broke; ``error`` is what to raise if that does not help."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _execute(
    connection: BoundedConnection,
    statement: str,
    values: Sequence[Any] | dict[str, Any],
    row_factory: Any = psycopg.rows.tuple_row,
) -> psycopg.Cursor[Any]:
    """Execute on a new cursor, whose possibly large result is freed with it."""
    cursor = psycopg.Cursor(connection, row_factory=row_factory)
    return cursor.execute(statement.encode(), values, prepare=True, binary=True)


def _object_key(cursor: object) -> Callable[[Sequence[Any]], ObjectKey]:
    return partial(tuple.__new__, ObjectKey)


def _reference_key(cursor: object) -> Callable[[Sequence[Any]], ReferenceKey]:
    return partial(tuple.__new__, ReferenceKey)


def _beaten(seen: ReferenceRow) -> SwapConflictError:
    return SwapConflictError(f"reference {seen.name!r} of realm key {seen.realm} is not at version {seen.version} any more")


def _recent(row: ReferenceRow) -> bytes:
    return struct.pack(f">{len(row.recent)}q", *row.recent)


def _moves(row: ReferenceRow) -> bytes:
    return b"".join(struct.pack(">qq", *move) for move in row.moves)


def _swap_values(seen: ReferenceRow, new: ReferenceRow) -> tuple[Any, ...]:
    """The values of a swap, in the order of the statement's placeholders."""
    where = (seen.realm, seen.name, seen.version, seen.pointer)
    return (new.pointer, new.version, new.created, _recent(new), _moves(new), new.deleted, *where)


def _reference_bytes(row: ReferenceRow) -> int:
    return _ROW_BYTES + len(row.name) + 8 * len(row.recent) + 16 * len(row.moves)


def _reference_arrays(rows: Sequence[ReferenceRow]) -> dict[str, Any]:
    return {
        "realms": BigintArray([row.realm for row in rows]),
        "names": TextArray([row.name for row in rows]),
        "pointers": NullableBigintArray([row.pointer for row in rows]),
        "versions": BigintArray([row.version for row in rows]),
        "created": BigintArray([row.created for row in rows]),
        "recent": ByteaArray([_recent(row) for row in rows]),
        "moves": ByteaArray([_moves(row) for row in rows]),
        "deleted": NullableBigintArray([row.deleted for row in rows]),
    }


def _object_row(
    realm: RealmKey, object_id: ObjectId, part: int, type_: str, value: bytes, created: Micros, token: str | None, parts: int
) -> ObjectRow:
    return ObjectRow(realm=realm, id=object_id, part=part, type=type_, value=value, created=created, token=token, parts=parts)


def _object_values(row: ObjectRow) -> dict[str, Any]:
    return {
        "realm": row.realm,
        "id": row.id,
        "created": row.created,
        "part": row.part,
        "parts": row.parts,
        "type": row.type,
        "token": row.token,
        "value": row.value,
    }


def _object_bytes(row: ObjectRow) -> int:
    return _ROW_BYTES + len(row.value)


def _object_arrays(rows: Sequence[ObjectRow]) -> dict[str, Any]:
    return {
        "realms": BigintArray([row.realm for row in rows]),
        "ids": BigintArray([row.id for row in rows]),
        "created": BigintArray([row.created for row in rows]),
        "part": IntArray([row.part for row in rows]),
        "parts": IntArray([row.parts for row in rows]),
        "types": TextArray([row.type for row in rows]),
        "tokens": TextArray([row.token for row in rows]),
        "values": ByteaArray([row.value for row in rows]),
    }


def _key_arrays(keys: Sequence[ObjectKey]) -> dict[str, Any]:
    return {
        "realms": BigintArray([key.realm for key in keys]),
        "ids": BigintArray([key.id for key in keys]),
        "part": IntArray([key.part for key in keys]),
        "created": BigintArray([key.created for key in keys]),
        "tokens": TextArray([key.token for key in keys]),
    }


def _open(url: StoreUrl, options: Mapping[str, Any], create: bool) -> PostgresqlBackend:
    pool, place, schema = open_pool(url, options), url.shown_open, options["schema"]
    try:
        connection = pool.borrow()
        try:
            pool.refuse_shared_sessions(connection)
            _set_up(connection, place, schema, create=create)
        except psycopg.Error as fault:
            pool.throw_away(connection)
            raise _opening_error(fault, place, schema) from fault
        except BaseException:
            pool.throw_away(connection)
            raise
        pool.give_back(connection)
    except BaseException:
        pool.close()
        raise
    return PostgresqlBackend(pool, place=place, schema=schema, open_pool=partial(open_pool, url, options))


def _set_up(connection: BoundedConnection, place: str, schema: str, *, create: bool) -> None:
    """Make the tables, unless they are there.

    raises        NotFoundError when they are not there, and not to be created
    """
    version = _version(connection, schema)
    if version is None and not create:
        raise NotFoundError(f"there is no store at {place}: schema {schema} holds no Headwater tables")
    if version is None:
        with connection.transaction():
            # CREATE ... IF NOT EXISTS fails when two sessions run it at once, so they take turns by an advisory lock.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"headwater set-up {schema}",))
            # Checked again under the lock: another session may have created the tables meanwhile.
            version = _version(connection, schema)
            if version is None:
                if connection.only_row("SELECT count(*) FROM pg_namespace WHERE nspname = %s", (schema,)) == (0,):
                    connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
                for statement in set_up(schema):
                    connection.execute(statement.encode())
                return
    if version > SCHEMA_VERSION:
        raise RefusedError(
            f"{place}: the schema {schema} was set up by a newer Headwater (version {version}, this one knows {SCHEMA_VERSION}):"
            " upgrade this one"
        )
    if version < SCHEMA_VERSION:
        raise RefusedError(f"{place}: the schema {schema} has version {version}, which no Headwater ever wrote")


def _version(connection: BoundedConnection, schema: str) -> int | None:
    """The schema's version; None if it is not set up. Queries pg_class, because ``to_regclass`` may answer from before the lock."""
    query = (
        "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = %s AND relname = %s"
    )
    if connection.only_row(query, (schema, "version")) == (0,):
        return None
    return connection.only_row(f'SELECT max(number)::bigint FROM "{schema}".version')[0] or 0


def _opening_error(fault: psycopg.Error, place: str, schema: str) -> HeadwaterError:
    """The error for a failed set-up. Repeating it does no harm, so an unknown outcome becomes UnavailableError."""
    missing = f"let the owner of the schema {schema} open this store once, then grant its rights to this role"
    error = statement_error(fault, place=place, what="set up", writes=False, hints={"42501": missing})
    return UnavailableError(str(error)) if isinstance(error, UnknownOutcomeError) else error


KIND = BackendKind(example="postgresql://user:password@host:port/database", open=_open, options=OPTIONS)
