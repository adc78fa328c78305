"""The same updates given to pyiceberg: what it makes of them, too, and where it is known to differ, with the reason.

Times are not compared: pyiceberg takes the clock of the machine, and lets the time of a table go back.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, TypeAdapter
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata

from headwater.errors import HeadwaterError
from headwater.iceberg.changes import change_table, new_table
from metadata_fixtures import COLUMNS, LOCATION, PARTITION_STATISTICS, STATISTICS, changed, column, schema, snapshot, table

Document = dict[str, Any]
NOW = 1_760_000_000_000
FILE = f"{LOCATION}/metadata/v2.metadata.json"
UPDATES: TypeAdapter[tuple[TableUpdate, ...]] = TypeAdapter(tuple[TableUpdate, ...])
ROUNDS = 10
TIMES = ("last-updated-ms", "timestamp-ms")


def by_headwater(document: Document, updates: list[Document]) -> Document | None:
    """The changed table; None where the updates are refused."""
    try:
        return change_table(document, updates, now_ms=NOW, previous_file=FILE)
    except HeadwaterError:
        return None


def by_pyiceberg(document: Document, updates: list[Document]) -> TableMetadata | None:
    try:
        base = TableMetadataUtil.parse_raw(json.dumps(document))
        return update_table_metadata(base, UPDATES.validate_python(updates), metadata_location=FILE)
    except (ValueError, KeyError):
        return None


def form(metadata: TableMetadata | Document | None) -> Any:
    """What both must agree about: everything but times, and the order of properties, refs and statistics."""
    if metadata is None:
        return None
    read = TableMetadataUtil.parse_raw(json.dumps(metadata)) if isinstance(metadata, dict) else metadata
    return without_times(json.loads(BaseModel.model_dump_json(read, by_alias=True, exclude_none=True)))


def without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [without_times(member) for member in value]
    if isinstance(value, dict):
        return {name: without_times(member) for name, member in value.items() if name not in TIMES and member is not None}
    return value


def agreed(told: Any) -> Any:
    """A form without the schema that stands alone, which pyiceberg leaves as it was."""
    return told and {name: value for name, value in told.items() if name != "schema"}


class _Player:
    """Chooses updates that mean the same to both, for a table as it is by then."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 100

    def updates(self, document: Document) -> list[Document]:
        kinds = [
            self._properties, self._location, self._schema, self._order, self._snapshot, self._expiry, self._ref, self._statistics,
            self._removal, self._identity, self._fault,
        ]  # fmt: skip
        chosen = self._random.sample(kinds, self._random.randint(1, 3))
        return [update for kind in chosen for update in kind(document)]

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _properties(self, document: Document) -> list[Document]:
        stored = list(document["properties"])
        removals = [self._random.choice(stored)] if stored else []
        kept = {f"k{self._random.randint(0, 3)}": str(self._next())}
        return [{"action": "remove-properties", "removals": removals}, {"action": "set-properties", "updates": kept}]

    def _location(self, document: Document) -> list[Document]:
        return [{"action": "set-location", "location": f"s3://lake/{self._next()}"}]

    def _schema(self, document: Document) -> list[Document]:
        number = document["last-column-id"] + 1
        added = {**document["schemas"][-1], "schema-id": max(entry["schema-id"] for entry in document["schemas"]) + 1}
        added["fields"] = [*added["fields"], column(number, f"c{number}", "int")]
        return [{"action": "add-schema", "schema": added}, {"action": "set-current-schema", "schema-id": -1}]

    def _order(self, document: Document) -> list[Document]:
        number = max(order["order-id"] for order in document["sort-orders"]) + 1
        field = {"transform": f"bucket[{number + 7}]", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}
        order = {"order-id": number, "fields": [field]}
        return [{"action": "add-sort-order", "sort-order": order}, {"action": "set-default-sort-order", "sort-order-id": -1}]

    def _snapshot(self, document: Document) -> list[Document]:
        """Append to main or to another branch."""
        number, sequence = self._next(), document.get("last-sequence-number", 0) + 1
        added = snapshot(number, sequence if document["format-version"] > 1 else None, **{"timestamp-ms": NOW + number})
        name = self._random.choice(["main", "dev", "test"])
        move = {"action": "set-snapshot-ref", "ref-name": name, "type": "branch", "snapshot-id": number}
        return [{"action": "add-snapshot", "snapshot": added}, move]

    def _expiry(self, document: Document) -> list[Document]:
        """Expire a snapshot that no log and no child knows."""
        known = {entry["snapshot-id"] for entry in document["snapshot-log"]}
        known |= {entry.get("parent-snapshot-id") for entry in document["snapshots"]}
        loose = [entry["snapshot-id"] for entry in document["snapshots"] if entry["snapshot-id"] not in known]
        return [{"action": "remove-snapshots", "snapshot-ids": [loose[0]]}] if loose else []

    def _ref(self, document: Document) -> list[Document]:
        number = self._random.choice(document["snapshots"])["snapshot-id"]
        tag = {
            "action": "set-snapshot-ref",
            "ref-name": f"t{self._next()}",
            "type": "tag",
            "snapshot-id": number,
            "max-ref-age-ms": 5,
        }
        gone = self._random.choice([*document.get("refs", {}), "never"])
        return [tag, {"action": "remove-snapshot-ref", "ref-name": gone if gone != "main" else "never"}]

    def _statistics(self, document: Document) -> list[Document]:
        """Put statistics on a new snapshot, so that both append them."""
        number = self._next()
        return [
            {"action": "set-statistics", "statistics": STATISTICS | {"snapshot-id": number}},
            {"action": "set-partition-statistics", "partition-statistics": PARTITION_STATISTICS | {"snapshot-id": number}},
        ]

    def _removal(self, document: Document) -> list[Document]:
        old = [
            entry["schema-id"] for entry in document["schemas"] if entry["schema-id"] != document.get("current-schema-id", 0)
        ]
        updates: list[Document] = [{"action": "remove-schemas", "schema-ids": old[:1]}] if old else []
        for name in ("statistics", "partition-statistics"):
            updates += [{"action": f"remove-{name}", "snapshot-id": file["snapshot-id"]} for file in document[name][:1]]
        return updates

    def _identity(self, document: Document) -> list[Document]:
        upgrade = {"action": "upgrade-format-version", "format-version": 2}
        return [{"action": "assign-uuid", "uuid": document["table-uuid"]}, upgrade]

    def _fault(self, document: Document) -> list[Document]:
        """Now and then an update that both refuse."""
        if self._random.random() < 0.6:
            return []
        number = document["snapshots"][0]["snapshot-id"]
        return [self._random.choice([
            {"action": "set-current-schema", "schema-id": 999}, {"action": "set-default-spec", "spec-id": 999},
            {"action": "set-default-sort-order", "sort-order-id": 999},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 999},
            {"action": "add-snapshot", "snapshot": snapshot(number, 999)},
            {"action": "upgrade-format-version", "format-version": 9},
            {"action": "remove-schemas", "schema-ids": [document.get("current-schema-id", 0)]},
        ])]  # fmt: skip


