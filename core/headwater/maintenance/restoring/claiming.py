"""Claims of tables that come back: taken anew, before the commit that brings them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from headwater.catalogs import CONTENT, Claim, Claims, ContentKey, ContentType, ContentValue, IcebergTable
from headwater.maintenance.restoring.differing import Difference
from headwater.store import RealmStore

__all__ = ["Claimed", "claim_tables"]

_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Claimed:
    """Which keys of the content cannot come back, because others have their files by now: by index key, with the reason."""

    refused: dict[bytes, str]


def claim_tables(rows: RealmStore, catalog_id: str, found: Sequence[Difference], *, fence: Callable[[], None]) -> Claimed:
    """Take the claims of the Iceberg tables that these differences bring back, in batches."""
    refused: dict[bytes, str] = {}
    coming = [one for one in found if _comes_back(one)]
    batch = rows.settings.import_batch
    for start in range(0, len(coming), batch):
        part = coming[start : start + batch]
        wishes = {one.key: claim for one, claim in zip(part, _claims(rows, catalog_id, part), strict=True) if claim is not None}
        if not wishes:
            continue
        by_claim = {claim: key for key, claim in wishes.items()}
        for conflict in Claims(rows).take(list(wishes.values()), fence=fence):
            key = by_claim[conflict.claim]
            refused[key] = f"{ContentKey.from_index(key)} stays away: {conflict}"
    return Claimed(refused)


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
        None if table is None else Claim(catalog_id, value.content_id, _folder(table), _uuid(table.table_uuid))
        for value, table in zip(values, tables, strict=True)
    ]


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
