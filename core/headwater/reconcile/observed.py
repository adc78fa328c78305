"""What a store says about one realm or catalog, as plain values: half of what a planner decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.clock import Micros
from headwater.realms import Manager, Realm
from headwater.store import ObjectId
from headwater.tasks import TaskState

__all__ = ["ObservedCatalog", "ObservedRealm", "SeenCatalog", "SeenTask", "TaskHistory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTask:
    """One task. ``digest`` is that of the import it was submitted for; ``is_stopping``: it runs, and was asked to stop."""

    id: ObjectId
    kind: str
    subject: str = ""
    state: TaskState = TaskState.WAITING
    due: Micros = Micros(0)
    failures: int = 0
    is_stopping: bool = False
    finished: Micros | None = None
    error: str = ""
    digest: str = ""

    @property
    def is_active(self) -> bool:
        return self.state.is_active

    @property
    def is_scheduled(self) -> bool:
        """Whether it waits for a time that a schedule gave it, and not for its next attempt."""
        return self.state is TaskState.WAITING and self.failures == 0


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """The tasks of one realm: the active ones first, then the finished ones, the newest first."""

    tasks: tuple[SeenTask, ...] = ()

    def active(self, kind: str, subject: str = "") -> SeenTask | None:
        return next((task for task in self.tasks if task.is_active and (task.kind, task.subject) == (kind, subject)), None)

    def last(self, kind: str, subject: str = "") -> SeenTask | None:
        """The one that finished last."""
        return next((task for task in self.tasks if not task.is_active and (task.kind, task.subject) == (kind, subject)), None)

    def all_active(self) -> tuple[SeenTask, ...]:
        return tuple(task for task in self.tasks if task.is_active)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRealm:
    """
    realm         None when there is none of this id
    me            the resource that asks
    hold_until    earliest time of a purge, while the realm is INACTIVE
    """

    realm: Realm | None
    me: Manager
    hold_until: Micros | None = None
    tasks: TaskHistory = TaskHistory()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCatalog:
    """A catalog's definition.

    applied       digests of the imports in force, by name
    imported      digests of the imports that have succeeded, by name
    """

    base_location: str
    allowed_locations: tuple[str, ...] = ()
    default_branch: str = "main"
    properties: Mapping[str, str] = field(default_factory=dict)
    applied: Mapping[str, str] = field(default_factory=dict)
    imported: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCatalog:
    """
    realm             None when its realm is not there
    realm_manager     the resource that the manifest takes the realm to belong to
    catalog           None when there is none of this name, or its realm is not ACTIVE
    """

    realm: Realm | None
    realm_manager: Manager
    catalog: SeenCatalog | None = None
    tasks: TaskHistory = TaskHistory()
