"""The 8 requirements of tables and the one of views: what a client assumes of the document that its updates change.

The texts are those of Iceberg's own server: clients show them to their users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from headwater.iceberg.changes.change_errors import RequirementFailedError
from headwater.iceberg.changes.document_entries import readable_document
from headwater.iceberg.changes.request_elements import read_element
from headwater.iceberg.changes.table_draft import refs_of, stated_document
from headwater.iceberg.spec import Document, check_table, check_view, is_view
from headwater.iceberg.spec.document_shape import Int, JsonRecord, Long, Name, Uuid


class CommitRequirement(JsonRecord, frozen=True, tag_field="type"):
    """What all requirements have in common: the name of their type."""


class AssertCreate(CommitRequirement, frozen=True, tag="assert-create"):
    pass


class AssertTableUUID(CommitRequirement, frozen=True, tag="assert-table-uuid"):
    uuid: Uuid


class AssertViewUUID(CommitRequirement, frozen=True, tag="assert-view-uuid"):
    uuid: Uuid


class AssertRefSnapshotId(CommitRequirement, frozen=True, tag="assert-ref-snapshot-id"):
    """Without a snapshot id the branch or tag must not be there."""

    ref: Name
    snapshot_id: Long | None = None


class AssertLastAssignedFieldId(CommitRequirement, frozen=True, tag="assert-last-assigned-field-id"):
    last_assigned_field_id: Int


class AssertCurrentSchemaId(CommitRequirement, frozen=True, tag="assert-current-schema-id"):
    current_schema_id: Int


class AssertLastAssignedPartitionId(CommitRequirement, frozen=True, tag="assert-last-assigned-partition-id"):
    last_assigned_partition_id: Int


class AssertDefaultSpecId(CommitRequirement, frozen=True, tag="assert-default-spec-id"):
    default_spec_id: Int


class AssertDefaultSortOrderId(CommitRequirement, frozen=True, tag="assert-default-sort-order-id"):
    default_sort_order_id: Int


class _RequiredId(NamedTuple):
    """An id that a client knows. ``is_new_free``: a table that does not exist yet meets the requirement."""

    attribute: str
    field: str
    text: str
    is_new_free: bool = False


_REQUIRED_IDS: dict[type[JsonRecord], _RequiredId] = {
    AssertLastAssignedFieldId: _RequiredId(
        "last_assigned_field_id", "last-column-id", "last assigned field id changed", is_new_free=True
    ),
    AssertCurrentSchemaId: _RequiredId("current_schema_id", "current-schema-id", "current schema changed"),
    AssertLastAssignedPartitionId: _RequiredId(
        "last_assigned_partition_id", "last-partition-id", "last assigned partition id changed", is_new_free=True
    ),
    AssertDefaultSpecId: _RequiredId("default_spec_id", "default-spec-id", "default partition spec changed"),
    AssertDefaultSortOrderId: _RequiredId("default_sort_order_id", "default-sort-order-id", "default sort order changed"),
}


def check_requirements(
    document: Document | None, requirements: Sequence[Mapping[str, Any]], *, where: str = "requirements"
) -> None:
    """Check that a table or view is what a client assumes, all requirements in their order.

    document      decoded JSON; None for what does not exist
    where         the requirements' place in the request: ``table-changes[1].requirements``
    raises        ChangeFormError for an unknown type, or one that the kind of content does not have; RequirementFailedError
    """
    shapes: Mapping[str, type[JsonRecord]] = {**TABLE_REQUIREMENTS, **VIEW_REQUIREMENTS}
    if document is not None:
        shapes = VIEW_REQUIREMENTS if is_view(document) else TABLE_REQUIREMENTS
    read = [read_element(element, shapes, "type", f"{where}[{at}]") for at, element in enumerate(requirements)]
    with readable_document(document, check_view if document is not None and is_view(document) else check_table):
        for at, failure in enumerate(_failures(document, read)):
            if failure is not None:
                raise RequirementFailedError(f"Requirement failed: {failure}", path=f"{where}[{at}]")


def _failures(document: Document | None, requirements: Sequence[JsonRecord]) -> Iterator[str | None]:
    """For each requirement why it does not hold, or None."""
    stated = document if document is None or is_view(document) or not requirements else stated_document(document)
    for requirement in requirements:
        yield _CHECKS[type(requirement)](requirement, stated)


def _check_absence(_: AssertCreate, stated: Document | None) -> str | None:
    return None if stated is None else "table already exists"


def _check_table_uuid(requirement: AssertTableUUID, stated: Document | None) -> str | None:
    if stated is None:
        return "table does not exist"
    return _compare_uuids("UUID does not match", stated.get("table-uuid"), requirement.uuid)


def _check_view_uuid(requirement: AssertViewUUID, stated: Document | None) -> str | None:
    if stated is None:
        return "view does not exist"
    return _compare_uuids("view UUID does not match", stated.get("view-uuid"), requirement.uuid)


def _compare_uuids(text: str, stored: str | None, expected: str) -> str | None:
    if stored is not None and stored.lower() == expected.lower():
        return None
    return f"{text}: expected {stored} != {expected}"


def _check_ref(requirement: AssertRefSnapshotId, stated: Document | None) -> str | None:
    name, expected = requirement.ref, requirement.snapshot_id
    ref = None if stated is None else refs_of(stated).get(name)
    if ref is None:
        return None if expected is None else f"branch or tag {name} is missing, expected {expected}"
    if expected is None:
        return f"{ref.get('type')} {name} was created concurrently"
    if ref.get("snapshot-id") != expected:
        return f"{ref.get('type')} {name} has changed: expected id {expected} != {ref.get('snapshot-id')}"
    return None


def _check_id(requirement: CommitRequirement, stated: Document | None) -> str | None:
    rule = _REQUIRED_IDS[type(requirement)]
    if stated is None:
        return None if rule.is_new_free else "table does not exist"
    expected, stored = getattr(requirement, rule.attribute), stated.get(rule.field)
    return None if stored == expected else f"{rule.text}: expected id {expected} != {stored}"


_CHECKS: dict[type[JsonRecord], Callable[[Any, Document | None], str | None]] = {
    AssertCreate: _check_absence,
    AssertTableUUID: _check_table_uuid,
    AssertViewUUID: _check_view_uuid,
    AssertRefSnapshotId: _check_ref,
    **dict.fromkeys(_REQUIRED_IDS, _check_id),
}

_SHAPES: dict[str, type[JsonRecord]] = {str(shape.__struct_config__.tag): shape for shape in _CHECKS}
VIEW_REQUIREMENTS: dict[str, type[JsonRecord]] = {name: shape for name, shape in _SHAPES.items() if shape is AssertViewUUID}
TABLE_REQUIREMENTS: dict[str, type[JsonRecord]] = {
    name: shape for name, shape in _SHAPES.items() if shape is not AssertViewUUID
}
"""The shape of each requirement, by its type."""

TableRequirement: Any = reduce(or_, TABLE_REQUIREMENTS.values())
ViewRequirement: Any = reduce(or_, VIEW_REQUIREMENTS.values())
