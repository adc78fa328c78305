"""What a look at a store can find: one catalogue of codes, each with what it weighs and what it means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CODES", "Code", "Finding", "Weight", "is_bad"]


class Weight(StrEnum):
    """How much a finding weighs."""

    DAMAGE = "DAMAGE"
    """Something that is needed cannot be read: it is lost, unless somebody brings it back."""
    TROUBLE = "TROUBLE"
    """Nothing is lost, but it gets in the way of somebody until a person looks at it."""
    LEFTOVER = "LEFTOVER"
    """What an interruption left behind: it harms nobody, and maintenance clears it away by itself."""


class Code(StrEnum):
    """The kinds of findings; a contract."""

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


CODES: dict[Code, tuple[Weight, str]] = {
    Code.LIST_UNREADABLE: (Weight.DAMAGE, "what the realm consists of cannot be read"),
    Code.HEAD_UNREADABLE: (Weight.DAMAGE, "a reference points to a commit that is not there, or damaged"),
    Code.OBJECT_UNREADABLE: (Weight.DAMAGE, "a head reaches an object that is not there, or damaged"),
    Code.TYPE_UNKNOWN: (
        Weight.DAMAGE,
        "a head reaches an object of a type that this release does not know, or that may point to more than it knows",
    ),
    Code.HISTORY_BROKEN: (Weight.DAMAGE, "a history ends where no collection cut it: a commit was lost"),
    Code.INDEX_WRONG: (Weight.DAMAGE, "an index is not in order, or does not have as many entries as it says"),
    Code.CONTENT_WRONG: (
        Weight.DAMAGE,
        "a key of a branch or tag holds what is no content, or its content id stands for another key",
    ),
    Code.REFERENCE_MISSING: (Weight.DAMAGE, "a reference that every realm has is not there"),
    Code.NAME_WITHOUT_ROW: (Weight.LEFTOVER, "a name is listed, but was never given a row"),
    Code.ROW_WITHOUT_NAME: (Weight.TROUBLE, "a living reference stands in no list: what it points to will be collected"),
    Code.TOMBSTONE_WITHOUT_NAME: (Weight.LEFTOVER, "a deleted reference stands in no list any more"),
    Code.OBJECT_DAMAGED: (Weight.DAMAGE, "the bytes of an object that no head reaches are damaged"),
    Code.PART_LEFT_OVER: (Weight.LEFTOVER, "a row belongs to an older writing of its object"),
    Code.TIME_AHEAD: (Weight.TROUBLE, "a row lies further in the future than clocks may differ"),
    Code.COMMITS_AHEAD: (Weight.TROUBLE, "a reference's commits carry times of a clock that was ahead"),
    Code.COLLECTION_REFUSED: (Weight.TROUBLE, "the next collection would refuse to delete anything"),
    Code.SWEEP_ABANDONED: (Weight.TROUBLE, "a collection was interrupted while it swept, and nobody goes on with it"),
    Code.PIN_STALE: (Weight.LEFTOVER, "a commit is pinned by a task that has ended"),
    Code.CATALOG_INCOMPLETE: (Weight.TROUBLE, "the making of a catalog was interrupted"),
    Code.CATALOG_MISLISTED: (Weight.DAMAGE, "the two lists of catalogs contradict each other"),
    Code.CLAIM_UNREADABLE: (Weight.DAMAGE, "a claim is no claim"),
    Code.CLAIM_WITHOUT_CONTENT: (Weight.LEFTOVER, "claims are held for content that no head has any more"),
    Code.CLAIM_OF_ANOTHER: (Weight.TROUBLE, "a table's uuid is claimed for another table"),
    Code.TASK_UNREADABLE: (Weight.DAMAGE, "a task is listed and cannot be read: it is left alone, and holds its place"),
    Code.RUN_UNREADABLE: (Weight.DAMAGE, "the record of a run, or a piece of its report, is listed and cannot be read"),
    Code.TURN_UNREADABLE: (Weight.DAMAGE, "whose turn it is to scan the store cannot be read: nothing is collected"),
    Code.TASK_MISSING: (Weight.DAMAGE, "a task is listed, but not there"),
    Code.TASK_ENTRY_STALE: (Weight.LEFTOVER, "the entry of a task contradicts it"),
    Code.REALM_UNREADABLE: (Weight.DAMAGE, "the list of realms, or a realm's definition, cannot be read"),
    Code.PURGE_ABANDONED: (Weight.TROUBLE, "a realm is PURGING, and no task purges it"),
    Code.LOAD_ABANDONED: (Weight.TROUBLE, "a realm is LOADING, and no task loads it"),
    Code.ROWS_AFTER_PURGE: (Weight.TROUBLE, "a PURGED realm has rows again"),
    Code.ROWS_BEFORE_BOOTSTRAP: (Weight.TROUBLE, "a realm that was never begun has rows"),
    Code.LATE_ROWS: (Weight.LEFTOVER, "late writers left rows under the key of a realm that is deleted"),
    Code.ROWS_OF_NO_REALM: (Weight.TROUBLE, "rows carry a key that no realm has, nor had lately"),
}
"""What each kind weighs, and what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it must be.

    code          what kind it is
    subject       the reference, object, catalog or task
    message       what is wrong
    repair        what would mend it
    keys          of what cannot be read: the keys under which the reference holds it, in words; the first few
    target        the commit that a repair would go back to, or the object that it would set aside; empty where there is none
    is_intact     what cannot be read has the bytes that were written: a later release reads them
    """

    code: Code
    realm: str
    subject: str
    message: str
    repair: str
    keys: tuple[str, ...] = ()
    target: str = ""
    is_intact: bool = False

    @property
    def weight(self) -> Weight:
        return CODES[self.code][0]


def is_bad(findings: Iterable[Finding]) -> bool:
    """Whether anything is worth waking somebody up for: anything but left-overs."""
    return any(finding.weight is not Weight.LEFTOVER for finding in findings)
