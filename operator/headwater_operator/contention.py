"""Which resources are kept off a realm or catalog by what another one has: they are looked at when that one changes something."""

from __future__ import annotations

import threading

from headwater_operator.resources import Key

__all__ = ["Contention"]


class Contention:
    """Safe for threads. What another operator or the command line changes is noticed with the resync only."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes = 0
        self._changed: dict[str, int] = {}
        self._kept_off: dict[str, set[Key]] = {}
        self._realms: dict[Key, str] = {}

    @property
    def changes(self) -> int:
        """How many changes there were; to be asked before a look, for ``note`` after it."""
        return self._changes

    def change(self, key: Key, realm_id: str | None) -> list[Key]:
        """This resource did something in the realm, or let it go. Returns the others that are kept off it, or off something in it."""
        if realm_id is None:
            return []
        with self._lock:
            self._changes += 1
            self._changed[realm_id] = self._changes
            return sorted(self._kept_off.get(realm_id, set()) - {key})

    def note(self, key: Key, realm_id: str | None, *, is_kept_off: bool, since: int) -> bool:
        """How a look at this resource ended, which is about a realm of this id. Returns whether it is out of date already:

        this look    sees that another has the realm ........ is noted as kept off
        the other    ................ lets the realm go, and finds nobody to wake
        """
        with self._lock:
            self._leave(key)
            if realm_id is None or not is_kept_off:
                return False
            self._realms[key] = realm_id
            self._kept_off.setdefault(realm_id, set()).add(key)
            return self._changed.get(realm_id, 0) > since

    def forget(self, key: Key) -> None:
        with self._lock:
            self._leave(key)

    def _leave(self, key: Key) -> None:
        realm_id = self._realms.pop(key, None)
        if realm_id is None:
            return
        self._kept_off[realm_id].discard(key)
        if not self._kept_off[realm_id]:
            del self._kept_off[realm_id]
