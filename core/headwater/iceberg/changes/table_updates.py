"""The 23 updates of tables, as the REST protocol names and shapes them: one struct for each action.

The structs check a request and describe it in OpenAPI. What goes into a document is the JSON that was sent, so unknown fields survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.iceberg.spec.document_shape import Base64, Int, JsonRecord, Long, Name, Texts, Uuid
from headwater.iceberg.spec.schema_rules import SingleSchema
from headwater.iceberg.spec.table_rules import (
    PartitionField,
    PartitionStatistics,
    RowSnapshot,
    SnapshotReference,
    SortField,
    TableStatistics,
)

LAST_ADDED = -1
"""Stands for the id of the schema, spec, order or version that an earlier update of the same request added."""


class UnboundSpec(JsonRecord, frozen=True):
    """A partition spec whose ids the server assigns."""

    fields: Sequence[PartitionField]
    spec_id: Int | None = None


class UnboundOrder(JsonRecord, frozen=True):
    """A sort order whose id the server assigns."""

    fields: Sequence[SortField]
    order_id: Int | None = None


class EncryptedKey(JsonRecord, frozen=True):
    key_id: Name
    encrypted_key_metadata: Base64
    encrypted_by_id: str | None = None
    properties: Texts | None = None


class MetadataUpdate(JsonRecord, frozen=True, tag_field="action"):
    """What all updates have in common: the action's name."""


class AssignUUIDUpdate(MetadataUpdate, frozen=True, tag="assign-uuid"):
    uuid: Uuid


class UpgradeFormatVersionUpdate(MetadataUpdate, frozen=True, tag="upgrade-format-version"):
    format_version: Int


class AddSchemaUpdate(MetadataUpdate, frozen=True, tag="add-schema"):
    """``last-column-id`` is deprecated, and computed whatever it says."""

    schema: SingleSchema
    last_column_id: Int | None = None


class SetCurrentSchemaUpdate(MetadataUpdate, frozen=True, tag="set-current-schema"):
    schema_id: Int


class AddPartitionSpecUpdate(MetadataUpdate, frozen=True, tag="add-spec"):
    spec: UnboundSpec


class SetDefaultSpecUpdate(MetadataUpdate, frozen=True, tag="set-default-spec"):
    spec_id: Int


class AddSortOrderUpdate(MetadataUpdate, frozen=True, tag="add-sort-order"):
    sort_order: UnboundOrder


class SetDefaultSortOrderUpdate(MetadataUpdate, frozen=True, tag="set-default-sort-order"):
    sort_order_id: Int


class AddSnapshotUpdate(MetadataUpdate, frozen=True, tag="add-snapshot"):
    snapshot: RowSnapshot


class SetSnapshotRefUpdate(SnapshotReference, frozen=True, kw_only=True, tag_field="action", tag="set-snapshot-ref"):
    ref_name: Name


class RemoveSnapshotsUpdate(MetadataUpdate, frozen=True, tag="remove-snapshots"):
    snapshot_ids: Sequence[Long]


class RemoveSnapshotRefUpdate(MetadataUpdate, frozen=True, tag="remove-snapshot-ref"):
    ref_name: Name


class SetLocationUpdate(MetadataUpdate, frozen=True, tag="set-location"):
    location: Name


class SetPropertiesUpdate(MetadataUpdate, frozen=True, tag="set-properties"):
    updates: Texts


class RemovePropertiesUpdate(MetadataUpdate, frozen=True, tag="remove-properties"):
    removals: Sequence[str]


class SetStatisticsUpdate(MetadataUpdate, frozen=True, tag="set-statistics"):
    """The statistics name their snapshot; ``snapshot-id`` beside them is deprecated, and not read."""

    statistics: TableStatistics
    snapshot_id: Any = None


class RemoveStatisticsUpdate(MetadataUpdate, frozen=True, tag="remove-statistics"):
    snapshot_id: Long


class SetPartitionStatisticsUpdate(MetadataUpdate, frozen=True, tag="set-partition-statistics"):
    partition_statistics: PartitionStatistics


class RemovePartitionStatisticsUpdate(MetadataUpdate, frozen=True, tag="remove-partition-statistics"):
    snapshot_id: Long


class RemovePartitionSpecsUpdate(MetadataUpdate, frozen=True, tag="remove-partition-specs"):
    spec_ids: Sequence[Int]


class RemoveSchemasUpdate(MetadataUpdate, frozen=True, tag="remove-schemas"):
    schema_ids: Sequence[Int]


class AddEncryptionKeyUpdate(MetadataUpdate, frozen=True, tag="add-encryption-key"):
    encryption_key: EncryptedKey


class RemoveEncryptionKeyUpdate(MetadataUpdate, frozen=True, tag="remove-encryption-key"):
    key_id: Name
