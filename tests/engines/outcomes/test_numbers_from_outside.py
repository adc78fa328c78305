"""Every number that comes in is one that can be meant. What is not is refused before anything is written, and names itself."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
from fault_world import ORDERS, OTHER_ROOT, World, base, observed, opened

from headwater import Settings, open_store
from headwater.catalogs import CommitMeta
from headwater.commits import pin_commits, read_log
from headwater.errors import HeadwaterError, RefusedError
from headwater.jobs.task_runs import list_runs
from headwater.realms import HistoryRetention, KeptHistory, rotate_principal
from headwater.reconcile import read_manifest
from headwater.tasks import FollowUpTask, TaskLease
from headwater_operator.runtime.operator_settings import OperatorSettings

NAN, INFINITE = float("nan"), float("inf")
NO_SECONDS = (NAN, INFINITE, -INFINITE, -1, -0.001, True, "5", 10**18, 10**400)
NO_COUNTS = (NAN, INFINITE, -1, 2.5, True, "5", 10**400)
NO_TIMES = (NAN, INFINITE, -1, 2.5, True, 10**18, 10**400)
Door = Callable[[World, Any], object]


def update_realm(world: World, **fields: Any) -> object:
    return world.realms.update_realm(world.realms.read_realm("acme"), **fields)


def claimed(world: World) -> TaskLease:
    """The first attempt at a task of its own."""
    tasks = world.tasks
    claim = tasks.claim_task(tasks.submit_task("odd", realm="acme", subject=str(world.store.new_id())).id, "worker")
    assert claim is not None
    return claim


def update_lake(world: World, **fields: Any) -> object:
    return world.catalogs.update_catalog(world.lake.definition, **fields)


SECONDS: dict[str, Door] = {
    "purge hold, created": lambda world, odd: world.realms.create_realm("new", purge_hold_seconds=odd),
    "purge hold": lambda world, odd: update_realm(world, purge_hold_seconds=odd),
    "age of content": lambda world, odd: update_realm(world, retention=HistoryRetention(content_age_seconds=odd)),
    "age by pattern": lambda world, odd: update_realm(
        world, retention=HistoryRetention(references=(KeptHistory(pattern="*", age_seconds=odd),))
    ),
    "hold, created": lambda world, odd: world.catalogs.create_catalog("new", base_location="s3://new/", hold_seconds=odd),
    "hold": lambda world, odd: update_lake(world, hold_seconds=odd),
    "overlap": lambda world, odd: rotate_principal(world.realms, "acme", "root", OTHER_ROOT, overlap_seconds=odd),
    "follow-up": lambda world, odd: claimed(world).finish_task({}, FollowUpTask(kind="gc", realm="a", delay_seconds=odd)),
    "put off": lambda world, odd: claimed(world).put_off("not yet", odd),
}
COUNTS: dict[str, Door] = {
    "commits of content": lambda world, odd: update_realm(world, retention=HistoryRetention(content_commits=odd)),
    "commits of references": lambda world, odd: update_realm(world, retention=HistoryRetention(reference_commits=odd)),
    "commits by pattern": lambda world, odd: update_realm(
        world, retention=HistoryRetention(references=(KeptHistory(pattern="*", commits=odd),))
    ),
    "attempts": lambda world, odd: world.tasks.submit_task("gc", realm="acme", subject="new", max_attempts=odd),
    "attempts of a follow-up": lambda world, odd: claimed(world).finish_task(
        {}, FollowUpTask(kind="gc", realm="a", max_attempts=odd)
    ),
    "entries": lambda world, odd: world.lake.entries("main", limit=odd),
    "differences": lambda world, odd: world.lake.diff("main", "dev", limit=odd),
    "commits of a log": lambda world, odd: list(world.lake.log("main", limit=odd)),
    "commits of a search": lambda world, odd: list(world.lake.log("main", within=odd)),
    "commits of a key": lambda world, odd: list(world.lake.history(ORDERS, within=odd)),
    "tasks": lambda world, odd: world.tasks.list_tasks(limit=odd),
    "runs": lambda world, odd: list_runs(world.store, limit=odd),
    "commits of a reference": lambda world, odd: list(read_log(world.rows, "catalogs", limit=odd)),
}
TIMES: dict[str, Door] = {
    "due": lambda world, odd: world.tasks.submit_task("gc", realm="acme", subject="new", due=odd),
    "due later": lambda world, odd: world.tasks.amend_task(world.task("waiting"), lambda task: {}, due=odd),
    "author": lambda world, odd: CommitMeta(author_time=odd),
}
IDS: dict[str, Door] = {
    "expected": lambda world, odd: world.lake.commit("main", [], expected=odd),
    "assigned": lambda world, odd: world.lake.assign_branch("dev", odd),
    "pinned": lambda world, odd: pin_commits(world.rows, world.task("waiting"), {odd: []}),
    "task": lambda world, odd: world.tasks.read_task(odd),
}
DOORS = [
    pytest.param(door, numbers, id=name)
    for doors, numbers in ((SECONDS, NO_SECONDS), (COUNTS, NO_COUNTS), (TIMES, NO_TIMES))
    for name, door in doors.items()
]


@pytest.mark.parametrize(("door", "numbers"), DOORS)
def test_odd_number_is_refused_and_nothing_is_written(door: Door, numbers: tuple[Any, ...]) -> None:
    with opened(*base()) as world:
        before = _settled(world)
        for odd in numbers:
            with pytest.raises(RefusedError):
                door(world, odd)
        assert _settled(world) == before


@pytest.mark.parametrize("odd", [-1, 0, 1 << 63, 10**400])
@pytest.mark.parametrize("door", IDS.values(), ids=IDS)
def test_odd_id_is_none_and_nothing_is_written(door: Door, odd: Any) -> None:
    with opened(*base()) as world:
        before = observed(world)
        with pytest.raises(HeadwaterError):
            door(world, odd)

        assert observed(world) == before


def _settled(world: World) -> Any:
    """All that can be read, but for attempts that still run."""
    told = observed(world)
    return {**told, "tasks": [task for task in told["tasks"] if "kind='odd'" not in task or "RUNNING" not in task]}


FIELDS = [(cls, field) for cls in (Settings, OperatorSettings) for field in dataclasses.fields(cls)]
NUMBERS = [(cls, field) for cls, field in FIELDS if field.type in ("int", "float")]


@pytest.mark.parametrize(("cls", "field"), FIELDS, ids=lambda one: getattr(one, "name", ""))
def test_odd_setting_is_refused_by_its_name(cls: Any, field: dataclasses.Field[Any]) -> None:
    variable = field.name.removesuffix("_seconds").upper()
    odd = (object(), *((NAN, INFINITE, -INFINITE, -1, True, "5", None, 10**400) if (cls, field) in NUMBERS else ()))

    assert [one for one in odd if not any(variable in fault for fault in settings_with(cls, field.name, one).faults())] == []


@pytest.mark.parametrize("name", [field.name for cls, field in NUMBERS if cls is Settings])
def test_odd_variable_is_refused_by_its_name(name: str) -> None:
    variable = "HEADWATER_" + name.removesuffix("_seconds").upper()
    for text in ("nan", "inf", "-1", "1e999", "99999999999999999999999d", "9" * 5000, "true", ""):
        with pytest.raises(RefusedError, match=variable):
            Settings.from_environment({variable: text})


def test_store_is_not_opened_with_an_odd_setting() -> None:
    with pytest.raises(RefusedError, match="HEADWATER_COMMIT_TIMEOUT"):
        open_store("memory://", settings=Settings(commit_timeout_seconds=NAN))


SPECS = {
    "spec.purgeHold": ("Realm", lambda odd: {"purgeHold": odd}),
    "spec.retention.content.age": ("Realm", lambda odd: {"retention": {"content": {"age": odd}}}),
    "spec.retention.content.commits": ("Realm", lambda odd: {"retention": {"content": {"commits": odd}}}),
    "spec.retention.references.commits": ("Realm", lambda odd: {"retention": {"references": {"commits": odd}}}),
    "spec.retention.patterns[0].commits": (
        "Realm",
        lambda odd: {"retention": {"patterns": [{"pattern": "*", "commits": odd}]}},
    ),
    "spec.retention.patterns[0].age": (
        "Realm",
        lambda odd: {"retention": {"patterns": [{"pattern": "*", "commits": 1, "age": odd}]}},
    ),
}
NO_SPECS = (NAN, INFINITE, -1, -5.5, 2.5, True, "-5d", "nan", "inf", "1e400", "36501d", 10**18, 10**400)


@pytest.mark.parametrize("path", SPECS)
def test_odd_number_of_a_manifest_is_refused_by_its_path(path: str) -> None:
    kind, spec = SPECS[path]
    for odd in NO_SPECS:
        metadata = {"name": "a", "namespace": "n"}
        body = {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec(odd)}
        with pytest.raises(RefusedError, match=re.escape(path)):
            read_manifest(body, settings=Settings())


def settings_with(cls: Any, name: str, value: Any) -> Any:
    needed = {"identity": "me", "cluster": "here", "address": "127.0.0.1"} if cls is OperatorSettings else {}
    return cls(**{**needed, name: value})
