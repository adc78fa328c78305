"""A table's document on its way to the next version: what updates read of it, and how it is sealed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headwater.errors import RefusedError
from headwater.iceberg.changes.change_errors import ChangeFormError
from headwater.iceberg.changes.document_entries import Entry, entries_of, integer_property, members_of, time_in
from headwater.iceberg.spec import RAW_VERSION, Document, FaultError, check_table, stated_facts, version_of
from headwater.iceberg.spec.document_shape import read_value
from headwater.iceberg.spec.schema_rules import Columns, SingleSchema, check_schema

MAIN = "main"
FIRST_PARTITION_ID = 1000
UNSORTED: Entry = {"order-id": 0, "fields": []}
LOG_LENGTH = "write.metadata.previous-versions-max"
_DEFAULT_LOG_LENGTH = 100
_ROWS_SINCE = 3


def stated_document(document: Document) -> Entry:
    """A copy of a document that says what format version 1 may leave out: its lists, and which schema, spec and order are in force.

    The members are those of the document: they are replaced, and never changed.

    raises        RefusedError for the draft of format version 4; CorruptionError for a document that cannot be read
    """
    version = version_of(document)
    if version == RAW_VERSION:
        raise RefusedError(f"a table of format version {RAW_VERSION} cannot be changed: its specification is a draft")
    stated = dict(document)
    if version == 1:
        _state_first_version(stated)
    return stated


def _state_first_version(stated: Entry) -> None:
    try:
        facts = check_table(stated)
    except FaultError:
        facts = stated_facts(stated)
    if not stated.get("schemas"):
        stated["schemas"] = [{**(stated.get("schema") or {}), "schema-id": facts.schema_id}]
    specs = entries_of(stated, "partition-specs") or [{"spec-id": facts.spec_id, "fields": stated.get("partition-spec") or []}]
    stated["partition-specs"] = [with_field_ids(spec) for spec in specs]
    stated["sort-orders"] = entries_of(stated, "sort-orders") or [UNSORTED]
    if stated.get("last-partition-id") is None:
        stated["last-partition-id"] = max(map(highest_field_id, stated["partition-specs"]), default=FIRST_PARTITION_ID - 1)
    stated["current-schema-id"] = facts.schema_id
    stated["default-spec-id"] = facts.spec_id
    stated["default-sort-order-id"] = facts.sort_order_id


def with_field_ids(spec: Entry) -> Entry:
    """A partition spec of format version 1, whose fields count from 1000 where they have no ids."""
    fields = entries_of(spec, "fields")
    if all(field.get("field-id") is not None for field in fields):
        return spec
    return {**spec, "fields": [{**field, "field-id": FIRST_PARTITION_ID + at} for at, field in enumerate(fields)]}


def highest_field_id(spec: Entry) -> int:
    ids = (field.get("field-id") for field in entries_of(spec, "fields"))
    return max((number for number in ids if number is not None), default=FIRST_PARTITION_ID - 1)


def current_snapshot_of(document: Mapping[str, Any]) -> int | None:
    """The id of the current snapshot; None where there is none: absent, null or -1."""
    current: int | None = document.get("current-snapshot-id")
    return None if current == -1 else current


def refs_of(document: Mapping[str, Any]) -> dict[str, Entry]:
    """The branches and tags of a table; ``main`` is the current snapshot, also where nothing says so."""
    refs = dict(members_of(document, "refs", dict))
    current = current_snapshot_of(document)
    if current is not None and MAIN not in refs:
        refs[MAIN] = {"snapshot-id": current, "type": "branch"}
    return refs


class TableDraft:
    """A table's document while updates are applied to it, one after the other.

    document      as it is by now; its members are replaced, and never changed, since the base shares them
    path          the place in the request of the update that is applied
    update        that update as it was sent
    updated_ms    the time of the snapshot that was added last, or of the change; None before either
    """

    def __init__(self, base: Document | None, *, format_version: int, now_ms: int) -> None:
        self.document: Entry = _empty_document(format_version) if base is None else stated_document(base)
        self.now_ms = now_ms
        self.updated_ms: int | None = None
        self.path = ""
        self.update: Mapping[str, Any] = {}
        self.last_added: dict[str, int] = {}
        self.added_snapshots: set[int] = set()
        self.has_removed_snapshots = False
        self._new_mains: set[int] = set()
        self._is_creation = base is None
        self._base = dict(self.document)

    @property
    def version(self) -> int:
        return int(self.document["format-version"])

    @property
    def current_snapshot(self) -> int | None:
        return current_snapshot_of(self.document)

    @property
    def has_changed(self) -> bool:
        return self._is_creation or self.document != self._base

    def entries(self, name: str) -> list[Entry]:
        return entries_of(self.document, name)

    def refusal(self, text: str, field: str = "") -> ChangeFormError:
        """The error for an update that does not fit the table. The text comes first: clients know how it begins."""
        path = f"{self.path}{field}"
        return ChangeFormError(f"{text} ({path})", path=path)

    def current_schema(self) -> Entry | None:
        """The schema in force by now."""
        current = self.document.get("current-schema-id")
        return next((entry for entry in self.entries("schemas") if entry.get("schema-id") == current), None)

    def columns(self) -> Columns | None:
        """The columns of the schema in force by now; None where there is none that could be read."""
        schema = self.current_schema()
        try:
            return None if schema is None else check_schema(read_value(schema, SingleSchema, ""), self.version, "schema")
        except FaultError:
            return None

    def set_main(self, snapshot_id: int, timestamp_ms: int) -> None:
        """Make a snapshot the current one, and note it in the log.

        Clocks of clients differ, and an entry never goes back in time: a table would refuse all commits until the others have caught up.
        """
        self.document["current-snapshot-id"] = snapshot_id
        entry = {"timestamp-ms": max(timestamp_ms, self._logged_ms()), "snapshot-id": snapshot_id}
        self.document["snapshot-log"] = [*self.entries("snapshot-log"), entry]
        if snapshot_id in self.added_snapshots:
            self._new_mains.add(snapshot_id)

    def remove_main(self) -> None:
        if self.current_snapshot is None:
            return
        if self.version < _ROWS_SINCE:
            self.document["current-snapshot-id"] = -1  # readers of these versions may not know null
        else:
            del self.document["current-snapshot-id"]

    def seal(self, previous_file: str | None) -> Entry:
        """Complete the document: its logs, its time, and what version 1 says twice.

        previous_file       the metadata file of the base, which the log takes up
        """
        self._settle_snapshot_log()
        if previous_file is not None and not self._is_creation:
            self._log_metadata(previous_file)
        updated_ms = self.now_ms if self.updated_ms is None else self.updated_ms
        before_ms = time_in(self._base, "last-updated-ms")
        self.document["last-updated-ms"] = max(updated_ms, before_ms, self._logged_ms())
        if self.version == 1:
            self._repeat_alone()
        return self.document

    def _logged_ms(self) -> int:
        log = self.entries("snapshot-log")
        return time_in(log[-1], "timestamp-ms") if log else 0

    def _settle_snapshot_log(self) -> None:
        """Drop what was current only within the change; and all before a snapshot that has expired, or the log would have a gap."""
        passing = self._new_mains - {self.current_snapshot}
        if not passing and not self.has_removed_snapshots:
            return
        ids = {snapshot.get("snapshot-id") for snapshot in self.entries("snapshots")}
        log: list[Entry] = []
        for entry in self.entries("snapshot-log"):
            if entry.get("snapshot-id") in passing:
                continue
            if entry.get("snapshot-id") in ids:
                log.append(entry)
            elif self.has_removed_snapshots:
                log.clear()
        self.document["snapshot-log"] = log

    def _log_metadata(self, previous_file: str) -> None:
        most = max(1, integer_property(members_of(self.document, "properties", str), LOG_LENGTH, _DEFAULT_LOG_LENGTH))
        entry = {"timestamp-ms": time_in(self._base, "last-updated-ms") or self.now_ms, "metadata-file": previous_file}
        self.document["metadata-log"] = [*self.entries("metadata-log"), entry][-most:]

    def _repeat_alone(self) -> None:
        """State the schema and the spec in force under the names by which old readers of format version 1 look for them."""
        for alone, plural, id_name, current, member in (
            ("schema", "schemas", "schema-id", "current-schema-id", None),
            ("partition-spec", "partition-specs", "spec-id", "default-spec-id", "fields"),
        ):
            for entry in self.entries(plural):
                if entry.get(id_name) == self.document.get(current):
                    self.document[alone] = entry if member is None else entry.get(member)


def _empty_document(format_version: int) -> Entry:
    """What a table has before its first update. Ids of what is in force are 0, as what is added first gets them."""
    document: Entry = {"format-version": format_version}
    if format_version > 1:
        document["last-sequence-number"] = 0
    document |= {
        "last-updated-ms": None,
        "last-column-id": 0,
        "current-schema-id": 0,
        "schemas": [],
        "default-spec-id": 0,
        "partition-specs": [],
        "last-partition-id": FIRST_PARTITION_ID - 1,
        "default-sort-order-id": 0,
        "sort-orders": [],
        "properties": {},
    }
    document |= {"current-snapshot-id": -1} if format_version < _ROWS_SINCE else {"next-row-id": 0}
    lists: Collection[str] = ("snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log")
    return document | {"refs": {}} | {name: [] for name in lists}
