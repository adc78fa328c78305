"""The work that tasks ask for, whoever holds the claim: collecting, purging, importing; and the record that every run leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import structlog

from headwater.catalogs import (
    ROWS_SHOWN,
    Catalog,
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
from headwater.errors import FencedError, HeadwaterError, RefusedError, UnavailableError
from headwater.maintenance.collecting import Progress, collect
from headwater.maintenance.purging import purge
from headwater.maintenance.runs import Run, record_run
from headwater.realms import Realms, RealmState
from headwater.store import SYSTEM_REALM, RealmStore, Store, id_text
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
    if claim.task.realm != SYSTEM_REALM:
        _open_realm(store, claim.task)
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

    arguments     `catalog` and `catalogId`; `import` and `digest` for an import in the catalog's definition, as it read then; or
                  the whole import under `spec`, where a person asked for it by hand
    engine        what surveys, for people to read
    """
    task = claim.task
    rows = _open_realm(store, task)
    catalog = _open_catalog(rows, task)
    spec = _spec(catalog.definition, task)

    def progress(done: int, total: int, unit: str) -> None:
        claim.report(done, total, unit)
        claim.check()

    def work() -> dict[str, Any]:
        outcomes = survey(scope_of(catalog.definition, spec), progress)
        options = ImportOptions(mode=spec.mode, batch=store.settings.import_batch, name=spec.name)
        report = import_tables(catalog, Claims(rows), outcomes, options=options, fence=claim.check, progress=claim.report)
        return {"engine": engine, **_bounded(report)}

    return _recorded(store, claim, work)


def dry_import(store: Store, realm: str, catalog: str, spec: ImportSpec) -> ImportReport:
    """What an import would do; nothing is written."""
    rows = Realms(store).open(realm)
    opened = Catalogs(rows).open(catalog)
    outcomes = iceberg.survey_in_process(scope_of(opened.definition, spec))
    options = ImportOptions(mode=spec.mode, batch=store.settings.import_batch, dry_run=True, name=spec.name)
    return import_tables(opened, Claims(rows), outcomes, options=options)


def _open_realm(store: Store, task: Task) -> RealmStore:
    """A user's handle on the task's realm: the one that had this id when the task was asked for, and no later one."""
    rows = Realms(store).open(task.realm)
    if task.realm_key not in (0, rows.key):
        raise RefusedError(f"realm {task.realm!r} was created anew since this task was asked for: ask again")
    return rows


def _open_catalog(rows: RealmStore, task: Task) -> Catalog:
    catalog = Catalogs(rows).open(str(task.arguments.get("catalog")))
    if catalog.definition.id != task.arguments.get("catalogId"):
        raise RefusedError(f"catalog {catalog.definition.name!r} was created anew since this import was asked for: ask again")
    return catalog


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


def _state(store: Store, task: Task) -> RealmState | None:
    realm = None if task.realm == SYSTEM_REALM else Realms(store).find(task.realm)
    return None if realm is None else realm.state


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

    before = _state(store, claim.task)
    try:
        outcome = work()
    except (FencedError, StoppedError):
        raise
    except RefusedError as refused:
        record({}, str(refused))
        if {before, _state(store, claim.task)} == {RealmState.ACTIVE, RealmState.INACTIVE}:
            raise UnavailableError(f"the realm was switched meanwhile, try again: {refused}") from refused
        raise
    except HeadwaterError as error:
        record({}, str(error))
        raise
    record(outcome)
    return outcome
