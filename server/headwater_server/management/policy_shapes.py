"""The shapes of policies: what requests bring and what answers say, in the form that manifests have."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from headwater_server.management.resource_shapes import Duration, ListQuery, Name, NextPage, Time

Kind = Annotated[str, Meta(description="snapshots, metadata-files or file-collection")]
_TABLE_KEY = Meta(description="The table, such as sales.orders; without it, all of the catalog")


class PolicyTableQuery(Struct, frozen=True, rename="camel"):
    """The table that a policy is for, on the default branch where no reference is given."""

    key: Annotated[Name, _TABLE_KEY] | None = None
    reference: Name | None = None


class PolicyValuesQuery(Struct, frozen=True, rename="camel"):
    """The table and the branch to tell of."""

    key: Annotated[Name, _TABLE_KEY] | None = None
    branch: Annotated[Name, Meta(description="Without it, the default branch")] | None = None


class PoliciesQuery(ListQuery, frozen=True, rename="camel"):
    """Which page of policies; keys are those on the default branch where no reference is given."""

    reference: Name | None = None


class RuleOfSnapshots(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What tables keep on branches of the catalog; of a policy's rules the first counts that covers a branch."""

    branches: Annotated[str, Meta(description="A pattern of branch names, with * for any text")] = "*"
    max_age: Duration | None = None
    min_to_keep: int | None = None
    max_ref_age: Duration | None = None


class RuleOfMetadataFiles(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a table's log of metadata files keeps."""

    keep: int | None = None
    max_age: Duration | None = None


class RuleOfFiles(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How files that nobody refers to are treated."""

    grace: Duration | None = None
    delay: Duration | None = None
    hold: Duration | None = None
    mode: Literal["off", "report"] | None = None


class PolicyWish(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a policy is to say, in the field of its kind. What is null in a rule, it does not say."""

    snapshots: Annotated[list[RuleOfSnapshots], Meta(min_length=1, max_length=50)] | None = None
    metadata_files: RuleOfMetadataFiles | None = None
    file_collection: RuleOfFiles | None = None


class PolicyResource(Struct, frozen=True, rename="camel"):
    """A policy of a catalog or of one of its tables. ``key`` is null where the table is not on the reference, too."""

    kind: Kind
    content_id: Annotated[str | None, Meta(description="Of the table; null: the policy is the catalog's")]
    key: list[str] | None
    snapshots: list[RuleOfSnapshots] | None
    metadata_files: RuleOfMetadataFiles | None
    file_collection: RuleOfFiles | None
    declared: Annotated[bool, Meta(description="It comes from the catalog's resource, which puts it back")]
    by: str
    updated: Time


class PolicyList(Struct, frozen=True, rename="camel"):
    """A page of policies, by kind, the catalog's own first."""

    policies: list[PolicyResource]
    next_page_token: NextPage


class PolicyValue(Struct, frozen=True):
    """A value that holds, and where it comes from."""

    kind: Kind
    ref: Annotated[str | None, Meta(description="The table's own branch or tag; null: the table")]
    name: str
    value: Annotated[str | None, Meta(description="Null: nothing goes by it")]
    source: str


class PolicyValues(Struct, frozen=True, rename="camel"):
    """What holds for a table on a branch, or where a table says nothing itself."""

    branch: str
    key: list[str] | None
    content_id: str | None
    notes: Annotated[list[str], Meta(description="Why something else happens all the same")]
    values: list[PolicyValue]
