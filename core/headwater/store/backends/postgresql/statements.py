"""The SQL for the two tables of one schema. Values stand as %b, which the driver sends in binary form.

A session keeps the plan of a statement, even one made while the tables were empty and every plan cost the same. So no statement
leaves the planner a choice: many keys are looked up one after another in the index (LATERAL with OFFSET 0 is not flattened, whereas
``= ANY`` on a key's second column may become a walk through a whole realm), and found rows are deleted by their place (ctid).
Source: PostgreSQL documentation, "PREPARE", section Notes, and "LATERAL Subqueries"; what came of it was measured, see
docs/develop/decisions/0006.

Many values travel as arrays in PostgreSQL's binary format, built in one pass: two to five times as fast as the driver's conversion
of lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from struct import Struct
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

from headwater.store.backend import ScanSplit

SCHEMA_VERSION = 1
_REFERENCE = "realm, name, pointer, version, created, recent, moves, deleted"
_OBJECT = "realm, id, created, part, parts, type, token, value"
_REFERENCES = (
    "unnest(%(realms)b::bigint[], %(names)b::text[], %(pointers)b::bigint[], %(versions)b::bigint[], %(created)b::bigint[],"
    f" %(recent)b::bytea[], %(moves)b::bytea[], %(deleted)b::bigint[]) AS w ({_REFERENCE})"
)
_OBJECTS = (
    "unnest(%(realms)b::bigint[], %(ids)b::bigint[], %(created)b::bigint[], %(part)b::int[], %(parts)b::int[],"
    f" %(types)b::text[], %(tokens)b::text[], %(values)b::bytea[]) AS w ({_OBJECT})"
)
_OBJECT_KINDS = ("bigint", "bigint", "bigint", "int", "int", "text", "text", "bytea")
"""The types of an object's columns."""
FEW = 4
"""Up to this many objects are written as values, more as arrays: with two, values take 140 µs where arrays take 160."""
_REPLACE = (
    "ON CONFLICT (realm, id, part) DO UPDATE SET created = excluded.created, parts = excluded.parts, type = excluded.type,"
    " token = excluded.token, value = excluded.value"
)

_KEEP = (
    "ON CONFLICT (realm, id, part) DO UPDATE SET created = excluded.created, token = excluded.token, parts = CASE"
    " WHEN o.type = excluded.type AND o.value = excluded.value THEN excluded.parts ELSE excluded.parts / 0 END"
)
"""Update rows that exist with the same type and value; fail for others. It fails by a division by zero: plain SQL cannot raise an
error of its own, and only an error undoes a statement that has already swapped a reference."""


class TableNames(NamedTuple):
    """One of the two tables: its quoted name, that of its index, its key's columns with their types, and what a scan selects."""

    name: str
    primary_key: str
    key: tuple[tuple[str, str], ...]
    shown: str

    @property
    def columns(self) -> str:
        return ", ".join(name for name, _ in self.key)

    def place(self, prefix: str) -> str:
        """A whole key, its values named by a prefix and their column."""
        return "(" + ", ".join(f"%({prefix}{name})b::{kind}" for name, kind in self.key) + ")"

    def values(self, prefix: str, position: tuple[Any, ...]) -> dict[str, Any]:
        return {prefix + name: value for (name, _), value in zip(self.key, position, strict=True)}


class TableStatements(NamedTuple):
    """The constant statements, named like the methods that use them."""

    refs: TableNames
    objs: TableNames
    create_references: str
    read_reference: str
    read_references: str
    swap_reference: str
    write_few_and_swap: tuple[str, ...]
    """By the number of objects, from 1 to FEW. The values of swaps stand in order; here and in the next one, objects' come after."""
    write_and_swap: str
    remove_reference: str
    read_object: str
    read_objects: str
    write_objects: str
    add_objects: str
    insert_object: str
    update_object: str
    delete_objects: str
    delete_realm: str
    has_realm: str


