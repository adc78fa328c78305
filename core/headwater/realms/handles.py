"""Gates: what a handle on a realm's rows checks before it writes."""

from __future__ import annotations

from collections.abc import Callable

from headwater.clock import Clock
from headwater.errors import RefusedError
from headwater.realms.definitions import Realm
from headwater.realms.states import RealmState

__all__ = ["MaintenanceGate", "UserGate"]

FindRealm = Callable[[str], Realm | None]


class UserGate:
    """Writes only while the realm is ACTIVE and the one that was opened; looks again after ``ttl_seconds``.

    Whoever serves users asks before reads, too: only an ACTIVE realm is open to them. Administrators read in every state.
    """

    def __init__(self, realm: Realm, *, find: FindRealm, clock: Clock, ttl_seconds: float) -> None:
        self._realm = realm
        self._find = find
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._passed_until = clock.monotonic() + ttl_seconds if realm.state is RealmState.ACTIVE else float("-inf")

    def check_write(self) -> None:
        """Pass, or raise RefusedError. A refusal is not remembered: a realm that was activated again is served at once."""
        asked = self._clock.monotonic()
        if asked < self._passed_until:
            return
        self._passed_until = float("-inf")
        _check(self._realm, self._find(self._realm.id), RealmState.ACTIVE, "it serves users")
        # counted from before the look-up: the answer is as old as the question
        self._passed_until = asked + self._ttl_seconds


class MaintenanceGate:
    """Writes only in the one state that it names; the definition is read again for every check."""

    def __init__(self, realm: Realm, *, find: FindRealm, state: RealmState) -> None:
        self._realm = realm
        self._find = find
        self._state = state

    def check_write(self) -> None:
        _check(self._realm, self._find(self._realm.id), self._state, "this handle writes")


def _check(opened: Realm, found: Realm | None, state: RealmState, what: str) -> None:
    if found is None:
        raise RefusedError(f"realm {opened.id!r} was deleted: nothing more is written to it")
    if found.key != opened.key:
        raise RefusedError(
            f"realm {opened.id!r} was deleted and created again: this handle belongs to the earlier realm, open a new one"
        )
    if found.state is not state:
        raise RefusedError(f"realm {opened.id!r} is {found.state}: {what} only while it is {state}")
