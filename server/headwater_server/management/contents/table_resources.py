"""Tables, views and namespaces as resources: their metadata, snapshots and history, by the catalog's own documents; no data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from headwater.catalogs import IcebergTable, IcebergView, KeyChange, LogEntry, Namespace
from headwater.catalogs.content import type_text
from headwater.clock import Micros, as_text
from headwater.commits import Head, LogEnd
from headwater.errors import ExpiredError
from headwater.iceberg_catalog.lake_privileges import SHOW_PRIVILEGES
from headwater.store import ObjectId, id_text
from headwater_server.call import Answer, Call
from headwater_server.management.contents.contents_reader import ContentsReader, commit_of_token, open_history, open_reader
from headwater_server.management.contents.shown_commits import commit_body, filter_commits, hides
from headwater_server.management.contents.table_reader import ReadTable, find_table, number_of, text_of_number
from headwater_server.management.contents.table_shapes import (
    ShownSnapshot,
    SnapshotList,
    TableDetails,
    TableHistory,
    TableHistoryEntry,
    TableRef,
)
from headwater_server.management.listed_pages import page_by_place
from headwater_server.management.resource_shapes import ListQuery
from headwater_server.management.route_parts import READ_ERRORS, TABLE_PATH
from headwater_server.route_table import Route

_NEEDS: Final = "TABLE_READ_PROPERTIES on the table, VIEW_READ_PROPERTIES or NAMESPACE_READ_PROPERTIES on a view or namespace"
_LATEST_MILLIS: Final = 253_402_300_800_000
"""The year 10000: a document may say any time."""
_LOOKED_AT: Final = 2_000
"""Commits that a request looks at for those that changed a table."""


def table_routes() -> list[Route]:
    """Make the routes of tables and views, but for that of their files."""
    return [
        Route(
            method="GET",
            template=TABLE_PATH,
            handler=answer_table_details,
            name="getTable",
            needs=_NEEDS,
            summary="Read what the metadata of a table, view or namespace says.",
            answers={200: TableDetails},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{TABLE_PATH}/snapshots",
            handler=answer_snapshots,
            name="listSnapshots",
            needs="TABLE_READ_PROPERTIES on the table",
            summary="List the snapshots of a table, newest first.",
            query=ListQuery,
            answers={200: SnapshotList},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{TABLE_PATH}/history",
            handler=answer_table_history,
            name="readTableHistory",
            needs=f"REFERENCE_READ_HISTORY on the reference, and {_NEEDS}",
            summary="List the commits that changed a table, through its renames, newest first.",
            query=ListQuery,
            answers={200: TableHistory},
            errors=READ_ERRORS,
        ),
    ]


def answer_table_details(call: Call[None, None]) -> Answer:
    """Read what the metadata of a table, view or namespace says."""
    read = find_table(open_reader(call), call.path["key"], SHOW_PRIVILEGES)
    return Answer(body=_details(read))


def answer_snapshots(call: Call[ListQuery, None]) -> Answer:
    """List the snapshots of a table, newest first."""
    read = find_table(open_reader(call), call.path["key"], SHOW_PRIVILEGES)
    snapshots = sorted(read.objects("snapshots"), key=_snapshot_order, reverse=True)
    page, token = page_by_place(snapshots, call.query, name=lambda each: str(each.get("snapshot-id")))
    names = _names_by_snapshot(read)
    return Answer(body=SnapshotList([_snapshot(read, each, names) for each in page], token))


def answer_table_history(call: Call[ListQuery, None]) -> Answer:
    """List the commits that changed a table. What it did under a name that the caller may not list is left out."""
    reader = open_history(call)
    read = find_table(reader, call.path["key"], SHOW_PRIVILEGES)
    tokens = reader.tokens_of(f"history {read.key}")
    token = tokens.from_client(call.query.page_token)
    start = reader.seen.head
    try:
        if token is not None:
            start = reader.session.catalog.resolve(id_text(commit_of_token(token)))
        page = _history_page(reader, read, start, limit=call.query.page_size)
    except ExpiredError:  # it was collected since the page before
        page = _HistoryPage([], None, "CUT")
    return Answer(body=TableHistory(page.changes, tokens.to_client(page.next), page.end))


class _HistoryPage(NamedTuple):
    """Changes, the commit that the next page begins with, and why there is none."""

    changes: list[TableHistoryEntry]
    next: str | None
    end: Literal["BEGINNING", "CUT"] | None


def _history_page(reader: ContentsReader, read: ReadTable, start: Head | None, *, limit: int) -> _HistoryPage:
    """The changes of a table from a commit on. It is found there by its content id: a token must not tell an earlier name."""
    if start is None:
        return _HistoryPage([], None, "BEGINNING")
    history = reader.session.catalog.content_history(read.value.content_id, id_text(start.id), within=_LOOKED_AT)
    changes: list[TableHistoryEntry] = []
    for change in history:
        [shown] = filter_commits(reader.session, [change.entry], reader.seen.rights)
        if any(operation.key == change.key for operation in shown.operations):
            changes.append(_change(change, shown))
        if len(changes) == limit and history.end is None:
            return _HistoryPage(changes, *_behind(change.entry.parent))
    if history.end is LogEnd.BOUND and history.last is not None:
        last = reader.session.catalog.resolve(id_text(history.last))
        return _HistoryPage(changes, *_behind(None if last is None or not last.commit.tail else last.commit.tail[0]))
    return _HistoryPage(changes, None, "CUT" if history.end is LogEnd.CUT else "BEGINNING")


def _behind(parent: ObjectId | None) -> tuple[str | None, Literal["BEGINNING"] | None]:
    return (None, "BEGINNING") if parent is None else (id_text(parent), None)


def _change(change: KeyChange, shown: LogEntry) -> TableHistoryEntry:
    listed = {operation.key for operation in shown.operations}
    before = change.renamed_from if change.renamed_from in listed else None
    return TableHistoryEntry(
        action=change.action.value,
        key=list(change.key.elements),
        name=str(change.key),
        renamed_from=None if before is None else str(before),
        commit=commit_body(shown, is_hidden=hides(change.entry, shown)),
    )


def _details(read: ReadTable) -> TableDetails:
    content = read.content
    held = content if isinstance(content, IcebergTable | IcebergView) else None
    properties = content.properties if isinstance(content, Namespace) else read.document.get("properties")
    schemas = read.objects("schemas") or [each for each in [read.document.get("schema")] if isinstance(each, dict)]
    return TableDetails(
        key=list(read.key.elements),
        name=str(read.key),
        type=type_text(read.value.type),
        content_id=str(read.value.content_id),
        metadata_location=None if held is None else held.metadata_location,
        commit=read.reader.seen.hash,
        uuid=_text(read.document.get("table-uuid") or read.document.get("view-uuid")),
        format_version=read.number("format-version"),
        location=_text(read.document.get("location")),
        last_updated=_time(read.document.get("last-updated-ms")),
        properties=_texts(properties),
        current_schema_id=_current_schema(read),
        schemas=schemas,
        default_spec_id=read.number("default-spec-id"),
        partition_specs=read.objects("partition-specs") or _first_spec(read),
        default_sort_order_id=read.number("default-sort-order-id"),
        sort_orders=read.objects("sort-orders"),
        current_snapshot_id=text_of_number(read.current_snapshot),
        snapshots=len(read.objects("snapshots")),
        refs=[_table_ref(name, ref) for name, ref in sorted(read.refs.items())],
        current_version_id=read.number("current-version-id"),
        versions=read.objects("versions"),
    )


def _current_schema(read: ReadTable) -> int | None:
    """The number of the current schema; of a view that of its current version."""
    current = read.number("current-version-id")
    version = next((each for each in read.objects("versions") if each.get("version-id") == current), None)
    return read.number("current-schema-id") if version is None else number_of(version.get("schema-id"))


def _first_spec(read: ReadTable) -> list[dict[str, Any]]:
    """The one spec of a table of version 1 that lists none."""
    fields = read.objects("partition-spec")
    return [{"spec-id": 0, "fields": fields}] if fields else []


def _table_ref(name: str, ref: Mapping[str, Any]) -> TableRef:
    return TableRef(
        name=name,
        type=_text(ref.get("type")) or "branch",
        snapshot_id=text_of_number(ref.get("snapshot-id")),
        max_ref_age_ms=number_of(ref.get("max-ref-age-ms")),
        max_snapshot_age_ms=number_of(ref.get("max-snapshot-age-ms")),
        min_snapshots_to_keep=number_of(ref.get("min-snapshots-to-keep")),
    )


def _names_by_snapshot(read: ReadTable) -> Mapping[int | None, Sequence[str]]:
    names: dict[int | None, list[str]] = {}
    for name, ref in sorted(read.refs.items()):
        names.setdefault(number_of(ref.get("snapshot-id")), []).append(name)
    return names


def _snapshot(read: ReadTable, snapshot: Mapping[str, Any], names: Mapping[int | None, Sequence[str]]) -> ShownSnapshot:
    number, summary = number_of(snapshot.get("snapshot-id")), snapshot.get("summary")
    told = _texts(summary)
    return ShownSnapshot(
        snapshot_id=str(number),
        parent_id=text_of_number(snapshot.get("parent-snapshot-id")),
        sequence_number=text_of_number(snapshot.get("sequence-number")),
        time=_time(snapshot.get("timestamp-ms")),
        operation=told.pop("operation", None),
        summary=told,
        schema_id=number_of(snapshot.get("schema-id")),
        manifest_list=_text(snapshot.get("manifest-list")),
        refs=list(names.get(number, ())),
        is_current=number == read.current_snapshot,
    )


def _snapshot_order(snapshot: Mapping[str, Any]) -> tuple[int, int, int]:
    named = (number_of(snapshot.get(name)) for name in ("sequence-number", "timestamp-ms", "snapshot-id"))
    sequence, time, number = (each or 0 for each in named)
    return sequence, time, number


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> dict[str, str]:
    """The texts of an object; a document may hold anything."""
    return {name: str(each) for name, each in value.items()} if isinstance(value, Mapping) else {}


def _time(value: object) -> str | None:
    millis = number_of(value)
    return None if millis is None or not 0 <= millis < _LATEST_MILLIS else as_text(Micros(millis * 1000))
