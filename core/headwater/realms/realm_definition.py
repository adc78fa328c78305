"""The definition of a realm, which is immutable and replaced as a whole with every change; its states, and the legal moves between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal, TypedDict

import msgspec

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.settings import Settings, check_count, check_seconds, sound_seconds
from headwater.store import RealmId, RealmKey, StoredObject, StoredPart, object_type


class RealmState(StrEnum):
    """The state of a realm. Only an ``ACTIVE`` realm serves users."""

    CREATED = "CREATED"
    INITIALIZING = "INITIALIZING"
    LOADING = "LOADING"
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    PURGING = "PURGING"
    PURGED = "PURGED"


_S = RealmState
LEGAL_MOVES: Mapping[RealmState, tuple[RealmState, ...]] = {
    _S.CREATED: (_S.INITIALIZING, _S.LOADING, _S.PURGING),
    _S.INITIALIZING: (_S.ACTIVE, _S.INACTIVE, _S.PURGING),
    _S.LOADING: (_S.ACTIVE, _S.INACTIVE, _S.PURGING),
    _S.ACTIVE: (_S.INACTIVE,),
    _S.INACTIVE: (_S.ACTIVE, _S.PURGING),
    _S.PURGING: (_S.PURGED,),
    _S.PURGED: (),
}


def check_move(realm_id: str, source: RealmState, *, to: RealmState) -> None:
    """Pass if a realm may go from ``source`` to ``to``.

    raises        RefusedError that names the moves which are legal instead
    """
    if to not in LEGAL_MOVES[source]:
        raise RefusedError(f"realm {realm_id!r} cannot go from {source} to {to}: {_advice(source)}")


def _advice(source: RealmState) -> str:
    legal = LEGAL_MOVES[source]
    if not legal:
        return f"a {source} realm can only be deleted"
    return f"from {source} it can go to " + " or ".join(legal)


DeletionPolicy = Literal["Retain", "Purge"]
DriftPolicy = Literal["Correct", "Report"]


class KeptHistory(StoredPart, frozen=True, kw_only=True):
    """How much history the references with a name like ``pattern`` keep: so many commits, and all that are younger than an age.

    pattern       as in file names, upper and lower case told apart; ``*`` matches ``/`` as well. A branch or tag is called
                  ``<catalog>/<name>``, any other reference by its own name
    """

    known_by = ("pattern",)

    pattern: str
    commits: int = 1
    age_seconds: float = 0.0

    def covers(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)


class HistoryRetention(StoredPart, frozen=True, kw_only=True):
    """How much history a realm keeps. ``None`` is the setting of the same name.

    references    where a pattern says more of a reference: the first that covers it decides alone
    """

    content_age_seconds: float | None = None
    content_commits: int | None = None
    reference_commits: int | None = None
    references: tuple[KeptHistory, ...] = ()

    def check(self) -> None:
        """Pass if the values make sense.

        raises        RefusedError that names the number that cannot
        """
        check_seconds(self.content_age_seconds, "content_age_seconds of a retention")
        check_count(self.content_commits, "content_commits of a retention")
        check_count(self.reference_commits, "reference_commits of a retention")
        for kept in self.references:
            check_seconds(kept.age_seconds, f"age_seconds of the references {kept.pattern!r}")
            check_count(kept.commits, f"commits of the references {kept.pattern!r}")


class MaintenanceSchedule(StoredPart, frozen=True, kw_only=True):
    """When a realm is maintained. An empty schedule is weekly, at a time spread by realm."""

    schedule: str = ""
    time_zone: str = "UTC"
    suspend: bool = False


class RealmManager(StoredPart, frozen=True, kw_only=True):
    """The resource that manages a realm; another one is refused unless it adopts the realm."""

    known_by = ("cluster", "namespace", "name", "uid")

    cluster: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def is_same(self, other: RealmManager) -> bool:
        """Whether it is the same resource, perhaps made again: that has another uid."""
        return (self.cluster, self.namespace, self.name) == (other.cluster, other.namespace, other.name)


class RealmFields(TypedDict, total=False):
    """The fields of a realm that a caller chooses and may change in place."""

    properties: dict[str, str]
    purge_hold_seconds: float | None
    retention: HistoryRetention
    maintenance: MaintenanceSchedule
    deletion_policy: DeletionPolicy
    deletion_protection: bool
    drift_policy: DriftPolicy
    manager: RealmManager | None
    acted: dict[str, str]
    loaded_until: Micros


@object_type("realm")
class Realm(StoredObject, frozen=True, kw_only=True):
    """One tenant.

    key           the number that its rows carry; given at creation, never used again
    entered       when each state was last entered, by the name of the state
    acted         annotations of its manager that act once, with the value last acted on
    loaded_until  of a realm that was loaded from an archive: all ids of the archive were made before; 0: it was not loaded
    """

    id: RealmId
    key: RealmKey
    state: RealmState = RealmState.CREATED
    created: Micros = Micros(0)
    updated: Micros = Micros(0)
    entered: dict[str, Micros] = msgspec.field(default_factory=dict)
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    purge_hold_seconds: float | None = None
    retention: HistoryRetention = HistoryRetention()
    maintenance: MaintenanceSchedule = MaintenanceSchedule()
    deletion_policy: DeletionPolicy = "Retain"
    deletion_protection: bool = False
    drift_policy: DriftPolicy = "Correct"
    manager: RealmManager | None = None
    acted: dict[str, str] = msgspec.field(default_factory=dict)
    loaded_until: Micros = Micros(0)


def is_hold_ahead(realm: Realm, settings: Settings, now: Micros) -> bool:
    """Whether an INACTIVE realm was entered by a clock that was ahead: its hold would last until that time has come."""
    return (
        realm.state is RealmState.INACTIVE
        and realm.entered[RealmState.INACTIVE] > now + settings.clock_bound_seconds * 1_000_000
    )


def hold_micros(realm: Realm, settings: Settings) -> Micros:
    """How long what is to be removed of a realm is still kept: its rows before a purge, and credentials that nothing declares any more.

    Never shorter than a handle's TTL plus a commit's time-out, or a writer that still believes in the realm could write into the purge;
    only the unsafe setting lets it be.
    """
    seconds = sound_seconds(realm.purge_hold_seconds, settings.purge_hold_seconds)
    if not settings.unsafe_short_graces:
        seconds = max(seconds, settings.purge_hold_floor_seconds)
    return Micros(round(seconds * 1_000_000))


def hold_until(realm: Realm, settings: Settings, now: Micros) -> Micros | None:
    """The earliest time at which an INACTIVE realm may be purged; ``None`` in every other state.

    Where the state was entered by a clock that was ahead, that is now: whoever asks for the purge then is refused once, and the hold
    counts from there.
    """
    if realm.state is not RealmState.INACTIVE:
        return None
    if is_hold_ahead(realm, settings, now):
        return now
    return Micros(realm.entered[RealmState.INACTIVE] + hold_micros(realm, settings))
