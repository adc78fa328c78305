"""What the collector may touch: the realms that can be collected, the references that they list, and how long each is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from headwater.catalogs import reference_names
from headwater.clock import Micros
from headwater.commits import PINS
from headwater.errors import RefusedError, UnreadableError
from headwater.quantities import sound_count, sound_seconds
from headwater.realms import REALM_REFERENCES, REALMS, KeptHistory, Realm, Realms, RealmState, Retention
from headwater.settings import Settings
from headwater.store import SYSTEM_REALM, RealmStore, Reference, Store
from headwater.tasks import REFERENCE as TASKS

__all__ = ["RUNS", "Listed", "Policy", "Scope", "check_collectable", "scope_of"]

RUNS = "maintenance-runs"
_NEVER = Micros(0)
REMEMBERED_BYTES = 16 * 1024 * 1024
"""What one collection remembers of what it has read: branches share most of their history."""


class Listed(NamedTuple):
    """The name of a reference that is, or was, or is about to be. ``listed`` is 0 for names that every realm has.

    called        how people, and patterns of retention, call it where that is not its name
    """

    name: str
    is_content: bool = False
    listed: Micros = Micros(0)
    called: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How much history stays: by the first pattern that covers a reference, otherwise by what it is."""

    content_commits: int
    content_age_seconds: float
    reference_commits: int
    patterns: tuple[KeptHistory, ...] = ()

    def kept_of(self, listed: Listed) -> tuple[int, float]:
        """Commits, and the age in seconds until which all stay; 0 for no age. Pins keep no history."""
        if listed.name == PINS:
            return 0, 0.0
        for kept in self.patterns:
            if kept.covers(listed.called or listed.name):
                return kept.commits, kept.age_seconds
        if listed.is_content:
            return self.content_commits, self.content_age_seconds
        return self.reference_commits, 0.0


@dataclass(frozen=True, slots=True)
class Scope:
    """One realm as its collector sees it: a handle that may write, and what is kept.

    loaded        when the realm was imported, with heads and no history before them; 0 for never
    """

    rows: RealmStore
    policy: Policy
    is_system: bool
    loaded: Micros = _NEVER

    def listed(self) -> list[Listed]:
        """Every name, read from the database now."""
        if self.is_system:
            return [Listed(REALMS), Listed(TASKS), Listed(RUNS)]
        return [
            *(Listed(name) for name in (*REALM_REFERENCES, PINS)),
            *(Listed(*entry) for entry in reference_names(self.rows)),
        ]

    def check_complete(self, found: Iterable[tuple[Listed, Reference]]) -> None:
        """Pass if none of the references is lost that a realm has from its bootstrap on. What only it held would be garbage.

        raises        UnreadableError
        """
        lost = set() if self.is_system else set(REALM_REFERENCES) - {entry.name for entry, _ in found}
        if lost:
            raise UnreadableError(
                f"realm {self.rows.realm!r} has no reference {', '.join(sorted(lost))}, which every realm has: it was lost; nothing of the"
                " realm is deleted until it is restored from a backup of the database"
            )

    def found(self) -> list[tuple[Listed, Reference]]:
        """Those names that have a row, tombstones included, each with it."""
        listed = self.listed()
        rows = self.rows.find_rows([entry.name for entry in listed])
        return [(entry, row) for entry, row in zip(listed, rows, strict=True) if row is not None]


def check_collectable(store: Store, realm_id: str) -> int:
    """The key of a realm that can be collected now, 0 for the system realm; raises as ``scope_of`` does."""
    scope_of(store, realm_id)
    return 0 if realm_id == SYSTEM_REALM else Realms(store).read(realm_id).key


def scope_of(store: Store, realm_id: str) -> Scope:
    """The system realm, or a realm that serves or could serve.

    raises        MissingError for no such realm; RefusedError in any state but ACTIVE and INACTIVE
    """
    if realm_id == SYSTEM_REALM:
        return Scope(store.system.without_cache(budget_bytes=REMEMBERED_BYTES), _policy(None, store.settings), True)
    realms = Realms(store)
    realm = realms.read(realm_id)
    if realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
        raise RefusedError(f"realm {realm_id!r} is {realm.state}: only ACTIVE and INACTIVE realms are collected")
    rows = realms.open_for(realm_id, realm.state).without_cache(budget_bytes=REMEMBERED_BYTES)
    return Scope(rows, _policy(realm, store.settings), False, realm.entered.get(RealmState.LOADING.value, _NEVER))


def _policy(realm: Realm | None, settings: Settings) -> Policy:
    wanted = Retention() if realm is None else realm.retention
    commits, age = settings.content_commits, settings.content_age_seconds
    return Policy(
        content_commits=sound_count(wanted.content_commits, commits),
        content_age_seconds=sound_seconds(wanted.content_age_seconds, age),
        reference_commits=sound_count(wanted.reference_commits, settings.reference_commits),
        patterns=tuple(
            KeptHistory(
                pattern=kept.pattern,
                commits=sound_count(kept.commits, commits),
                age_seconds=sound_seconds(kept.age_seconds, age),
            )
            for kept in wanted.references
        ),
    )
