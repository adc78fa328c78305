"""The tables that Spark sees, and their columns: the only definition of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from headwater.errors import RefusedError


class SourceColumn(NamedTuple):
    """A column: its name, its Spark type, and its meaning."""

    name: str
    type: str
    purpose: str


class SourceTable(NamedTuple):
    """A table: what one row is, and its columns.

    has_states    it can be read as it was at a commit; otherwise only as it is now
    """

    purpose: str
    columns: tuple[SourceColumn, ...]
    has_states: bool


_OPERATION = "struct<action: string, key: string, type: string, content_id: string, object_id: string>"
_REALM = SourceColumn("realm", "string", "the realm's id")
_PLACE = (
    _REALM,
    SourceColumn("catalog", "string", "the catalog's name"),
    SourceColumn("ref", "string", "the branch or tag; with the option `at`, its text"),
    SourceColumn("kind", "string", "`branch` or `tag`; `commit` where `ref` is the text of a commit"),
)
_KEY = (
    SourceColumn(
        "key", "string", "the content key, its elements joined by dots; `\\.` is a dot inside an element, `\\\\` a backslash"
    ),
    SourceColumn("namespace", "string", "the key without its last element; null for a key of one element"),
    SourceColumn("name", "string", "the key's last element"),
)
_CONTENT = (
    SourceColumn("type", "string", "`ICEBERG_TABLE`, `ICEBERG_VIEW`, `DELTA_LAKE_TABLE`, `NAMESPACE` or `UDF`"),
    SourceColumn("content_id", "string", "the content id, a UUID: it survives renames"),
    SourceColumn("object_id", "string", "the object that holds the content, 16 hex digits"),
)
_COMMIT = (
    SourceColumn("hash", "string", "the commit, 16 hex digits"),
    SourceColumn("seq", "bigint", "its number in the history, from 1"),
    SourceColumn("time", "timestamp", "when it was made"),
    SourceColumn("message", "string", "its message"),
    SourceColumn("authors", "array<string>", "its authors"),
)
_ENTRY = (*_PLACE, SourceColumn("hash", "string", "the commit whose state this is"), *_KEY, *_CONTENT)

TABLES: dict[str, SourceTable] = {
    "objects": SourceTable(
        "one row of the store that holds an object, or a part of a large one",
        (
            _REALM,
            SourceColumn("id", "string", "the object, 16 hex digits"),
            SourceColumn("part", "int", "which part of it, from 0"),
            SourceColumn("parts", "int", "how many parts it has"),
            SourceColumn("type", "string", "the object's type, such as `commit` or `stripe`"),
            SourceColumn("bytes", "bigint", "bytes of this row's value, as stored"),
            SourceColumn("created", "timestamp", "when it was written"),
            SourceColumn("is_updateable", "boolean", "whether it is changed in place"),
        ),
        has_states=False,
    ),
    "references": SourceTable(
        "one named pointer of a realm, tombstones included",
        (
            _REALM,
            SourceColumn("name", "string", "its full name"),
            SourceColumn("catalog", "string", "the catalog that it belongs to; null for a realm's own"),
            SourceColumn("kind", "string", "`branch` or `tag`, or `refs`, `roles`, `grants`; null for a realm's own"),
            SourceColumn("ref", "string", "the branch or tag; null for others"),
            SourceColumn("pointer", "string", "the object it points to, 16 hex digits; null where nothing was committed"),
            SourceColumn("version", "bigint", "grows with every move"),
            SourceColumn("created", "timestamp", "when it was made"),
            SourceColumn("deleted", "timestamp", "when it was deleted; null for one that is alive"),
        ),
        has_states=False,
    ),
    "commits": SourceTable(
        "one commit in the history of one branch or tag",
        (
            *_PLACE,
            *_COMMIT,
            SourceColumn("author_time", "timestamp", "when its author made it, if that was given"),
            SourceColumn("signed_off_by", "array<string>", "who signed it off"),
            SourceColumn("properties", "map<string, array<string>>", "its properties, each with its values"),
            SourceColumn("parent", "string", "the commit before it; null where history begins"),
            SourceColumn("merged", "array<string>", "heads that were merged in"),
            SourceColumn("operations", f"array<{_OPERATION}>", "what it changed"),
        ),
        has_states=True,
    ),
    "changes": SourceTable(
        "one change of one key by one commit in the history of one branch or tag",
        (
            *_PLACE,
            *_COMMIT,
            SourceColumn("action", "string", "`PUT` or `DELETE`"),
            *_KEY,
            *(SourceColumn(name, type_, f"{purpose}; null for `DELETE`") for name, type_, purpose in _CONTENT),
        ),
        has_states=True,
    ),
    "entries": SourceTable("one key that a branch, a tag or a commit holds", _ENTRY, has_states=True),
    "contents": SourceTable(
        "the same with what the content says, which reads an object for each key",
        (
            *_ENTRY,
            SourceColumn("metadata_location", "string", "the metadata file of an Iceberg table or view, or of a function"),
            SourceColumn("uuid", "string", "the table's or view's own UUID"),
            SourceColumn("snapshot_id", "bigint", "an Iceberg table's current snapshot; null for none"),
            SourceColumn("schema_id", "int", "an Iceberg table's or view's current schema"),
            SourceColumn("properties", "map<string, string>", "a namespace's properties"),
        ),
        has_states=True,
    ),
}

_OPERATION_TYPE = pa.struct([(name, pa.string()) for name in ("action", "key", "type", "content_id", "object_id")])
_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "array<string>": pa.list_(pa.string()),
    "map<string, string>": pa.map_(pa.string(), pa.string()),
    "map<string, array<string>>": pa.map_(pa.string(), pa.list_(pa.string())),
    f"array<{_OPERATION}>": pa.list_(_OPERATION_TYPE),
}


def chosen(table: str, names: Sequence[str]) -> tuple[SourceColumn, ...]:
    """The requested columns of a table, in the order of the names; all of them where none is named.

    raises        RefusedError that tells what there is
    """
    known = {column.name: column for column in TABLES[table].columns}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise RefusedError(f"table {table} has no column {', '.join(unknown)}: its columns are {', '.join(known)}")
    if len(set(names)) < len(names):
        raise RefusedError(f"option columns of table {table} names a column twice: {', '.join(names)}")
    return tuple(known[name] for name in names) or TABLES[table].columns


def arrow_schema(columns: Sequence[SourceColumn]) -> pa.Schema:
    """The columns as the Arrow schema that Spark expects."""
    return pa.schema([(column.name, _ARROW[column.type]) for column in columns])
