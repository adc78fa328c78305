"""What a collection may touch and what it must keep: the realm's references, its retention, and the commits of a line that stay.

``CollectionScope`` finds every reference of a realm that can be collected: those that its lists name, and those that only have a row.
``RetentionPolicy`` says how much history of each stays. ``HistoryLine`` judges the commits of one pointer by their positions and times,
without reading anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headwater.catalogs import RefKind, reference_names, reference_text
from headwater.catalogs.file_marks import FILE_MARKS, FILE_PLACES
from headwater.catalogs.registry import parse_reference
from headwater.clock import Micros
from headwater.commits import PINS, Commit, CutPoint, Head, LogEnd, declared_reference, listed_extensions, read_log
from headwater.errors import CorruptionError, HeadwaterError, RefusedError
from headwater.files import FILE_TABLES, check_list_is_there, parse_tree_reference, tree_names, tree_text
from headwater.realms import REALM_REFERENCES, REALMS, HistoryRetention, KeptHistory, Realm, RealmRegistry, RealmState
from headwater.settings import Settings, sound_count, sound_seconds
from headwater.store import SYSTEM_REALM, ObjectId, RealmStore, Reference, Store, id_text
from headwater.tasks import REFERENCE as TASKS

RUNS = "maintenance-runs"
LATE_REFERENCES = (PINS, FILE_TABLES, FILE_MARKS, FILE_PLACES)
"""The references that a realm gets with the first entry of their lists."""
_NEVER = Micros(0)
_ALL_COMMITS = 1 << 62
REMEMBERED_BYTES = 16 * 1024 * 1024
"""The cache budget of one collection: branches share most of their history."""


class ReferenceOrigin(StrEnum):
    """Who knows what a reference is."""

    OWN = "own"
    """Headwater has references of this kind."""
    EXTENSION = "extension"
    """A package declared it."""
    UNKNOWN = "unknown"
    """Neither this release nor a package that is installed here knows the kind: it is a later release's, or a missing package's."""


class ScopeEntry(NamedTuple):
    """The name of a reference that exists, was deleted, or is about to be created.

    listed        when the name was listed; 0 for names that every realm has, and for those that no list has
    called        the name that people and retention patterns use, where it differs
    commits       how many commits of its history an extension keeps; None: as many as of others
    is_unlisted   it has a row, and stands in no list
    """

    name: str
    is_content: bool = False
    listed: Micros = Micros(0)
    called: str = ""
    origin: ReferenceOrigin = ReferenceOrigin.OWN
    commits: int | None = None
    is_unlisted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy:
    """How much history stays: by the first pattern that covers a reference, otherwise by the kind of reference."""

    content_commits: int
    content_age_seconds: float
    reference_commits: int
    patterns: tuple[KeptHistory, ...] = ()

    def history_kept(self, listed: ScopeEntry) -> tuple[int, float]:
        """How many commits stay, and up to which age in seconds all stay; 0 for no age. Pins keep no history, and what is not known all."""
        if listed.name == PINS:
            return 0, 0.0
        if listed.origin is ReferenceOrigin.UNKNOWN:
            return _ALL_COMMITS, 0.0
        for kept in self.patterns:
            if kept.covers(listed.called or listed.name):
                return kept.commits, kept.age_seconds
        if listed.is_content:
            return self.content_commits, self.content_age_seconds
        return max(self.reference_commits, listed.commits or 0), 0.0


@dataclass(frozen=True, slots=True)
class CollectionScope:
    """One realm for its collector: a handle that may write, and how much history is kept.

    loaded        when the realm was imported, with heads and no history before them; 0 if it was not
    """

    rows: RealmStore
    policy: RetentionPolicy
    is_system: bool
    loaded: Micros = _NEVER

    def list_references(self) -> list[ScopeEntry]:
        """Read every name from the lists of the database now. A name may have no row yet."""
        extensions = [
            ScopeEntry(entry.name, listed=entry.listed, origin=ReferenceOrigin.EXTENSION, commits=entry.kind.commits)
            for entry in listed_extensions(self.rows)
        ]
        if self.is_system:
            return [ScopeEntry(REALMS), ScopeEntry(TASKS), ScopeEntry(RUNS), *extensions]
        return [
            *(ScopeEntry(name) for name in (*REALM_REFERENCES, *LATE_REFERENCES)),
            *(ScopeEntry(*entry) for entry in reference_names(self.rows)),
            *(ScopeEntry(tree.name, listed=tree.listed) for tree in tree_names(self.rows)),
            *extensions,
        ]

    def all_references(self) -> list[ScopeEntry]:
        """Every name that a list has, and every other one that has a row: what such a reference holds is not garbage."""
        listed = self.list_references()
        return [*listed, *self.find_unlisted(listed)]

    def find_unlisted(self, listed: Iterable[ScopeEntry] | None = None) -> list[ScopeEntry]:
        """The references that have a row, perhaps a tombstone, and stand in no list. Scans the keys of all references.

        listed        as read a moment ago
        """
        names = {entry.name for entry in (self.list_references() if listed is None else listed)}
        strange = [key.name for key in self.rows.scan_references() if key.name not in names]
        if strange:  # a name is listed before its row is made: one that was listed since is listed
            names = {entry.name for entry in self.list_references()}
        return [self.unlisted_entry(name) for name in strange if name not in names]

    def unlisted_entry(self, name: str) -> ScopeEntry:
        """What can be told of a reference that stands in no list by its name alone."""
        part = None if self.is_system else parse_reference(name)
        if part is not None or (not self.is_system and parse_tree_reference(name)):
            return ScopeEntry(name, part is not None and isinstance(part.part, RefKind), is_unlisted=True)
        try:
            declared = declared_reference(name, is_system=self.is_system)
        except HeadwaterError:
            declared = None  # a package that cannot be loaded: everything of it stays
        if declared is None:
            return ScopeEntry(name, origin=ReferenceOrigin.UNKNOWN, is_unlisted=True)
        return ScopeEntry(name, origin=ReferenceOrigin.EXTENSION, commits=declared[0].commits, is_unlisted=True)

    def check_complete(self, references: Iterable[tuple[ScopeEntry, Reference]]) -> None:
        """Pass if every reference is there that a realm has from its bootstrap on. Everything that a lost one held would be garbage.

        raises        CorruptionError
        """
        lost = set() if self.is_system else set(REALM_REFERENCES) - {entry.name for entry, _ in references}
        if lost:
            raise CorruptionError(
                f"realm {self.rows.realm!r} has no reference {', '.join(sorted(lost))}, which every realm has: it was lost; nothing of the"
                " realm is deleted until it is restored from a backup of the database"
            )
        if not self.is_system:
            check_list_is_there(self.rows)

    def find_references(self) -> list[tuple[ScopeEntry, Reference]]:
        """Every reference that has a row, with the row; tombstones included."""
        entries = self.all_references()
        rows = self.rows.find_rows([entry.name for entry in entries])
        return [(entry, row) for entry, row in zip(entries, rows, strict=True) if row is not None]


def describe_reference(rows: RealmStore, reference: str) -> str:
    """Describe a reference for users: "branch main of catalog lake", or the tree of a file table."""
    return tree_text(rows, reference) or reference_text(rows, reference)


def check_collectable(store: Store, realm_id: str) -> int:
    """Returns the key of a realm that can be collected now, 0 for the system realm; raises as ``open_scope`` does."""
    open_scope(store, realm_id)
    return 0 if realm_id == SYSTEM_REALM else RealmRegistry(store).read_realm(realm_id).key


def open_scope(store: Store, realm_id: str) -> CollectionScope:
    """Open the system realm, or a realm that is ACTIVE or INACTIVE, for a collection.

    raises        NotFoundError for no such realm; RefusedError in any other state
    """
    if realm_id == SYSTEM_REALM:
        return CollectionScope(store.system.without_cache(budget_bytes=REMEMBERED_BYTES), _policy(None, store.settings), True)
    realms = RealmRegistry(store)
    realm = realms.read_realm(realm_id)
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm_id!r} is {realm.state}: only ACTIVE and INACTIVE realms are collected")
    rows = realms.open_realm_for(realm_id, realm.state).without_cache(budget_bytes=REMEMBERED_BYTES)
    return CollectionScope(rows, _policy(realm, store.settings), False, realm.entered.get(RealmState.LOADING.value, _NEVER))


def _policy(realm: Realm | None, settings: Settings) -> RetentionPolicy:
    wanted = HistoryRetention() if realm is None else realm.retention
    commits, age = settings.content_commits, settings.content_age_seconds
    return RetentionPolicy(
        content_commits=sound_count(wanted.content_commits, commits),
        content_age_seconds=sound_seconds(wanted.content_age_seconds, age),
        reference_commits=sound_count(wanted.reference_commits, settings.reference_commits),
        patterns=tuple(
            KeptHistory(
                pattern=kept.pattern,
                commits=sound_count(kept.commits, commits),
                age_seconds=sound_seconds(kept.age_seconds, age),
            )
            for kept in wanted.references
        ),
    )


class BrokenHistoryError(CorruptionError):
    """A commit is missing where no collection cut the history: it was lost, and nothing before it can be found any more.

    line          the name of the history line
    above         the last commit that is there
    lost          the commit that is missing
    """

    def __init__(self, message: str, *, line: str = "", above: int = 0, lost: int = 0) -> None:  # defaults: it is pickled
        super().__init__(message)
        self.line = line
        self.above = ObjectId(above)
        self.lost = ObjectId(lost)


class KeepReason(StrEnum):
    """Why a row stays. A row is counted under the first reason that holds."""

    HEAD = "head"
    GRACE = "grace"
    RETENTION = "retention"
    RECORD = "record"
    FILTER = "filter"
    """Marked, or a false positive: the filter beyond the exact set remembers no reasons."""
    YOUNG = "young"
    FIXED = "fixed"
    UNKNOWN = "unknown type"
    """Nothing leads to it, but this release does not know its type, and so cannot tell that nothing needs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """A pointer, and how much of the history behind it must stay.

    left          when a reference left this pointer other than by a commit on top; None: it is HEAD now
    reader_cutoff commits that were HEAD after this moment stay
    commits, since  the retention: so many commits, and all that were HEAD after ``since``
    cut           commits before this point are garbage already; none of them was HEAD after ``reader_cutoff``
    loaded        when the realm was imported, 0 for never: the archive had heads alone, so nothing up to then has its history
    credible      the latest time that can be right
    """

    name: str
    pointer: ObjectId
    left: Micros | None
    reader_cutoff: Micros
    commits: int
    since: Micros
    cut: CutPoint
    loaded: Micros
    credible: Micros

    def keep_reason(self, position: int, commit: Commit, superseded: Micros | None) -> KeepReason | None:
        """Why a commit stays, or None. When one does not stay, no older one does.

        position      0 for the pointer itself
        superseded    when the next one took its place, as a sound time; None: never
        """
        # Grace counts from the moment at which it ceased to be HEAD: a head may be years old, and somebody reads it still.
        if superseded is None:
            return KeepReason.HEAD
        if superseded >= self.reader_cutoff:
            return KeepReason.GRACE
        # Garbage stays garbage: what an earlier run cut may be gone, or go by a late deletion, whatever retention says now.
        if self.left is not None or self.cut.lets_go(commit):
            return None
        return KeepReason.RETENTION if self._is_retained(position, superseded) else None

    def sound_time(self, commit: Commit, superseded: Micros | None) -> Micros:
        """The latest moment at which a commit can have been made: its own time, or when it was superseded, if that is earlier.

        A pointer that was left counts by its own time, unless that cannot be right: another clock wrote when it was left.
        """
        if superseded is None or (superseded == self.left and commit.time <= self.credible):
            return commit.time
        return min(commit.time, superseded)

    def lacks(self, position: int, oldest: Commit, superseded: Micros) -> bool:
        """Whether the commit before ``oldest`` was lost: it is not there, would stay, and no collection let it go.

        position      its own
        superseded    the sound time of ``oldest``
        """
        if oldest.time <= self.loaded:
            return False
        if superseded >= self.reader_cutoff:
            return self.left is not None or not self.cut.explains(oldest)
        return self.left is None and self._is_retained(position, superseded) and not self.cut.explains(oldest)

    def _is_retained(self, position: int, superseded: Micros) -> bool:
        return position < self.commits or superseded >= self.since


