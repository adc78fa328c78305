"""The places of a catalog whose files are looked at, and those that yield nothing for reasons that the store itself knows.

claims of home tables            a place each, and further ones where they write besides
stated places of home tables     as the documents at the heads of branches have them: claims may be older
prefixes                         what ``spec.files.places`` gives to the catalog
claims of guests                 places, too, so that nothing in them is taken for another place's; they yield nothing
claims of others                 of another catalog or realm, or of a file table: a place that overlaps one yields nothing
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from headwater.catalogs.catalog_definition import CatalogDefinition
from headwater.catalogs.content import ContentKey, ContentType, ContentValue
from headwater.catalogs.content_operations import CONTENT, IDS, index_at, stored_metadata_of
from headwater.catalogs.registry import RefKind, listed_refs, read_ref_names
from headwater.catalogs.table_claims import BY_LOCATION, BY_UUID, CLAIMS, ClaimOwner, stored_places
from headwater.commits import Head, read_head
from headwater.errors import ExpiredError, HeadwaterError, NotFoundError
from headwater.files import list_file_tables
from headwater.index import Index
from headwater.lake_files.file_reasons import PlaceReason
from headwater.lake_files.lake_file_values import BlockedPlace, TablePlace
from headwater.lake_files.path_keys import strict_key
from headwater.lake_files.place_index import EVERYWHERE, PlaceIndex
from headwater.realms import RealmRegistry
from headwater.store import ObjectId, RealmReader, RealmStore, Store

_READ_AT_ONCE = 300


@dataclass(slots=True)
class PlaceSurvey:
    """The places of a catalog, by strict location, and what keeps some of them from yielding anything."""

    places: dict[str, TablePlace] = field(default_factory=dict)
    blocked: list[BlockedPlace] = field(default_factory=list)

    def make_index(self, territory: Iterable[str]) -> PlaceIndex:
        return PlaceIndex(self.places.values(), [*territory, *self.places])


def survey_places(
    store: Store,
    rows: RealmStore,
    definition: CatalogDefinition,
    *,
    is_home: Callable[[UUID], bool],
    prefixes: Sequence[str] = (),
) -> PlaceSurvey:
    """Survey the places of a catalog.

    is_home       whether a table is one of the catalog's own
    prefixes      given to the catalog, besides those of its tables
    raises        what reading the realm raises; another realm that cannot be read is told as a block
    """
    survey = PlaceSurvey()
    others: list[tuple[str, str]] = []
    claims = _claims(rows)
    uuids = _uuids(claims)
    for location, owner in _claimed(claims):
        if owner.catalog_id != definition.id:
            others.append((location, f"it is claimed by catalog {owner.catalog_id} of realm {rows.realm!r}, or being purged"))
            continue
        _add(survey, definition, location, owner.content_id, uuids.get(owner.content_id))
        if not is_home(owner.content_id):
            survey.blocked.append(BlockedPlace(location=location, code=PlaceReason.GUEST, detail=f"table {owner.content_id}"))
    for key, content_id, location in _stated(rows, definition, is_home):
        _add(survey, definition, location, content_id, uuids.get(content_id), key=str(key))
    for prefix in prefixes:
        _add(survey, definition, prefix, None, None, key=prefix)
    others += _of_file_tables(rows)
    others += _of_other_realms(store, rows, survey.blocked)
    survey.blocked += _shared(survey.places, others)
    return survey


def _add(
    survey: PlaceSurvey,
    definition: CatalogDefinition,
    location: str,
    content_id: UUID | None,
    uuid: str | None,
    *,
    key: str = "",
) -> None:
    strict = strict_key(location)
    strict = None if strict is None else strict.rstrip("/")
    if strict is None or strict.count("/") < 3:  # a whole bucket, or a whole disk, is nobody's place
        return
    known = survey.places.get(strict)
    if (
        known is None
        or (known.content_id is None and content_id is not None)
        or (known.content_id == content_id and not known.key)
    ):
        survey.places[strict] = TablePlace(
            location=strict, catalog_id=definition.id, content_id=content_id, table_uuid=uuid, key=key
        )


def _claims(rows: RealmReader) -> Head | None:
    try:
        return read_head(rows, CLAIMS, fresh=True)
    except NotFoundError:
        return None  # a realm that is not there yet


def _claimed(claims: Head | None) -> Iterator[tuple[str, ClaimOwner]]:
    if claims is not None:
        for key, value in claims.index(BY_LOCATION).range():
            yield key.decode(), ClaimOwner.from_value(value)


def _uuids(claims: Head | None) -> dict[UUID, str]:
    entries = () if claims is None else claims.index(BY_UUID).range()
    return {ClaimOwner.from_value(value).content_id: str(UUID(bytes=bytes(key))) for key, value in entries}


def _stated(
    rows: RealmStore, definition: CatalogDefinition, is_home: Callable[[UUID], bool]
) -> Iterator[tuple[ContentKey, UUID, str]]:
    """The places that the documents of home tables state at the heads of branches."""
    read: set[ObjectId] = set()
    for head in _heads(rows, definition):
        ids = index_at(head, IDS)
        wanted: dict[ObjectId, tuple[ContentKey, UUID]] = {}
        for key, value in index_at(head, CONTENT).range():
            content = ContentValue.from_value(value)
            if content.type not in (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW) or not is_home(content.content_id):
                continue
            wanted |= _documents(ids, key, content, read)
            if len(wanted) >= _READ_AT_ONCE:
                yield from _places_of(rows, wanted)
                wanted = {}
        yield from _places_of(rows, wanted)


def _documents(ids: Index, key: bytes, content: ContentValue, read: set[ObjectId]) -> dict[ObjectId, tuple[ContentKey, UUID]]:
    stored = stored_metadata_of(ids, content.content_id) if content.has_metadata else None
    if stored is None or stored in read:
        return {}
    read.add(stored)
    return {stored: (ContentKey.from_index(bytes(key)), content.content_id)}


def _places_of(rows: RealmStore, wanted: dict[ObjectId, tuple[ContentKey, UUID]]) -> Iterator[tuple[ContentKey, UUID, str]]:
    if wanted:
        for metadata_id, places in stored_places(rows, list(wanted)).items():
            for place in (places.location, *places.paths):
                if place is not None:
                    yield (*wanted[metadata_id], place)


def _heads(rows: RealmStore, definition: CatalogDefinition) -> Iterator[Head]:
    try:
        names = [name.reference(definition.id) for name in listed_refs(read_ref_names(rows, definition.id), RefKind.BRANCH)]
    except NotFoundError:
        return
    for name, row in zip(names, rows.find_rows(names), strict=True):
        if row is not None and row.deleted is None and row.pointer is not None:
            try:
                head = read_head(rows, name, fresh=True)
            except (ExpiredError, NotFoundError):
                continue  # deleted meanwhile
            if head is not None:
                yield head


def _of_file_tables(rows: RealmReader) -> list[tuple[str, str]]:
    try:
        tables = list_file_tables(rows)
    except NotFoundError:
        return []
    return [(table.location, f"the file table {table.name} of realm {rows.realm!r} lies there") for table in tables.complete()]


def _of_other_realms(store: Store, rows: RealmStore, blocked: list[BlockedPlace]) -> list[tuple[str, str]]:
    others = []
    for realm in RealmRegistry(store).list_realms():
        if realm.key == rows.key:
            continue
        theirs = store.rows(realm.id, realm.key)
        try:
            others += [(location, f"realm {realm.id!r} has claimed {location}") for location, _ in _claimed(_claims(theirs))]
            others += _of_file_tables(theirs)
        except HeadwaterError as fault:
            code = PlaceReason.REFERRER_UNREADABLE
            blocked.append(BlockedPlace(location=EVERYWHERE, code=code, detail=f"realm {realm.id!r}: {fault}"))
    return others


def _shared(places: Collection[str], others: Iterable[tuple[str, str]]) -> list[BlockedPlace]:
    """The blocks of others' places that equal, enclose or lie within one of ours."""
    ordered = sorted(f"{place}/" for place in places)
    index = PlaceIndex([TablePlace(location=place, catalog_id="") for place in places])
    blocked = []
    for location, detail in others:
        where = (strict_key(location) or location).rstrip("/")
        at = bisect_left(ordered, f"{where}/")
        is_around = at < len(ordered) and ordered[at].startswith(f"{where}/")
        if is_around or index.find_place(f"{where}/x") is not None:
            blocked.append(BlockedPlace(location=where, code=PlaceReason.PLACE_SHARED, detail=detail))
    return blocked
