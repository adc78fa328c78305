"""Filters of the commits of a log, and the variables by which filters know a commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater.catalogs.content import ContentKey, ContentType, type_text
from headwater.catalogs.filter_program import FilterExpression
from headwater.catalogs.filter_text import SCALAR, FilterShape, ListShape
from headwater.catalogs.history.commit_meta import CommitMeta, CommittedOperation, LogEntry
from headwater.catalogs.key_variables import KEY_FIELDS, key_variables
from headwater.clock import Micros
from headwater.store import ObjectId, id_text

COMMIT_FIELDS: dict[str, FilterShape] = {
    "hash": SCALAR,
    "message": SCALAR,
    "committer": SCALAR,
    "author": SCALAR,
    "authors": ListShape(SCALAR),
    "allAuthors": ListShape(SCALAR),
    "signedOffBy": SCALAR,
    "allSignedOffBy": ListShape(SCALAR),
    "commitTime": SCALAR,
    "authorTime": SCALAR,
    "properties": None,
    "allProperties": None,
    "parentCommitHashes": ListShape(SCALAR),
}
_OPERATION_FIELDS: dict[str, FilterShape] = {**KEY_FIELDS, "type": SCALAR, "content": {"type": SCALAR, "id": SCALAR}}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def commit_variables(entry: LogEntry) -> dict[str, Any]:
    """The values of ``COMMIT_FIELDS``. An author, signer or committer that is not known is an empty text."""
    meta, time = entry.meta, _time(entry.time)
    parents = (*(() if entry.parent is None else (entry.parent,)), *meta.merged)
    return {
        "hash": entry.hash,
        "message": meta.message,
        "committer": meta.committer,
        "author": next(iter(meta.authors), ""),
        "authors": list(meta.authors),
        "allAuthors": list(meta.authors),
        "signedOffBy": next(iter(meta.signed_off_by), ""),
        "allSignedOffBy": list(meta.signed_off_by),
        "commitTime": time,
        "authorTime": time if meta.author_time is None else _time(meta.author_time),
        "properties": {name: values[0] for name, values in meta.properties.items() if values},
        "allProperties": {name: list(values) for name, values in meta.properties.items()},
        "parentCommitHashes": [id_text(parent) for parent in parents],
    }


def _time(time: Micros) -> datetime:
    return _EPOCH + timedelta(microseconds=time)


_KEY = ContentKey.of("a", "b")
_SAMPLE = LogEntry(ObjectId(1), 1, Micros(0), CommitMeta(), None, (CommittedOperation("PUT", _KEY, ContentType.NAMESPACE),))
EMPTY_COMMIT = commit_variables(_SAMPLE) | {"hash": ""}
"""The variables of no commit."""


@dataclass(frozen=True)
class LogExpression(FilterExpression[LogEntry]):
    """A filter of commits, with those operations that a log entry has.

    Where a caller may not see every operation, ask about the entry that is left of a commit: in a ``LogFilter`` the expression
    sees all, and so its answer tells what the caller may not know.
    """

    VARIABLES = {"commit": COMMIT_FIELDS, "operations": ListShape(_OPERATION_FIELDS)}
    SAMPLE = _SAMPLE

    def variables_of(self, entry: LogEntry, /) -> dict[str, Any]:
        operations = entry.operations if self.asks_operations else ()
        return {"commit": commit_variables(entry), "operations": [_operation(operation) for operation in operations]}

    @property
    def asks_operations(self) -> bool:
        """True if what the filter says of a commit depends on its operations."""
        return self.program.names("operations")


def _operation(operation: CommittedOperation) -> dict[str, Any]:
    """The variables of an operation. A deletion has no content."""
    content = {}
    if operation.type is not None:
        content = {"content": {"type": type_text(operation.type), "id": str(operation.content_id)}}
    return {**key_variables(operation.key), "type": operation.action, **content}