def start(version: int) -> Document:
    """A table with all lists that the player looks into."""
    base = table(version)
    if version == 1:
        base |= {"schemas": [base["schema"]], "current-schema-id": 0, "sort-orders": [{"order-id": 0, "fields": []}]}
        base |= {"refs": {"main": {"snapshot-id": 22, "type": "branch"}}}
    return base | {"statistics": [], "partition-statistics": []}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_random_updates_mean_the_same_to_pyiceberg(version: int, seed: int) -> None:
    document, player, applied = start(version), _Player(seed), 0

    for _ in range(ROUNDS):
        updates = player.updates(document)
        result = by_headwater(document, updates)
        assert agreed(form(result)) == agreed(form(by_pyiceberg(document, updates))), updates
        if result is not None:
            document, applied = result, applied + 1

    assert applied > ROUNDS // 3


class _Difference(NamedTuple):
    """``reason``: why pyiceberg is not followed."""

    reason: str
    document: Document
    updates: list[Document]


def _add(number: int, sequence: int, **more: Any) -> Document:
    return {"action": "add-snapshot", "snapshot": snapshot(number, sequence, **more)}


def _main(number: int) -> Document:
    return {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}


WIDER = schema(*COLUMNS, column(4, "more", "int"), number=1)
REMOVE_11 = {"action": "remove-snapshots", "snapshot-ids": [11]}
STATED = {"action": "set-partition-statistics", "partition-statistics": PARTITION_STATISTICS | {"snapshot-id": 11}}
BY_DAY = {"name": "d", "transform": "day", "source-id": 2, "field-id": 1000}

