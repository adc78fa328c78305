"""Metrics: each is in the catalogue and as it says there, labels of realms are bounded, and the leader alone tells what all share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bodies import catalog_seen, import_seen
from prometheus_client.parser import text_string_to_metric_families

from fake_clock import FakeClock
from headwater.clock import Micros
from headwater.monitoring import OTHERS, FiguresReader, StoreFigures
from headwater.realms import RealmRegistry, RealmState
from headwater.reconcile import RealmDescription, TaskDescription
from headwater.store import Store
from headwater.tasks import TaskQueue, TaskState
from headwater_operator.metrics.operator_metrics import CATALOGUE, OperatorMetrics
from headwater_operator.runtime.informer_cache import ResourceKey

SECOND = 1_000_000


@pytest.fixture
def metrics() -> OperatorMetrics:
    """Of a process that leads."""
    made = OperatorMetrics(realms=2)
    made.sources.is_leading = lambda: True
    return made


def samples(metrics: OperatorMetrics) -> dict[str, float]:
    """By name and labels as they are written."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def of_realms(metrics: OperatorMetrics, name: str) -> dict[str, float]:
    """A metric of realms, by realm."""
    start = f'headwater_{name}{{realm="'
    return {key.removeprefix(start)[:-2]: value for key, value in samples(metrics).items() if key.startswith(start)}


def make_task(kind: str = "gc", state: TaskState = TaskState.SUCCEEDED, **changes: Any) -> TaskDescription:
    values: dict[str, Any] = {
        "id": "1", "kind": kind, "subject": "", "state": state, "attempt": 1, "failures": 0, "due": Micros(0), "since": Micros(0),
        "started": Micros(0), "finished": Micros(5 * SECOND), "done": 0, "total": None, "unit": "rows", "error": "",
        "outcome": {"deleted": 10, "deletedBytes": 1000}, "is_stopping": False,
    }  # fmt: skip
    return TaskDescription(**(values | changes))


def make_realm(realm_id: str = "acme", **changes: Any) -> RealmDescription:
    values: dict[str, Any] = {
        "id": realm_id, "key": 1, "state": RealmState.ACTIVE, "manager": None, "catalogs": 0, "tables": 0, "tasks": (),
        "last_collection": None, "last_success": None, "next_collection": None, "is_suspended": False,
        "hold_until": None, "purge": None,
    }  # fmt: skip
    return RealmDescription(**(values | changes))


def collected(realm_id: str = "acme", task: str = "1", *, finished: int = 5, **outcome: Any) -> RealmDescription:
    ended = make_task(id=task, finished=Micros(finished * SECOND), **({"outcome": outcome} if outcome else {}))
    return make_realm(realm_id, last_collection=ended, last_success=ended.finished)


def tell_everything(metrics: OperatorMetrics) -> None:
    metrics.reconciled("Realm", "settled", 0.1)
    metrics.retried("Realm")
    metrics.drifted("Realm", "corrected")
    metrics.event_posted("RealmCreated")
    metrics.api_request("patch", 200, 0.01)
    metrics.sources.watch_ages = lambda: {"Realm": 1.0}
    metrics.sources.standings = lambda: {("Realm", "Ready", "True"): 3}
    purge = make_task("purge", TaskState.RUNNING, done=3, total=10)
    metrics.set_realm(make_realm(purge=purge, last_success=Micros(SECOND), next_collection=Micros(2 * SECOND)))
    imported = catalog_seen(imports=(import_seen(last=make_task("import")),))
    metrics.set_catalog(ResourceKey("Catalog", "default", "lake"), "acme", imported)


def test_metrics_are_in_the_catalogue_as_it_says(
    metrics: OperatorMetrics, store: Store, clock: FakeClock, make_due_task: Callable[[], None]
) -> None:
    tell_everything(metrics)
    make_due_task()
    metrics.set_store_figures(FiguresReader(store, clock, 15, lambda: True, lambda figures: None).read_figures())
    families = {
        family.name: family
        for family in text_string_to_metric_families(metrics.render().decode())
        if family.name.startswith("headwater_")
    }

    told = {entry.name.removesuffix("_total"): entry for entry in CATALOGUE}
    assert set(families) == set(told)
    for name, family in families.items():
        entry = told[name]
        assert (family.type, family.documentation) == (entry.type, entry.help)
        labels = [set(sample.labels) - {"le"} for sample in family.samples]
        assert all(one == set(entry.labels) for one in labels), name


def test_names_in_the_catalogue_are_unique_and_telling() -> None:
    names = [entry.name for entry in CATALOGUE]

    assert len(set(names)) == len(names)
    assert [name for name in names if not name.startswith("headwater_")] == []
    assert [entry.name for entry in CATALOGUE if (entry.type == "counter") != entry.name.endswith("_total")] == []
    assert [entry.name for entry in CATALOGUE if not entry.help.endswith(".")] == []


def test_standby_tells_nothing_that_the_leader_tells(metrics: OperatorMetrics) -> None:
    tell_everything(metrics)
    metrics.set_store_figures(StoreFigures(is_up=True, realms={"ACTIVE": 3}))
    metrics.sources.is_leading = lambda: False
    found = samples(metrics)

    assert (found["headwater_operator_leader"], found["headwater_store_up"]) == (0, 1)
    assert [
        name for name in found if name.startswith(("headwater_realms", "headwater_maintenance", "headwater_operator_res"))
    ] == []


def test_request_without_an_answer_is_counted_as_such(metrics: OperatorMetrics) -> None:
    metrics.api_request("get", 0, 1.0)

    assert samples(metrics)['headwater_operator_api_requests_total{code="none",verb="get"}'] == 1


