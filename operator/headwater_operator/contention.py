"""Which resources are kept off a realm or catalog by what another one has: they are looked at when that one changes something."""

from __future__ import annotations

import threading

from headwater_operator.resources import Key

__all__ = ["Contention"]


class Contention:
    """Safe for threads. What another operator or the command line changes is noticed with the resync only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept_off: dict[str, set[Key]] = {}
        self._realms: dict[Key, str] = {}

    def note(self, key: Key, realm_id: str | None, *, is_kept_off: bool) -> None:
        """How a look at this resource ended, which is about a realm of this id."""
        with self._lock:
            self._leave(key)
            if realm_id is not None and is_kept_off:
                self._realms[key] = realm_id
                self._kept_off.setdefault(realm_id, set()).add(key)

    def forget(self, key: Key) -> None:
        with self._lock:
            self._leave(key)

    def rivals(self, key: Key, realm_id: str | None) -> list[Key]:
        """The other resources that are kept off this realm, or off something in it."""
        with self._lock:
            return sorted(self._kept_off.get(realm_id or "", set()) - {key})

    def _leave(self, key: Key) -> None:
        realm_id = self._realms.pop(key, None)
        if realm_id is None:
            return
        self._kept_off[realm_id].discard(key)
        if not self._kept_off[realm_id]:
            del self._kept_off[realm_id]
