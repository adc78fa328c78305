"""How many secrets are hashed at a time: each takes 16 MiB and a core for a while, and nobody may take all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headwater_server.call import ServedStore
from headwater_server.error_answers import OverloadedError

_AT_ONCE = 4


class HashSlots:
    """The slots of a process, which log-ins and new credentials share. Thread-safe."""

    def __init__(self, served: ServedStore) -> None:
        self._free = threading.BoundedSemaphore(_AT_ONCE)

    @contextmanager
    def take_slot(self) -> Iterator[None]:
        """Hold a slot while a secret is hashed; raises OverloadedError while all are taken."""
        if not self._free.acquire(blocking=False):
            raise OverloadedError(
                f"{_AT_ONCE} secrets are checked or made just now, and no more at a time; send the request again in a moment"
            )
        try:
            yield
        finally:
            self._free.release()
