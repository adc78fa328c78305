"""How far an import is: kept in the realm that it makes, so that whoever goes on finds it there, and only there."""

from __future__ import annotations

from headwater.store import StoredObject, fixed_id, object_type

__all__ = ["LOAD_PROGRESS_ID", "LoadProgress"]

LOAD_PROGRESS_ID = fixed_id(3)
"""A realm that is being loaded keeps its progress under this id."""


@object_type("load-progress", updateable=True)
class LoadProgress(StoredObject, frozen=True, kw_only=True):
    """An import under way.

    archive       SHA-256 of the archive up to its last block, which tells one archive from any other
    block         number of the last block whose objects were written; 0: none, for that one has none
    """

    archive: str
    block: int = 0
