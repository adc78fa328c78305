"""The shapes of merges and transplants: what requests bring and what answers say."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from headwater_server.management.contents.content_shapes import CatalogEntryShown, Hash, KeyText, RefText, ShownCommit
from headwater_server.management.contents.table_shapes import LongText
from headwater_server.management.resource_shapes import Time

Mode = Annotated[
    Literal["NORMAL", "FORCE", "DROP"],
    Meta(
        description="NORMAL: what changed on both sides is a conflict; FORCE: the source's replaces it; DROP: the branch's stays"
    ),
]


MergeStatus = Literal["MERGED", "WOULD_MERGE", "UP_TO_DATE", "CONFLICTS"]


class MergeWish(Struct, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """A merge to be made, or to be simulated.

    expected      a commit that has to be in the history of the branch: what the caller has seen of it
    keys          other modes, by key as one text
    """

    source: RefText
    expected: Hash | None = None
    dry_run: bool = False
    message: str = ""
    default_mode: Mode = "NORMAL"
    keys: dict[KeyText, Mode] = {}


class TransplantWish(MergeWish, frozen=True, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Commits to be repeated on a branch, oldest first. A message replaces that of a single one."""

    commits: Annotated[list[Hash], Meta(min_length=1)]


class OutcomeOfKey(Struct, frozen=True, rename="camel"):
    """What became, or would become, of a key that the source changed."""

    key: list[str]
    name: KeyText
    mode: Mode
    outcome: Annotated[str, Meta(description="PUT, REMOVED, RESOLVED, SAME, KEPT, DROPPED or CONFLICT")]


class SideSnapshot(Struct, frozen=True, rename="camel"):
    """A snapshot that a commit brought; numbers are null where its writer said nothing of them."""

    snapshot_id: LongText
    time: Time | None
    operation: str | None
    added_rows: int | None
    removed_rows: int | None
    added_files: int | None
    removed_files: int | None
    added_delete_files: int | None


class SideChange(Struct, frozen=True, rename="camel"):
    """A commit of a side that changed the key since the common ancestor, without its operations, and the snapshots that it brought."""

    commit: ShownCommit
    snapshots: list[SideSnapshot]


class SideDifference(Struct, frozen=True, rename="camel"):
    """One thing in which the content differs from that at the common ancestor, such as a column or a property."""

    kind: str
    before: str | None
    after: str | None


class ConflictSide(Struct, frozen=True, rename="camel"):
    """What stands at a key on one side of a conflict, and how it came to be. What the caller may not read is null or empty.

    entry         null: nothing stands there
    commit        that changed it last, without its operations
    summary       of the table's current snapshot, such as added-records
    changes       commits since the common ancestor, newest first, the last five
    change_count  how many there are; isComplete: none that was not looked at
    differences   from the common ancestor
    """

    entry: CatalogEntryShown | None
    commit: ShownCommit | None
    summary: dict[str, str]
    changes: list[SideChange] = []
    change_count: int = 0
    is_complete: bool = False
    differences: list[SideDifference] = []


class ConflictOfKey(Struct, frozen=True, rename="camel"):
    """Why a merge cannot be made. The sides are told of the first conflicts alone."""

    kind: Annotated[str, Meta(description="Such as VALUE_DIFFERS")]
    key: list[str] | None
    name: KeyText | None
    message: str
    undone: Annotated[bool, Meta(description="It was merged before, and a restoration of the branch took it back")]
    ours: Annotated[ConflictSide | None, Meta(description="Of the branch")]
    theirs: Annotated[ConflictSide | None, Meta(description="Of the source")]


class MergeAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """How a merge went, or would go. With conflicts nothing was written.

    onto          the head that it was done on; head: that of the branch afterwards
    base          the commit that changes were counted from
    commits       those that were made, oldest first
    """

    status: MergeStatus
    branch: str
    source: str
    onto: Hash | None
    head: Hash | None
    base: Hash | None
    commits: list[Hash]
    keys: list[OutcomeOfKey]
    conflicts: list[ConflictOfKey]
