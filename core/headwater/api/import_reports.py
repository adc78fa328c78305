"""What became of each table in an import: as rows, as a Parquet file, or as a page of HTML."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwater.api.catalog_imports import BY_HAND
from headwater.catalogs import ImportSpec, ParquetReport, ReportRow
from headwater.clock import as_text
from headwater.durability import replacing
from headwater.errors import NotFoundError, RefusedError
from headwater.html_report import ImportGatherer
from headwater.jobs import IMPORT, dry_import
from headwater.jobs.task_runs import Run, list_runs, read_report
from headwater.store import ObjectId, Store, id_text
from headwater.throttle import ProgressCallback, no_progress


def check_report_file(file: Path) -> None:
    """Refuse a file that would be neither Parquet nor HTML, or cannot be written: before the work that it is to tell of."""
    if file.suffix not in (".parquet", ".html"):
        raise RefusedError(f"{file} ends neither in .parquet nor in .html")
    folder = file.absolute().parent
    if not folder.is_dir():
        raise RefusedError(f"{file} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK) or file.is_dir():
        raise RefusedError(
            f"{file} cannot be written: {'it is a folder' if file.is_dir() else f'no right to write to {folder}'}"
        )


def find_import_run(store: Store, realm: str, catalog: str, task: ObjectId | None = None) -> Run:
    """The record of the last import into a catalog, or of the one that a task did.

    raises        NotFoundError
    """
    for run in list_runs(store, kind=IMPORT, realm=realm):
        if run.subject.partition("/")[0] == catalog and task in (None, run.task):
            return run
    which = "" if task is None else f" by task {id_text(task)}"
    raise NotFoundError(f"no import into catalog {catalog!r} of realm {realm!r}{which} is on record")


def report_rows(store: Store, run: Run) -> Iterator[ReportRow]:
    """A row for each table that a run looked at; raises NotFoundError where its report is not there."""
    if run.task is None:
        raise NotFoundError("the run has no task, and so no report")
    return read_report(store, run.task, run.attempt)


def write_report(store: Store, run: Run, file: Path) -> int:
    """Write the report of a run to a file; returns how many rows there were."""
    rows = 0
    catalog, _, name = run.subject.partition("/")
    whose = BY_HAND if name.startswith(f"{BY_HAND}/") else f"import {name}"
    read = report_rows(store, run)
    with _writing(file, catalog, [f"realm {run.realm}", whose, f"run of {as_text(run.started)}"], store) as write:
        for row in read:
            write(row)
            rows += 1
    return rows


def dry_import_into(
    store: Store, realm: str, catalog: str, spec: ImportSpec, file: Path | None, *, progress: ProgressCallback = no_progress
) -> dict[str, Any]:
    """What an import would do, as its counts; nothing is written but the report, where a file is named for it."""
    if file is None:
        return dry_import(store, realm, catalog, spec, progress=progress).outcome()
    with _writing(file, catalog, [f"realm {realm}", BY_HAND, "dry run: nothing was written"], store) as write:
        return dry_import(store, realm, catalog, spec, write=write, progress=progress).outcome()


@contextmanager
def _writing(file: Path, catalog: str, about: Sequence[str], store: Store) -> Iterator[Callable[[ReportRow], None]]:
    """Takes rows, and has them in the file at the end."""
    with replacing(file) as part:
        if file.suffix == ".parquet":
            with ParquetReport(part) as parquet:
                yield parquet.add_row
            return
        gatherer = ImportGatherer()
        yield gatherer.add
        part.write_text(gatherer.render_page(catalog, about, now=store.clock.now()), encoding="utf-8")
