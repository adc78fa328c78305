"""Commits as answers show them: without what the caller may not list, and with the first of their operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater.catalogs import CommittedOperation, LogEntry
from headwater.catalogs.content import type_text
from headwater.clock import as_text
from headwater.store import id_text
from headwater_server.management.contents.content_shapes import ShownCommit, ShownOperation
from headwater_server.nessie.nessie_session import NessieSession

IN_BRIEF: Final = 10
"""Operations that stand in a commit of a list."""


def filter_commits(session: NessieSession, entries: Sequence[LogEntry], rights: str) -> Sequence[LogEntry]:
    """Some commits as the caller may see them through a reference."""
    return entries if session.references is None else session.references.filter_entries(entries, rights)


def commit_bodies(session: NessieSession, entries: Sequence[LogEntry], rights: str) -> list[ShownCommit]:
    """Some commits in brief, as the caller may see them through a reference."""
    shown = filter_commits(session, entries, rights)
    return [commit_body(each, is_hidden=hides(entry, each)) for entry, each in zip(entries, shown, strict=True)]


def hides(entry: LogEntry, shown: LogEntry) -> bool:
    """Whether a commit did something that is not shown."""
    return len(shown.operations) < len(entry.operations)


def commit_body(entry: LogEntry, *, is_hidden: bool, brief: int = IN_BRIEF) -> ShownCommit:
    """A commit, given as the caller may see it."""
    meta = entry.meta
    return ShownCommit(
        hash=entry.hash,
        parent=None if entry.parent is None else id_text(entry.parent),
        merged=list(map(id_text, meta.merged)),
        time=as_text(entry.time),
        authors=list(meta.authors),
        committer=meta.committer,
        message=meta.message,
        properties={name: list(values) for name, values in meta.properties.items()},
        seq=entry.seq,
        hidden=is_hidden,
        changes=len(entry.operations),
        operations=operation_bodies(entry.operations[:brief]),
    )


def operation_bodies(operations: Sequence[CommittedOperation]) -> list[ShownOperation]:
    return [
        ShownOperation(
            action=each.action,
            key=list(each.key.elements),
            name=str(each.key),
            type=None if each.type is None else type_text(each.type),
            content_id=None if each.content_id is None else str(each.content_id),
        )
        for each in operations
    ]
