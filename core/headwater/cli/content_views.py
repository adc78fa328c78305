"""The views of contents, commits, comparisons and merges: their JSON fields and table columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.catalogs import (
    CommittedOperation,
    Content,
    ContentChange,
    ContentEntry,
    ContentKey,
    ContentType,
    ContentValue,
    KeyChange,
    LogEntry,
    MergeResult,
    content_type_of,
)
from headwater.cli.result_output import ResultView, ViewField, identifier, time_field
from headwater.store import id_text


def _content_type(kind: ContentType | int) -> str:
    return kind.name if isinstance(kind, ContentType) else f"type {kind}"


ENTRY: ResultView[ContentEntry] = ResultView(
    "content",
    "contents",
    (
        ViewField("key", "names joined by dots; a dot inside a name has a backslash before it", lambda e: str(e.key), "KEY"),
        ViewField("elements", "the names", lambda e: list(e.key.elements)),
        ViewField(
            "type", "ICEBERG_TABLE, DELTA_LAKE_TABLE, ICEBERG_VIEW, NAMESPACE or UDF", lambda e: _content_type(e.type), "TYPE"
        ),
        ViewField("contentId", "survives renames", lambda e: str(e.content_id), "CONTENT ID"),
    ),
)


def _operation(operation: CommittedOperation) -> dict[str, Any]:
    return {
        "action": operation.action,
        "key": str(operation.key),
        "type": None if operation.type is None else _content_type(operation.type),
        "contentId": None if operation.content_id is None else str(operation.content_id),
    }


COMMIT: ResultView[LogEntry] = ResultView(
    "commit",
    "commits",
    (
        ViewField("hash", "the commit's id", lambda c: c.hash, "COMMIT"),
        ViewField("seq", "1 for the first, then one more each", lambda c: c.seq, "SEQ"),
        ViewField("time", "when it was made", lambda c: time_field(c.time), "TIME"),
        ViewField("authors", "who made it", lambda c: list(c.meta.authors), "AUTHORS"),
        ViewField("changes", "how many keys it changed", lambda c: len(c.operations), "CHANGES"),
        ViewField("message", "why", lambda c: c.message, "MESSAGE"),
        ViewField("signedOffBy", "who signed it off", lambda c: list(c.meta.signed_off_by)),
        ViewField(
            "properties", "free names, each with its values", lambda c: {n: list(v) for n, v in c.meta.properties.items()}
        ),
        ViewField(
            "authorTime",
            "when its author made it, where that was earlier; null: then",
            lambda c: time_field(c.meta.author_time),
        ),
        ViewField(
            "parent", "the commit before; null: it is the first", lambda c: None if c.parent is None else id_text(c.parent)
        ),
        ViewField("merged", "heads that were merged in", lambda c: [id_text(i) for i in c.meta.merged]),
        ViewField(
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
    """Returns all fields of a content except its id, named as in JSON."""
    names = (field.name for field in msgspec.structs.fields(type(content)) if field.name not in ("id", "unknown"))
    return {_camel_case(name): msgspec.to_builtins(getattr(content, name)) for name in names}


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


CONTENT: ResultView[ContentRow] = ResultView(
    "content in full",
    "contents",
    (
        ViewField("key", "as in a [content](#content)", lambda c: str(c.key), "KEY"),
        ViewField("type", "as in a [content](#content)", lambda c: _content_type(content_type_of(c.content)), "TYPE"),
        ViewField("contentId", "survives renames", lambda c: None if c.content.id is None else str(c.content.id), "CONTENT ID"),
        ViewField(
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

KEY_CHANGE: ResultView[KeyChange] = ResultView(
    "change of one content",
    "changes",
    (
        ViewField("hash", "the commit that made it", lambda c: c.entry.hash, "COMMIT"),
        ViewField("time", "when it was made", lambda c: time_field(c.entry.time), "TIME"),
        ViewField(
            "action",
            "CREATED, CHANGED, RENAMED or DELETED; PUT where the commit before was collected, so that the change is unknown",
            lambda c: c.action.value,
            "ACTION",
        ),
        ViewField("key", "where it stood afterwards; a deleted one: before", lambda c: str(c.key), "KEY"),
        ViewField("renamedFrom", "where it stood before, if that was elsewhere", lambda c: _key(c.renamed_from), "FROM"),
        ViewField("value", "what it was afterwards; null: deleted", lambda c: _value(c.value), inside=_VALUE),
        ViewField("authors", "who made the commit", lambda c: list(c.entry.meta.authors), "AUTHORS"),
        ViewField("message", "why", lambda c: c.entry.message, "MESSAGE"),
    ),
)

CHANGE: ResultView[ContentChange] = ResultView(
    "difference",
    "differences",
    (
        ViewField("action", "ADDED, REMOVED or CHANGED", lambda c: c.action, "ACTION"),
        ViewField("key", "as in a [content](#content)", lambda c: str(c.key), "KEY"),
        ViewField("type", "of what it holds afterwards, or held before", lambda c: _content_type(_either(c).type), "TYPE"),
        ViewField("renamedFrom", "where the content from after stood before", lambda c: _key(c.renamed_from), "RENAMED FROM"),
        ViewField("renamedTo", "where the content from before stands afterwards", lambda c: _key(c.renamed_to), "RENAMED TO"),
        ViewField("before", "what the key held; null: nothing", lambda c: _value(c.before), inside=_VALUE),
        ViewField("after", "what it holds; null: nothing", lambda c: _value(c.after), inside=_VALUE),
    ),
)


def _either(change: ContentChange) -> ContentValue:
    value = change.after or change.before
    assert value is not None  # a key that holds nothing on either side does not differ
    return value


MERGE: ResultView[MergeResult] = ResultView(
    "merge",
    "merges",
    (
        ViewField("applied", "whether a commit was made", lambda m: m.is_applied),
        ViewField("commits", "those that were made, oldest first", lambda m: [identifier(one) for one in m.commits]),
        ViewField("onto", "the head that it was done on, or would be; null: there was none", lambda m: identifier(m.onto)),
        ViewField("head", "the head of the branch afterwards", lambda m: identifier(m.head)),
        ViewField("base", "the commit that changes were counted from; null: from the beginning", lambda m: identifier(m.base)),
        ViewField(
            "otherBases",
            "common ancestors as near as that, after merges back and forth",
            lambda m: [identifier(one) for one in m.other_bases],
        ),
        ViewField(
            "lost",
            "collected commits that history could not be followed beyond; a nearer base may have been there",
            lambda m: [identifier(one) for one in m.lost],
        ),
        ViewField(
            "keys",
            "what became of each key that the source changed",
            lambda m: [
                {
                    "key": str(one.key),
                    "mode": one.mode.value,
                    "outcome": one.outcome.value,
                    "source": identifier(step.source),
                    "commit": identifier(step.commit),
                }
                for step in m.steps
                for one in step.keys
            ],
            inside={
                "[].mode": "NORMAL, FORCE or DROP",
                "[].outcome": "PUT, REMOVED, RESOLVED, SAME (both held the same), KEPT (both made this namespace), DROPPED or CONFLICT",
                "[].source": "the commit of the source that it comes from",
                "[].commit": "the commit that was made; null: none",
            },
        ),
        ViewField(
            "conflicts",
            "what stands against it; nothing was written then",
            lambda m: [
                {"kind": one.kind.value, "key": None if one.key is None else str(one.key), "message": one.message}
                for one in m.conflicts
            ],
            inside={"[].kind": "such as VALUE_DIFFERS"},
        ),
    ),
)
