"""Changes of a table: the table of its 23 updates, and the way from a document through them to the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from headwater.iceberg.changes import layout_changes, snapshot_changes
from headwater.iceberg.changes import table_updates as updates_of
from headwater.iceberg.changes.change_errors import ChangeFormError
from headwater.iceberg.changes.document_entries import (
    changed_properties,
    check_integer_property,
    check_result,
    members_of,
    readable_document,
    stripped_location,
)
from headwater.iceberg.changes.request_elements import read_element
from headwater.iceberg.changes.table_draft import LOG_LENGTH, TableDraft
from headwater.iceberg.spec import Document, check_table
from headwater.iceberg.spec.document_shape import JsonRecord

DEFAULT_FORMAT_VERSION = 2
LATEST_FORMAT_VERSION = 3
_KEYS_SINCE = 3
_SEQUENCES_SINCE = 2


def change_table(
    document: Document | None,
    updates: Sequence[Mapping[str, Any]],
    *,
    now_ms: int,
    previous_file: str | None = None,
    where: str = "updates",
) -> dict[str, Any]:
    """Apply updates to a table's metadata, in their order.

    A table that is created by its updates (``assert-create``) needs its uuid, location, schema, partition spec and sort order among them.
    A fault that the document had before does not refuse a change, unless the change brings another one.

    document            decoded JSON, of format version 1, 2 or 3; None for a table that does not exist yet
    updates             as decoded from the request, of any of the 23 actions
    now_ms              the time of changes that bring no snapshot, which has its own
    previous_file       the metadata file of the document, for the log of such files
    where               the updates' place in the request: ``table-changes[1].updates``
    returns             a new document, valid by the specification, that shares what it did not change with the given one. The given
                        document itself where nothing changes
    raises              ChangeFormError with the place of the update at fault; StaleSnapshotError; RefusedError for format version 4;
                        CorruptionError for a document that cannot be read
    source              Apache Iceberg, REST specification: "TableUpdate"; the rules of ``TableMetadata.Builder`` in its Java library
    """
    actions = [read_element(update, TABLE_SHAPES, "action", f"{where}[{at}]") for at, update in enumerate(updates)]
    with readable_document(document, check_table):
        changed = _apply(document, zip(actions, updates, strict=True), now_ms, previous_file, where)
    if changed is None:
        return document if isinstance(document, dict) else dict(document or {})
    check_result(changed, document, check_table, noun="table", where=where)
    return changed


def _apply(
    document: Document | None,
    changes: Iterable[tuple[JsonRecord, Mapping[str, Any]]],
    now_ms: int,
    previous_file: str | None,
    where: str,
) -> dict[str, Any] | None:
    """Apply updates, each read and as it was sent; None if they change nothing."""
    applied = list(changes)
    version = DEFAULT_FORMAT_VERSION if document is not None else _first_version([action for action, _ in applied], where)
    draft = TableDraft(document, format_version=version, now_ms=now_ms)
    for at, (action, update) in enumerate(applied):
        draft.path, draft.update = f"{where}[{at}]", update
        _TABLE_ACTIONS[type(action)](draft, action)
    if not draft.has_changed:
        return None
    if document is None:
        _check_complete(draft, where)
    return draft.seal(previous_file)


def _first_version(actions: Sequence[JsonRecord], where: str) -> int:
    """The format version of a table that its updates create: it starts with what they upgrade to first."""
    for at, action in enumerate(actions):
        if isinstance(action, updates_of.UpgradeFormatVersionUpdate):
            check_format_version(action.format_version, f"{where}[{at}].format-version")
            return action.format_version
    return DEFAULT_FORMAT_VERSION


def check_format_version(version: int, path: str) -> None:
    if not 1 <= version <= LATEST_FORMAT_VERSION:
        raise ChangeFormError(
            f"Unsupported format version: v{version} (supported: v{LATEST_FORMAT_VERSION}) ({path})", path=path
        )


def _check_complete(draft: TableDraft, where: str) -> None:
    needed = {
        "assign-uuid": "table-uuid",
        "set-location": "location",
        "add-schema": "schemas",
        "add-spec": "partition-specs",
        "add-sort-order": "sort-orders",
    }
    missing = [action for action, name in needed.items() if not draft.document.get(name)]
    if missing:
        raise ChangeFormError(f"The request creates a table, and has no {' and no '.join(missing)} in {where}", path=where)


def assign_uuid(draft: TableDraft, action: updates_of.AssignUUIDUpdate) -> None:
    """Give a table its uuid. It keeps it: by it clients and other catalogs know that a table is still the same."""
    uuid = draft.document.get("table-uuid")
    if uuid is None:
        draft.document["table-uuid"] = action.uuid
    elif uuid.lower() != action.uuid.lower():
        raise draft.refusal(f"Cannot reassign uuid: the table has {uuid}", ".uuid")


def upgrade_format_version(draft: TableDraft, action: updates_of.UpgradeFormatVersionUpdate) -> None:
    """Upgrade a table, over several versions at once if need be. Its snapshots stay as they were written."""
    before, version = draft.version, action.format_version
    if version > LATEST_FORMAT_VERSION:
        supported = f"(supported: v{LATEST_FORMAT_VERSION})"
        raise draft.refusal(f"Cannot upgrade table to unsupported format version: v{version} {supported}", ".format-version")
    if version < before:
        raise draft.refusal(f"Cannot downgrade v{before} table to v{version}", ".format-version")
    draft.document["format-version"] = version
    if before < _SEQUENCES_SINCE <= version:
        draft.document["last-sequence-number"] = 0
        for alone in ("schema", "partition-spec"):
            draft.document.pop(alone, None)
    if before < _KEYS_SINCE <= version:
        draft.document["next-row-id"] = 0


def set_location(draft: TableDraft, action: updates_of.SetLocationUpdate) -> None:
    draft.document["location"] = stripped_location(action.location)


def set_properties(draft: TableDraft, action: updates_of.SetPropertiesUpdate) -> None:
    check_integer_property(action.updates, LOG_LENGTH, least=-(2**31), where=f"{draft.path}.updates")
    if action.updates:
        draft.document["properties"] = changed_properties(draft.document, updates=action.updates, removals=())


def remove_properties(draft: TableDraft, action: updates_of.RemovePropertiesUpdate) -> None:
    if not set(action.removals).isdisjoint(members_of(draft.document, "properties", str)):
        draft.document["properties"] = changed_properties(draft.document, updates={}, removals=action.removals)


def add_encryption_key(draft: TableDraft, action: updates_of.AddEncryptionKeyUpdate) -> None:
    """Add a key; one whose id is there stays as it is."""
    if draft.version < _KEYS_SINCE:
        raise draft.refusal(f"Cannot add an encryption key to a v{draft.version} table: it takes v{_KEYS_SINCE}")
    keys = draft.entries("encryption-keys")
    if not any(key.get("key-id") == action.encryption_key.key_id for key in keys):
        draft.document["encryption-keys"] = [*keys, draft.update["encryption-key"]]


def remove_encryption_key(draft: TableDraft, action: updates_of.RemoveEncryptionKeyUpdate) -> None:
    keys = draft.entries("encryption-keys")
    kept = [key for key in keys if key.get("key-id") != action.key_id]
    if len(kept) < len(keys):
        draft.document["encryption-keys"] = kept


_TABLE_ACTIONS: dict[type[JsonRecord], Callable[[TableDraft, Any], None]] = {
    updates_of.AssignUUIDUpdate: assign_uuid,
    updates_of.UpgradeFormatVersionUpdate: upgrade_format_version,
    updates_of.AddSchemaUpdate: layout_changes.add_schema,
    updates_of.SetCurrentSchemaUpdate: layout_changes.set_current_schema,
    updates_of.AddPartitionSpecUpdate: layout_changes.add_spec,
    updates_of.SetDefaultSpecUpdate: layout_changes.set_default_spec,
    updates_of.AddSortOrderUpdate: layout_changes.add_sort_order,
    updates_of.SetDefaultSortOrderUpdate: layout_changes.set_default_sort_order,
    updates_of.AddSnapshotUpdate: snapshot_changes.add_snapshot,
    updates_of.SetSnapshotRefUpdate: snapshot_changes.set_snapshot_ref,
    updates_of.RemoveSnapshotsUpdate: snapshot_changes.remove_snapshots,
    updates_of.RemoveSnapshotRefUpdate: snapshot_changes.remove_snapshot_ref,
    updates_of.SetLocationUpdate: set_location,
    updates_of.SetPropertiesUpdate: set_properties,
    updates_of.RemovePropertiesUpdate: remove_properties,
    updates_of.SetStatisticsUpdate: snapshot_changes.set_statistics,
    updates_of.RemoveStatisticsUpdate: snapshot_changes.remove_statistics,
    updates_of.SetPartitionStatisticsUpdate: snapshot_changes.set_partition_statistics,
    updates_of.RemovePartitionStatisticsUpdate: snapshot_changes.remove_partition_statistics,
    updates_of.RemovePartitionSpecsUpdate: layout_changes.remove_partition_specs,
    updates_of.RemoveSchemasUpdate: layout_changes.remove_schemas,
    updates_of.AddEncryptionKeyUpdate: add_encryption_key,
    updates_of.RemoveEncryptionKeyUpdate: remove_encryption_key,
}

TABLE_SHAPES: dict[str, type[JsonRecord]] = {str(shape.__struct_config__.tag): shape for shape in _TABLE_ACTIONS}
"""The shape of each update, by its action."""

TableUpdate: Any = reduce(or_, TABLE_SHAPES.values())
"""All updates of tables, as one type for decoders and for OpenAPI."""
