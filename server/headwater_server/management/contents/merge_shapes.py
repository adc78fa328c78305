"""The shapes of merges and transplants: what requests bring and what answers say."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from headwater_server.management.contents.content_shapes import CatalogEntryShown, Hash, KeyText, RefText, ShownCommit

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


class ConflictSide(Struct, frozen=True, rename="camel"):
    """What stands at a key on one side of a conflict.

    entry         null: nothing stands there
    commit        that changed it last, without its operations; null where it may not be read, or lies far back
    summary       of the table's current snapshot, such as added-records; empty where the table may not be read
    """

    entry: CatalogEntryShown | None
    commit: ShownCommit | None
    summary: dict[str, str]


class ConflictOfKey(Struct, frozen=True, rename="camel"):
    """Why a merge cannot be made. The sides are told of the first conflicts alone."""

    kind: Annotated[str, Meta(description="Such as VALUE_DIFFERS")]
    key: list[str] | None
    name: KeyText | None
    message: str
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
