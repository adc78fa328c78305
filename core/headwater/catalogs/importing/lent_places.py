"""Places in which tables have files that are not their own: who takes such a place for a table would have its rows read by another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from headwater.catalogs.claims import Claim, places_around
from headwater.catalogs.iceberg import Found

__all__ = ["LentPlaces", "intrusions"]


class LentPlaces:
    """What the tables of an import, that are in the catalog by now, have elsewhere. Mostly there is nothing."""

    def __init__(self) -> None:
        self._folders: dict[bytes, list[tuple[str, str]]] = {}

    def note(self, tables: Iterable[Found]) -> None:
        for table in tables:
            for folder in table.elsewhere:
                for place in places_around(folder):
                    lent = self._folders.setdefault(place, [])
                    if (table.directory, folder) not in lent:
                        lent.append((table.directory, folder))

    def fault(self, claim: Claim) -> str:
        """Why a new table may not have a place: the table of another directory has files there. An empty text: it may."""
        for place in claim.places() if self._folders else ():
            for other, folder in self._folders.get(place, ()):
                if other != claim.location:
                    return f"the table in {other} has files in {folder}, which would be its place: drop that one, or exclude this one"
        return ""


def intrusions(wishes: Sequence[Claim], elsewhere: Mapping[UUID, Sequence[str]]) -> dict[UUID, str]:
    """Which of some tables have files in a place that another of them wants, by content id: the folder."""
    if not any(elsewhere.values()):
        return {}
    wanted: dict[bytes, set[UUID]] = {}
    for wish in wishes:
        for place in wish.places():
            wanted.setdefault(place, set()).add(wish.content_id)
    return {
        content_id: folder
        for content_id, folders in elsewhere.items()
        for folder in folders
        if any(wanted.get(place, set()) - {content_id} for place in places_around(folder))
    }
