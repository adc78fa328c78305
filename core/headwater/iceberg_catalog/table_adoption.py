"""Tables and views of a reference that are guests of their catalog, and their adoption.

A catalog is the home of what it created, and of what it adopts. Others may still write what it only imported or registered, so nothing
of a guest is ever let go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headwater.catalogs import (
    ContentEntry,
    ContentKey,
    ContentType,
    IcebergTable,
    IcebergView,
    StoredPlaces,
    TableClaim,
    find_homes,
    stored_places,
)
from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg_catalog.branch_session import BranchState
from headwater.iceberg_catalog.lake_catalog import IcebergCatalog
from headwater.iceberg_catalog.lake_values import decoded_document
from headwater.iceberg_catalog.lake_versions import LakeVersions, stored_uuid
from headwater.store import ObjectId, id_text

_TOGETHER = 300
_KINDS = (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW)


@dataclass(frozen=True, slots=True)
class TableHome:
    """A table or view of a reference, and whether it is at home in the catalog."""

    entry: ContentEntry
    is_home: bool

    @property
    def key(self) -> ContentKey:
        return self.entry.key


@dataclass(slots=True)
class TableAdoption:
    """What came of an adoption.

    adopted       keys of what is at home from now on
    refused       why others stay guests, by key
    """

    adopted: list[ContentKey] = field(default_factory=list)
    refused: dict[ContentKey, str] = field(default_factory=dict)


def list_table_homes(
    lake: IcebergCatalog, *, keys: Sequence[ContentKey] | None = None, under: ContentKey | None = None
) -> Iterator[TableHome]:
    """List the tables and views of a reference, in the order of their keys.

    keys          only these
    under         only what is below this namespace
    raises        NotFoundError for a key at which nothing stands; RefusedError where it is no Iceberg table or view
    """
    session = lake.session
    state, homes = session.state(), find_homes(session.rows, session.id)
    for entry in _entries_below(state, under) if keys is None else _entries_at(state, keys):
        if entry.type in _KINDS:
            yield TableHome(entry, entry.content_id in homes)


def _entries_below(state: BranchState, under: ContentKey | None) -> Iterator[ContentEntry]:
    token: str | None = None
    while state.head is not None:
        page = state.catalog.entries(id_text(state.head.id), prefix=under, page_token=token)
        yield from page.entries
        token = page.next_token
        if token is None:
            return


def _entries_at(state: BranchState, keys: Sequence[ContentKey]) -> Iterator[ContentEntry]:
    for key in keys:
        value = state.find_value(key)
        if value is None:
            raise NotFoundError(f"{state.catalog.label} has nothing at {key}")
        if value.type not in _KINDS:
            raise RefusedError(f"{key} is no Iceberg table or view: only these have a home")
        yield ContentEntry(key, value)


def adopt_guests(lake: IcebergCatalog, guests: Sequence[TableHome]) -> TableAdoption:
    """Make tables and views at home in their catalog: from then on it alone decides what becomes of their snapshots and files.

    Their places are claimed with that, where they are not yet. What is at home already stays so.

    raises        UnknownOutcomeError where some may be adopted; it can be repeated
    """
    adoption, state = TableAdoption(), lake.session.state()
    for start in range(0, len(guests), _TOGETHER):
        some = [guest.entry for guest in guests[start : start + _TOGETHER]]
        claims = dict(_claims(lake, state, some, adoption))
        conflicts = lake.session.claims.adopt_tables(list(claims.values())) if claims else ()
        keys = {claim: key for key, claim in claims.items()}
        for conflict in conflicts:
            adoption.refused[keys[conflict.claim]] = f"{conflict}: give it files of its own, or drop one of the two"
        adoption.adopted += [key for key in claims if key not in adoption.refused]
    return adoption


def _claims(
    lake: IcebergCatalog, state: BranchState, entries: Sequence[ContentEntry], adoption: TableAdoption
) -> Iterator[tuple[ContentKey, TableClaim]]:
    contents = state.find_many([entry.key for entry in entries])
    metadata = {entry.key: state.find_metadata_id(entry.content_id) for entry in entries}
    places = stored_places(state.rows, [stored for stored in metadata.values() if stored is not None])
    for key, content in contents.items():
        if not isinstance(content, IcebergTable | IcebergView) or content.id is None:
            adoption.refused[key] = "it was replaced meanwhile"
            continue
        try:
            yield key, _claim(lake, state, key, content, _known(places, metadata.get(key)))
        except (NotFoundError, RefusedError) as fault:
            adoption.refused[key] = str(fault)
    adoption.refused |= {entry.key: "it was dropped meanwhile" for entry in entries if entry.key not in contents}


def _known(places: dict[ObjectId, StoredPlaces], stored: ObjectId | None) -> StoredPlaces | None:
    return None if stored is None else places[stored]


def _claim(
    lake: IcebergCatalog, state: BranchState, key: ContentKey, content: IcebergTable | IcebergView, places: StoredPlaces | None
) -> TableClaim:
    """The claim of a table or view, from its file where the catalog does not store its document."""
    content_id, versions = _content_id(content), _versions(lake, content)
    if places is None:
        return versions.claim_of(content_id, decoded_document(versions.text_of(state, key, content)))
    if places.location is None:
        raise RefusedError(f"the location of {key} cannot be claimed: it is no absolute location of at most 500 bytes")
    return TableClaim(lake.session.id, content_id, places.location, stored_uuid(content), places.paths)


def _content_id(content: IcebergTable | IcebergView) -> UUID:
    assert content.id is not None
    return content.id


def _versions(lake: IcebergCatalog, content: IcebergTable | IcebergView) -> LakeVersions[Any, Any]:
    return lake.tables if isinstance(content, IcebergTable) else lake.views
