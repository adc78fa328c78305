"""One table, view or namespace as a caller reads it: what stands at its key, and its metadata document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headwater.access import Privilege, SecurableKind
from headwater.catalogs import Content, ContentKey, ContentValue, IcebergTable, IcebergView
from headwater.errors import CorruptionError, NotFoundError
from headwater.iceberg_catalog import NoSuchNamespaceError, NoSuchTableError, NoSuchViewError
from headwater.iceberg_catalog.lake_privileges import securable_kind
from headwater.iceberg_catalog.lake_values import decoded_document
from headwater_server.iceberg_rest.client_documents import client_text
from headwater_server.management.contents.contents_reader import ContentsReader

_MISSING = (NoSuchNamespaceError, NoSuchTableError, NoSuchViewError)


@dataclass(frozen=True)
class ReadTable:
    """What stands at a key of a reference, and may be read by the caller."""

    reader: ContentsReader
    key: ContentKey
    value: ContentValue

    @cached_property
    def content(self) -> Content:
        """The content itself; raises NotFoundError for one that only a newer release knows."""
        content = self.reader.seen.state.find_content(self.key)
        if content is None:
            raise NotFoundError(f"{self.key} on {self.reader.ref!r} is of a type that this release does not know")
        return content

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The metadata as clients get it; empty for what has none."""
        content, state, lake = self.content, self.reader.seen.state, self.reader.session.lake.lake
        if isinstance(content, IcebergTable):
            text = lake.tables.text_of(state, self.key, content)
        elif isinstance(content, IcebergView):
            text = lake.views.text_of(state, self.key, content)
        else:
            return {}
        return decoded_document(client_text(text))

    def objects(self, name: str) -> list[dict[str, Any]]:
        """The objects of a list in the document."""
        listed = self.document.get(name)
        return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []

    def number(self, name: str) -> int | None:
        return number_of(self.document.get(name))

    @property
    def current_snapshot(self) -> int | None:
        current = self.number("current-snapshot-id")
        return None if current is None or current < 0 else current

    @property
    def refs(self) -> Mapping[str, Mapping[str, Any]]:
        """The branches and tags of a table, by name."""
        refs = self.document.get("refs")
        if isinstance(refs, dict) and refs:
            return {name: ref for name, ref in refs.items() if isinstance(ref, dict)}
        current = self.current_snapshot
        return {} if current is None else {"main": {"type": "branch", "snapshot-id": current}}


def find_table(reader: ContentsReader, text: str, privileges: Mapping[SecurableKind, Privilege]) -> ReadTable:
    """What stands at a key, given as one text.

    privileges    that the caller needs on it, by its kind
    raises        NotFoundError in the same words for what is not there and for what the caller may not see; ForbiddenError
    """
    key = ContentKey.parse(text)
    missing = NotFoundError(f"there is no table, view or namespace {text[:500]!r} on {reader.ref!r}")
    value = reader.seen.state.find_value(key)
    if value is None:
        raise missing
    try:
        reader.seen.check_content(privileges[securable_kind(value.type)], key, value.content_id)
    except _MISSING:
        raise missing from None
    if reader.commit is None:
        raise CorruptionError(f"{text!r} stands in no commit")
    return ReadTable(reader, key, value)


def number_of(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of_number(value: object) -> str | None:
    number = number_of(value)
    return None if number is None else str(number)