def statements_of(schema: str) -> TableStatements:
    """The statements for the tables of a schema."""
    refs, objs = f'"{schema}".refs', f'"{schema}".objs'
    return TableStatements(
        refs=TableNames(
            refs,
            f'"{schema}".refs_pkey',
            (("realm", "bigint"), ("name", "text")),
            "realm, name, pointer, version, created, deleted",
        ),
        objs=TableNames(
            objs,
            f'"{schema}".objs_pkey',
            (("realm", "bigint"), ("id", "bigint"), ("part", "int")),
            "realm, id, part, type, created, token, parts, octet_length(value)",
        ),
        create_references=(
            f"INSERT INTO {refs} ({_REFERENCE}) SELECT {_REFERENCE} FROM {_REFERENCES} ON CONFLICT DO NOTHING RETURNING realm, name"
        ),
        read_reference=f"SELECT {_REFERENCE} FROM {refs} WHERE realm = %b AND name = %b",
        read_references=(
            f"SELECT o.* FROM unnest(%(names)b::text[]) AS w (name) CROSS JOIN LATERAL"
            f" (SELECT {_REFERENCE} FROM {refs} AS r WHERE r.realm = %(realm)b AND r.name = w.name OFFSET 0) AS o"
        ),
        swap_reference=_swap(refs),
        write_few_and_swap=tuple(_write_and_swap(refs, objs, _values(count)) for count in range(1, FEW + 1)),
        write_and_swap=_write_and_swap(
            refs, objs, f"SELECT * FROM unnest({', '.join(f'%b::{kind}[]' for kind in _OBJECT_KINDS)})"
        ),
        remove_reference=(
            f"DELETE FROM {refs} WHERE realm = %(realm)b AND name = %(name)b"
            " AND version = %(seen_version)b AND pointer IS NOT DISTINCT FROM %(seen_pointer)b::bigint"
        ),
        read_object=f"SELECT type, value, created, token, parts FROM {objs} WHERE realm = %b AND id = %b AND part = %b",
        read_objects=(
            "SELECT w.place, o.* FROM unnest(%(ids)b::bigint[], %(part)b::int[]) WITH ORDINALITY AS w (id, part, place)"
            " CROSS JOIN LATERAL (SELECT type, value, created, token, parts"
            f" FROM {objs} AS o WHERE o.realm = %(realm)b AND o.id = w.id AND o.part = w.part OFFSET 0) AS o"
        ),
        write_objects=(
            f"WITH w AS MATERIALIZED (SELECT * FROM {_OBJECTS}), gone AS ({_delete_beyond(objs, 'w')})"
            f" INSERT INTO {objs} ({_OBJECT}) SELECT {_OBJECT} FROM w {_REPLACE}"
        ),
        add_objects=(
            f"WITH w AS MATERIALIZED (SELECT * FROM {_OBJECTS}), gone AS ({_delete_beyond(objs, 'w')})"
            f" INSERT INTO {objs} AS o ({_OBJECT}) SELECT {_OBJECT} FROM w {_KEEP}"
        ),
        insert_object=(
            f"INSERT INTO {objs} ({_OBJECT}) VALUES (%(realm)b, %(id)b, %(created)b, %(part)b, %(parts)b, %(type)b, %(token)b,"
            " %(value)b) ON CONFLICT DO NOTHING"
        ),
        update_object=(
            f"UPDATE {objs} SET created = %(created)b, parts = %(parts)b, type = %(type)b, token = %(token)b, value = %(value)b"
            " WHERE realm = %(realm)b AND id = %(id)b AND part = %(part)b AND token = %(seen_token)b"
        ),
        delete_objects=(
            "WITH d AS MATERIALIZED (SELECT o.ctid, w.created, w.token FROM unnest(%(realms)b::bigint[], %(ids)b::bigint[],"
            " %(part)b::int[], %(created)b::bigint[], %(tokens)b::text[]) AS w (realm, id, part, created, token)"
            f" CROSS JOIN LATERAL (SELECT o.ctid FROM {objs} AS o WHERE o.realm = w.realm AND o.id = w.id AND o.part = w.part"
            f" OFFSET 0) AS o) DELETE FROM {objs} AS o USING d WHERE o.ctid = d.ctid AND o.created = d.created"
            " AND o.token IS NOT DISTINCT FROM d.token"
        ),
        delete_realm=(
            f"WITH r AS (DELETE FROM {refs} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {refs} WHERE realm = %(realm)b"
            " ORDER BY name LIMIT %(limit)b)) RETURNING 1),"
            f" o AS (DELETE FROM {objs} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {objs} WHERE realm = %(realm)b"
            " ORDER BY id, part LIMIT greatest(0, %(limit)b - (SELECT count(*) FROM r)))) RETURNING 1)"
            " SELECT (SELECT count(*) FROM r) + (SELECT count(*) FROM o)"
        ),
        has_realm=(
            f"SELECT EXISTS (SELECT FROM {refs} WHERE realm = %(realm)b) OR EXISTS (SELECT FROM {objs} WHERE realm = %(realm)b)"
        ),
    )


