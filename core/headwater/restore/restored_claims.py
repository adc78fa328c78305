"""Claims of restored tables: taken again before the commit that brings the tables back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from headwater.catalogs import (
    CONTENT,
    IDS,
    ContentKey,
    ContentType,
    ContentValue,
    IcebergTable,
    StoredPlaces,
    TableClaim,
    TableClaims,
    content_ids,
    normalise_location,
    stored_places,
)
from headwater.commits import Head
from headwater.errors import RefusedError
from headwater.restore.state_diff import StateDifference
from headwater.store import RealmStore

_METADATA = "metadata"


def claim_restored_tables(
    rows: RealmStore, catalog_id: str, found: Sequence[StateDifference], then: Head | None, *, fence: Callable[[], None]
) -> dict[bytes, str]:
    """Take the claims of the Iceberg tables that these differences bring back, in batches.

    then          the commit whose state is wanted: tables that shared files in it share them again
    returns       the keys that cannot be restored because others have claimed their files, each with the reason
    """
    refused: dict[bytes, str] = {}
    coming = [one for one in found if _comes_back(one)]
    batch = rows.settings.import_batch
    together: set[UUID] | None = None
    for start in range(0, len(coming), batch):
        part = coming[start : start + batch]
        wished = zip(part, _claims(rows, catalog_id, part, then), strict=True)
        wishes = {one.key: claim for one, claim in wished if claim is not None}
        conflicts = TableClaims(rows).take_claims(list(wishes.values()), fence=fence) if wishes else ()
        if conflicts and together is None:
            together = set() if then is None else set(content_ids(then))
        keys = {claim: key for key, claim in wishes.items()}
        for conflict in conflicts:
            owner = conflict.owner
            if owner.catalog_id != catalog_id or owner.content_id not in (together or ()):
                key = keys[conflict.claim]
                refused[key] = f"{ContentKey.from_index(key)} stays away: {conflict}"
    return refused


def _comes_back(one: StateDifference) -> bool:
    """Whether the table is put where none was, or where another one is."""
    if one.index_name != CONTENT or one.then is None:
        return False
    then = ContentValue.from_value(one.then)
    if then.type is not ContentType.ICEBERG_TABLE:
        return False
    return one.now is None or ContentValue.from_value(one.now).content_id != then.content_id


def _claims(rows: RealmStore, catalog_id: str, part: Sequence[StateDifference], then: Head | None) -> list[TableClaim | None]:
    values = [ContentValue.from_value(one.then) for one in part if one.then is not None]
    tables = rows.read_many([value.object_id for value in values], IcebergTable)
    places = _places(rows, then, [value.content_id for value in values if value.has_metadata])
    return [
        None if table is None else _claim(catalog_id, value.content_id, table, places.get(value.content_id))
        for value, table in zip(values, tables, strict=True)
    ]


def _places(rows: RealmStore, then: Head | None, content_ids: Sequence[UUID]) -> dict[UUID, StoredPlaces]:
    """The places of the tables whose metadata is stored with them."""
    if then is None or not content_ids:
        return {}
    stored = then.index(IDS).get_many([one.bytes for one in content_ids])
    metadata = {UUID(bytes=key): value.object_id for key, value in stored.items() if value.object_id is not None}
    places = stored_places(rows, list(metadata.values()))
    return {content_id: places[metadata_id] for content_id, metadata_id in metadata.items()}


def _claim(catalog_id: str, content_id: UUID, table: IcebergTable, places: StoredPlaces | None) -> TableClaim | None:
    """The claim of a table; None for a table without a location: its committer may claim any place."""
    location = places.location if places is not None and places.location is not None else _folder(table)
    if not _is_place(location):
        return None
    return TableClaim(catalog_id, content_id, location, _uuid(table.table_uuid), () if places is None else places.paths)


def _is_place(folder: str) -> bool:
    try:
        normalise_location(folder)
    except RefusedError:
        return False
    return True


def _folder(table: IcebergTable) -> str:
    """The location of a table without stored metadata: the folder of its metadata file, or its parent where the folder has the
    usual name.
    """
    folder = table.metadata_location.rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    return above if last == _METADATA else folder


def _uuid(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
