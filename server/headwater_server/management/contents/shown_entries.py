"""Entries as answers show them, with what their contents say to whoever may read those."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalogs import ContentEntry, ContentKey, IcebergTable, IcebergView
from headwater.catalogs.content import ContentValue, type_text
from headwater_server.management.contents.content_shapes import CatalogEntryShown
from headwater_server.management.contents.contents_reader import ContentsReader
from headwater_server.nessie.shown_contents import filter_entries, read_shown_contents


def entry_bodies(reader: ContentsReader, entries: Sequence[ContentEntry], *, with_details: bool) -> list[CatalogEntryShown]:
    """Some entries that the caller may list."""
    bodies = [entry_body(entry.key, entry.value) for entry in entries]
    if not with_details:
        return bodies
    contents = read_shown_contents(reader.seen, [(entry.key, entry.value) for entry in entries])
    return [entry_body(entry.key, entry.value, content) for entry, content in zip(entries, contents, strict=True)]


def entry_body(key: ContentKey, value: ContentValue, content: object = None) -> CatalogEntryShown:
    """What stands at a key, with what a content says that was read."""
    table = content if isinstance(content, IcebergTable) else None
    view = content if isinstance(content, IcebergView) else None
    held = table or view
    return CatalogEntryShown(
        key=list(key.elements),
        name=str(key),
        type=type_text(value.type),
        content_id=str(value.content_id),
        metadata_location=None if held is None else held.metadata_location,
        snapshot_id=None if table is None or table.snapshot_id < 0 else str(table.snapshot_id),
        schema_id=None if held is None else held.schema_id,
    )


def find_entry_body(reader: ContentsReader, key: ContentKey) -> CatalogEntryShown | None:
    """What stands at a key, with its details; None where nothing does that the caller may list."""
    value = reader.seen.state.find_value(key)
    listed = (
        [] if value is None else [each for each in filter_entries(reader.seen, [ContentEntry(key, value)]) if each is not None]
    )
    return next(iter(entry_bodies(reader, listed, with_details=True)), None)
