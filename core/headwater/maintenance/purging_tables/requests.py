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
    reachable_only  files that only missing or unreadable manifests of this version name are never deleted
    allowed       places besides its location in which it has metadata, of those that its catalog allowed then
    request       a text of its own for each request: one that joined another is never taken for it
    """

    branch: str
    key: str
    metadata: str
    location: str
    asked: Micros
    reachable_only: bool = False
    allowed: tuple[str, ...] = ()
    request: str = ""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a task is to purge: one content, with the versions that it had where it was dropped.

    table_uuid    None where its format has none
    drops         one for each branch from which it was dropped in order to be purged
    reachable_only  of all drops, whatever each says: a retry asks for it, and an earlier release knew no other way
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
        """With the drops that were asked for before, each branch and version once. What either asked to be deleted will be."""
        others = {(drop.branch, drop.metadata): drop for drop in earlier._each()}
        mine = [_both(drop, others.pop((drop.branch, drop.metadata), drop)) for drop in self._each()]
        return msgspec.structs.replace(self, drops=(*others.values(), *mine), reachable_only=False)

    def versions(self) -> list[Dropped]:
        """One drop for each metadata file, with what holds for all drops of it."""
        versions: dict[str, Dropped] = {}
        for drop in self._each():
            versions[drop.metadata] = _both(drop, versions.get(drop.metadata, drop))
        return list(versions.values())

    def _each(self) -> list[Dropped]:
        """The drops, each with all that was said of it."""
        if not self.reachable_only:
            return list(self.drops)
        return [msgspec.structs.replace(drop, reachable_only=True) for drop in self.drops]


def _both(drop: Dropped, other: Dropped) -> Dropped:
    """A drop with the strictness of both, and the places of both: only what each of them gave up is left."""
    return msgspec.structs.replace(
        drop,
        asked=max(drop.asked, other.asked),
        reachable_only=drop.reachable_only and other.reachable_only,
        allowed=tuple(dict.fromkeys((*other.allowed, *drop.allowed))),
    )


def first_look_after(settings: Settings) -> int:
    """Microseconds: younger claims are never released."""
    return round(max(settings.writer_grace_seconds, settings.reader_grace_seconds) * 1_000_000)
