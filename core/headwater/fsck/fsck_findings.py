"""The findings of fsck: their codes, each with its weight and its meaning, and the context in which a check of one realm makes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from headwater.catalogs import CONTENT, ContentKey
from headwater.catalogs.stored_metadata import piece_text
from headwater.clock import Micros
from headwater.errors import CorruptionError, HeadwaterError
from headwater.fsck.object_walk import ObjectUse
from headwater.gc.retention import CollectionScope, ScopeEntry, describe_reference
from headwater.store import ObjectId, RealmReader, RealmStore, Reference, Store
from headwater.throttle import ProgressCallback, no_progress


class FindingWeight(StrEnum):
    """How severe a finding is."""

    DAMAGE = "DAMAGE"
    """Needed data cannot be read: it is lost unless somebody restores it."""
    TROUBLE = "TROUBLE"
    """Nothing is lost, but something is blocked until a person looks at it."""
    LEFTOVER = "LEFTOVER"
    """A left-over of an interruption: harmless, and maintenance removes it."""


_DAMAGE, _TROUBLE, _LEFTOVER = FindingWeight


class FindingCode(StrEnum):
    """The codes of findings, each with its weight and its meaning. They are a contract: tools rely on them."""

    weight: FindingWeight
    meaning: str

    def __new__(cls, text: str, weight: FindingWeight, meaning: str) -> FindingCode:
        code = str.__new__(cls, text)
        code._value_ = text
        code.weight, code.meaning = weight, meaning
        return code

    LIST_UNREADABLE = "LIST_UNREADABLE", _DAMAGE, "what the realm consists of cannot be read"
    HEAD_UNREADABLE = "HEAD_UNREADABLE", _DAMAGE, "a reference points to a commit that is not there, or damaged"
    OBJECT_UNREADABLE = "OBJECT_UNREADABLE", _DAMAGE, "a head reaches an object that is not there, or damaged"
    TYPE_UNKNOWN = (
        "TYPE_UNKNOWN",
        _DAMAGE,
        "a head reaches an object of a type that this release does not know, or that may point to more than it knows",
    )
    HISTORY_BROKEN = "HISTORY_BROKEN", _DAMAGE, "a history ends where no collection cut it: a commit was lost"
    INDEX_WRONG = "INDEX_WRONG", _DAMAGE, "an index is not in order, or does not have as many entries as it says"
    CONTENT_WRONG = (
        "CONTENT_WRONG",
        _DAMAGE,
        "a key of a branch or tag holds what is no content, or its content id stands for another key",
    )
    REQUEST_UNREADABLE = (
        "REQUEST_UNREADABLE",
        _TROUBLE,
        "an entry of the requests that were applied to a branch is none: one request may be refused, or applied twice",
    )
    REFERENCE_MISSING = "REFERENCE_MISSING", _DAMAGE, "a reference that every realm has is not there"
    NAME_WITHOUT_ROW = "NAME_WITHOUT_ROW", _LEFTOVER, "a name is listed, but was never given a row"
    ROW_WITHOUT_NAME = (
        "ROW_WITHOUT_NAME",
        _TROUBLE,
        "a living reference stands in no list: nobody finds it, no archive has it, and collections keep what it points to",
    )
    REFERENCE_UNKNOWN = (
        "REFERENCE_UNKNOWN",
        _TROUBLE,
        "a living reference is of a kind that neither this release nor an installed package knows: collections keep what it points to",
    )
    RELEASE_TOO_OLD = "RELEASE_TOO_OLD", _TROUBLE, "only a later release may maintain this store: this one refuses"
    TOMBSTONE_WITHOUT_NAME = "TOMBSTONE_WITHOUT_NAME", _LEFTOVER, "a deleted reference stands in no list any more"
    OBJECT_DAMAGED = "OBJECT_DAMAGED", _DAMAGE, "the bytes of an object that no head reaches are damaged"
    PART_LEFT_OVER = "PART_LEFT_OVER", _LEFTOVER, "a row belongs to an older writing of its object"
    TIME_AHEAD = "TIME_AHEAD", _TROUBLE, "a row lies further in the future than clocks may differ"
    MOVES_CROWDED = (
        "MOVES_CROWDED",
        _TROUBLE,
        "a reference is moved so often that it soon cannot be moved, deleted or created again within the grace period",
    )
    COMMITS_AHEAD = "COMMITS_AHEAD", _TROUBLE, "a reference's commits carry times of a clock that was ahead"
    COLLECTION_REFUSED = "COLLECTION_REFUSED", _TROUBLE, "the next collection would refuse to delete anything"
    SWEEP_ABANDONED = "SWEEP_ABANDONED", _TROUBLE, "a collection was interrupted while it swept, and nobody goes on with it"
    PIN_STALE = "PIN_STALE", _LEFTOVER, "a commit is pinned by a task that has ended"
    CATALOG_INCOMPLETE = "CATALOG_INCOMPLETE", _TROUBLE, "the making of a catalog was interrupted"
    CATALOG_MISLISTED = "CATALOG_MISLISTED", _DAMAGE, "the two lists of catalogs contradict each other"
    CLAIM_UNREADABLE = "CLAIM_UNREADABLE", _DAMAGE, "a claim is no claim"
    CLAIM_WITHOUT_CONTENT = "CLAIM_WITHOUT_CONTENT", _LEFTOVER, "claims are held for content that no head has any more"
    CLAIM_OF_ANOTHER = "CLAIM_OF_ANOTHER", _TROUBLE, "a table's uuid is claimed for another table"
    FILE_SCOPE_MISSING = (
        "FILE_SCOPE_MISSING",
        _DAMAGE,
        "a file table has no references: the database of these was lost, or is another",
    )
    FILE_SCOPE_WITHOUT_TABLE = (
        "FILE_SCOPE_WITHOUT_TABLE",
        _TROUBLE,
        "there are references of a file table that its realm does not have",
    )
    TREE_BEHIND = "TREE_BEHIND", _DAMAGE, "a file table's references are newer than its tree: one database was restored alone"
    TREE_UNREADABLE = "TREE_UNREADABLE", _DAMAGE, "a file table has no partition tree that can be read"
    FILE_ROWS_TWICE = "FILE_ROWS_TWICE", _DAMAGE, "a partition and one below it refer to the same file: rows come twice"
    FILE_UNTRACKED = "FILE_UNTRACKED", _DAMAGE, "a partition refers to a file that is not tracked"
    FILE_MARKED = "FILE_MARKED", _TROUBLE, "a file is marked as unreferenced, and has references"
    FILE_TABLE_UNFINISHED = "FILE_TABLE_UNFINISHED", _TROUBLE, "the creation or deletion of a file table was interrupted"
    FILE_JOB_STALE = "FILE_JOB_STALE", _LEFTOVER, "a job has had references for more than a day, and no outcome"
    TASK_UNREADABLE = "TASK_UNREADABLE", _DAMAGE, "a task is listed and cannot be read: it is left alone, and holds its place"
    RUN_UNREADABLE = "RUN_UNREADABLE", _DAMAGE, "the record of a run, or a piece of its report, is listed and cannot be read"
    TURN_UNREADABLE = "TURN_UNREADABLE", _DAMAGE, "whose turn it is to scan the store cannot be read: nothing is collected"
    TASK_MISSING = "TASK_MISSING", _DAMAGE, "a task is listed, but not there"
    TASK_AHEAD = (
        "TASK_AHEAD",
        _TROUBLE,
        "a task waits for a time that a clock chose which was ahead: it is due much later than it was meant to be",
    )
    TASK_ENTRY_STALE = "TASK_ENTRY_STALE", _LEFTOVER, "the entry of a task contradicts it"
    REALM_UNREADABLE = "REALM_UNREADABLE", _DAMAGE, "the list of realms, or a realm's definition, cannot be read"
    PURGE_ABANDONED = "PURGE_ABANDONED", _TROUBLE, "a realm is PURGING, and no task purges it"
    LOAD_ABANDONED = "LOAD_ABANDONED", _TROUBLE, "a realm is LOADING, and no task loads it"
    ROWS_AFTER_PURGE = "ROWS_AFTER_PURGE", _TROUBLE, "a PURGED realm has rows again"
    ROWS_BEFORE_BOOTSTRAP = "ROWS_BEFORE_BOOTSTRAP", _TROUBLE, "a realm that was never begun has rows"
    LATE_ROWS = "LATE_ROWS", _LEFTOVER, "late writers left rows under the key of a realm that is deleted"
    ROWS_OF_NO_REALM = "ROWS_OF_NO_REALM", _TROUBLE, "rows carry a key that no realm has, nor had lately"


@dataclass(frozen=True, slots=True)
class FsckFinding:
    """One violation of what must hold in a store.

    code          the kind of the finding
    subject       the reference, object, catalog or task
    message       what is wrong
    repair        what would repair it
    keys          the first few keys, in words, under which the reference holds what cannot be read
    target        the commit that a repair would go back to, or the object that it would set aside; empty where there is none
    is_intact     the unreadable bytes are those that were written: a later release reads them
    """

    code: FindingCode
    realm: str
    subject: str
    message: str
    repair: str
    keys: tuple[str, ...] = field(default=(), kw_only=True)
    target: str = field(default="", kw_only=True)
    is_intact: bool = field(default=False, kw_only=True)

    @property
    def weight(self) -> FindingWeight:
        return self.code.weight


def is_bad(findings: Iterable[FsckFinding]) -> bool:
    """Whether any finding deserves attention: anything but left-overs."""
    return any(finding.weight is not FindingWeight.LEFTOVER for finding in findings)


_AT_ONCE = 500
_KEYS_SHOWN = 5


@dataclass(slots=True)
class FsckContext:
    """What every check of one realm starts from.

    listed        the names in the realm's lists; without the lists (``list_fault`` says why), the names that have rows
    references    the rows of those names, tombstones included
    unlisted      rows whose names stand in no list
    progress      is told how far the checks of this realm are
    lost          ids of objects that were found unreadable, so that each is reported once
    apart         those of them that the check of the heads need not report
    """

    store: Store
    scope: CollectionScope
    now: Micros
    listed: Sequence[ScopeEntry]
    references: dict[str, Reference]
    unlisted: list[Reference]
    list_fault: str = ""
    progress: ProgressCallback = no_progress
    lost: set[ObjectId] = field(default_factory=set)
    apart: set[ObjectId] = field(default_factory=set)

    @property
    def rows(self) -> RealmStore:
        return self.scope.rows

    @property
    def living(self) -> list[Reference]:
        """The references that point to a commit, listed or not."""
        rows = [*self.references.values(), *self.unlisted]
        return [row for row in rows if row.deleted is None and row.pointer is not None]

    def finding(
        self,
        code: FindingCode,
        subject: str,
        message: str,
        repair: str,
        *,
        keys: Sequence[str] = (),
        target: str = "",
        is_intact: bool = False,
    ) -> FsckFinding:
        return FsckFinding(
            code, self.rows.realm, subject, message, repair, keys=tuple(keys), target=target, is_intact=is_intact
        )

    def reference_words(self, reference: str) -> str:
        """The name of a reference as people know it; its stored name where the lists of catalogs cannot be read."""
        try:
            return describe_reference(self.rows, reference)
        except HeadwaterError:
            return repr(reference)


def open_context(store: Store, scope: CollectionScope, progress: ProgressCallback = no_progress) -> FsckContext:
    """Read a realm's references. A name is listed before its row is created, so the lists are read again for rows that they lack."""
    now = scope.rows.clock.now()
    fault = ""
    try:
        listed = scope.list_references()
    except HeadwaterError as unreadable:
        fault = str(unreadable)
        listed = [ScopeEntry(row.name, "/heads/" in row.name or "/tags/" in row.name) for row in scope.rows.scan_references()]
    references = _read(scope.rows, [entry.name for entry in listed])
    strange = [] if fault else [entry.name for entry in scope.find_unlisted(listed)]
    return FsckContext(store, scope, now, listed, references, list(_read(scope.rows, strange).values()), fault, progress)


def use_text(use: ObjectUse) -> str:
    """Describe where a reference holds an object: a content's key, a piece of its metadata, or the index and the key in it."""
    if use.of:
        what = f"{piece_text(use.key)} in the metadata" if use.key else "a part of the metadata"
        try:
            return f"{what} of {ContentKey.from_index(use.of)}"
        except CorruptionError:
            return f"{what} of {use.of.hex()}"
    if not use.key:
        return f"a part of index {use.index!r}" if use.index else "a commit beneath it"
    if use.index == CONTENT:
        try:
            return str(ContentKey.from_index(use.key))
        except CorruptionError:
            pass
    try:
        text = use.key.decode()
    except UnicodeDecodeError:
        text = use.key.hex()
    return f"{use.index}: {text if text.isprintable() else use.key.hex()}"


def keys_text(keys: Sequence[str]) -> str:
    """Name a few keys in a sentence."""
    shown = ", ".join(keys[:_KEYS_SHOWN])
    return shown + (f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else "")


def _read(rows: RealmReader, names: Sequence[str]) -> dict[str, Reference]:
    references: dict[str, Reference] = {}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        references.update((name, row) for name, row in zip(some, rows.find_rows(some), strict=True) if row is not None)
    return references
