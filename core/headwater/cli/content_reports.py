"""What content, commits and comparisons look like from outside; see ``views``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.catalogs import (
    Change,
    CommittedOperation,
    Content,
    ContentKey,
    ContentType,
    ContentValue,
    Entry,
    KeyChange,
    LogEntry,
    content_type_of,
)
from headwater.cli.fields import Field, View, time
from headwater.store import id_text

__all__ = ["CHANGE", "COMMIT", "CONTENT", "ENTRY", "KEY_CHANGE", "ContentRow"]


def _content_type(kind: ContentType | int) -> str:
    return kind.name if isinstance(kind, ContentType) else f"type {kind}"


ENTRY: View[Entry] = View(
    "content",
    "contents",
    (
        Field("key", "names joined by dots; a dot inside a name has a backslash before it", lambda e: str(e.key), "KEY"),
        Field("elements", "the names", lambda e: list(e.key.elements)),
        Field(
            "type", "ICEBERG_TABLE, DELTA_LAKE_TABLE, ICEBERG_VIEW, NAMESPACE or UDF", lambda e: _content_type(e.type), "TYPE"
        ),
        Field("contentId", "survives renames", lambda e: str(e.content_id), "CONTENT ID"),
    ),
)


def _operation(operation: CommittedOperation) -> dict[str, Any]:
    return {
        "action": operation.action,
        "key": str(operation.key),
        "type": None if operation.type is None else _content_type(operation.type),
        "contentId": None if operation.content_id is None else str(operation.content_id),
    }


COMMIT: View[LogEntry] = View(
    "commit",
    "commits",
    (
        Field("hash", "the commit's id", lambda c: c.hash, "COMMIT"),
        Field("seq", "1 for the first, then one more each", lambda c: c.seq, "SEQ"),
        Field("time", "when it was made", lambda c: time(c.time), "TIME"),
        Field("authors", "who made it", lambda c: list(c.meta.authors), "AUTHORS"),
        Field("changes", "how many keys it changed", lambda c: len(c.operations), "CHANGES"),
        Field("message", "why", lambda c: c.message, "MESSAGE"),
        Field("signedOffBy", "who signed it off", lambda c: list(c.meta.signed_off_by)),
        Field("properties", "free names, each with its values", lambda c: {n: list(v) for n, v in c.meta.properties.items()}),
        Field("authorTime", "when its author made it, where that was earlier; null: then", lambda c: time(c.meta.author_time)),
        Field("parent", "the commit before; null: it is the first", lambda c: None if c.parent is None else id_text(c.parent)),
        Field("merged", "heads that were merged in", lambda c: [id_text(i) for i in c.meta.merged]),
        Field(
            "operations",
            "what it did to each key",
            lambda c: [_operation(operation) for operation in c.operations],
            inside={
                "[].action": "PUT or DELETE",
                "[].key": "as in a [content](#content)",
                "[].type": "as in a [content](#content); null where it was removed",
                "[].contentId": "null where it was removed",
            },
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ContentRow:
    """A content with the key under which it was read."""

    key: ContentKey
    content: Content


def _fields(content: Content) -> dict[str, Any]:
    """All fields of a content but its id, named as in JSON."""
    names = (field.name for field in msgspec.structs.fields(type(content)) if field.name not in ("id", "unknown"))
    return {_camel_case(name): msgspec.to_builtins(getattr(content, name)) for name in names}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


CONTENT: View[ContentRow] = View(
    "content in full",
    "contents",
    (
        Field("key", "as in a [content](#content)", lambda c: str(c.key), "KEY"),
        Field("type", "as in a [content](#content)", lambda c: _content_type(content_type_of(c.content)), "TYPE"),
        Field("contentId", "survives renames", lambda c: None if c.content.id is None else str(c.content.id), "CONTENT ID"),
        Field(
            "fields",
            "what its type has; null: not given",
            lambda c: _fields(c.content),
            inside={
                ".metadataLocation": "of an Iceberg table or view, or a function: where its metadata lies",
                ".snapshotId": "of an Iceberg table; -1: it has no snapshot",
                ".schemaId": "of an Iceberg table or view",
                ".specId": "of an Iceberg table: its partition spec",
                ".sortOrderId": "of an Iceberg table",
                ".tableUuid": "of an Iceberg table",
                ".versionId": "of an Iceberg view, or a function",
                ".viewUuid": "of an Iceberg view",
                ".metadataLocationHistory": "of a Delta Lake table, newest first as its writer gave it",
                ".checkpointLocationHistory": "of a Delta Lake table",
                ".lastCheckpoint": "of a Delta Lake table",
                ".properties": "of a namespace",
                ".signatureId": "of a function",
                ".sqlText": "of a view or function of an old client",
                ".dialect": "of a view or function of an old client",
            },
        ),
    ),
)


def _value(value: ContentValue | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return {"type": _content_type(value.type), "contentId": str(value.content_id), "digest": value.digest.hex()}


def _key(key: ContentKey | None) -> str | None:
    return None if key is None else str(key)


_VALUE = {
    ".type": "as in a [content](#content)",
    ".contentId": "survives renames",
    ".digest": "equal for equal content",
}

KEY_CHANGE: View[KeyChange] = View(
    "change of one content",
    "changes",
    (
        Field("hash", "the commit that made it", lambda c: c.entry.hash, "COMMIT"),
        Field("time", "when it was made", lambda c: time(c.entry.time), "TIME"),
        Field(
            "action",
            "CREATED, CHANGED, RENAMED or DELETED; PUT where the commit before was collected, so that it cannot be told which",
            lambda c: c.action.value,
            "ACTION",
        ),
        Field("key", "where it stood afterwards; a deleted one: before", lambda c: str(c.key), "KEY"),
        Field("renamedFrom", "where it stood before, if that was elsewhere", lambda c: _key(c.renamed_from), "FROM"),
        Field("value", "what it was afterwards; null: deleted", lambda c: _value(c.value), inside=_VALUE),
        Field("authors", "who made the commit", lambda c: list(c.entry.meta.authors), "AUTHORS"),
        Field("message", "why", lambda c: c.entry.message, "MESSAGE"),
    ),
)

CHANGE: View[Change] = View(
    "difference",
    "differences",
    (
        Field("action", "ADDED, REMOVED or CHANGED", lambda c: c.action, "ACTION"),
        Field("key", "as in a [content](#content)", lambda c: str(c.key), "KEY"),
        Field("type", "of what it holds afterwards, or held before", lambda c: _content_type(_either(c).type), "TYPE"),
        Field("renamedFrom", "where the content from after stood before", lambda c: _key(c.renamed_from), "RENAMED FROM"),
        Field("renamedTo", "where the content from before stands afterwards", lambda c: _key(c.renamed_to), "RENAMED TO"),
        Field("before", "what the key held; null: nothing", lambda c: _value(c.before), inside=_VALUE),
        Field("after", "what it holds; null: nothing", lambda c: _value(c.after), inside=_VALUE),
    ),
)


def _either(change: Change) -> ContentValue:
    value = change.after or change.before
    assert value is not None  # a key that holds nothing on either side does not differ
    return value
