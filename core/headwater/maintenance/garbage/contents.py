"""Contents: the ids of all content that kept commits hold, as a compact set; they decide which claims are released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from headwater.maintenance.garbage.marks import Marks
from headwater.maintenance.garbage.retention import Why
from headwater.store import ObjectId

__all__ = ["Contents"]

_WAITING = 8192


class Contents:
    """Content ids by 63 of their bits: two that share them are taken for one, which can keep a claim and never release one."""

    def __init__(self, marks: Marks | None = None) -> None:
        self._marks = Marks(1 << 62) if marks is None else marks
        self._waiting: list[ObjectId] = []

    def update(self, content_ids: Iterable[UUID]) -> None:
        for content_id in content_ids:
            self._waiting.append(_bits(content_id))
            if len(self._waiting) >= _WAITING:
                self._settle()

    def __contains__(self, content_id: object) -> bool:
        self._settle()
        return isinstance(content_id, UUID) and self._marks.is_exact(_bits(content_id))

    def __len__(self) -> int:
        self._settle()
        return len(self._marks)

    def chunks(self) -> Iterator[bytes]:
        """To be persisted, as those of ``Marks``."""
        self._settle()
        return self._marks.chunks()

    @classmethod
    def from_chunks(cls, chunks: Iterable[bytes]) -> Contents:
        """What ``chunks`` told. Raises UnreadableError as ``Marks.from_chunks`` does."""
        return cls(Marks.from_chunks(chunks))

    def _settle(self) -> None:
        self._marks.add_many(self._waiting, Why.HEAD)
        self._waiting.clear()


def _bits(content_id: UUID) -> ObjectId:
    number = content_id.int
    return ObjectId((number ^ (number >> 64)) & 0x7FFFFFFFFFFFFFFF)
