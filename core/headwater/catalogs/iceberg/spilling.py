"""Outcomes on disk while a survey lasts: of a large lake, documents do not fit into memory."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator

from headwater.catalogs.iceberg.outcomes import Outcome, pack, unpack

__all__ = ["Spill"]

_LENGTH_BYTES = 4
_ROOMY_BYTES = 256 * 1024 * 1024
"""So much of a disk is spent to save time: as much as one document may need anyway. What comes after is squeezed, to a fifth."""


class Spill:
    """Outcomes in a temporary file that goes away with this object: first all are added, then they are read, as often as one likes."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="headwater-survey-")  # noqa: SIM115  # closed below
        self._count = self._size = 0
        weakref.finalize(self, self._file.close)

    def add(self, outcome: Outcome) -> None:
        self.add_packed(pack(outcome, squeezed=self._size >= _ROOMY_BYTES))

    def add_packed(self, packed: bytes) -> None:
        """An outcome as ``pack`` made it, elsewhere."""
        self._file.write(len(packed).to_bytes(_LENGTH_BYTES, "big"))
        self._file.write(packed)
        self._count += 1
        self._size += _LENGTH_BYTES + len(packed)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Outcome]:
        at = 0
        for _ in range(self._count):
            self._file.seek(at)
            length = int.from_bytes(self._file.read(_LENGTH_BYTES), "big")
            yield unpack(self._file.read(length))
            at += _LENGTH_BYTES + length