def test_collection_is_counted_once_however_often_it_is_seen(metrics: OperatorMetrics) -> None:
    for _ in range(3):
        metrics.set_realm(collected(task="1"))
    metrics.set_realm(collected(task="2", deleted=1, deletedBytes=7))

    assert of_realms(metrics, "maintenance_objects_deleted_total") == {"acme": 11}
    assert of_realms(metrics, "maintenance_bytes_reclaimed_total") == {"acme": 1007}


def test_collection_from_before_this_leader_was_counted_by_another(metrics: OperatorMetrics) -> None:
    metrics.lead_from(Micros(6 * SECOND))
    metrics.set_realm(collected(finished=5))

    assert of_realms(metrics, "maintenance_objects_deleted_total") == {"acme": 0}


def test_last_success_outlives_a_later_failure(metrics: OperatorMetrics) -> None:
    metrics.set_realm(collected(finished=5))
    metrics.set_realm(make_realm(last_collection=make_task(id="2", state=TaskState.FAILED)))

    assert of_realms(metrics, "maintenance_last_success_timestamp_seconds") == {"acme": 5}


def test_suspended_realm_has_no_next_collection(metrics: OperatorMetrics) -> None:
    metrics.set_realm(make_realm(next_collection=Micros(9 * SECOND)))
    metrics.set_realm(make_realm(is_suspended=True))

    assert of_realms(metrics, "maintenance_next_due_timestamp_seconds") == {}


@pytest.mark.parametrize(
    ("task", "remaining"),
    [
        (make_task("purge", TaskState.RUNNING, done=30, total=100), {"acme": 70}),
        (make_task("purge", TaskState.RUNNING, done=30, total=None), {}),
        (make_task("purge", TaskState.SUCCEEDED, done=30, total=100), {"acme": 0}),
        (None, {}),
    ],
)
def test_purge_tells_what_it_has_left(
    metrics: OperatorMetrics, task: TaskDescription | None, remaining: dict[str, float]
) -> None:
    metrics.set_realm(make_realm(purge=task))

    assert of_realms(metrics, "purge_rows_remaining") == remaining


def test_realms_beyond_the_limit_share_a_label(metrics: OperatorMetrics) -> None:
    for number, name in enumerate(["a", "b", "c", "d"], start=1):
        metrics.set_realm(collected(name, finished=number))

    assert of_realms(metrics, "maintenance_objects_deleted_total") == {"a": 10, "b": 10, OTHERS: 20}
    assert of_realms(metrics, "maintenance_last_success_timestamp_seconds") == {"a": 1, "b": 2, OTHERS: 3}


def test_rows_of_purges_that_share_a_label_add_up(metrics: OperatorMetrics) -> None:
    for name in ["a", "b", "c", "d"]:
        metrics.set_realm(make_realm(name, purge=make_task("purge", TaskState.RUNNING, done=1, total=6)))

    assert of_realms(metrics, "purge_rows_remaining") == {"a": 5, "b": 5, OTHERS: 10}


def test_realm_that_is_gone_makes_room_while_counters_grow(metrics: OperatorMetrics) -> None:
    for name in ["a", "b", "c"]:
        metrics.set_realm(collected(name))
    metrics.forget_realm("a")
    metrics.set_realm(collected("c"))
    metrics.set_realm(collected("d"))
    metrics.forget_realm("c")

    assert of_realms(metrics, "maintenance_objects_deleted_total") == {"b": 10, "d": 10, OTHERS: 10}


def test_realm_named_as_the_shared_label_is_among_others(metrics: OperatorMetrics) -> None:
    metrics.set_realm(collected(OTHERS))

    assert of_realms(metrics, "maintenance_objects_deleted_total") == {OTHERS: 10}


@pytest.fixture
def make_due_task(store: Store) -> Callable[[], None]:
    """A realm with a collection that is due."""

    def make() -> None:
        realm = RealmRegistry(store).create_realm("acme")
        TaskQueue(store).submit_task("gc", realm="acme", realm_key=realm.key)

    return make


def test_leader_reads_all_figures(store: Store, clock: FakeClock, make_due_task: Callable[[], None]) -> None:
    make_due_task()
    clock.advance(30)
    figures = FiguresReader(store, clock, 15, lambda: True, lambda figures: None).read_figures()

    assert figures.is_up and figures.realms == {"CREATED": 1}
    assert figures.tasks is not None and figures.tasks.due == {"gc": 1}


def test_failed_attempts_and_durations_of_tasks_are_told_by_kind(
    metrics: OperatorMetrics, store: Store, clock: FakeClock
) -> None:
    tasks = TaskQueue(store)
    failed, done = (tasks.claim_task(tasks.submit_task("gc", realm=realm).id, "worker-1") for realm in ("a", "b"))
    assert failed is not None and done is not None
    clock.advance(7)
    failed.fail_task("no luck")
    done.finish_task({})
    metrics.set_store_figures(FiguresReader(store, clock, 15, lambda: True, lambda figures: None).read_figures())

    found = samples(metrics)
    assert found['headwater_task_retries{kind="gc"}'] == 1
    assert (found['headwater_task_seconds{kind="gc"}'], found['headwater_task_longest_seconds{kind="gc"}']) == (7, 7)


def test_standby_reads_only_whether_the_store_answers(store: Store, clock: FakeClock) -> None:
    assert FiguresReader(store, clock, 15, lambda: False, lambda figures: None).read_figures() == StoreFigures(is_up=True)
