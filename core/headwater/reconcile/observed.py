"""What a store says about one realm or catalog, as plain values: half of what a planner decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.catalogs import CatalogDefinition, CatalogManager
from headwater.clock import Micros
from headwater.realms import Manager, Realm, RealmState
from headwater.store import ObjectId
from headwater.tasks import TaskState

__all__ = ["READABLE", "ObservedCatalog", "ObservedRealm", "SeenTask", "TaskHistory"]

READABLE = (RealmState.ACTIVE, RealmState.INACTIVE)
"""The states of a realm in which its catalogs are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTask:
    """One task. ``is_stopping``: it runs, and was asked to stop."""

    id: ObjectId
    kind: str
    due: Micros
    subject: str = ""
    state: TaskState = TaskState.WAITING
    failures: int = 0
    is_stopping: bool = False
    finished: Micros | None = None
    error: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)

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
    realm             None when there is none of this id
    me                the resource that asks
    is_cluster_named  whether the name of its cluster was chosen, so that no other cluster has it
    hold_until        earliest time of a purge, while the realm is INACTIVE
    """

    realm: Realm | None
    me: Manager
    is_cluster_named: bool = True
    hold_until: Micros | None = None
    tasks: TaskHistory = TaskHistory()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCatalog:
    """
    realm             None when it is not there
    realm_owner       the resource that the manifest takes the realm to belong to; its uid may not be known
    may_be_unmanaged  whether the realm may also belong to nobody: its manifest is not among those that are applied
    me                the resource that asks
    is_cluster_named  whether the name of its cluster was chosen, so that no other cluster has it
    catalog           None when there is none of this name, or its realm is neither ACTIVE nor INACTIVE
    tasks             of a realm that is one of these
    """

    realm: Realm | None
    realm_owner: Manager
    me: CatalogManager
    is_cluster_named: bool = True
    may_be_unmanaged: bool = False
    catalog: CatalogDefinition | None = None
    tasks: TaskHistory = TaskHistory()
