"""The realm's collection record in the hands of a run: published before anything is deleted, withdrawn after it."""

from __future__ import annotations

import msgspec
import structlog

from headwater.commits import COLLECTION_ID, CollectionRecord
from headwater.errors import BeatenError, HeadwaterError, UnavailableError
from headwater.maintenance.garbage.pacing import Watch
from headwater.store import RealmStore, Versioned

__all__ = ["Published", "give_up"]

_log = structlog.get_logger()


class Published:
    """Every change is a swap of what this run wrote last: who was overtaken by another run finds out, and stops."""

    def __init__(self, rows: RealmStore, seen: Versioned[CollectionRecord] | None, watch: Watch) -> None:
        self._rows = rows
        self._seen = seen
        self._watch = watch

    @property
    def value(self) -> CollectionRecord | None:
        """The record as it was seen or written last."""
        return None if self._seen is None else self._seen.value

    def replace(self, record: CollectionRecord) -> None:
        """Write the record.

        raises        UnavailableError when another run has changed it since; FencedError
        """
        self._watch.check()
        try:
            if self._seen is None:
                self._seen = self._rows.insert(COLLECTION_ID, record)
            else:
                self._seen = self._rows.update(self._seen, record)
        except BeatenError as beaten:
            found = self._rows.find_versioned(COLLECTION_ID, CollectionRecord)
            owner = "" if found is None else found.value.owner
            raise UnavailableError(
                f"another collection of realm {self._rows.realm!r} is under way or went on with this one"
                f" ({owner or 'no owner named'}): try again after it"
            ) from beaten

    def withdraw(self) -> None:
        """Take the flag away. When that fails it stays on until the next run, which harms only those who want an old commit."""
        if self._seen is None:
            return
        try:
            self._seen = self._rows.update(self._seen, _ended(self._seen.value))
        except HeadwaterError as fault:
            _log.warning("the sweep's flag stays on until the next run", realm=self._rows.realm, fault=str(fault))


def give_up(rows: RealmStore, owner: str) -> None:
    """Withdraw the flag of a sweep that nobody is to go on with; another owner's stays."""
    found = rows.find_versioned(COLLECTION_ID, CollectionRecord)
    if found is not None and found.value.sweeping and found.value.owner == owner:
        rows.update(found, _ended(found.value))


def _ended(record: CollectionRecord) -> CollectionRecord:
    return msgspec.structs.replace(record, sweeping=False, sweep=None)
