"""A realm as it was at one moment: which references there were, and at which commits, all of them pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from headwater.catalogs import reference_text
from headwater.catalogs.listed import catalog_ids, names_in, own_references, relisted
from headwater.catalogs.names import CATALOGS, OwnPart, own_reference
from headwater.clock import Micros, as_text
from headwater.commits import AbsentReference, Head, no_state_error, pin_commits, read_collection, state_as_of
from headwater.errors import RefusedError
from headwater.maintenance.archives.export_window import check_known, readable_from
from headwater.maintenance.archives.fencing import paced
from headwater.realms import FILLED_REFERENCES, REALM_REFERENCES
from headwater.store import ObjectId, RealmStore

__all__ = ["Snapshot", "check_moment", "is_swept", "take_snapshot"]

_REMEMBERED_BYTES = 32 * 1024 * 1024
_NAMES = 500


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``pointers``: the references that there were at ``time``, each with its newest commit by then."""

    time: Micros
    pointers: Mapping[str, ObjectId | None]

    @property
    def commits(self) -> dict[ObjectId, list[str]]:
        """The commits, each with the references that were at it."""
        found: dict[ObjectId, list[str]] = {}
        for name, commit in self.pointers.items():
            if commit is not None:
                found.setdefault(commit, []).append(name)
        return found


def take_snapshot(rows: RealmStore, time: Micros, *, owner: ObjectId, fence: Callable[[], None]) -> Snapshot:
    """Find out what was at ``time``, and pin it for the task ``owner``.

    rows          a handle that may write: the pins
    raises        RefusedError for a time that is too late, or that cannot be told; MissingError for one before the realm was filled;
                  ExpiredError for one that is forgotten; UnavailableError while a collection sweeps; UnreadableError for damage
    """
    looked = rows.without_cache(budget_bytes=_REMEMBERED_BYTES)
    snapshot = _Looking(looked, time, paced(fence, rows.clock)).look()
    fence()
    pin_commits(rows, owner, snapshot.commits, fence=fence)
    check_known(rows, time, now=rows.clock.now())
    return snapshot


@dataclass(slots=True)
class _Looking:
    rows: RealmStore
    time: Micros
    fence: Callable[[], None]
    pointers: dict[str, ObjectId | None] = field(default_factory=dict)

    def look(self) -> Snapshot:
        check_moment(self.rows, self.time)
        heads = self._look_at(REALM_REFERENCES)
        if any(name not in heads for name in FILLED_REFERENCES):
            raise no_state_error(
                self.rows.realm, "the whole", self.time, "it was filled later, its bootstrap was under way; name a later time"
            )
        catalogs = heads.get(CATALOGS)
        if catalogs is not None:
            heads = self._look_at(own_references(catalogs))
            for catalog_id in catalog_ids(catalogs):
                refs = heads.get(own_reference(catalog_id, OwnPart.REFS))
                if refs is not None:
                    self._look_at_names(refs, catalog_id)
        return Snapshot(self.time, self.pointers)

    def _look_at_names(self, refs: Head, catalog_id: str) -> None:
        newest = self.rows.find_row(own_reference(catalog_id, OwnPart.REFS))
        again = {}
        if newest is not None and newest.pointer is not None:
            again = dict(relisted(self.rows, newest.pointer, catalog_id, since=self.time))
        self._look_at(names_in(refs, catalog_id), again)

    def _look_at(self, names: list[str] | tuple[str, ...], again: Mapping[str, Micros] | None = None) -> dict[str, Head]:
        """Note what these references were at; returns the commits of those that had one."""
        heads = {}
        for start in range(0, len(names), _NAMES):
            some = names[start : start + _NAMES]
            for name, row in zip(some, self.rows.find_rows(some), strict=True):
                self.fence()
                what, since = partial(reference_text, self.rows, name), (again or {}).get(name)
                head = state_as_of(self.rows, row, self.time, what=what, relisted=since, fence=self.fence)
                if isinstance(head, AbsentReference):
                    continue
                self.pointers[name] = None if head is None else head.id
                if head is not None:
                    heads[name] = head
        return heads


def is_swept(rows: RealmStore) -> bool:
    """Whether a collection of the realm sweeps now, or was broken off while it did."""
    record = read_collection(rows)
    return record is not None and record.value.sweeping


def check_moment(rows: RealmStore, time: Micros) -> None:
    """Pass if a moment is over everywhere, and the realm was filled by then.

    raises        RefusedError with the time from which on it works · MissingError: it was filled later · ExpiredError: it is forgotten
    """
    now, settings = rows.clock.now(), rows.settings
    ready = readable_from(time, settings)
    if now < ready:
        raise RefusedError(
            f"realm {rows.realm!r} as of {as_text(time)} can be read from {as_text(ready + 999_999)} on (--wait waits): until then a"
            " commit of that time may still be under way"
        )
    there = rows.find_rows(REALM_REFERENCES)
    born = max((row.created for row in there if row is not None), default=Micros(0))
    if born > time:
        filled = as_text(readable_from(born, settings) + 999_999)
        why = f"it was filled later, at {as_text(born)}, and can be exported from {filled} on (--wait waits)"
        raise no_state_error(rows.realm, "the whole", time, why)
    check_known(rows, time, now=now)
