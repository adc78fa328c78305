"""The shapes of references, commits, entries and differences: what requests bring and what answers say."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from headwater_server.management.resource_shapes import ListQuery, Name, NextPage, Time

Kind = Literal["branch", "tag"]
Hash = Annotated[str, Meta(description="Of a commit: 16 hex digits")]
KeyText = Annotated[
    str, Meta(description="A key as one text, such as sales.orders; a dot inside an element has a backslash before it")
]
RefText = Annotated[
    str,
    Meta(
        min_length=1,
        description="A branch or tag, - for the default branch, perhaps with a commit or steps back: main@HASH, main~2",
    ),
]
TypeName = Literal["ICEBERG_TABLE", "ICEBERG_VIEW", "DELTA_LAKE_TABLE", "NAMESPACE", "UDF"]


class ReferencesListQuery(ListQuery, frozen=True, rename="camel"):
    """Which branches and tags."""

    kind: Kind | None = None
    deleted: Annotated[bool, Meta(description="Those that can be undeleted instead of the live ones")] = False


class ShownOperation(Struct, frozen=True, rename="camel"):
    """What a commit did to a key. Type and content id of what was deleted stand in the commit before."""

    action: Literal["PUT", "DELETE"]
    key: list[str]
    name: KeyText
    type: str | None
    content_id: str | None


Authors = Annotated[list[str], Meta(description="As the request named them, not verified")]
Committer = Annotated[str, Meta(description="The principal whose request made it; empty: not known")]


class ShownCommit(Struct, frozen=True, rename="camel"):
    """A commit. Where it changed something that the caller may not list, it has neither message nor properties.

    merged        the heads that it merged in
    changes       how many operations of it may be listed; the first of them stand here
    """

    hash: Hash
    parent: Hash | None
    merged: list[Hash]
    time: Time
    authors: Authors
    committer: Committer
    message: str
    properties: dict[str, list[str]]
    seq: Annotated[int, Meta(description="Its distance from the first commit, by first parents")]
    hidden: Annotated[bool, Meta(description="It changed something that the caller may not list")]
    changes: int
    operations: list[ShownOperation]


class CatalogReference(Struct, frozen=True, rename="camel"):
    """A branch or tag. What its history says is null without the right to read that."""

    name: str
    kind: Kind
    is_default: bool
    head: Annotated[str | None, Meta(description="The commit that it is at; null: nothing was committed yet")]
    commits: Annotated[int | None, Meta(description="How long its history is, with commits that were collected")]
    last_commit: ShownCommit | None
    ahead: Annotated[
        int | None, Meta(description="Its commits that the default branch does not have; null for that and for tags")
    ]
    behind: int | None
    common_ancestor: Hash | None
    deleted_at: Annotated[str | None, Meta(description="When it was deleted; it can be undeleted")] = None


class CatalogReferenceList(Struct, frozen=True, rename="camel"):
    """A page of branches and tags, by name."""

    references: list[CatalogReference]
    next_page_token: NextPage


class ReferenceCreation(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A branch or tag to be made; without a source, of the default branch."""

    name: Name
    kind: Kind = "branch"
    source: RefText = "-"


