"""The shapes of Nessie's API for its configuration and its references, under the names that its specification gives them.

Unknown fields are ignored, so that newer clients are understood; null stands for what is left out.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

JsonObject = dict[str, Any]
ReferenceKind = Literal["BRANCH", "TAG", "DETACHED"]
MaxRecords = Annotated[int, Meta(ge=0, description="A hint for the size of a page; 0: as many as the server gives")]
PageText = Annotated[str, Meta(description="The token of the page before")]
FilterText = Annotated[str, Meta(description="An expression in the Common Expression Language")]
Fetch = Literal["MINIMAL", "ALL"]


class NessieConfig(Struct, frozen=True, rename="camel"):
    """What a client asks first: which versions are served, and what there is."""

    default_branch: str
    min_supported_api_version: int
    max_supported_api_version: int
    actual_api_version: int
    spec_version: str
    no_ancestor_hash: str
    repository_creation_timestamp: str
    oldest_possible_commit_timestamp: str
    additional_properties: dict[str, str] = {}


class NessieConfigV1(Struct, frozen=True, rename="camel"):
    """The configuration as clients of version 1 know it."""

    default_branch: str
    max_supported_api_version: int


class RepositoryConfigQuery(Struct, frozen=True):
    """Which configurations of the repository."""

    type: list[str] = []


class RepositoryConfigs(Struct, frozen=True):
    """The configurations that are set."""

    configs: list[JsonObject]


class RepositoryConfigChange(Struct, frozen=True):
    """A configuration to set."""

    config: JsonObject


class RepositoryConfigAnswer(Struct, frozen=True):
    """What was set before."""

    previous: JsonObject | None


class ReferenceMetadata(Struct, frozen=True, rename="camel"):
    """How a reference stands to the default branch, and its last commit."""

    num_commits_ahead: int | None = None
    num_commits_behind: int | None = None
    commit_meta_of_head: JsonObject | None = field(default=None, name="commitMetaOfHEAD")
    common_ancestor_hash: str | None = None
    num_total_commits: int | None = None


class ReferenceBody(Struct, frozen=True):
    """A branch, a tag, or a commit that stands alone."""

    type: ReferenceKind
    name: str
    hash: str | None
    metadata: ReferenceMetadata | UnsetType = UNSET


class GivenReference(Struct, frozen=True):
    """A reference as a client names it; ``hash`` null is nowhere enough."""

    type: str = "BRANCH"
    name: str | None = None
    hash: str | None = None


class ReferenceAnswer(Struct, frozen=True):
    """One reference."""

    reference: ReferenceBody


class ReferencesPage(Struct, frozen=True, rename="camel"):
    """A page of references."""

    has_more: bool
    token: str | None
    references: list[ReferenceBody]


class ReferencesQuery(Struct, frozen=True, rename="kebab"):
    """Which references, and what of them."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    fetch: Fetch = "MINIMAL"
    filter: FilterText | None = None


class ReferencesQueryV1(Struct, frozen=True, rename="camel"):
    """Which references, and what of them."""

    max_records: MaxRecords | None = None
    page_token: PageText | None = None
    fetch: Fetch = "MINIMAL"
    filter: FilterText | None = None


class ReferenceQuery(Struct, frozen=True):
    """What of a reference."""

    fetch: Fetch = "MINIMAL"


class CreationQuery(Struct, frozen=True):
    """What a new reference is called, and what it is."""

    name: str
    type: Literal["branch", "tag", "BRANCH", "TAG"]


class KindQuery(Struct, frozen=True):
    """What a reference has to be."""

    type: Literal["branch", "tag", "BRANCH", "TAG"] | None = None


class SourceQueryV1(Struct, frozen=True, rename="camel"):
    """Which branch or tag a new one starts from."""

    source_ref_name: str | None = None


class ExpectedQueryV1(Struct, frozen=True, rename="camel"):
    """Where a branch or tag has to be."""

    expected_hash: str | None = None


class RecentChangesQuery(Struct, frozen=True, rename="kebab"):
    """How many commits of the log are looked at."""

    scan_commits: Annotated[int, Meta(ge=0)] | None = None


class RecentCommit(Struct, frozen=True, rename="camel"):
    """Where a reference was, and whether that commit is whole."""

    commit_hash: str
    commit_consistency: str
    meta: JsonObject | None


class RecentChangesAnswer(Struct, frozen=True, rename="camel"):
    """Where a reference is, and where it was shortly before."""

    reference: ReferenceBody
    current: RecentCommit
    previous: list[RecentCommit]
    commit_log_consistency: str
