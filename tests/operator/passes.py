"""What passes may come to, drawn by hypothesis: all outcomes, errors and sights that a status is made of."""

from __future__ import annotations

from typing import Any

from bodies import OK, body, catalog_seen, import_seen, lake_work_seen, later, realm, realm_seen, task
from hypothesis import strategies as st

from headwater.clock import Micros
from headwater.errors import ConflictError, CorruptionError, HeadwaterError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.realms import RealmState
from headwater.reconcile import (
    ManifestError,
    PlannedStep,
    PlanPreview,
    ReconcileOutcome,
    RefuseManifest,
    ReportDrift,
    WaitUntil,
)
from headwater.reconcile.manifests import ManifestFault
from headwater.tasks import TaskState
from headwater_operator.resource.conditions import UNSEEN, SecretSeen
from headwater_operator.resource.resource_status import PlanMade, catalog_status, realm_status
from headwater_operator.runtime.informer_cache import CachedResource

__all__ = ["either", "status_of"]

PLAN = "headwater.dev/plan"

texts = st.text(max_size=40) | st.just("word " * 600)
times = st.integers(min_value=-100_000, max_value=100_000).map(later)
counts = st.integers(min_value=0, max_value=10**12)
errors = st.one_of(
    texts.map(UnavailableError),
    texts.map(RefusedError),
    texts.map(UnknownOutcomeError),
    texts.map(ConflictError),
    texts.map(CorruptionError),
    texts.map(HeadwaterError),
    st.builds(lambda path, message: ManifestError([ManifestFault("", 0, path, message)]), texts, texts),
)
WAITS = {
    "Realm": ["PurgeUnconfirmed", "PurgeHold", "Purging", "Purged", "Loading"],
    "Catalog": ["PurgeUnconfirmed", "RealmMissing", "RealmNotActive", "RealmDeleting", "RoleMissing"],
}
REFUSALS = {
    "Realm": ["ManagedByAnother", "DeletionProtected"],
    "Catalog": ["ManagedByAnother", "RealmManagedByAnother", "DeletionProtected", "ServerUnknown", "ConnectionTaken"],
}
OF_LIVING = {"RoleMissing", "ServerUnknown", "ConnectionTaken"}
"""A deletion plans no roles and no connection, so it never comes to these."""
reports = st.builds(
    ReportDrift,
    st.sampled_from(["Drifted", "TaskDeadLettered", "TaskCancelled", "RotationWaits", "AccessWaits", "CredentialsElsewhere"]),
    texts,
)
steps = st.builds(
    PlannedStep,
    st.sampled_from(["RealmUpdated", "RealmMoved", "TaskRequested", "Recorded", "CatalogUpdated", "AccessUpdated"]),
    texts,
)


