"""Whatever status the operator writes has its place in the schema, and every field of the schema can be written."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from defined_kinds import LEAST, Kind, nodes, read_kind
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.catalogs import CatalogState
from headwater.clock import Micros
from headwater.jobs.catalog_tasks import LAKE_WORK
from headwater.realms import RealmManager, RealmState
from headwater.reconcile import (
    CatalogDescription,
    ImportDescription,
    LakeWorkDescription,
    PlannedStep,
    PlanPreview,
    RealmDescription,
    ReconcileOutcome,
    RefuseManifest,
    ReportDrift,
    TaskDescription,
    WaitUntil,
)
from headwater.tasks import TaskState
from headwater_operator.resource.conditions import UNSEEN, SecretSeen
from headwater_operator.resource.resource_status import PlanMade, catalog_status, realm_status
from headwater_operator.runtime.informer_cache import CachedResource

NOW = Micros(1_767_225_600_000_000)
TOKEN = "token-1"
"""Whose annotation asks for a plan."""


def _several(one: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[tuple[Any, ...]]:
    """None of it, one, or one so many times."""
    return st.builds(lambda value, count: (value,) * count, one, st.sampled_from([0, 1, most]))


_TEXTS = st.sampled_from([0, 1, 300, 9000]).map(lambda size: "x\n" * size)
_TIMES = st.integers(1_740_000_000_000_000, 1_790_000_000_000_000).map(Micros)
_COUNTS = st.integers(0, 2**40)
_WAITS = st.sampled_from(["PurgeUnconfirmed", "PurgeHold", "Purging", "Purged", "Loading", "RealmMissing", "RealmNotActive"])
_REFUSALS = st.sampled_from(["ManagedByAnother", "RealmManagedByAnother", "DeletionProtected"])
_REPORTS = st.sampled_from(["Drifted", "TaskDeadLettered", "TaskCancelled"])
_NOTICES = {
    WaitUntil: st.builds(WaitUntil, _WAITS, _TEXTS, st.none() | _TIMES),
    RefuseManifest: st.builds(RefuseManifest, _REFUSALS, _TEXTS),
    ReportDrift: st.builds(ReportDrift, _REPORTS, _TEXTS),
}
_QUARANTINED = {"total": 78, "codes": {f"{'c' * 60}{number}": number for number in range(13)}, "shown": []}
_TASKS = st.builds(
    TaskDescription,
    id=st.just("0123456789abcdef"),
    kind=st.sampled_from(["gc", "purge", "import"]),
    subject=st.sampled_from(["", "lake/initial", "c" * 128 + "/" + "i" * 63]),
    state=st.sampled_from([state for state in TaskState if state.is_active]),
    attempt=_COUNTS,
    failures=st.integers(0, 5),
    due=_TIMES,
    started=st.none() | _TIMES,
    finished=st.none(),
    done=_COUNTS,
    total=st.none() | _COUNTS,
    unit=st.sampled_from(["", "rows", "tables"]),
    error=_TEXTS,
    outcome=st.dictionaries(st.sampled_from(["deleted", "deletedBytes", "rowsDeleted", "imported", "updated"]), _COUNTS).map(
        lambda counts: {
            "gone": 2,
            "dropped": 1,
            **counts,
            "quarantined": _QUARANTINED,
            "commits": {"total": 1, "shown": ["0123456789abcdef"]},
        }
    ),
    is_stopping=st.booleans(),
)
_ENDED = st.builds(
    lambda task, state, time: dataclasses.replace(task, state=state, finished=time),
    _TASKS,
    st.sampled_from([state for state in TaskState if not state.is_active]),
    _TIMES,
)
_REALMS = st.builds(
    RealmDescription,
    id=st.just("acme"),
    key=st.integers(0, 2**64 - 1),
    state=st.sampled_from(RealmState),
    manager=st.none() | st.just(RealmManager()),
    catalogs=st.none() | _COUNTS,
    tables=st.none() | _COUNTS,
    tasks=_several(_TASKS, 12),
    last_collection=st.none() | _ENDED,
    last_success=st.none() | _TIMES,
    next_collection=st.none() | _TIMES,
    is_suspended=st.booleans(),
    hold_until=st.none() | _TIMES,
    purge=st.none() | _TASKS | _ENDED,
)
_GOING = st.builds(
    lambda realm, state, purge: dataclasses.replace(realm, state=state, purge=purge),
    _REALMS,
    st.sampled_from((RealmState.PURGING, RealmState.PURGED)),
    _TASKS | _ENDED,
)
"""What little else would come to."""
_IMPORTS = st.builds(
    ImportDescription,
    name=st.just("initial"),
    mode=st.sampled_from(["once", "sync"]),
    active=st.none() | _TASKS,
    last=st.none() | _ENDED,
    next=st.none() | _TIMES,
    succeeded=st.none() | _ENDED,
)
_LAKE_WORKS = st.builds(
    LakeWorkDescription,
    kind=st.sampled_from(LAKE_WORK),
    active=st.none() | _TASKS,
    last=st.none() | _ENDED,
    next=st.none() | _TIMES,
)
_CATALOGS = st.builds(
    CatalogDescription,
    id=st.just("0123456789abcdef"),
    name=st.just("lake"),
    state=st.sampled_from(CatalogState),
    tables=_COUNTS,
    namespaces=_COUNTS,
    imports=_several(_IMPORTS, 22).map(
        lambda some: tuple(dataclasses.replace(one, name=f"import-{place}") for place, one in enumerate(some))
    ),
    lake_work=_several(_LAKE_WORKS, 2).map(
        lambda some: tuple(dataclasses.replace(one, kind=kind) for one, kind in zip(some, LAKE_WORK, strict=False))
    ),
)
_OUTCOMES = st.builds(
    ReconcileOutcome,
    subject=st.just("Realm acme"),
    steps=st.lists(
        st.builds(PlannedStep, st.sampled_from(["RealmCreated", "CatalogUpdated", "Recorded"]), _TEXTS), max_size=2
    ).map(tuple),
    waits=_several(_NOTICES[WaitUntil], 2),
    refused=_several(_NOTICES[RefuseManifest], 2),
    reports=_several(_NOTICES[ReportDrift], 2),
) | st.just(40_000).map(lambda size: RuntimeError("a fault\n" + "y" * size))
_PLANS = st.builds(
    PlanPreview,
    steps=_several(_TEXTS, 120),
    waits=_several(_NOTICES[WaitUntil], 2),
    refused=_several(_NOTICES[RefuseManifest], 2),
    reports=_several(_NOTICES[ReportDrift], 2),
).map(lambda preview: PlanMade(TOKEN, preview))
_SECRETS = st.just(UNSEEN) | st.builds(SecretSeen, name=st.just("acme-root-credentials"), exists=st.booleans())


def resource(kind: str, is_deleted: bool, former: Any = None) -> CachedResource:
    """One whose annotation asks for a plan."""
    metadata: dict[str, Any] = {
        "name": "acme",
        "namespace": "default",
        "uid": "u",
        "generation": 7,
        "resourceVersion": "1",
        "annotations": {"headwater.dev/plan": json.dumps({"token": TOKEN})},
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_deleted else {}),
    }
    spec = {**LEAST[kind], "deletionPolicy": "Purge"}
    body = {"apiVersion": "headwater.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}
    return CachedResource.from_body(body if former is None else {**body, "status": former})


def misfits(kind: Kind, status: dict[str, Any]) -> list[str]:
    """Fields of the status that the schema does not know, and what breaks its bounds."""
    body = {**kind.made(LEAST[kind.name]), "status": json.loads(json.dumps(status))}
    return kind.compiled.decode(body) + list(map(str, kind.compiled.validate(body, body, is_status=True)))


def paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, (*path, "[]"))


REALM_STATUSES = st.builds(
    lambda outcome, seen, secret, plan, deleted: realm_status(
        resource("Realm", deleted), outcome, seen, now=NOW, secret=secret, plan=plan
    ),
    _OUTCOMES,
    _REALMS | _GOING | st.sampled_from([None, UNSEEN]),
    _SECRETS,
    st.none() | _PLANS,
    st.booleans(),
)
_HOME = resource("Realm", False, {"maintenance": {"lastTime": "2026-01-01T00:00:00Z", "nextTime": "2026-01-08T00:00:00Z"}})
CATALOG_STATUSES = st.builds(
    lambda outcome, seen, realm, plan, deleted: catalog_status(
        resource("Catalog", deleted), outcome, seen, now=NOW, realm=realm, plan=plan
    ),
    _OUTCOMES,
    _CATALOGS | st.sampled_from([None, UNSEEN]),
    st.sampled_from([None, _HOME]),
    st.none() | _PLANS,
    st.booleans(),
)
STATUSES = {"Realm": REALM_STATUSES, "Catalog": CATALOG_STATUSES}
_MANY = settings(max_examples=150)


@pytest.mark.long
@_MANY
@given(REALM_STATUSES)
def test_status_of_a_realm_fits(status: dict[str, Any]) -> None:
    assert misfits(read_kind("Realm"), status) == []


@pytest.mark.long
@_MANY
@given(CATALOG_STATUSES)
def test_status_of_a_catalog_fits(status: dict[str, Any]) -> None:
    assert misfits(read_kind("Catalog"), status) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", LEAST)
def test_every_field_of_the_status_is_written_some_time(kind: str) -> None:
    written: set[tuple[str, ...]] = set()

    @settings(max_examples=900, database=None, derandomize=True)
    @given(STATUSES[kind])
    def collect(status: dict[str, Any]) -> None:
        written.update(paths(status))

    collect()

    assert {path for path, _ in nodes(read_kind(kind).schema["properties"]["status"])} - written == set()


@pytest.mark.parametrize("kind", LEAST)
def test_each_column_shows_a_field_that_is_there(kind: str) -> None:
    fields = dict(nodes(read_kind(kind).schema))
    columns = {column["name"]: column for column in read_kind(kind).served["additionalPrinterColumns"]}
    for name, column in columns.items():
        path = tuple(column["jsonPath"].replace('[?(@.type=="Ready")]', ".[]").removeprefix(".").split("."))
        if path != ("metadata", "creationTimestamp"):
            assert fields[path]["type"] == {"date": "string"}.get(column["type"], column["type"]), name
            assert (column["type"] == "date") <= (fields[path].get("format") == "date-time"), name


def test_columns_are_those_that_an_engineer_looks_for_first(realms: Kind, catalogs: Kind) -> None:
    def shown(kind: Kind, *, is_wide: bool) -> list[str]:
        return [one["name"] for one in kind.served["additionalPrinterColumns"] if bool(one.get("priority")) == is_wide]

    usual = ["State", "Ready", "Reason", "Tables", "Last-Maintenance", "Age"]
    assert [shown(kind, is_wide=False) for kind in (realms, catalogs)] == [usual, usual]
    assert shown(realms, is_wide=True) == ["Next-Maintenance", "Message"]
    assert shown(catalogs, is_wide=True) == ["Realm", "Next-Maintenance", "Message"]


def test_resources_go_by_short_names_and_one_category(realms: Kind, catalogs: Kind) -> None:
    names = [kind.definition["spec"]["names"] for kind in (realms, catalogs)]

    assert [(one["singular"], one["shortNames"], one["categories"]) for one in names] == [
        ("realm", ["rlm"], ["headwater"]),
        ("catalog", ["hcat"], ["headwater"]),
    ]


@pytest.mark.parametrize("kind", LEAST)
def test_every_field_is_described_in_a_sentence(kind: str) -> None:
    bare = [
        path
        for path, schema in nodes(read_kind(kind).schema)
        if path[:1] != ("metadata",) and not schema.get("description", "").endswith(".")
    ]

    assert bare == []


@pytest.mark.parametrize("kind", LEAST)
def test_statuses_are_bounded_everywhere(kind: str) -> None:
    """What a server adds up before it takes rules, and what keeps a resource small."""

    def is_bounded(schema: Any) -> bool:
        match schema["type"]:
            case "string":
                return "maxLength" in schema or "enum" in schema
            case "array":
                return "maxItems" in schema
            case "object":
                return "properties" in schema or "maxProperties" in schema
            case "integer":
                return "minimum" in schema
        return schema["type"] == "boolean"

    assert [path for path, schema in nodes(read_kind(kind).schema) if not is_bounded(schema)] == []
