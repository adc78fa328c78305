"""What a purge is asked to delete, as its task carries it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.tasks import Task

__all__ = ["Dropped", "Wish", "first_look_after"]

_BYTES = 15 * 1024


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """One drop of a table.

    branch        of the catalog, from which it is dropped
    key           its name there, for people
    metadata      its metadata file as of then
    location      where it lies, by that file
    asked         when, in microseconds since 1970
    """

    branch: str
    key: str
    metadata: str
    location: str
    asked: Micros


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a task is to purge: one content, with the versions that it had where it was dropped.

    table_uuid    None where its format has none
    drops         one for each branch from which it was dropped in order to be purged
    reachable_only  what manifests lead to that are missing, or cannot be read, is left for good
    """

    catalog: str
    catalog_id: str
    content_id: UUID
    table_uuid: UUID | None
    drops: tuple[Dropped, ...]
    reachable_only: bool = False

    def arguments(self) -> dict[str, Any]:
        """As a task carries them."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain

    def check_size(self) -> None:
        """raises RefusedError for more drops than a task can carry"""
        size = len(msgspec.json.encode(self))
        if size > _BYTES:
            raise RefusedError(
                f"{len(self.drops)} drops of content {self.content_id} measure {size} bytes, more than a task carries ({_BYTES}):"
                " drop it from the other branches without a purge"
            )

    @classmethod
    def of(cls, task: Task) -> Wish:
        try:
            return msgspec.convert(task.arguments, cls)
        except msgspec.ValidationError as fault:
            raise RefusedError(f"arguments of {task} are none of a purge: {fault}") from fault

    def joined(self, earlier: Wish) -> Wish:
        """With the drops that were asked for before, each branch and version once."""
        mine = {(drop.branch, drop.metadata) for drop in self.drops}
        others = tuple(drop for drop in earlier.drops if (drop.branch, drop.metadata) not in mine)
        reachable_only = self.reachable_only or earlier.reachable_only
        return msgspec.structs.replace(self, drops=(*others, *self.drops), reachable_only=reachable_only)


def first_look_after(settings: Settings) -> int:
    """Microseconds: younger claims are never released."""
    return round(max(settings.writer_grace_seconds, settings.reader_grace_seconds) * 1_000_000)
