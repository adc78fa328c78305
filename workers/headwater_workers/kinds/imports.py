"""The task kind `import`: survey the Iceberg tables below some locations, and put them into a catalog."""

from __future__ import annotations

from typing import Any

import msgspec
from structlog.typing import FilteringBoundLogger

from headwater.catalogs import CatalogDefinition, Catalogs, Claims, ImportSpec
from headwater.catalogs.import_reports import ROWS_SHOWN, ImportReport
from headwater.catalogs.imports import ImportOptions, import_tables, scope_of
from headwater.errors import RefusedError
from headwater.realms import Realms
from headwater.store import Store
from headwater.tasks import Claim, Task
from headwater_workers.kinds.realms import require_same_realm
from headwater_workers.kinds.runs import recorded
from headwater_workers.pipeline import find_engine, survey

__all__ = ["run"]

SHOWN_BYTES = 32 * 1024
"""Of quarantined tables, an outcome shows as many as fit in here; the count is always true."""


def run(store: Store, task: Task, claim: Claim, log: FilteringBoundLogger) -> dict[str, Any]:
    """
    task          arguments `catalog` and `catalog_id`; `import` and `digest` for an import in the catalog's definition, as it read
                  then; or the whole import under `spec`, where a person asked for it by hand
    """
    require_same_realm(store, task)
    rows = Realms(store).open(task.realm)
    catalogs = Catalogs(rows)
    definition = _definition(catalogs, task)
    spec = _spec(definition, task)
    engine = find_engine(store.settings)
    log.info("survey started", engine=str(engine), locations=list(spec.locations))

    def progress(done: int, total: int, unit: str) -> None:
        claim.report(done, total, unit)
        claim.check()

    def work() -> dict[str, Any]:
        outcomes = survey(scope_of(definition, spec), store.settings, progress=progress)
        report = import_tables(
            catalogs.open(definition.name),
            Claims(rows),
            outcomes,
            options=ImportOptions(mode=spec.mode, batch=store.settings.import_batch, name=spec.name),
            fence=claim.check,
            progress=claim.report,
        )
        return {"engine": str(engine), **_bounded(report)}

    return recorded(store, claim, work)


def _definition(catalogs: Catalogs, task: Task) -> CatalogDefinition:
    definition = catalogs.read(str(task.arguments.get("catalog")))
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
    """The report with so many of its quarantined tables as an outcome has room for."""
    limit = ROWS_SHOWN
    while limit and len(msgspec.json.encode(report.outcome(limit=limit)["quarantined"])) > SHOWN_BYTES:
        limit //= 2
    return report.outcome(limit=limit)
