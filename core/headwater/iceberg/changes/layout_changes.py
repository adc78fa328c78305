"""Updates of how a table's rows are laid out: schemas, partition specs, sort orders. Equal ones are stored once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from headwater.iceberg.changes.document_entries import Entry, full_names, schema_form
from headwater.iceberg.changes.request_elements import form_faults
from headwater.iceberg.changes.table_draft import FIRST_PARTITION_ID, UNSORTED, TableDraft, highest_field_id
from headwater.iceberg.changes.table_updates import (
    LAST_ADDED,
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    RemovePartitionSpecsUpdate,
    RemoveSchemasUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
)
from headwater.iceberg.spec.schema_rules import check_schema
from headwater.iceberg.spec.table_rules import check_sort_order, check_spec_fields

_FIRST_ORDER_ID = 1


class _LayoutKind(NamedTuple):
    """Where a document has its schemas, specs or orders, and what makes two of them the same.

    noun          as Iceberg's messages call the last added one
    in_force      as Iceberg's messages call the one in force
    """

    plural: str
    id_name: str
    current: str
    noun: str
    in_force: str
    form: Callable[[Mapping[str, Any]], Any]


def _spec_form(spec: Mapping[str, Any]) -> Any:
    """Two specs are the same whatever the ids of their fields are."""
    return [(_sources(field), field.get("transform"), field.get("name")) for field in spec.get("fields") or ()]


def _order_form(order: Mapping[str, Any]) -> Any:
    return [
        (_sources(field), field.get("transform"), field.get("direction"), field.get("null-order"))
        for field in order.get("fields") or ()
    ]


def _sources(field: Mapping[str, Any]) -> tuple[Any, ...]:
    several = field.get("source-ids")
    return tuple(several) if several is not None else (field.get("source-id"),)


_SCHEMA = _LayoutKind("schemas", "schema-id", "current-schema-id", "schema", "current schema", schema_form)
_SPEC = _LayoutKind("partition-specs", "spec-id", "default-spec-id", "spec", "default partition spec", _spec_form)
_ORDER = _LayoutKind(
    "sort-orders", "order-id", "default-sort-order-id", "sort order", "default sort order", _order_form
)  # fmt: skip


def add_schema(draft: TableDraft, action: AddSchemaUpdate) -> None:
    with form_faults(f"{draft.path}.schema"):
        columns = check_schema(action.schema, draft.version, f"{draft.path}.schema")
    draft.document["last-column-id"] = max(draft.document.get("last-column-id") or 0, max(columns, default=0))
    _add(draft, _SCHEMA, draft.update["schema"], first_id=draft.document["current-schema-id"])


def set_current_schema(draft: TableDraft, action: SetCurrentSchemaUpdate) -> None:
    _put_in_force(draft, _SCHEMA, action.schema_id, ".schema-id")


def remove_schemas(draft: TableDraft, action: RemoveSchemasUpdate) -> None:
    _remove(draft, _SCHEMA, action.schema_ids, ".schema-ids")


def add_spec(draft: TableDraft, action: AddPartitionSpecUpdate) -> None:
    """Add a partition spec; fields that were sent without an id get one."""
    where = f"{draft.path}.spec.fields"
    with form_faults(where):
        check_spec_fields(action.spec.fields, draft.version, where, draft.columns())
    _check_field_names(draft)
    spec = {**draft.update["spec"], "fields": _bound_fields(draft)}
    if draft.version == 1:
        ids = [field["field-id"] for field in spec["fields"]]
        if ids != list(range(FIRST_PARTITION_ID, FIRST_PARTITION_ID + len(ids))):
            raise draft.refusal(f"Spec does not use sequential IDs that are required in v1: {ids}", ".spec.fields")
    if _add(draft, _SPEC, spec, first_id=0):
        draft.document["last-partition-id"] = max(draft.document.get("last-partition-id") or 0, highest_field_id(spec))


def _check_field_names(draft: TableDraft) -> None:
    """Check that a partition field has the name of no column but its own source: readers find both by their names."""
    schema = draft.current_schema()
    names = {} if schema is None else full_names(schema)
    for at, field in enumerate(draft.update["spec"]["fields"]):
        column = names.get(field["name"])
        if column is not None and _sources(field) != (column,):
            text = f"Cannot create identity partition sourced from different field in schema: {field['name']}"
            raise draft.refusal(text, f".spec.fields[{at}].name")


def _bound_fields(draft: TableDraft) -> list[Entry]:
    """The fields of the spec that is added, all with ids: those sent, else that of the same field in an earlier spec, else the next.

    Iceberg's Java server counts from 1000 in every spec instead, so that one id would mean fields of two types.
    """
    fields: list[Entry] = draft.update["spec"]["fields"]
    if all(field.get("field-id") is not None for field in fields):
        return fields
    if draft.version == 1:
        return [{**field, "field-id": FIRST_PARTITION_ID + at} for at, field in enumerate(fields)]
    known = {
        (_sources(field), field.get("transform")): field.get("field-id")
        for spec in draft.entries("partition-specs")
        for field in spec.get("fields") or ()
    }
    bound, last = [], draft.document.get("last-partition-id") or FIRST_PARTITION_ID - 1
    for field in fields:
        number = known.pop((_sources(field), field.get("transform")), None)
        if number is None:
            last += 1
            number = last
        bound.append({**field, "field-id": number})
    return bound


def set_default_spec(draft: TableDraft, action: SetDefaultSpecUpdate) -> None:
    _put_in_force(draft, _SPEC, action.spec_id, ".spec-id")


def remove_partition_specs(draft: TableDraft, action: RemovePartitionSpecsUpdate) -> None:
    _remove(draft, _SPEC, action.spec_ids, ".spec-ids")


def add_sort_order(draft: TableDraft, action: AddSortOrderUpdate) -> None:
    """Add a sort order. What is not sorted always has the id 0."""
    where = f"{draft.path}.sort-order"
    with form_faults(where):
        check_sort_order(action.sort_order.fields, draft.version, where, draft.columns())
    if action.sort_order.fields:
        _add(draft, _ORDER, draft.update["sort-order"], first_id=_FIRST_ORDER_ID)
        return
    orders = draft.entries("sort-orders")
    if not any(order.get("order-id") == UNSORTED["order-id"] for order in orders):
        draft.document["sort-orders"] = [*orders, UNSORTED]
    draft.last_added["sort-orders"] = UNSORTED["order-id"]


def set_default_sort_order(draft: TableDraft, action: SetDefaultSortOrderUpdate) -> None:
    _put_in_force(draft, _ORDER, action.sort_order_id, ".sort-order-id")


def _add(draft: TableDraft, kind: _LayoutKind, entry: Mapping[str, Any], *, first_id: int) -> bool:
    """Add an entry under the next id, unless an equal one is there; either is the last added one. Returns whether it was added.

    Iceberg's Java server takes an equal one that was there before the request for none: what the client asks for next would fail.
    """
    entries, form, number = draft.entries(kind.plural), kind.form(entry), first_id
    for known in entries:
        if kind.form(known) == form:
            draft.last_added[kind.plural] = known[kind.id_name]
            return False
        number = max(number, known[kind.id_name] + 1)
    draft.document[kind.plural] = [*entries, {**entry, kind.id_name: number}]
    draft.last_added[kind.plural] = number
    return True


def _put_in_force(draft: TableDraft, kind: _LayoutKind, number: int, field: str) -> None:
    if number == LAST_ADDED:
        if kind.plural not in draft.last_added:
            raise draft.refusal(f"Cannot set last added {kind.noun}: no {kind.noun} has been added", field)
        number = draft.last_added[kind.plural]
    if number == draft.document.get(kind.current):
        return
    if not any(entry.get(kind.id_name) == number for entry in draft.entries(kind.plural)):
        raise draft.refusal(f"Cannot set {kind.in_force} to unknown {kind.noun}: {number}", field)
    draft.document[kind.current] = number


def _remove(draft: TableDraft, kind: _LayoutKind, ids: Collection[int], field: str) -> None:
    """Remove entries; ids that are not there are gone already."""
    if draft.document.get(kind.current) in ids:
        raise draft.refusal(f"Cannot remove the {kind.in_force}", field)
    entries = draft.entries(kind.plural)
    kept = [entry for entry in entries if entry.get(kind.id_name) not in ids]
    if len(kept) < len(entries):
        draft.document[kind.plural] = kept
