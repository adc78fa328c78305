"""The work that tasks ask for, whoever holds the claim: collecting, purging, importing; and the record that every run leaves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from headwater.catalogs import (
    ROWS_SHOWN,
    CatalogDefinition,
    Catalogs,
    Claims,
    ImportOptions,
    ImportReport,
    ImportSpec,
    iceberg,
    import_tables,
    scope_of,
)
from headwater.errors import FencedError, HeadwaterError, RefusedError
from headwater.maintenance.collecting import Progress, collect
from headwater.maintenance.purging import purge
from headwater.maintenance.runs import Run, record_run
from headwater.realms import Realms
from headwater.store import SYSTEM_REALM, Store, id_text
from headwater.tasks import Claim, StoppedError, Task

__all__ = ["COLLECT", "IMPORT", "PURGE", "Survey", "dry_import", "run_collection", "run_import", "run_purge"]

COLLECT, PURGE, IMPORT = "gc", "purge", "import"
"""The kinds of tasks."""

SHOWN_BYTES = 32 * 1024
"""Of quarantined tables, an outcome shows as many as fit in here; their number is always true."""

Survey = Callable[[iceberg.Scope, Progress], Iterable[iceberg.Outcome]]
"""Looks at the tables in a scope: in this process, or on Spark, with the same result."""

_log = structlog.get_logger()


def run_collection(store: Store, claim: Claim) -> dict[str, Any]:
    """Collect the garbage of the task's realm."""
    _require_same_realm(store, claim.task)
    owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
    realm = claim.task.realm
    return _recorded(
        store, claim, lambda: collect(store, realm, fence=claim.check, progress=claim.report, owner=owner).as_plain()
    )


def run_purge(store: Store, claim: Claim) -> dict[str, Any]:
    """Purge the task's realm."""
    task = claim.task
    key = task.realm_key or None
    return _recorded(
        store, claim, lambda: purge(store, task.realm, key=key, fence=claim.check, progress=claim.report).as_plain()
    )


def run_import(store: Store, claim: Claim, *, survey: Survey, engine: str) -> dict[str, Any]:
    """Import the tables that the task's arguments name.

    arguments     `catalog` and `catalog_id`; `import` and `digest` for an import in the catalog's definition, as it read then; or
                  the whole import under `spec`, where a person asked for it by hand
    engine        what surveys, for people to read
    """
    task = claim.task
    _require_same_realm(store, task)
    definition = _definition(store, task)
    spec = _spec(definition, task)

    def progress(done: int, total: int, unit: str) -> None:
        claim.report(done, total, unit)
        claim.check()

    def work() -> dict[str, Any]:
        outcomes = survey(scope_of(definition, spec), progress)
        report = _import(store, task.realm, definition, outcomes, ImportOptions(mode=spec.mode, name=spec.name), claim)
        return {"engine": engine, **_bounded(report)}

    return _recorded(store, claim, work)


def dry_import(store: Store, realm: str, catalog: str, spec: ImportSpec) -> ImportReport:
    """What an import would do; nothing is written."""
    definition = Catalogs(Realms(store).open(realm)).read(catalog)
    outcomes = iceberg.survey_in_process(scope_of(definition, spec))
    return _import(store, realm, definition, outcomes, ImportOptions(mode=spec.mode, dry_run=True, name=spec.name), None)


def _import(
    store: Store,
    realm: str,
    definition: CatalogDefinition,
    outcomes: Iterable[iceberg.Outcome],
    options: ImportOptions,
    claim: Claim | None,
) -> ImportReport:
    rows = Realms(store).open(realm)
    options = dataclasses.replace(options, batch=store.settings.import_batch)
    return import_tables(
        Catalogs(rows).open(definition.name),
        Claims(rows),
        outcomes,
        options=options,
        fence=None if claim is None else claim.check,
        progress=None if claim is None else claim.report,
    )


def _require_same_realm(store: Store, task: Task) -> None:
    """A task is about the realm that had this id when it was asked for, and about no later one."""
    if task.realm == SYSTEM_REALM or task.realm_key == 0:
        return
    realm = Realms(store).read(task.realm)
    if realm.key != task.realm_key:
        raise RefusedError(f"realm {task.realm!r} was created anew since this task was asked for: ask again")


def _definition(store: Store, task: Task) -> CatalogDefinition:
    definition = Catalogs(Realms(store).open(task.realm)).read(str(task.arguments.get("catalog")))
    if definition.id != task.arguments.get("catalog_id"):
        raise RefusedError(f"catalog {definition.name!r} was created anew since this import was asked for: ask again")
    return definition


def _spec(definition: CatalogDefinition, task: Task) -> ImportSpec:
    if "spec" in task.arguments:
        return msgspec.convert(task.arguments["spec"], ImportSpec)
    name, digest = task.arguments.get("import"), task.arguments.get("digest")
    for spec in definition.imports:
        if spec.name == name and spec.digest() == digest:
            return spec
    raise RefusedError(
        f"catalog {definition.name!r} has no import {name!r} any more that reads as it did when this was asked for: ask again"
    )


def _bounded(report: ImportReport) -> dict[str, Any]:
    """The report with as many of its quarantined tables as an outcome has room for."""
    limit = ROWS_SHOWN
    while limit and len(msgspec.json.encode(report.outcome(limit=limit)["quarantined"])) > SHOWN_BYTES:
        limit //= 2
    return report.outcome(limit=limit)


def _recorded(store: Store, claim: Claim, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do the work and keep a record of it; its notes stand under ``notes`` of what it returns.

    An attempt that was taken over or handed back leaves no record: the one that ends the work does.
    """
    started = store.clock.now()

    def record(outcome: dict[str, Any], error: str = "") -> None:
        claim.check()  # what failed may have failed because the work was taken over
        run = Run(
            kind=claim.task.kind,
            realm=claim.task.realm,
            subject=claim.task.subject,
            started=started,
            finished=store.clock.now(),
            task=claim.id,
            attempt=claim.attempt,
            counts={name: value for name, value in outcome.items() if name != "notes"},
            notes=tuple(outcome.get("notes", ())),
            error=error,
        )
        try:
            record_run(store, run)
        except HeadwaterError as fault:  # the work itself is done, and its task tells how it ended
            _log.warning("the run was not recorded", task=id_text(claim.id), fault=str(fault))

    try:
        outcome = work()
    except (FencedError, StoppedError):
        raise
    except HeadwaterError as error:
        record({}, str(error))
        raise
    record(outcome)
    return outcome