class LinePosition(NamedTuple):
    """A place in a walk down a line: the commit, how many are above it, and when it was superseded (None: never)."""

    commit: ObjectId
    position: int
    superseded: Micros | None


def kept_commits(
    rows: RealmStore, line: HistoryLine, since: LinePosition | None = None
) -> Iterator[tuple[Head, KeepReason, LinePosition]]:
    """Iterate over the commits of a line that stay, newest first, each with its place. Reads twenty at a time.

    since         where an earlier walk ended; None: the pointer itself
    raises        ExpiredError when the first commit is missing · BrokenHistoryError when a later one is that should be there
    """
    place = since or LinePosition(line.pointer, 0, line.left)
    superseded = place.superseded
    walk = read_log(rows, place.commit)
    head, position = None, place.position
    for position, head in enumerate(walk, place.position):
        why = line.keep_reason(position, head.commit, superseded)
        if why is None:
            return
        yield head, why, LinePosition(head.id, position, superseded)
        superseded = line.sound_time(head.commit, superseded)
    # The walk met a commit that is not there. That is well only where a collection, or an import, ended the history.
    if (
        walk.end is LogEnd.CUT
        and head is not None
        and superseded is not None
        and line.lacks(position + 1, head.commit, superseded)
    ):
        raise _broken(rows, line, head)


def _broken(rows: RealmStore, line: HistoryLine, above: Head) -> BrokenHistoryError:
    lost = above.commit.tail[0]
    return BrokenHistoryError(
        f"HISTORY_BROKEN: the history of {line.name!r} of realm {rows.realm!r} ends at commit {id_text(above.id)} (seq"
        f" {above.commit.seq}), where no collection cut it: commit {id_text(lost)} before it was lost",
        line=line.name,
        above=above.id,
        lost=lost,
    )