def _swap(refs: str) -> str:
    return (
        f"UPDATE {refs} SET pointer = %b::bigint, version = %b, created = %b, recent = %b, moves = %b, deleted = %b::bigint"
        " WHERE realm = %b AND name = %b AND version = %b AND pointer IS NOT DISTINCT FROM %b::bigint"
    )


def _write_and_swap(refs: str, objs: str, source: str) -> str:
    """The statement that swaps a reference, and writes objects only if the swap succeeded.

    The swap is evaluated before the first insertion, so a caller that loses the swap, or waits for another's lock on the reference,
    has written nothing.
    """
    gone = _delete_beyond(objs, "s CROSS JOIN w")
    return (
        f"WITH s AS ({_swap(refs)} RETURNING 1), w ({_OBJECT}) AS MATERIALIZED ({source}), gone AS ({gone})"
        f" INSERT INTO {objs} AS o ({_OBJECT}) SELECT {_OBJECT} FROM w WHERE EXISTS (SELECT FROM s) {_KEEP}"
    )


def _values(count: int) -> str:
    row = ", ".join(f"%b::{kind}" for kind in _OBJECT_KINDS)
    return "VALUES " + ", ".join([f"({row})"] * count)


def _delete_beyond(objs: str, source: str) -> str:
    """The statement that deletes the surplus parts of objects that are written (``w`` of the source)."""
    return (
        f"DELETE FROM {objs} WHERE ctid = ANY (ARRAY (SELECT o.ctid FROM {source} CROSS JOIN LATERAL (SELECT o.ctid"
        f" FROM {objs} AS o WHERE o.realm = w.realm AND o.id = w.id AND o.part >= w.parts OFFSET 0) AS o WHERE w.part = 0))"
    )


def scan(table: TableNames, split: ScanSplit[Any], after: tuple[Any, ...] | None) -> tuple[str, dict[str, Any]]:
    """The statement for a page of a scan, and its values without ``limit``: one walk along the primary key.

    The start must be one comparison of whole keys: with an additional ``realm = ...`` PostgreSQL would begin at the realm's first row.
    Ends in other realms are ignored.
    """
    conditions: list[str] = []
    values: dict[str, Any] = {}
    realm = split.realm
    starts = [start for start in (split.after, after) if start is not None and (realm is None or start[0] >= realm)]
    if starts:
        conditions.append(f"({table.columns}) > {table.place('after_')}")
        values |= table.values("after_", max(starts))
    elif realm is not None:
        conditions.append("realm >= %(realm)b")
        values["realm"] = realm
    if split.until is not None and (realm is None or split.until[0] <= realm):
        conditions.append(f"({table.columns}) <= {table.place('until_')}")
        values |= table.values("until_", split.until)
    elif realm is not None:
        conditions.append("realm <= %(realm)b")
        values["realm"] = realm
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {table.shown} FROM {table.name}{where} ORDER BY {table.columns} LIMIT %(limit)b", values


