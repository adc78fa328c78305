"""The plan for the scheduled work on a catalog's lake: expiry of snapshots, and reports of files that nobody refers to.

Expiry is scheduled where the catalog's resource says so, or where the catalog has a policy that lets something go; reports only where the
resource says so. What a person asks for by the annotation `run-now` runs at once, also while schedules are suspended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headwater.catalogs import CatalogDefinition, LakeSchedule
from headwater.clock import Micros
from headwater.jobs import EXPIRE_SNAPSHOTS, LAKE_WORK, REPORT_FILES, lake_arguments
from headwater.reconcile.actions import Action, RecordHandled, RunTaskNow, SubmitTask
from headwater.reconcile.manifests import RUN_NOW, CatalogManifest
from headwater.reconcile.observed_state import ObservedCatalog
from headwater.reconcile.schedule import (
    ScheduledWork,
    cancel_scheduled,
    daily_schedule,
    dead_letter,
    keep_scheduled,
    weekly_schedule,
)
from headwater.store import Versioned
from headwater.tasks import Task, TaskState


def plan_lake_work(
    manifest: CatalogManifest, catalog: CatalogDefinition, observed: ObservedCatalog, now: Micros
) -> Iterator[Action]:
    """Keep one task of each kind waiting for its time, and carry out what the annotation asks for. ``catalog.maintenance`` is the former
    setting.
    """
    yield from _run_now(manifest, catalog, observed, now)
    for kind in LAKE_WORK:
        yield from _plan_kind(kind, manifest, catalog, observed, now)


def plan_lake_end(catalog: CatalogDefinition, observed: ObservedCatalog) -> list[Action]:
    """Cancel what is scheduled for a catalog that is being deleted."""
    tasks = [_own(catalog, observed.tasks.active(kind, catalog.name)) for kind in LAKE_WORK]
    return [cancel_scheduled(task) for task in tasks if task is not None and not task.value.stop_requested]


def _run_now(manifest: CatalogManifest, catalog: CatalogDefinition, observed: ObservedCatalog, now: Micros) -> Iterator[Action]:
    asked, acted = manifest.metadata.annotations.get(RUN_NOW), catalog.acted.get(RUN_NOW)
    if asked is None:
        if acted is not None:
            yield RecordHandled(RUN_NOW, None)
        return
    kind = asked.partition(":")[0]
    if acted == asked or kind not in LAKE_WORK:
        return
    active = observed.tasks.active(kind, catalog.name)
    if active is None:
        yield SubmitTask(kind, now, catalog.name, lake_arguments(catalog))
    elif _own(catalog, active) is None:
        return  # of an earlier catalog of this name: once it is out of the way
    elif _is_ahead(active, now):
        yield RunTaskNow(active.id, kind)
    yield RecordHandled(RUN_NOW, asked)


def _plan_kind(
    kind: str, manifest: CatalogManifest, catalog: CatalogDefinition, observed: ObservedCatalog, now: Micros
) -> Iterator[Action]:
    active = observed.tasks.active(kind, catalog.name)
    if active is not None and _own(catalog, active) is None:
        if not active.value.stop_requested:
            yield cancel_scheduled(active)
        return
    wanted = _wanted(kind, manifest, observed)
    if wanted is None:
        if active is not None and _is_ahead(active, now) and not _is_asked(kind, manifest, catalog):
            yield cancel_scheduled(active)
        return
    last = _own(catalog, observed.tasks.last(kind, catalog.name))
    if active is None and _is_asked(kind, manifest, catalog):
        return  # it was submitted by this very plan
    if active is None and last is not None and last.value.state is TaskState.FAILED:
        yield dead_letter(last)
        return
    is_changed = manifest.spec.maintenance != catalog.maintenance
    since = last.value.finished if last is not None and last.value.finished and not is_changed else now
    yield from keep_scheduled(_work(kind, wanted, catalog, observed), observed.tasks, since=since, now=now)


def _wanted(kind: str, manifest: CatalogManifest, observed: ObservedCatalog) -> LakeSchedule | None:
    """The schedule of a kind; None: it has none, or is suspended."""
    assert observed.realm is not None
    maintenance = manifest.spec.maintenance
    said = maintenance.expire_snapshots if kind == EXPIRE_SNAPSHOTS else maintenance.report_files
    if said is None and kind == EXPIRE_SNAPSHOTS and observed.lets_go:
        said = LakeSchedule()
    return None if said is None or said.suspend or observed.realm.maintenance.suspend else said


def _work(kind: str, wanted: LakeSchedule, catalog: CatalogDefinition, observed: ObservedCatalog) -> ScheduledWork:
    assert observed.realm is not None
    name = f"{observed.realm.id}/{catalog.name} {kind}"
    spread = weekly_schedule if kind == REPORT_FILES else daily_schedule
    return ScheduledWork(
        kind=kind,
        subject=catalog.name,
        arguments=lake_arguments(catalog),
        cron=wanted.schedule or spread(name),
        zone=observed.realm.maintenance.time_zone,
    )


def _is_asked(kind: str, manifest: CatalogManifest, catalog: CatalogDefinition) -> bool:
    """Whether this plan lets the work run now."""
    asked: str = manifest.metadata.annotations.get(RUN_NOW, "")
    return asked.partition(":")[0] == kind and catalog.acted.get(RUN_NOW) != asked


def _own(catalog: CatalogDefinition, task: Versioned[Task] | None) -> Versioned[Task] | None:
    """A task, unless it is about an earlier catalog of the same name."""
    arguments: Mapping[str, Any] = {} if task is None else task.value.arguments
    return task if arguments.get("catalog_id") == catalog.id else None


def _is_ahead(task: Versioned[Task], now: Micros) -> bool:
    return task.value.state is TaskState.WAITING and task.value.due > now
