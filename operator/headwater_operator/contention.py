"""Which resources are kept off a realm or catalog by what another one has: they are looked at when that one changes something."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from headwater_operator.resources import Key

__all__ = ["KEPT_OFF_SECONDS", "Contention"]

KEPT_OFF_SECONDS = 20.0
"""How often one that is kept off is looked at: what another operator or the command line lets go, nothing here tells."""
_LOOKS_PER_SECOND = 2.0
"""How often all of them together are: a forgotten copy of a cluster has thousands."""


class Contention:
    """Safe for threads.

    changed       of each realm, the number of its last change, as long as a look is under way that began before it
    looks         of each look that is under way, how many changes there were when it began
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes = 0
        self._changed: dict[str, int] = {}
        self._looks: list[int] = []
        self._kept_off: dict[str, set[Key]] = {}
        self._realms: dict[Key, str] = {}

    @property
    def seconds_between_looks(self) -> float:
        """How long one that is kept off is left alone: longer, the more there are."""
        with self._lock:
            return max(KEPT_OFF_SECONDS, len(self._realms) / _LOOKS_PER_SECOND)

    @contextlib.contextmanager
    def look(self) -> Iterator[int]:
        """Around a look at a resource, and ``note`` after it, which needs the number that this gives."""
        with self._lock:
            since = self._changes
            self._looks.append(since)
        try:
            yield since
        finally:
            with self._lock:
                self._looks.remove(since)
                oldest = min(self._looks, default=self._changes)
                self._changed = {realm_id: change for realm_id, change in self._changed.items() if change > oldest}

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