def set_up(schema: str) -> tuple[str, ...]:
    """The statements that create the tables and then the version row, to be run in one transaction.

    Names are ordered by their bytes (COLLATE "C"). Values are compressed already, so they are stored uncompressed (EXTERNAL). Pages
    of references keep free space for the next version of a row (fillfactor), so that a swap need not touch the index.
    """
    schema = f'"{schema}"'
    return (
        f"CREATE TABLE {schema}.refs (realm bigint NOT NULL, pointer bigint, version bigint NOT NULL, created bigint NOT NULL,"
        ' deleted bigint, name text COLLATE "C" NOT NULL, recent bytea NOT NULL, moves bytea NOT NULL,'
        " PRIMARY KEY (realm, name)) WITH (fillfactor = 50)",
        f"ALTER TABLE {schema}.refs ALTER recent SET STORAGE EXTERNAL, ALTER moves SET STORAGE EXTERNAL",
        f"CREATE TABLE {schema}.objs (realm bigint NOT NULL, id bigint NOT NULL, created bigint NOT NULL, part int NOT NULL,"
        ' parts int NOT NULL, type text COLLATE "C" NOT NULL, token text COLLATE "C", value bytea NOT NULL,'
        " PRIMARY KEY (realm, id, part))",
        f"ALTER TABLE {schema}.objs ALTER value SET STORAGE EXTERNAL",
        f"CREATE TABLE {schema}.version (number int NOT NULL)",
        f"INSERT INTO {schema}.version VALUES ({SCHEMA_VERSION})",
    )


_BYTEA, _BIGINT, _INT, _TEXT = 17, 20, 23, 25
"""The element types' fixed numbers: ``src/include/catalog/pg_type.dat`` of PostgreSQL."""
_NULL = b"\xff\xff\xff\xff"
_head = Struct(">iiIii").pack
_sized_bigint = Struct(">iq").pack
_sized_int = Struct(">ii").pack
_size = Struct(">i").pack


class _Array:
    """One dimension of elements, counted from 1, as the server reads it. ``oid`` is the array type's number."""

    __slots__ = ("data",)
    oid = 0

    def __init__(self, element: int, count: int, elements: Iterable[bytes], *, has_nulls: bool = False) -> None:
        self.data = b"".join((_head(1, has_nulls, element, count, 1), *elements))


class BigintArray(_Array):
    __slots__ = ()
    oid = 1016

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__(_BIGINT, len(values), map(_sized_bigint, repeat(8), values))


class IntArray(_Array):
    __slots__ = ()
    oid = 1007

    def __init__(self, values: Sequence[int]) -> None:
        super().__init__(_INT, len(values), map(_sized_int, repeat(4), values))


class NullableBigintArray(_Array):
    __slots__ = ()
    oid = 1016

    def __init__(self, values: Sequence[int | None]) -> None:
        elements = [_NULL if value is None else _sized_bigint(8, value) for value in values]
        super().__init__(_BIGINT, len(values), elements, has_nulls=True)


class TextArray(_Array):
    """Texts or NULL. The same text again costs next to nothing."""

    __slots__ = ()
    oid = 1009

    def __init__(self, values: Sequence[str | None]) -> None:
        known = {value: _NULL if value is None else _sized(value.encode()) for value in set(values)}
        super().__init__(_TEXT, len(values), map(known.__getitem__, values), has_nulls=None in known)


class ByteaArray(_Array):
    __slots__ = ()
    oid = 1001

    def __init__(self, values: Sequence[bytes]) -> None:
        elements: list[bytes] = []
        for value in values:
            elements += (_size(len(value)), value)
        super().__init__(_BYTEA, len(values), elements)


class _ArrayDumper(Dumper):
    """Hands an array's bytes on; each of its subclasses knows one type."""

    format = Format.BINARY

    def dump(self, obj: _Array) -> Buffer:
        return obj.data


def _sized(value: bytes) -> bytes:
    return _size(len(value)) + value


class _Adapters:
    """What connections take as values of ``%b``: arrays, and every integer as a bigint, so that a statement has only one plan."""

    def __init__(self) -> None:
        self.adapters = AdaptersMap(psycopg.adapters)
        self.connection = None
        self.adapters.register_dumper(int, Int8BinaryDumper)
        for kind in (BigintArray, IntArray, NullableBigintArray, TextArray, ByteaArray):
            self.adapters.register_dumper(kind, type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": kind.oid}))


ADAPTERS = _Adapters()