class ReferenceAssignment(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where a branch or tag is to be put. ``expected``: where it has to be now; null: wherever it is."""

    target: RefText
    expected: Hash | None = None


class ReferenceDeletionQuery(Struct, frozen=True, rename="camel"):
    """The commit that it has to be at; without it, wherever it is."""

    expected: Hash | None = None


class ReferenceUndeletionQuery(Struct, frozen=True, rename="camel"):
    """Whether a branch or a tag of the name is meant."""

    kind: Kind = "branch"


class LogListQuery(ListQuery, frozen=True, rename="camel"):
    """Which commits of a log."""

    key: Annotated[str, Meta(min_length=1, description="Only commits that changed this key, such as sales.orders")] | None = (
        None
    )


class CommitLogPage(Struct, frozen=True, rename="camel"):
    """A page of commits, newest first. A page may be short, or empty, and be followed by another."""

    commits: list[ShownCommit]
    next_page_token: NextPage
    end: Annotated[
        Literal["BEGINNING", "CUT"] | None,
        Meta(description="Of the last page: history begins there, or older commits were collected"),
    ]


class CommitDetails(Struct, frozen=True, rename="camel"):
    """A commit, and a page of its operations by key."""

    commit: ShownCommit
    operations: list[ShownOperation]
    next_page_token: NextPage


class GraphQuery(ListQuery, frozen=True, rename="camel"):
    """Which references the graph begins at."""

    ref: list[Name] = []


class GraphCommit(Struct, frozen=True, rename="camel"):
    """A commit of a graph; the first parent is the commit before it, the others are what it merged in."""

    hash: Hash
    parents: list[Hash]
    time: Time
    authors: Authors
    committer: Committer
    message: str
    hidden: bool
    changes: int
    seq: int


class GraphReference(Struct, frozen=True, rename="camel"):
    """Where a branch or tag points."""

    name: str
    kind: Kind
    is_default: bool
    head: Hash | None


class CommitGraph(Struct, frozen=True, rename="camel"):
    """Commits newest first, none before those that have it as a parent. A merged commit that the caller may not read is not among them."""

    commits: list[GraphCommit]
    references: list[GraphReference]
    references_cut: Annotated[bool, Meta(description="There are more references than the graph begins at: name some")]
    next_page_token: NextPage


class EntriesListQuery(ListQuery, frozen=True, rename="camel"):
    """Which entries of a reference: those directly below a namespace, or at the top."""

    parent: Annotated[str, Meta(min_length=1, description="A namespace, such as sales.eu")] | None = None
    type: TypeName | None = None
    details: Annotated[bool, Meta(description="With what stands in the contents that the caller may read")] = False


class KeySearchQuery(ListQuery, frozen=True, rename="camel", kw_only=True):
    """What is searched for in the keys of a reference."""

    q: Annotated[str, Meta(min_length=1, max_length=500)]
    match: Annotated[
        Literal["prefix", "substring"],
        Meta(description="prefix: what the key begins with, to the letter; substring: anywhere in it, in either case"),
    ] = "prefix"
    type: TypeName | None = None
    details: bool = False


class CatalogEntryShown(Struct, frozen=True, rename="camel"):
    """What stands at a key. The last three say nothing unless details were asked for, and may be read."""

    key: list[str]
    name: KeyText
    type: str
    content_id: str
    metadata_location: str | None = None
    snapshot_id: Annotated[str | None, Meta(description="A text: it may be larger than numbers in JavaScript")] = None
    schema_id: int | None = None


class CatalogEntryList(Struct, frozen=True, rename="camel"):
    """A page of entries by key, all of one commit."""

    ref: str
    commit: Hash | None
    entries: list[CatalogEntryShown]
    next_page_token: NextPage


class FoundEntries(Struct, frozen=True, rename="camel"):
    """What a request of a search found. As long as there is another page, the search is not over.

    looked        keys that it looked at; null where some of them may not be listed
    searched_to   the last of these keys; null where it may not be told, or the search is over
    total         the keys of the reference; null where some of them may not be listed
    """

    ref: str
    commit: Hash | None
    entries: list[CatalogEntryShown]
    next_page_token: NextPage
    is_complete: bool
    searched_to: KeyText | None
    looked: int | None
    total: int | None


class DifferencesQuery(ListQuery, frozen=True, rename="camel", kw_only=True):
    """What is compared with what."""

    before: RefText
    after: RefText
    details: bool = False
    merge: Annotated[
        bool,
        Meta(description="Also report what merging after into before would do; reads the changes since their common ancestor"),
    ] = False


MOST_PREVIEWED_CHANGES: Final = 2_000
"""Each costs about 0.1 ms of CPU, again for every page."""
MergeEffectName = Annotated[
    Literal["PUT", "REMOVED", "CONFLICT", "LEFT"],
    Meta(
        description="What merging after into before would do to the key. PUT: bring what stands at after; REMOVED: remove it;"
        " CONFLICT: both have changed it, or it cannot be brought; LEFT: leave it as it is, because only before has changed it"
    ),
]
MergeGap = Annotated[
    Literal["NOT_REQUESTED", "NO_COMMON_ANCESTOR", "TOO_MANY_CHANGES", "HIDDEN_CONTENTS"],
    Meta(
        description=f"Why merge is null. TOO_MANY_CHANGES: after has more than {MOST_PREVIEWED_CHANGES:,} since the common ancestor, and a"
        " merge with dryRun reports all of them; HIDDEN_CONTENTS: the caller may not list all contents of both"
    ),
]


class ShownDifference(Struct, frozen=True, rename="camel"):
    """A key whose content differs."""

    key: list[str]
    name: KeyText
    change: Literal["ADDED", "REMOVED", "CHANGED"]
    before: CatalogEntryShown | None
    after: CatalogEntryShown | None
    renamed_to: KeyText | None
    renamed_from: KeyText | None
    merge: MergeEffectName | None


class DifferenceList(Struct, frozen=True, rename="camel"):
    """A page of differences by key, between two commits."""

    before: str
    before_commit: Hash | None
    after: str
    after_commit: Hash | None
    differences: list[ShownDifference]
    merge_gap: MergeGap | None
    next_page_token: NextPage
