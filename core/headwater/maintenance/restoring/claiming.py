"""Claims of tables that come back: taken anew, before the commit that brings them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from headwater.catalogs import (
    CONTENT,
    Claim,
    Claims,
    ContentKey,
    ContentType,
    ContentValue,
    IcebergTable,
    content_ids,
    normalise_location,
)
from headwater.commits import Head
from headwater.errors import RefusedError
from headwater.maintenance.restoring.differing import Difference
from headwater.store import RealmStore

__all__ = ["claim_tables"]

_METADATA = "metadata"


def claim_tables(
    rows: RealmStore, catalog_id: str, found: Sequence[Difference], then: Head | None, *, fence: Callable[[], None]
) -> dict[bytes, str]:
    """Take the claims of the Iceberg tables that these differences bring back, in batches.

    then          the commit whose state is wanted: tables that shared files in it share them again
    returns       the keys that cannot come back, because others have their files by now, each with the reason
    """
    refused: dict[bytes, str] = {}
    coming = [one for one in found if _comes_back(one)]
    batch = rows.settings.import_batch
    together: set[UUID] | None = None
    for start in range(0, len(coming), batch):
        part = coming[start : start + batch]
        wishes = {one.key: claim for one, claim in zip(part, _claims(rows, catalog_id, part), strict=True) if claim is not None}
        conflicts = Claims(rows).take(list(wishes.values()), fence=fence) if wishes else ()
        if conflicts and together is None:
            together = set() if then is None else set(content_ids(then))
        keys = {claim: key for key, claim in wishes.items()}
        for conflict in conflicts:
            owner = conflict.owner
            if owner.catalog_id != catalog_id or owner.content_id not in (together or ()):
                key = keys[conflict.claim]
                refused[key] = f"{ContentKey.from_index(key)} stays away: {conflict}"
    return refused


def _comes_back(one: Difference) -> bool:
    """A table that is put where it was not, or where another one is."""
    if one.index_name != CONTENT or one.then is None:
        return False
    then = ContentValue.decode(one.then)
    if then.type is not ContentType.ICEBERG_TABLE:
        return False
    return one.now is None or ContentValue.decode(one.now).content_id != then.content_id


def _claims(rows: RealmStore, catalog_id: str, part: Sequence[Difference]) -> list[Claim | None]:
    values = [ContentValue.decode(one.then) for one in part if one.then is not None]
    tables = rows.read_many([value.object_id for value in values], IcebergTable)
    return [
        None if table is None or not _is_place(_folder(table)) else _claim(catalog_id, value, table)
        for value, table in zip(values, tables, strict=True)
    ]


def _claim(catalog_id: str, value: ContentValue, table: IcebergTable) -> Claim:
    return Claim(catalog_id, value.content_id, _folder(table), _uuid(table.table_uuid))


def _is_place(folder: str) -> bool:
    """Who commits a table may say anything of where it lies."""
    try:
        normalise_location(folder)
    except RefusedError:
        return False
    return True


def _folder(table: IcebergTable) -> str:
    """Where a table lies: the folder of its metadata files, or the one above where that has the usual name."""
    folder = table.metadata_location.rpartition("/")[0]
    above, _, last = folder.rpartition("/")
    return above if last == _METADATA else folder


def _uuid(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
