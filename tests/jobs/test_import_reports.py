"""Reports of imports beside the records of their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from fake_clock import FakeClock
from headwater import Settings, iceberg
from headwater.catalogs import Catalog, ImportSpec, ReportRow
from headwater.errors import FencedError, NotFoundError
from headwater.gc import collect_realm
from headwater.jobs import run_import
from headwater.jobs import task_runs as reports_module
from headwater.jobs.task_runs import ReportWriter, Run, list_runs, read_report, record_run
from headwater.store import SYSTEM_REALM, ObjectId, Store, open_store
from headwater.tasks import TaskQueue
from lakes import HOUR, HandmadeSurvey, make_lake, make_realm, rows_of

WEEK = 7 * 24 * HOUR


def row(number: int) -> ReportRow:
    return ReportRow(key=("t", str(number)), directory=f"s3://lake/{number}", outcome="imported", snapshot=number)


def keep(store: Store, task: int, attempt: int, rows: Iterable[ReportRow]) -> None:
    writer = ReportWriter(store, ObjectId(task), attempt)
    for one in rows:
        writer.add_row(one)
    writer.finish_report()


def read(store: Store, task: int, attempt: int) -> list[ReportRow]:
    return list(read_report(store, ObjectId(task), attempt))


def run_of(store: Store, task: int, attempt: int = 1) -> Run:
    now = store.clock.now()
    return Run(kind="import", realm="acme", started=now, finished=now, task=ObjectId(task), attempt=attempt)


def test_report_has_all_its_rows_in_order(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports_module, "_PIECE_BYTES", 500)
    rows = [row(number) for number in range(100)]

    keep(store, 1000, 1, rows)

    assert read(store, 1000, 1) == rows


def test_report_without_rows_is_there(store: Store) -> None:
    keep(store, 1000, 1, [])

    assert read(store, 1000, 1) == []
    with pytest.raises(NotFoundError):
        read(store, 1000, 2)


def test_later_attempt_takes_the_place_of_an_earlier_one(store: Store) -> None:
    keep(store, 1000, 1, [row(1)])
    keep(store, 1000, 2, [row(2)])

    assert read(store, 1000, 2) == [row(2)]
    with pytest.raises(NotFoundError):
        read(store, 1000, 1)


def test_fenced_attempt_keeps_no_rows(store: Store) -> None:
    def fence() -> None:
        raise FencedError("taken over")

    with pytest.raises(FencedError):
        ReportWriter(store, ObjectId(1000), 1, fence=fence).finish_report()

    with pytest.raises(NotFoundError):
        read(store, 1000, 1)


def test_report_outlives_collections_while_its_run_is_recorded(store: Store, clock: FakeClock) -> None:
    keep(store, 1000, 1, [row(1)])
    record_run(store, run_of(store, 1000))
    clock.advance(2 * WEEK)
    record_run(store, run_of(store, 1001))

    collect_realm(store, SYSTEM_REALM)

    assert read(store, 1000, 1) == [row(1)]


@pytest.mark.parametrize(("age", "is_kept"), [(HOUR, True), (WEEK + HOUR, False)])
def test_report_leaves_when_old_and_without_its_run(store_url: str, clock: FakeClock, age: float, is_kept: bool) -> None:
    with open_store(store_url, settings=Settings(runs_kept=2), clock=clock) as store:
        keep(store, 1000, 1, [row(1)])
        record_run(store, run_of(store, 1000))
        clock.advance(age)

        for task in range(3):
            record_run(store, run_of(store, 2000 + task))

        if is_kept:
            assert read(store, 1000, 1) == [row(1)]
        else:
            with pytest.raises(NotFoundError):
                read(store, 1000, 1)


@pytest.fixture
def lake(store: Store) -> Catalog:
    make_realm(store)
    return make_lake(store)


def test_import_leaves_a_report_beside_its_run(store: Store, lake: Catalog) -> None:
    broken = iceberg.QuarantinedTable(
        directory="s3://lake/x", key=("x",), code=iceberg.QuarantineCode.CORRUPT, message="s3://lake/x is broken"
    )

    _import(store, lake, lambda: [broken])

    (run,) = list_runs(store, kind="import")
    assert run.task is not None
    assert [(one.key, one.code) for one in read_report(store, run.task, run.attempt)] == [(("x",), "Corrupt")]


def test_survey_that_is_not_read_to_its_end_is_ended(store: Store, lake: Catalog) -> None:
    ended: list[str] = []

    def survey() -> Iterable[iceberg.SurveyOutcome]:
        try:
            yield iceberg.QuarantinedTable(
                directory="s3://lake/x", key=("x",), code=iceberg.QuarantineCode.CORRUPT, message="x"
            )
            raise FencedError("the session found out")
        finally:
            ended.append("yes")

    with pytest.raises(FencedError):
        _import(store, lake, survey)
    assert ended == ["yes"]


def _import(store: Store, lake: Catalog, survey: Callable[[], Iterable[iceberg.SurveyOutcome]]) -> None:
    tasks = TaskQueue(store)
    spec = ImportSpec(name="by hand", locations=("s3://lake/wh",))
    arguments = {"catalog": "lake", "catalogId": lake.definition.id, "spec": {"name": spec.name, "locations": ["s3://lake/wh"]}}
    claim = tasks.claim_task(
        tasks.submit_task("import", realm="acme", realm_key=rows_of(store).key, arguments=arguments).id, "worker"
    )
    assert claim is not None
    run_import(store, claim, survey=HandmadeSurvey(lambda scope, progress: survey()))
