"""Checks of file tables: the realm's definitions and trees against the database of the file references.

The two databases are written in a fixed order, so some differences are ordinary: a scope without a complete table is one that is being
made, and references of a partition that was split wait to be moved. What no order explains is damage, or an older backup of one database.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise

from headwater.clock import Micros, as_text
from headwater.errors import CorruptionError, HeadwaterError
from headwater.files import (
    FILE_TABLES,
    FileReference,
    FileReferenceStore,
    FileScope,
    FileTable,
    FileTableDefinition,
    FileTableState,
    TreeBehindError,
    group_references,
    list_file_tables,
)
from headwater.files.open_references import keeps_file_references, list_file_scopes, open_file_references
from headwater.files.sql_references import SqlReferenceStore
from headwater.fsck.fsck_findings import FindingCode, FsckContext, FsckFinding, keys_text
from headwater.settings import variable_of
from headwater.store import RealmKey, Store

_DAY = 86_400_000_000
_SHOWN = 20
_UNFINISHED = (FileTableState.CREATING, FileTableState.DELETING)
_BACKUP = "restore both databases as of one time, that of the references no later than the realm's"


def check_file_tables(context: FsckContext) -> Iterator[FsckFinding]:
    """Check every file table of a realm, and look for scopes without a table. A realm that never had one is left alone: looking for
    scopes would make the tables of references in a store that has none.
    """
    if context.rows.find_row(FILE_TABLES) is None:
        return
    try:
        tables = {table.id: table for table in list_file_tables(context.rows, with_deleted=True)}
    except HeadwaterError:
        return  # the check of the heads has reported it
    if not keeps_file_references(context.store):
        if any(table.state is not FileTableState.DELETED for table in tables.values()):
            yield context.finding(
                FindingCode.FILE_SCOPE_MISSING,
                FILE_TABLES,
                "there are file tables, and nothing says in which database their references are",
                f"set {variable_of('files_store')} to the URL of that database",
            )
        return
    scopes = {scope.table for scope in list_file_scopes(context.store, context.rows.key)}
    for table in tables.values():
        yield from _check_table(context, table, has_scope=table.id in scopes)
    # Read again: a table is listed before its scope is made.
    listed = {table.id for table in list_file_tables(context.rows, with_deleted=True)}
    for lost in sorted(scopes - listed):
        yield context.finding(
            FindingCode.FILE_SCOPE_WITHOUT_TABLE,
            lost,
            f"there are file references of a table {lost}, which the realm does not have",
            f"if the realm was restored to a time before the table was made, {_BACKUP}; otherwise leave them: they go with the realm",
        )


def left_file_scopes(store: Store, key: RealmKey) -> list[FileScope]:
    """The scopes under a realm's key, as far as the store keeps references at all."""
    return list_file_scopes(store, key) if keeps_file_references(store) else []


def _check_table(context: FsckContext, table: FileTableDefinition, *, has_scope: bool) -> Iterator[FsckFinding]:
    is_old = table.updated < context.now - round(context.rows.settings.writer_grace_seconds * 1_000_000)
    if table.state in _UNFINISHED:
        if is_old:
            yield _unfinished(context, table)
        return
    if table.state is FileTableState.DELETED:
        return
    if not has_scope:
        yield context.finding(
            FindingCode.FILE_SCOPE_MISSING,
            table.name,
            f"file table {table.name!r} ({table.id}) has no references: their scope is not there",
            f"the database of the references was lost, or is another one: {_BACKUP}, or correct {variable_of('files_store')}",
        )
        return
    with closing(open_file_references(context.store, FileScope(context.rows.key, table.id))) as references:
        try:
            snapshot, _ = FileTable(context.rows, table, references).read_both()
        except TreeBehindError as behind:
            yield context.finding(FindingCode.TREE_BEHIND, table.name, str(behind), _BACKUP)
            return
        except CorruptionError as fault:
            yield context.finding(
                FindingCode.TREE_UNREADABLE, table.name, str(fault), "restore the tree from a backup of the database"
            )
            return
        yield from _check_overlaps(context, table, snapshot.references)
        yield from _check_jobs(context, table, references, snapshot.references)
        if isinstance(references, SqlReferenceStore):
            yield from _check_rows(context, table, references)


def _unfinished(context: FsckContext, table: FileTableDefinition) -> FsckFinding:
    if table.state is FileTableState.DELETING:
        what, repair = "deletion", f"`headwater file-table delete {context.rows.realm}/{table.name}` goes on with it"
    else:
        what, repair = "creation", "create, import or adopt it again, as it was begun: that goes on where it stopped"
    return context.finding(
        FindingCode.FILE_TABLE_UNFINISHED,
        table.name,
        f"the {what} of file table {table.name!r} ({table.id}) was interrupted; it is {table.state} since {as_text(table.updated)}",
        repair,
    )


def _check_overlaps(
    context: FsckContext, table: FileTableDefinition, references: Sequence[FileReference]
) -> Iterator[FsckFinding]:
    """Report files of which a partition and an ancestor of it have references: those rows come twice."""
    twice = [
        f"{file.filename} ({upper.partition}, {lower.partition})"
        for file in group_references(references)
        for upper, lower in pairwise(file.references)
        if lower.partition.startswith(upper.partition)
    ]
    if twice:
        yield context.finding(
            FindingCode.FILE_ROWS_TWICE,
            table.name,
            f"{len(twice)} files of file table {table.name!r} have references of a partition and of one below it: rows come twice",
            "keep a copy of both databases and report it; a reader cannot tell which reference is right",
            keys=twice[:_SHOWN],
        )


def _check_jobs(
    context: FsckContext, table: FileTableDefinition, store: FileReferenceStore, references: Sequence[FileReference]
) -> Iterator[FsckFinding]:
    """Report jobs that have had references for more than a day, and no outcome."""
    since: dict[str, Micros] = {}
    for reference in references:
        if reference.job is not None and reference.updated is not None:
            since[reference.job] = min(reference.updated, since.get(reference.job, reference.updated))
    old = sorted(job for job, time in since.items() if time < context.now - _DAY)
    known = store.find_outcomes(old)
    if left := [job for job in old if job not in known]:
        yield context.finding(
            FindingCode.FILE_JOB_STALE,
            table.name,
            f"{len(left)} jobs of file table {table.name!r} have had references for more than a day, without an outcome:"
            f" {keys_text(left)}",
            "the next compaction executes them again once their lease has run out",
            keys=left[:_SHOWN],
        )


def _check_rows(context: FsckContext, table: FileTableDefinition, references: SqlReferenceStore) -> Iterator[FsckFinding]:
    faults = references.find_faults(_SHOWN)
    if faults.untracked:
        yield context.finding(
            FindingCode.FILE_UNTRACKED,
            table.name,
            f"partitions of file table {table.name!r} refer to files that are not tracked: {keys_text(faults.untracked)}",
            "keep a copy of the database and report it; the files are read, and would never be collected",
            keys=faults.untracked,
        )
    if faults.marked:
        yield context.finding(
            FindingCode.FILE_MARKED,
            table.name,
            f"files of file table {table.name!r} are marked as unreferenced, and have references: {keys_text(faults.marked)}",
            "keep a copy of the database and report it; no collection deletes them as long as they have references",
            keys=faults.marked,
        )
