"""What the public API returns of catalogs: their definitions, references, commits, contents, differences, merges and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec

from headwater.api.api_values import told_id, told_time
from headwater.api.conflict_sides import ConflictSidesInfo
from headwater.api.declared_values import (
    ImportInfo,
    ManagerInfo,
    ScheduleInfo,
    declared_imports,
    declared_schedules,
    told_duration,
    told_manager,
)
from headwater.catalogs import (
    CatalogDefinition,
    Conflict,
    Content,
    ContentChange,
    ContentEntry,
    ContentKey,
    ContentType,
    KeyChange,
    LogEntry,
    MergeResult,
    NamedRef,
    ReportRow,
    content_type_of,
)
from headwater.clock import Micros, as_datetime
from headwater.iceberg_catalog import TableHome
from headwater.lake_files import MarkedFile
from headwater.store import id_text

Key = str | tuple[str, ...]
"""A table, view or namespace: names joined by dots (a dot inside a name has a backslash before it), or a tuple of names."""


def content_key(key: Key) -> ContentKey:
    """The key that is meant; raises RefusedError for a text or tuple that is none."""
    return ContentKey.parse(key) if isinstance(key, str) else ContentKey(tuple(key))


def _type_name(kind: ContentType | int) -> str:
    return kind.name if isinstance(kind, ContentType) else f"type {kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogInfo:
    """A catalog as it was when it was read.

    id            16 hex digits, never used again
    state         ACTIVE or DELETED
    file_places   locations whose files are all its tables', besides its home tables'
    imports       tables that lie somewhere already, as its resource declares them
    maintenance   scheduled work on its lake, by its name: ``expire_snapshots`` and ``report_files``, each where it is said
    deletion_policy  Retain or Purge, when its resource is deleted
    hold          how long it can be undeleted once it is deleted; None: as the settings say
    held_until    of a deleted catalog: it can be undeleted until then
    manager       the resource that manages it; None: none does
    """

    realm: str
    name: str
    id: str
    state: str
    base_location: str
    allowed_locations: tuple[str, ...]
    default_branch: str
    file_places: tuple[str, ...]
    imports: tuple[ImportInfo, ...]
    maintenance: Mapping[str, ScheduleInfo]
    properties: Mapping[str, str]
    created: datetime
    updated: datetime
    deletion_policy: str
    deletion_protection: bool
    hold: timedelta | None
    held_until: datetime | None
    manager: ManagerInfo | None

    @classmethod
    def of(cls, realm: str, definition: CatalogDefinition) -> CatalogInfo:
        """The values of a stored catalog."""
        return cls(
            realm=realm,
            name=definition.name,
            id=definition.id,
            state=definition.state.value,
            base_location=definition.base_location,
            allowed_locations=definition.allowed_locations,
            default_branch=definition.default_branch,
            file_places=definition.files.places,
            imports=declared_imports(definition),
            maintenance=declared_schedules(definition),
            properties=dict(definition.properties),
            created=as_datetime(definition.created),
            updated=as_datetime(definition.updated),
            deletion_policy=definition.deletion_policy,
            deletion_protection=definition.deletion_protection,
            hold=told_duration(definition.hold_seconds),
            held_until=told_time(definition.held_until),
            manager=told_manager(definition.manager),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefInfo:
    """A branch or tag.

    kind          ``branch`` or ``tag``
    hash          the commit that it points to, or pointed to; None: none yet
    deleted       when it was deleted; None: it is there
    held_until    of a deleted one: it can be undeleted until then, and until a collection after that
    """

    kind: str
    name: str
    hash: str | None
    created: datetime
    deleted: datetime | None = None
    held_until: datetime | None = None

    @classmethod
    def of(cls, named: NamedRef, *, deleted: Micros | None = None, grace: timedelta = timedelta()) -> RefInfo:
        """The values of a named reference; of a deleted one, with when it was deleted and how long it is held."""
        gone = told_time(deleted)
        return cls(
            kind=named.kind.value,
            name=named.name,
            hash=named.hash,
            created=as_datetime(named.created),
            deleted=gone,
            held_until=None if gone is None else gone + grace,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationInfo:
    """What a commit did to one key.

    action        PUT or DELETE
    type          None where it was removed, as is content_id
    """

    action: str
    key: str
    type: str | None
    content_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """A commit of a catalog.

    seq           1 for the first of its line, then one more each
    authors       as the request named them, not verified
    committer     the principal whose request made it; empty: not known
    author_time   when its author made it, where that was earlier; None: then
    parent        the commit before; None: it is the first
    merged        heads that were merged in
    """

    hash: str
    seq: int
    time: datetime
    message: str
    authors: tuple[str, ...]
    committer: str
    signed_off_by: tuple[str, ...]
    author_time: datetime | None
    properties: Mapping[str, tuple[str, ...]]
    parent: str | None
    merged: tuple[str, ...]
    operations: tuple[OperationInfo, ...]

    @classmethod
    def of(cls, entry: LogEntry) -> CommitInfo:
        """The values of an entry of a log."""
        return cls(
            hash=entry.hash,
            seq=entry.seq,
            time=as_datetime(entry.time),
            message=entry.message,
            authors=entry.meta.authors,
            committer=entry.meta.committer,
            signed_off_by=entry.meta.signed_off_by,
            author_time=told_time(entry.meta.author_time),
            properties=dict(entry.meta.properties),
            parent=told_id(entry.parent),
            merged=tuple(id_text(head) for head in entry.meta.merged),
            operations=tuple(
                OperationInfo(
                    action=each.action,
                    key=str(each.key),
                    type=None if each.type is None else _type_name(each.type),
                    content_id=None if each.content_id is None else str(each.content_id),
                )
                for each in entry.operations
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInfo:
    """A table, view, namespace or function of a reference.

    key           names joined by dots; ``elements`` are the names
    type          ICEBERG_TABLE, DELTA_LAKE_TABLE, ICEBERG_VIEW, NAMESPACE or UDF
    content_id    survives renames
    """

    key: str
    elements: tuple[str, ...]
    type: str
    content_id: str

    @classmethod
    def of(cls, entry: ContentEntry) -> EntryInfo:
        """The values of an entry of a listing."""
        return cls(
            key=str(entry.key),
            elements=tuple(entry.key.elements),
            type=_type_name(entry.type),
            content_id=str(entry.content_id),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentInfo:
    """All that a catalog stores of a table, view, namespace or function.

    fields        by the names that the store has, such as ``metadata_location`` and ``snapshot_id``
    """

    key: str
    type: str
    content_id: str | None
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, key: ContentKey, content: Content) -> ContentInfo:
        """The values of a stored content."""
        names = (each.name for each in msgspec.structs.fields(type(content)) if each.name not in ("id", "unknown"))
        return cls(
            key=str(key),
            type=_type_name(content_type_of(content)),
            content_id=None if content.id is None else str(content.id),
            fields={name: msgspec.to_builtins(getattr(content, name)) for name in names},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHistoryInfo:
    """One change of one table, view, namespace or function.

    action        CREATED, RESTORED, CHANGED, RENAMED or DELETED; PUT where the commit before was collected
    """

    commit: CommitInfo
    action: str
    key: str
    renamed_from: str | None

    @classmethod
    def of(cls, change: KeyChange) -> KeyHistoryInfo:
        """The values of an entry of a history."""
        renamed = None if change.renamed_from is None else str(change.renamed_from)
        return cls(commit=CommitInfo.of(change.entry), action=str(change.action), key=str(change.key), renamed_from=renamed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceInfo:
    """A key that differs between two references.

    action        ADDED, REMOVED or CHANGED
    type          of what it holds afterwards, or held before
    sides         what both sides did to it since their common ancestor, ``into`` being the one before; None: nobody asked
    merge         what merging the second reference into the first would do: PUT, REMOVED, CONFLICT, or LEFT (it stays as it is, for only
                  the first has changed it); None: nobody asked, or a base would have to be named
    """

    action: str
    key: str
    type: str
    renamed_from: str | None
    renamed_to: str | None
    sides: ConflictSidesInfo | None = None
    merge: str | None = None

    @classmethod
    def of(cls, change: ContentChange, sides: ConflictSidesInfo | None = None, *, merge: str | None = None) -> DifferenceInfo:
        """The values of a difference."""
        value = change.after or change.before
        assert value is not None  # a key that holds nothing on either side does not differ
        return cls(
            action=change.action,
            key=str(change.key),
            type=_type_name(value.type),
            renamed_from=None if change.renamed_from is None else str(change.renamed_from),
            renamed_to=None if change.renamed_to is None else str(change.renamed_to),
            sides=sides,
            merge=merge,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflictInfo:
    """What stands against a merge at one key.

    kind          such as VALUE_DIFFERS
    sides         what both sides did to the key; None: there is no key, or the conflict is none of the first hundred
    """

    kind: str
    key: str | None
    message: str
    sides: ConflictSidesInfo | None = None

    @classmethod
    def of(cls, conflict: Conflict, sides: Mapping[ContentKey, ConflictSidesInfo]) -> MergeConflictInfo:
        """The values of a conflict."""
        key, both = (None, None) if conflict.key is None else (str(conflict.key), sides.get(conflict.key))
        return cls(kind=conflict.kind.value, key=key, message=conflict.message, sides=both)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedKeyInfo:
    """What became of one key that the source of a merge changed.

    mode          NORMAL, FORCE or DROP
    outcome       PUT, REMOVED, RESOLVED, SAME, KEPT, DROPPED or CONFLICT
    """

    key: str
    mode: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInfo:
    """What a merge or transplant did, or would do.

    applied       whether a commit was made
    commits       those that were made, oldest first
    head          of the branch, afterwards
    base          the commit from which changes were counted; None: from the beginning
    conflicts     only of one that was refused: then nothing was written
    undone        keys that were merged before, and that a restoration of the branch took back: each is a conflict, unless its mode is
                  FORCE or DROP
    undone_base   the base from which these count as changes of the source again
    """

    applied: bool
    commits: tuple[str, ...]
    head: str | None
    base: str | None
    keys: tuple[MergedKeyInfo, ...]
    conflicts: tuple[MergeConflictInfo, ...] = ()
    undone: tuple[str, ...] = ()
    undone_base: str | None = None

    @classmethod
    def of(cls, result: MergeResult, sides: Mapping[ContentKey, ConflictSidesInfo] = MappingProxyType({})) -> MergeInfo:
        """The values of a result."""
        return cls(
            applied=result.is_applied,
            commits=tuple(id_text(commit) for commit in result.commits),
            head=told_id(result.head),
            base=told_id(result.base),
            keys=tuple(
                MergedKeyInfo(key=str(each.key), mode=each.mode.value, outcome=each.outcome.value)
                for each in result.merged_keys
            ),
            conflicts=tuple(MergeConflictInfo.of(conflict, sides) for conflict in result.conflicts),
            undone=tuple(map(str, result.undone)),
            undone_base=told_id(result.undone_base),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHomeInfo:
    """A table or view, and whether it is at home in its catalog, which created or adopted it."""

    key: str
    content_id: str
    is_home: bool

    @classmethod
    def of(cls, home: TableHome) -> TableHomeInfo:
        """The values of a table."""
        return cls(key=str(home.key), content_id=str(home.entry.content_id), is_home=home.is_home)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreferencedFileInfo:
    """A file of the lake that nobody refers to, by a report.

    code          the rule that holds for it
    modified      its own time; None: the storage does not say
    since         when our listings first had it so
    due           the first time at which it may go; None: it is only reported
    """

    path: str
    code: str
    size_bytes: int
    modified: datetime | None
    since: datetime | None
    due: datetime | None
    place: str

    @classmethod
    def of(cls, mark: MarkedFile) -> UnreferencedFileInfo:
        """The values of a marked file."""
        return cls(
            path=mark.path,
            code=str(mark.code),
            size_bytes=mark.size_bytes,
            modified=told_time(mark.modified or None),
            since=told_time(mark.first_listed or None),
            due=told_time(mark.due or None),
            place=mark.place,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTableInfo:
    """What became of one table folder in an import.

    outcome       imported, updated, unchanged, quarantined, gone or dropped
    code, message why it is quarantined; of others the message may say why they were left as they are
    rule          by which its latest metadata was chosen
    commit        the commit that imported, moved or dropped it; None: nothing was written
    """

    key: str
    folder: str
    outcome: str
    code: str
    message: str
    rule: str
    metadata_location: str
    commit: str | None

    @classmethod
    def of(cls, row: ReportRow) -> ImportedTableInfo:
        """The values of a row of a report."""
        return cls(
            key=str(ContentKey(row.key)),
            folder=row.directory,
            outcome=row.outcome,
            code=row.code,
            message=row.message,
            rule=row.rule,
            metadata_location=row.metadata_location,
            commit=row.commit or None,
        )
