"""A database in memory whose bulk writes are noted: for tests of what is written, and when."""

from __future__ import annotations

from faulty_backend import FaultyBackend
from headwater.store import ObjectRow
from headwater.store.backends.memory import MemoryBackend

__all__ = ["WatchedWrites"]


class WatchedWrites(FaultyBackend):
    """Notes the rows of each bulk write: of objects alone, and together with a swap."""

    def __init__(self) -> None:
        super().__init__(MemoryBackend())
        self.staged: list[list[ObjectRow]] = []
        self.swapped: list[list[ObjectRow]] = []

    def _call(self, name: str, *arguments: object, **named: object) -> object:
        noted = {"write_objects": self.staged, "write_and_swap": self.swapped}.get(name)
        if noted is not None:
            noted.append(list(arguments[0]))  # type: ignore[call-overload]  # rows come first
        return super()._call(name, *arguments, **named)

    def write_and_swap(self, *arguments: object) -> None:
        self._call("write_and_swap", *arguments)

    def forget(self) -> None:
        self.staged, self.swapped = [], []
