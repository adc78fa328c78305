"""What the command line can do itself of a worker's work: collecting, purging, importing; each run is recorded as a worker's is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from headwater.catalogs import Catalogs, Claims, ImportSpec
from headwater.catalogs.iceberg import survey_in_process
from headwater.catalogs.import_reports import ROWS_SHOWN, ImportReport
from headwater.catalogs.imports import ImportOptions, import_tables, scope_of
from headwater.cli.running import Work
from headwater.clock import Micros
from headwater.errors import FencedError, HeadwaterError, RefusedError
from headwater.maintenance import Run, collect, purge, record_run
from headwater.realms import Realms
from headwater.store import Store, id_text
from headwater.tasks import Claim, StoppedError

__all__ = ["collecting", "dry_import", "importing", "purging"]

SHOWN_BYTES = 32 * 1024

log = structlog.get_logger(__name__)


def collecting(store: Store) -> Work:
    """Collect the garbage of the task's realm."""

    def work(claim: Claim) -> dict[str, Any]:
        owner = f"task {id_text(claim.id)}, attempt {claim.attempt}"
        return collect(store, claim.task.realm, fence=claim.check, progress=claim.report, owner=owner).as_plain()

    return _recorded(store, work)


def purging(store: Store) -> Work:
    """Purge the task's realm."""

    def work(claim: Claim) -> dict[str, Any]:
        key = claim.task.realm_key or None
        return purge(store, claim.task.realm, key=key, fence=claim.check, progress=claim.report).as_plain()

    return _recorded(store, work)


def importing(store: Store) -> Work:
    """Import tables as the task's arguments say, in this process."""

    def work(claim: Claim) -> dict[str, Any]:
        def progress(done: int, total: int, unit: str) -> None:
            claim.check()
            claim.report(done, total, unit)

        arguments = claim.task.arguments
        spec = msgspec.convert(arguments["spec"], ImportSpec)
        catalog = Catalogs(Realms(store).open(claim.task.realm)).read(arguments["catalog"])
        if catalog.id != arguments["catalog_id"]:
            raise RefusedError(f"catalog {catalog.name!r} was created anew since this import was asked for: ask again")
        return _bounded(_import(store, claim.task.realm, catalog.name, spec, fence=claim.check, progress=progress))

    return _recorded(store, work)


def dry_import(store: Store, realm_id: str, catalog: str, spec: ImportSpec) -> ImportReport:
    """What an import would do; nothing is written."""
    return _import(store, realm_id, catalog, spec, dry_run=True)


def _import(
    store: Store,
    realm_id: str,
    name: str,
    spec: ImportSpec,
    *,
    dry_run: bool = False,
    fence: Callable[[], None] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> ImportReport:
    rows = Realms(store).open(realm_id)
    catalog = Catalogs(rows).open(name)
    outcomes = survey_in_process(scope_of(catalog.definition, spec), progress=progress)
    options = ImportOptions(mode=spec.mode, batch=store.settings.import_batch, dry_run=dry_run, name=spec.name)
    return import_tables(catalog, Claims(rows), outcomes, options=options, fence=fence, progress=progress)


def _bounded(report: ImportReport) -> dict[str, Any]:
    """The report with as many of its quarantined tables as a task's outcome has room for; their number is always true."""
    limit = ROWS_SHOWN
    while limit and len(msgspec.json.encode(report.outcome(limit=limit))) > SHOWN_BYTES:
        limit //= 2
    return report.outcome(limit=limit)


def _recorded(store: Store, work: Work) -> Work:
    """The same work, with a record of how it ended; an attempt that was taken over or stopped leaves none."""

    def recorded(claim: Claim) -> dict[str, Any]:
        started = store.clock.now()
        try:
            outcome = work(claim)
        except (FencedError, StoppedError):
            raise
        except HeadwaterError as error:
            _record(store, claim, started, {}, str(error))
            raise
        _record(store, claim, started, outcome)
        return outcome

    return recorded


def _record(store: Store, claim: Claim, started: Micros, outcome: dict[str, Any], error: str = "") -> None:
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
    except HeadwaterError as fault:
        # the work itself is done, and its task tells how it ended
        log.warning("the run was not recorded", task=id_text(claim.id), fault=str(fault))
