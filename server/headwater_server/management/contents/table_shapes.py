"""The shapes of tables and views: what answers say of their metadata, snapshots, files and history.

What Iceberg's specification defines, such as schemas, is handed on as it stands in the metadata.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from headwater_server.management.contents.content_shapes import Hash, KeyText, ShownCommit
from headwater_server.management.resource_shapes import NextPage, Time

LongText = Annotated[str, Meta(description="A number as a text: it may be larger than numbers in JavaScript")]
IcebergJson = Annotated[dict[str, Any], Meta(description="As Iceberg's specification defines it")]


class TableRef(Struct, frozen=True, rename="camel"):
    """A branch or tag of a table itself."""

    name: str
    type: str
    snapshot_id: LongText | None
    max_ref_age_ms: int | None
    max_snapshot_age_ms: int | None
    min_snapshots_to_keep: int | None


class TableDetails(Struct, frozen=True, rename="camel"):
    """A table, view or namespace as it stands at a commit. What its kind does not have is null or empty.

    snapshots     how many it has; they have pages of their own
    """

    key: list[str]
    name: KeyText
    type: str
    content_id: str
    metadata_location: str | None
    commit: Hash
    uuid: str | None = None
    format_version: int | None = None
    location: str | None = None
    last_updated: Time | None = None
    properties: dict[str, str] = {}
    current_schema_id: int | None = None
    schemas: list[IcebergJson] = []
    default_spec_id: int | None = None
    partition_specs: list[IcebergJson] = []
    default_sort_order_id: int | None = None
    sort_orders: list[IcebergJson] = []
    current_snapshot_id: LongText | None = None
    snapshots: int = 0
    refs: list[TableRef] = []
    current_version_id: int | None = None
    versions: list[IcebergJson] = []


class ShownSnapshot(Struct, frozen=True, rename="camel"):
    """A snapshot of a table. ``refs``: the branches and tags of the table that are at it."""

    snapshot_id: LongText
    parent_id: LongText | None
    sequence_number: LongText | None
    time: Time | None
    operation: str | None
    summary: dict[str, str]
    schema_id: int | None
    manifest_list: str | None
    refs: list[str]
    is_current: bool


class SnapshotList(Struct, frozen=True, rename="camel"):
    """A page of snapshots, newest first."""

    snapshots: list[ShownSnapshot]
    next_page_token: NextPage


class SnapshotFilesQuery(Struct, frozen=True, rename="camel"):
    """The snapshot to tell of; without it, the current one."""

    snapshot: Annotated[str, Meta(pattern=r"\A-?[0-9]{1,19}\Z")] | None = None


class FilesTotal(Struct, frozen=True):
    """So many files, of so many bytes and records together."""

    files: int
    bytes: int
    records: int


class FilesOfSize(Struct, frozen=True, rename="camel"):
    """Files of at least so many bytes and of fewer than so many; null: without a bound."""

    from_bytes: int
    below_bytes: int | None
    files: int
    bytes: int
    records: int


class SnapshotFiles(Struct, frozen=True, rename="camel"):
    """The files of a snapshot, by those of its manifests that were read.

    sizes         of its data files
    """

    snapshot_id: LongText | None
    is_complete: Annotated[
        bool, Meta(description="Every manifest was read; otherwise the numbers are too small, and why says why")
    ]
    why: str | None
    manifests: int
    manifests_read: int
    data: FilesTotal
    position_deletes: FilesTotal
    equality_deletes: FilesTotal
    sizes: list[FilesOfSize]


class TableHistoryEntry(Struct, frozen=True, rename="camel"):
    """A commit that changed a table.

    name          its key after that commit
    """

    action: Literal["CREATED", "RESTORED", "CHANGED", "RENAMED", "DELETED", "PUT"]
    key: list[str]
    name: KeyText
    renamed_from: KeyText | None
    commit: ShownCommit


class TableHistory(Struct, frozen=True, rename="camel"):
    """A page of what happened to a table, newest first. A page may be short, or empty, and be followed by another."""

    changes: list[TableHistoryEntry]
    next_page_token: NextPage
    end: Annotated[
        Literal["BEGINNING", "CUT"] | None,
        Meta(description="Of the last page: it was created there, or older commits were collected"),
    ]