def few(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


def possible(names: list[str], *, is_deletion: bool) -> st.SearchStrategy[str]:
    return st.sampled_from([name for name in names if not (is_deletion and name in OF_LIVING)])


def waits(kind: str, *, is_deletion: bool = False) -> st.SearchStrategy[WaitUntil]:
    return st.builds(WaitUntil, possible(WAITS[kind], is_deletion=is_deletion), texts, st.none() | times)


def refusals(kind: str, *, is_deletion: bool = False) -> st.SearchStrategy[RefuseManifest]:
    return st.builds(RefuseManifest, possible(REFUSALS[kind], is_deletion=is_deletion), texts)


def passes(made: dict[str, Any]) -> st.SearchStrategy[ReconcileOutcome | Exception]:
    """What a pass over this body can come to."""
    kind, is_deletion = made["kind"], "deletionTimestamp" in made["metadata"]
    outcomes = st.builds(
        ReconcileOutcome,
        subject=st.just("it"),
        steps=few(steps),
        waits=few(waits(kind, is_deletion=is_deletion)),
        refused=few(refusals(kind, is_deletion=is_deletion)),
        reports=few(reports),
        error=st.none() | errors,
    )
    return outcomes | errors | st.builds(ValueError, texts) | st.just(OK)


words = st.text("abcdef", min_size=1, max_size=8)
tasks = st.builds(
    task,
    id=words,
    kind=st.sampled_from(["gc", "purge", "import"]),
    subject=words | st.just(""),
    state=st.sampled_from(TaskState),
    attempt=st.integers(0, 5),
    failures=st.integers(0, 5),
    due=times,
    since=times,
    started=st.none() | times,
    finished=times,
    done=counts,
    total=st.none() | counts,
    unit=st.sampled_from(["", "rows"]),
    error=texts,
    outcome=st.fixed_dictionaries(
        {},
        optional={
            "deleted": counts,
            "imported": counts,
            "quarantined": st.builds(dict, total=counts, codes=st.dictionaries(words, counts, max_size=2)),
            "commits": st.builds(dict, total=counts, shown=few(words)),
        },
    ),
    is_stopping=st.booleans(),
)
active = tasks.filter(lambda one: one.state.is_active)
ended = tasks.filter(lambda one: not one.state.is_active)
realms_seen = st.builds(
    realm_seen,
    state=st.sampled_from(RealmState),
    key=st.integers(1, 2),
    catalogs=st.none() | counts,
    tables=st.none() | counts,
    tasks=few(active),
    last_collection=st.none() | ended,
    last_success=st.none() | times,
    next_collection=st.none() | times,
    is_suspended=st.booleans(),
    hold_until=st.none() | times,
    purge=st.none() | tasks,
)
imports = st.builds(
    import_seen,
    mode=st.sampled_from(["once", "sync"]),
    active=st.none() | active,
    last=st.none() | ended,
    next=st.none() | times,
    succeeded=st.none() | ended,
)
works = st.builds(lake_work_seen, active=st.none() | active, last=st.none() | ended, next=st.none() | times)
catalogs_seen = st.builds(
    catalog_seen,
    tables=counts,
    imports=st.lists(imports, max_size=1).map(tuple),
    lake_work=st.lists(works, max_size=1).map(tuple),
)
absent = st.none() | st.just(UNSEEN)
plans = st.none() | st.builds(
    PlanMade,
    st.just("t1"),
    st.builds(PlanPreview, steps=few(texts), waits=few(waits("Realm")), refused=few(refusals("Realm")), reports=few(reports)),
)
metadata = st.fixed_dictionaries(
    {"generation": st.integers(1, 3)},
    optional={"deletionTimestamp": st.just("2026-05-28T20:26:40Z"), "annotations": st.just({PLAN: '{"token": "t1"}'})},
)
realm_specs = st.fixed_dictionaries({}, optional={"state": st.just("Inactive"), "deletionPolicy": st.just("Purge")})


@st.composite
def realm_passes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Realm without status, and what a pass over it brought."""
    made = body(**draw(metadata), spec=draw(realm_specs))
    missing = draw(st.sampled_from([(), (("acme-etl-credentials", "etl"),)]))
    secret = draw(st.just(UNSEEN) | st.booleans().map(lambda exists: SecretSeen("acme-root-credentials", exists, missing)))
    return made, {"outcome": draw(passes(made)), "seen": draw(absent | realms_seen), "secret": secret, "plan": draw(plans)}


@st.composite
def catalog_passes(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    made = body("Catalog", "lake", **draw(metadata))
    looked = draw(st.none() | st.just(realm(status={"maintenance": {"lastTime": "2026-05-01T00:00:00Z"}})))
    return made, {
        "outcome": draw(passes(made)),
        "seen": draw(absent | catalogs_seen),
        "realm": looked,
        "secret": draw(st.just(UNSEEN) | st.none() | st.booleans().map(lambda exists: SecretSeen("lake-connection", exists))),
        "plan": draw(plans),
    }


def status_of(made: dict[str, Any], brought: dict[str, Any], *, now: Micros) -> dict[str, Any]:
    make = {"Realm": realm_status, "Catalog": catalog_status}[made["kind"]]
    others = {name: value for name, value in brought.items() if name not in ("outcome", "seen")}
    return make(CachedResource.from_body(made), brought["outcome"], brought["seen"], now=now, **others)


either = realm_passes() | catalog_passes()
"""A body without a status, and what a pass over it brought: for ``status_of``."""
