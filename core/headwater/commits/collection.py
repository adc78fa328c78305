"""What the collector tells those who move references: whether a sweep is on, and where history was last cut."""

from __future__ import annotations

from headwater.clock import Micros
from headwater.store import ObjectId, RealmStore, StoredObject, Versioned, fixed_id, object_type

__all__ = ["COLLECTION_ID", "Collection", "Cuts", "read_collection", "read_cuts"]

COLLECTION_ID = fixed_id(2)
"""Every realm keeps its collection record under this id."""


@object_type("collection", updateable=True)
class Collection(StoredObject, frozen=True, kw_only=True):
    """The last collection of a realm, while it runs and after.

    sweeping      rows may be deleted now: only a live HEAD may be pointed at
    owner         the task attempt that runs it, as text
    reader_cutoff what was HEAD after this moment was kept
    cuts          the Cuts object: how far each reference's history was kept; None when nothing was ever collected
    """

    sweeping: bool = False
    owner: str = ""
    reader_cutoff: Micros = Micros(0)
    writer_cutoff: Micros = Micros(0)
    cuts: ObjectId | None = None


@object_type("cuts")
class Cuts(StoredObject, frozen=True, kw_only=True):
    """By reference name, the time of the oldest commit that was kept. What is older is garbage, and stays garbage."""

    times: dict[str, Micros]


def read_collection(rows: RealmStore) -> Versioned[Collection] | None:
    """The realm's record, never from the cache; None when it was never collected."""
    return rows.find_versioned(COLLECTION_ID, Collection)


def read_cuts(rows: RealmStore, collection: Collection | None) -> dict[str, Micros]:
    if collection is None or collection.cuts is None:
        return {}
    return rows.read(collection.cuts, Cuts).times