KNOWN = {
    "removal of nothing": _Difference(
        "what changes nothing is no new version; pyiceberg writes one", table(2), [{"action": "remove-schemas", "schema-ids": []}],
    ),
    "schema of the first format": _Difference(
        "old readers of format version 1 know only the schema that stands alone; pyiceberg leaves the one before",
        start(1), [{"action": "add-schema", "schema": WIDER}, {"action": "set-current-schema", "schema-id": -1}],
    ),
    "equal schema": _Difference(
        "Iceberg stores equal schemas once; pyiceberg stores the id twice",
        table(2), [{"action": "add-schema", "schema": schema(*COLUMNS)}],
    ),
    "schema with the id of another": _Difference(
        "the server assigns ids; pyiceberg takes the one that was sent, and has two schemas of it",
        table(2), [{"action": "add-schema", "schema": changed(WIDER, {"schema-id": 0})}],
    ),
    "equal spec": _Difference(
        "Iceberg stores equal specs once; pyiceberg stores both",
        table(2), [{"action": "add-spec", "spec": table(2)["partition-specs"][0] | {"spec-id": 1}}],
    ),
    "spec with the id of another": _Difference(
        "the server assigns ids; pyiceberg refuses the second writer's spec as if it were wrong",
        table(2), [{"action": "add-spec", "spec": {"spec-id": 0, "fields": [BY_DAY | {"field-id": 1001}]}}],
    ),
    "sort order with the id of another": _Difference(
        "the server assigns ids; pyiceberg refuses the second writer's order as if it were wrong",
        table(2), [{"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [
            {"transform": "identity", "source-id": 3, "direction": "asc", "null-order": "nulls-first"}]}}],
    ),
    "spec of the first format that skips ids": _Difference(
        "format version 1 finds partition values by position, so ids count from 1000; pyiceberg stores what it gets",
        table(1), [{"action": "add-spec", "spec": {"spec-id": 1, "fields": [BY_DAY | {"field-id": 1003}]}}],
    ),
    "property that is not there": _Difference(
        "removing what another client removed is no error; pyiceberg fails with a KeyError",
        table(2), [{"action": "remove-properties", "removals": ["never"]}],
    ),
    "snapshot that is not there": _Difference(
        "expiring what another client expired is no error, as in Iceberg's Java server",
        table(2), [{"action": "remove-snapshots", "snapshot-ids": [99]}],
    ),
    "statistics that are not there": _Difference(
        "removing what another client removed is no error, as in Iceberg's Java server",
        table(2), [{"action": "remove-statistics", "snapshot-id": 99}],
    ),
    "parent of an expired snapshot": _Difference(
        "a snapshot is never rewritten; pyiceberg takes the parent's id out of its children",
        changed(table(2), {"snapshot-log": []}), [REMOVE_11],
    ),
    "log with an expired snapshot": _Difference(
        "a log with a gap lies about what was current in it; pyiceberg leaves the gap",
        changed(table(2), {"snapshots": [snapshot(11, 1), snapshot(22, 2), snapshot(33, 2)], "snapshot-log": [
            {"timestamp-ms": 1_750_000_000_000 + at, "snapshot-id": number} for at, number in enumerate((11, 33, 22))]}),
        [{"action": "remove-snapshots", "snapshot-ids": [33]}],
    ),
    "partition statistics of an expired snapshot": _Difference(
        "statistics go with their snapshot; pyiceberg leaves those of partitions",
        changed(table(2), {"snapshot-log": [], "snapshots": [snapshot(11, 1), snapshot(22, 2)]}), [STATED, REMOVE_11],
    ),
    "snapshot that passed": _Difference(
        "what was current only within the change never was; pyiceberg logs it",
        table(2), [_add(33, 3), _main(33), _add(44, 4), _main(44)],
    ),
    "older snapshot without a parent": _Difference(
        "the last sequence number is the highest one; pyiceberg goes back to the snapshot's",
        table(2), [_add(33, 1)],
    ),
    "snapshot without a sequence number": _Difference(
        "readers of format version 2 order deletes by it; pyiceberg stores the snapshot without",
        table(2), [{"action": "add-snapshot", "snapshot": snapshot(33, None)}],
    ),
    "row ids with a gap": _Difference(
        "ids that a snapshot has must lie below next-row-id; pyiceberg, and Java, count rows alone",
        table(3), [_add(33, 3, **{"first-row-id": 50, "added-rows": 2})],
    ),
    "another uuid": _Difference(
        "a table keeps its uuid, by which clients and other catalogs know it; pyiceberg gives it another",
        table(2), [{"action": "assign-uuid", "uuid": "00000000-0000-4000-8000-000000000001"}],
    ),
    "location with a slash": _Difference(
        "locations are stored without it, as Iceberg's Java library does", table(2),
        [{"action": "set-location", "location": "s3://lake/x/"}],
    ),
    "type of a later format": _Difference(
        "a table holds only types of its format; pyiceberg stores it",
        table(2), [{"action": "add-schema", "schema": schema(*COLUMNS, column(4, "t", "timestamp_ns"), number=1)}],
    ),
    "partition field on a missing column": _Difference(
        "no reader could use it; pyiceberg stores it until it is the default",
        table(2), [{"action": "add-spec", "spec": {"spec-id": 1, "fields": [BY_DAY | {"source-id": 77, "field-id": 1001}]}}],
    ),
    "main as a tag": _Difference(
        "main is a branch; pyiceberg stores the tag", table(2), [_main(11) | {"type": "tag"}],
    ),
    "encryption keys": _Difference(
        "pyiceberg 0.12 does not know the action", table(3),
        [{"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "eA=="}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_difference_is_still_one(name: str) -> None:
    _, document, updates = KNOWN[name]

    assert form(by_headwater(document, updates)) != form(by_pyiceberg(document, updates))


def test_new_tables_get_the_ids_that_pyiceberg_assigns() -> None:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import new_table_metadata
    from pyiceberg.table.sorting import SortOrder

    nested = schema(
        column(50, "point", {"type": "struct", "fields": [column(60, "x", "int"), column(61, "y", "int")]}),
        column(51, "key", "long", required=True),
        column(53, "last", "date"),
    )
    spec = {"spec-id": 5, "fields": [{"name": "p", "transform": "day", "source-id": 53, "field-id": 1009}]}
    order = {"order-id": 7, "fields": [
        {"transform": "identity", "source-id": 61, "direction": "asc", "null-order": "nulls-first"}]}  # fmt: skip

    metadata = new_table_metadata(
        Schema.model_validate(nested), PartitionSpec.model_validate(spec), SortOrder.model_validate(order), LOCATION, {"a": "b"}
    )
    result = new_table(
        schema=nested, partition_spec=spec, sort_order=order, properties={"a": "b"}, location=LOCATION,
        table_uuid=metadata.table_uuid, now_ms=NOW,
    )  # fmt: skip

    assert form(result) == form(metadata)
