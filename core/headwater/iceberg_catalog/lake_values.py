"""What goes into a lake's catalog, and what comes out: keys, and the parts of Iceberg's documents as decoded JSON, never checked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from headwater.catalogs import ContentKey
from headwater.errors import CorruptionError

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A version of a table or view.

    metadata_location   the file with the same document
    text                the metadata document as JSON; hand it on as it is
    etag                changes if and only if the version does; what ``peek`` returns
    """

    key: ContentKey
    content_id: UUID
    metadata_location: str
    text: bytes
    etag: str

    @property
    def document(self) -> dict[str, Any]:
        """The metadata document, decoded at each call."""
        return decoded_document(self.text)


@dataclass(frozen=True, slots=True)
class LoadedTable(_Loaded):
    """A version of a table, as the catalog holds it."""


@dataclass(frozen=True, slots=True)
class LoadedView(_Loaded):
    """A version of a view, as the catalog holds it."""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A table that is in no catalog yet: its files can be written, and a commit with ``assert-create`` creates it.

    metadata_location   where a version of it would lie; nothing is there, and the commit chooses another name
    """

    key: ContentKey
    metadata_location: str
    text: bytes

    @property
    def document(self) -> dict[str, Any]:
        """The metadata document, decoded at each call."""
        return decoded_document(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCreation:
    """A wish for a new table, in the shapes of Iceberg's REST protocol.

    partition_spec, sort_order   None: unpartitioned, unsorted
    location                     None: below the namespace's location, or the warehouse's
    """

    key: ContentKey
    schema: Json
    partition_spec: Json | None = None
    sort_order: Json | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCreation:
    """A wish for a new view, in the shapes of Iceberg's REST protocol; ``location`` as for a table."""

    key: ContentKey
    schema: Json
    view_version: Json
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None


@dataclass(frozen=True, slots=True)
class TableCommit:
    """Updates of a table, and what must hold for them to be applied, as Iceberg's REST protocol writes them."""

    key: ContentKey
    requirements: Sequence[Json]
    updates: Sequence[Json]


@dataclass(frozen=True, slots=True)
class ViewCommit:
    """Updates of a view, and what must hold for them to be applied, as Iceberg's REST protocol writes them."""

    key: ContentKey
    requirements: Sequence[Json]
    updates: Sequence[Json]


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Keys directly below a namespace, in their order. ``next_token`` None: there are no more.

    content_ids   of tables and views: what stands at the keys, one for each
    """

    keys: tuple[ContentKey, ...]
    next_token: str | None = None
    content_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class PropertyChanges:
    """The properties that a request set and removed, and those that it wanted to remove and that were not there; sorted."""

    updated: tuple[str, ...]
    removed: tuple[str, ...]
    missing: tuple[str, ...]


def decoded_document(text: bytes) -> dict[str, Any]:
    """Decode the JSON text of a metadata document; raises CorruptionError for what is no JSON object, with nothing of it."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise CorruptionError(
            f"a metadata document of {len(text)} bytes is no JSON object: look at the table's history, and at its file"
        )
    return document
