"""The codes of what fsck can find, each with its weight and its meaning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FindingWeight(StrEnum):
    """How severe a finding is."""

    DAMAGE = "DAMAGE"
    """Needed data cannot be read: it is lost unless somebody restores it."""
    TROUBLE = "TROUBLE"
    """Nothing is lost, but something is blocked until a person looks at it."""
    LEFTOVER = "LEFTOVER"
    """A left-over of an interruption: harmless, and maintenance removes it."""


class FindingCode(StrEnum):
    """The codes of findings. They are a contract: tools rely on them."""

    LIST_UNREADABLE = "LIST_UNREADABLE"
    HEAD_UNREADABLE = "HEAD_UNREADABLE"
    OBJECT_UNREADABLE = "OBJECT_UNREADABLE"
    TYPE_UNKNOWN = "TYPE_UNKNOWN"
    HISTORY_BROKEN = "HISTORY_BROKEN"
    INDEX_WRONG = "INDEX_WRONG"
    CONTENT_WRONG = "CONTENT_WRONG"
    REFERENCE_MISSING = "REFERENCE_MISSING"
    NAME_WITHOUT_ROW = "NAME_WITHOUT_ROW"
    ROW_WITHOUT_NAME = "ROW_WITHOUT_NAME"
    TOMBSTONE_WITHOUT_NAME = "TOMBSTONE_WITHOUT_NAME"
    OBJECT_DAMAGED = "OBJECT_DAMAGED"
    PART_LEFT_OVER = "PART_LEFT_OVER"
    TIME_AHEAD = "TIME_AHEAD"
    COMMITS_AHEAD = "COMMITS_AHEAD"
    COLLECTION_REFUSED = "COLLECTION_REFUSED"
    SWEEP_ABANDONED = "SWEEP_ABANDONED"
    PIN_STALE = "PIN_STALE"
    CATALOG_INCOMPLETE = "CATALOG_INCOMPLETE"
    CATALOG_MISLISTED = "CATALOG_MISLISTED"
    CLAIM_UNREADABLE = "CLAIM_UNREADABLE"
    CLAIM_WITHOUT_CONTENT = "CLAIM_WITHOUT_CONTENT"
    CLAIM_OF_ANOTHER = "CLAIM_OF_ANOTHER"
    TASK_UNREADABLE = "TASK_UNREADABLE"
    RUN_UNREADABLE = "RUN_UNREADABLE"
    TURN_UNREADABLE = "TURN_UNREADABLE"
    TASK_MISSING = "TASK_MISSING"
    TASK_ENTRY_STALE = "TASK_ENTRY_STALE"
    REALM_UNREADABLE = "REALM_UNREADABLE"
    PURGE_ABANDONED = "PURGE_ABANDONED"
    LOAD_ABANDONED = "LOAD_ABANDONED"
    ROWS_AFTER_PURGE = "ROWS_AFTER_PURGE"
    ROWS_BEFORE_BOOTSTRAP = "ROWS_BEFORE_BOOTSTRAP"
    LATE_ROWS = "LATE_ROWS"
    ROWS_OF_NO_REALM = "ROWS_OF_NO_REALM"


FINDING_CODES: dict[FindingCode, tuple[FindingWeight, str]] = {
    FindingCode.LIST_UNREADABLE: (FindingWeight.DAMAGE, "what the realm consists of cannot be read"),
    FindingCode.HEAD_UNREADABLE: (FindingWeight.DAMAGE, "a reference points to a commit that is not there, or damaged"),
    FindingCode.OBJECT_UNREADABLE: (FindingWeight.DAMAGE, "a head reaches an object that is not there, or damaged"),
    FindingCode.TYPE_UNKNOWN: (
        FindingWeight.DAMAGE,
        "a head reaches an object of a type that this release does not know, or that may point to more than it knows",
    ),
    FindingCode.HISTORY_BROKEN: (FindingWeight.DAMAGE, "a history ends where no collection cut it: a commit was lost"),
    FindingCode.INDEX_WRONG: (FindingWeight.DAMAGE, "an index is not in order, or does not have as many entries as it says"),
    FindingCode.CONTENT_WRONG: (
        FindingWeight.DAMAGE,
        "a key of a branch or tag holds what is no content, or its content id stands for another key",
    ),
    FindingCode.REFERENCE_MISSING: (FindingWeight.DAMAGE, "a reference that every realm has is not there"),
    FindingCode.NAME_WITHOUT_ROW: (FindingWeight.LEFTOVER, "a name is listed, but was never given a row"),
    FindingCode.ROW_WITHOUT_NAME: (
        FindingWeight.TROUBLE,
        "a living reference stands in no list: what it points to will be collected",
    ),
    FindingCode.TOMBSTONE_WITHOUT_NAME: (FindingWeight.LEFTOVER, "a deleted reference stands in no list any more"),
    FindingCode.OBJECT_DAMAGED: (FindingWeight.DAMAGE, "the bytes of an object that no head reaches are damaged"),
    FindingCode.PART_LEFT_OVER: (FindingWeight.LEFTOVER, "a row belongs to an older writing of its object"),
    FindingCode.TIME_AHEAD: (FindingWeight.TROUBLE, "a row lies further in the future than clocks may differ"),
    FindingCode.COMMITS_AHEAD: (FindingWeight.TROUBLE, "a reference's commits carry times of a clock that was ahead"),
    FindingCode.COLLECTION_REFUSED: (FindingWeight.TROUBLE, "the next collection would refuse to delete anything"),
    FindingCode.SWEEP_ABANDONED: (
        FindingWeight.TROUBLE,
        "a collection was interrupted while it swept, and nobody goes on with it",
    ),
    FindingCode.PIN_STALE: (FindingWeight.LEFTOVER, "a commit is pinned by a task that has ended"),
    FindingCode.CATALOG_INCOMPLETE: (FindingWeight.TROUBLE, "the making of a catalog was interrupted"),
    FindingCode.CATALOG_MISLISTED: (FindingWeight.DAMAGE, "the two lists of catalogs contradict each other"),
    FindingCode.CLAIM_UNREADABLE: (FindingWeight.DAMAGE, "a claim is no claim"),
    FindingCode.CLAIM_WITHOUT_CONTENT: (FindingWeight.LEFTOVER, "claims are held for content that no head has any more"),
    FindingCode.CLAIM_OF_ANOTHER: (FindingWeight.TROUBLE, "a table's uuid is claimed for another table"),
    FindingCode.TASK_UNREADABLE: (
        FindingWeight.DAMAGE,
        "a task is listed and cannot be read: it is left alone, and holds its place",
    ),
    FindingCode.RUN_UNREADABLE: (
        FindingWeight.DAMAGE,
        "the record of a run, or a piece of its report, is listed and cannot be read",
    ),
    FindingCode.TURN_UNREADABLE: (
        FindingWeight.DAMAGE,
        "whose turn it is to scan the store cannot be read: nothing is collected",
    ),
    FindingCode.TASK_MISSING: (FindingWeight.DAMAGE, "a task is listed, but not there"),
    FindingCode.TASK_ENTRY_STALE: (FindingWeight.LEFTOVER, "the entry of a task contradicts it"),
    FindingCode.REALM_UNREADABLE: (FindingWeight.DAMAGE, "the list of realms, or a realm's definition, cannot be read"),
    FindingCode.PURGE_ABANDONED: (FindingWeight.TROUBLE, "a realm is PURGING, and no task purges it"),
    FindingCode.LOAD_ABANDONED: (FindingWeight.TROUBLE, "a realm is LOADING, and no task loads it"),
    FindingCode.ROWS_AFTER_PURGE: (FindingWeight.TROUBLE, "a PURGED realm has rows again"),
    FindingCode.ROWS_BEFORE_BOOTSTRAP: (FindingWeight.TROUBLE, "a realm that was never begun has rows"),
    FindingCode.LATE_ROWS: (FindingWeight.LEFTOVER, "late writers left rows under the key of a realm that is deleted"),
    FindingCode.ROWS_OF_NO_REALM: (FindingWeight.TROUBLE, "rows carry a key that no realm has, nor had lately"),
}
"""The weight and the meaning of each code."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    keys: tuple[str, ...] = ()
    target: str = ""
    is_intact: bool = False

    @property
    def weight(self) -> FindingWeight:
        return FINDING_CODES[self.code][0]


def is_bad(findings: Iterable[FsckFinding]) -> bool:
    """Whether any finding deserves attention: anything but left-overs."""
    return any(finding.weight is not FindingWeight.LEFTOVER for finding in findings)
