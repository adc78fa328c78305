"""The job of the kind `import`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol

import msgspec

from headwater import iceberg
from headwater.catalogs import (
    HEADWATER,
    ROWS_SHOWN,
    Catalog,
    CatalogDefinition,
    ImportOptions,
    ImportReport,
    ImportSpec,
    ReportRow,
    TableClaims,
    import_tables,
    survey_scope,
)
from headwater.errors import RefusedError
from headwater.jobs.task_runs import ReportWriter, open_active_realm, run_recorded
from headwater.realms import RealmRegistry
from headwater.store import RealmStore, Store, id_text
from headwater.tasks import Task, TaskLease
from headwater.throttle import ProgressCallback, no_progress
from headwater.typed_values import convert

SHOWN_BYTES = 32 * 1024
"""The number of bytes for quarantined tables in an outcome. Their count is always exact."""

SPARK = "spark"
"""The argument `engine` of an import that asks for Spark."""


class TableSurvey(Protocol):
    """Surveys the tables in a scope, in this process or on Spark, with the same result."""

    @property
    def name(self) -> str:
        """The surveying engine, for people; after a call, the engine that did the survey."""
        ...

    def __call__(self, scope: iceberg.SurveyScope, progress: ProgressCallback, /) -> Iterable[iceberg.SurveyOutcome]: ...


def run_import(store: Store, claim: TaskLease, *, survey: TableSurvey) -> dict[str, Any]:
    """Import the tables that the task's arguments name.

    arguments     `catalog` and `catalogId`; `import` and `digest` for an import in the catalog's definition, as of that time; or
                  the whole import under `spec`, where a person asked for it by hand; `engine` where Spark was asked for;
                  `author`: who asked, where that is known
    raises        TaskNotReadyError while the realm is INACTIVE
    """
    task = claim.task
    rows = open_active_realm(store, task)
    catalog = _open_catalog(rows, task)
    spec = _spec(catalog.definition, task)

    def progress(done: int, total: int, unit: str) -> None:
        claim.report_progress(done, total, unit)
        claim.check_stop()

    def work() -> dict[str, Any]:
        scope = survey_scope(catalog.definition, spec, now=store.clock.now())
        outcomes = survey(scope, progress)
        options = ImportOptions(
            mode=spec.mode,
            batch=store.settings.import_batch,
            name=spec.name,
            authors=(str(task.arguments.get("author") or HEADWATER),),
            task=id_text(claim.id),
            scope=scope,
            drops_gone=spec.gone == "drop",
        )
        rows_kept = ReportWriter(store, claim.id, claim.attempt, fence=claim.check_stop)
        try:
            report = import_tables(
                catalog,
                TableClaims(rows),
                outcomes,
                options=options,
                fence=claim.check_stop,
                progress=claim.report_progress,
                write=rows_kept.add_row,
            )
        finally:
            _close(outcomes)
        rows_kept.finish_report()
        return {"engine": survey.name, **_bounded(report)}

    return run_recorded(store, claim, work)


def dry_import(
    store: Store,
    realm: str,
    catalog: str,
    spec: ImportSpec,
    *,
    write: Callable[[ReportRow], None] | None = None,
    progress: ProgressCallback = no_progress,
) -> ImportReport:
    """Survey without writing: returns what an import would do.

    write         called with a row for every table that was looked at
    """
    rows = RealmRegistry(store).open_realm(realm)
    opened = Catalog.open(rows, catalog)
    scope = survey_scope(opened.definition, spec, now=store.clock.now())
    outcomes = iceberg.survey_in_process(scope, progress=progress)
    options = ImportOptions(
        mode=spec.mode,
        batch=store.settings.import_batch,
        dry_run=True,
        name=spec.name,
        scope=scope,
        drops_gone=spec.gone == "drop",
    )
    return import_tables(opened, TableClaims(rows), outcomes, options=options, write=write)


def _close(outcomes: Iterable[iceberg.SurveyOutcome]) -> None:
    """Close a survey that is a generator, even if it was not read to its end: it may hold a Spark session."""
    if isinstance(outcomes, Generator):
        outcomes.close()


def _open_catalog(rows: RealmStore, task: Task) -> Catalog:
    catalog = Catalog.open(rows, str(task.arguments.get("catalog")))
    if catalog.definition.id != task.arguments.get("catalogId"):
        raise RefusedError(f"catalog {catalog.definition.name!r} was created anew since this import was asked for: ask again")
    return catalog


def _spec(definition: CatalogDefinition, task: Task) -> ImportSpec:
    if "spec" in task.arguments:
        return convert(task.arguments["spec"], ImportSpec)
    name, digest = task.arguments.get("import"), task.arguments.get("digest")
    for spec in definition.imports:
        if spec.name == name and spec.digest() == digest:
            return spec
    raise RefusedError(
        f"catalog {definition.name!r} has no import {name!r} any more that reads as it did when this was asked for: ask again"
    )


def _bounded(report: ImportReport) -> dict[str, Any]:
    """The report with as many of its quarantined tables as fit into an outcome."""
    limit = ROWS_SHOWN
    while limit and len(msgspec.json.encode(report.outcome(limit=limit)["quarantined"])) > SHOWN_BYTES:
        limit //= 2
    return report.outcome(limit=limit)
