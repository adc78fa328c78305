"""The plan for a realm, and which resource may manage it: pure functions from the manifest and the observed state to actions.

Anybody who may write in a namespace may create a resource there, so a realm does not leave its namespace on the taker's request alone:
its manager must agree by the annotation `release-to`, or a person with access to the store must release it.

A resource that is created anew has another uid, and continues as the manager: after a deletion under Retain, from a backup of its
cluster, or in a cluster that took the name over. A uid that was succeeded in this way never takes the realm back unasked. Otherwise a
forgotten copy of the cluster would do so at its next pass, and the two would alternate for ever.

All clusters without a chosen name have the same default name. There a realm that is managed under another uid may be in use in another
cluster, so it is taken over only on request; a realm that was released is taken back all the same.
"""

from __future__ import annotations

from typing import cast

import msgspec

from headwater.clock import Micros
from headwater.jobs import COLLECT, PURGE
from headwater.realms import MaintenanceSchedule, Realm, RealmFields, RealmManager, RealmState
from headwater.reconcile.access_plan import plan_principal_rotation, plan_realm_access
from headwater.reconcile.actions import (
    Action,
    AdoptRealm,
    BootstrapRealm,
    CreateRealm,
    DetachRealm,
    MoveRealm,
    RecordHandled,
    RefuseManifest,
    RemoveRealm,
    ReportDrift,
    RotateCredentials,
    RunTaskNow,
    SubmitTask,
    UpdateRealm,
    WaitUntil,
    name_in_manifest,
    unconfirmed_purge,
    value_in_manifest,
)
from headwater.reconcile.declared_access import ACCESS
from headwater.reconcile.manifests import (
    ADOPT,
    CONFIRM_PURGE,
    DELETE,
    RELEASE_TO,
    ROTATE_CREDENTIALS,
    ROTATE_PRINCIPAL,
    RUN_NOW,
    ManifestMetadata,
    RealmManifest,
)
from headwater.reconcile.observed_state import ObservedRealm
from headwater.reconcile.schedule import ScheduledWork, cancel_scheduled, dead_letter, keep_scheduled, weekly_schedule
from headwater.tasks import Task, TaskState

APPLIED = "headwater.dev/applied"
"""The property with the digest of the spec that was applied last."""

HOME = "headwater.dev/home"
"""The property of an unmanaged realm that holds the namespace of the resource that it was detached from."""
FORMER = "headwater.dev/former-manager"
"""The property that holds that resource: its cluster, namespace and name, separated by slashes."""
SUCCEEDED = "headwater.dev/succeeded-uids"
"""The property with the uids that its resource had earlier while it managed the realm: the latest last."""
_SUCCEEDED_LIMIT = 100

_BEGUN = (RealmState.CREATED, RealmState.INITIALIZING)
_SETTLED = (RealmState.ACTIVE, RealmState.INACTIVE)
_GOING = (RealmState.PURGING, RealmState.PURGED)


def plan_realm(manifest: RealmManifest, observed: ObservedRealm, now: Micros) -> list[Action]:
    """The actions that can be taken now, in order, and what waits or is refused. An empty list means nothing to do.

    A step is planned only from the observed state, never from earlier steps, so the next plan resumes an interrupted one.
    """
    realm = observed.realm
    if realm is None:
        return [] if manifest.metadata.is_deletion else [CreateRealm(_first_fields(manifest, observed.me)), BootstrapRealm()]
    if realm.manager != observed.me:
        return _plan_foreign(manifest, realm, observed)
    if manifest.metadata.is_deletion:
        return _plan_deletion(manifest, realm, observed, now)
    return _plan_life(manifest, realm, observed, now)


def _first_fields(manifest: RealmManifest, me: RealmManager) -> RealmFields:
    return RealmFields(**manifest.spec.fields(), manager=me)


def _plan_foreign(manifest: RealmManifest, realm: Realm, observed: ObservedRealm) -> list[Action]:
    me = observed.me
    asked, record = manifest.metadata.annotations.get(ADOPT), adopt_record(me)
    owner = manager_text(realm.manager)
    if manifest.metadata.is_deletion and manifest.spec.deletion_policy == "Retain":
        return []
    if may_return(realm, me, is_cluster_named=observed.is_cluster_named) and not manifest.metadata.is_deletion:
        return _plan_return(manifest, realm, me)
    if asked is None:
        forget: list[Action] = [RecordHandled(record, None)] if record in realm.acted else []
        return [*forget, RefuseManifest("ManagedByAnother", f"realm {realm.id} is managed by {owner}{_not_taken(realm, me)}")]
    if asked != realm.id:
        return [
            RefuseManifest(
                "ManagedByAnother", f"realm {realm.id} is managed by {owner}; {ADOPT} says {asked}, and not {realm.id}"
            )
        ]
    if not _may_adopt(realm, me):
        home = f"namespace {realm.manager.namespace if realm.manager else realm.acted[HOME]}"
        advice = (
            f"which has not given it away: annotate the Realm there {RELEASE_TO}: {_taker_text(me)}, "
            f"or have somebody with access to the store run `headwater realm release {realm.id}`"
        )
        return [RefuseManifest("ManagedByAnother", f"realm {realm.id} is managed by {owner} and belongs to {home}, {advice}")]
    if realm.acted.get(record) == asked:
        again = f"take {ADOPT} away, apply, and set it again"
        return [
            RefuseManifest("ManagedByAnother", f"realm {realm.id} was adopted once, and {owner} took it over since; {again}")
        ]
    if realm.state not in _SETTLED:
        return [RefuseManifest("ManagedByAnother", f"realm {realm.id} is managed by {owner} and {_why_not_now(realm, owner)}")]
    return [AdoptRealm(me, record, asked)]


def _not_taken(realm: Realm, me: RealmManager) -> str:
    """The reason why a realm is not taken over unasked, and how to request it."""
    advice = f"annotate {ADOPT}: {realm.id} to take it over"
    if not _belongs_to(realm, me) or realm.manager is None:
        return f"; {advice}"
    if _is_succeeded(realm, me):
        return f", which took it over from this one; {advice}"
    return (
        f", which has the name of this Realm and another uid. If that is in another cluster, give this one a name of its own: `cluster` "
        f"in the values of the chart, or HEADWATER_OPERATOR_CLUSTER. If it is this Realm before its cluster was restored, {advice}, or "
        f"set that name to {me.cluster} if no other cluster on this store goes by it"
    )


def _plan_return(manifest: RealmManifest, realm: Realm, me: RealmManager) -> list[Action]:
    """Plan for a resource that was created anew: after a deletion under Retain, or from a backup of its cluster."""
    if realm.state is RealmState.LOADING:
        return [_loading(realm)]  # the import changes the definition, too
    asked = manifest.metadata.annotations.get(ADOPT)
    return [AdoptRealm(me, adopt_record(me), asked) if asked == realm.id else AdoptRealm(me)]


def _why_not_now(realm: Realm, owner: str) -> str:
    """Why the realm cannot be taken over now: it must be complete and not going away, and its root's credentials must be stored
    somewhere.
    """
    away = f"`headwater realm purge {realm.id}` and `headwater realm delete {realm.id}` clear the way for a new one"
    if realm.state in _GOING:
        return f"{realm.state}: it is not adopted any more; {away}"
    if realm.state is RealmState.LOADING:
        return "LOADING: it is adopted once its import is done"
    if realm.manager is None:
        made = f"`headwater realm create {realm.id}` goes on with it"
        return f"{realm.state}: it is adopted once its bootstrap is done; {made}, or {away}"
    return f"{realm.state}: it is adopted once {owner} has brought its bootstrap to an end; where that is gone for good, {away}"


def _plan_life(manifest: RealmManifest, realm: Realm, observed: ObservedRealm, now: Micros) -> list[Action]:
    if realm.state in _BEGUN:
        return [BootstrapRealm()]
    if realm.state is RealmState.LOADING:
        return [_loading(realm)]
    if realm.state is RealmState.PURGING:
        return [
            *_purge(observed, now),
            WaitUntil("Purging", f"realm {realm.id} is being purged, which cannot be called off any more"),
        ]
    if realm.state is RealmState.PURGED:
        advice = f'delete its resource, or in a file annotate {DELETE}: "true", to delete its entry; applied again it is created anew'
        return [WaitUntil("Purged", f"realm {realm.id} is purged; {advice}")]
    wished = _wished_state(manifest)
    changes = _changes(manifest, realm)
    is_new = realm.acted.get(APPLIED) != manifest.spec.digest()
    agreed = _agree(manifest, realm)
    if not is_new and manifest.spec.drift_policy == "Report":
        return [
            *_report_drift(manifest, realm, changes),
            *agreed,
            *_access(manifest, realm, observed, now),
            *_rotate(manifest, realm),
            *_maintain(manifest, realm, realm.maintenance, observed, now),
        ]
    steps: list[Action] = []
    if realm.state is not wished:
        steps.append(MoveRealm(wished))
    if changes or is_new:
        steps.append(UpdateRealm(changes, manifest.spec.digest()))
    after = msgspec.structs.replace(realm, state=wished)
    return [
        *steps,
        *agreed,
        *_access(manifest, after, observed, now),
        *_rotate(manifest, after),
        *_maintain(manifest, after, manifest.spec.maintenance, observed, now),
    ]


def _loading(realm: Realm) -> WaitUntil:
    return WaitUntil("Loading", f"realm {realm.id} is being loaded by an import")


def _agree(manifest: RealmManifest, realm: Realm) -> list[Action]:
    """Record to whom the realm may be released, as long as its resource says so."""
    taker = manifest.metadata.annotations.get(RELEASE_TO)
    return [] if realm.acted.get(RELEASE_TO) == taker else [RecordHandled(RELEASE_TO, taker)]


def _wished_state(manifest: RealmManifest) -> RealmState:
    return RealmState.ACTIVE if manifest.spec.state == "Active" else RealmState.INACTIVE


def _changes(manifest: RealmManifest, realm: Realm, *only: str) -> RealmFields:
    """The fields that differ from the manifest."""
    fields = manifest.spec.fields().items()
    return cast(
        RealmFields, {name: value for name, value in fields if (not only or name in only) and getattr(realm, name) != value}
    )


def _report_drift(manifest: RealmManifest, realm: Realm, changes: RealmFields) -> list[Action]:
    wished = _wished_state(manifest)
    drifted = [f"state is {realm.state}, not {wished}"] if realm.state is not wished else []
    drifted += [
        f"{name_in_manifest(name)} is {value_in_manifest(name, getattr(realm, name))}, not {value_in_manifest(name, value)}"
        for name, value in changes.items()
    ]
    if not drifted:
        return []
    return [
        ReportDrift("Drifted", f"realm {realm.id} is not as its manifest says, and driftPolicy is Report: {'; '.join(drifted)}")
    ]


def _access(manifest: RealmManifest, realm: Realm, observed: ObservedRealm, now: Micros) -> list[Action]:
    """What is declared of principals and roles, or was declared earlier."""
    records = {*realm.acted, *manifest.metadata.annotations}
    if not manifest.spec.declares_access and not records & {ACCESS, ROTATE_PRINCIPAL}:
        return []
    access = plan_realm_access(manifest, realm, observed.access, now)
    return [*access, *plan_principal_rotation(manifest, realm, observed.access)]


def _rotate(manifest: RealmManifest, realm: Realm) -> list[Action]:
    asked = manifest.metadata.annotations.get(ROTATE_CREDENTIALS)
    if asked is None or realm.acted.get(ROTATE_CREDENTIALS) == asked:
        return []
    if realm.state is not RealmState.ACTIVE:
        return [
            ReportDrift(
                "RotationWaits", f"the credentials of realm {realm.id} are rotated once it is ACTIVE; it is {realm.state}"
            )
        ]
    return [RotateCredentials(asked), RecordHandled(ROTATE_CREDENTIALS, asked)]


def _maintain(
    manifest: RealmManifest, realm: Realm, wished: MaintenanceSchedule, observed: ObservedRealm, now: Micros
) -> list[Action]:
    """Keep one collection scheduled while the realm is ACTIVE and maintenance is not suspended. ``realm.maintenance`` is the former
    setting.
    """
    asked = manifest.metadata.annotations.get(RUN_NOW)
    forgotten = [RecordHandled(name, None) for name in _answered(manifest, observed.me) if name in realm.acted]
    if realm.state is not RealmState.ACTIVE:
        return [*forgotten, *_unschedule(observed, now)]
    if asked is not None and realm.acted.get(RUN_NOW) != asked:
        return [*_collect_now(observed, now), RecordHandled(RUN_NOW, asked), *forgotten]
    if wished.suspend:
        return [*forgotten, *_unschedule(observed, now)]
    return [*forgotten, *_schedule(realm, wished, observed, now)]


def _answered(manifest: RealmManifest, me: RealmManager) -> list[str]:
    """Remove the records of annotations that are gone."""
    records = {RUN_NOW: RUN_NOW, ROTATE_CREDENTIALS: ROTATE_CREDENTIALS, ADOPT: adopt_record(me)}
    return [record for annotation, record in records.items() if annotation not in manifest.metadata.annotations]


def _schedule(realm: Realm, wished: MaintenanceSchedule, observed: ObservedRealm, now: Micros) -> list[Action]:
    last = observed.tasks.last(COLLECT)
    if last is not None and last.value.state is TaskState.FAILED and observed.tasks.active(COLLECT) is None:
        return [dead_letter(last)]
    # a changed schedule counts from the change: earlier times of the new schedule were not missed
    since = now if wished != realm.maintenance else (last.value.finished if last and last.value.finished else realm.created)
    cron = wished.schedule or weekly_schedule(realm.id)
    work = ScheduledWork(kind=COLLECT, subject="", arguments={}, cron=cron, zone=wished.time_zone)
    return keep_scheduled(work, observed.tasks, since=since, now=now)


def _collect_now(observed: ObservedRealm, now: Micros) -> list[Action]:
    active = observed.tasks.active(COLLECT)
    if active is None:
        return [SubmitTask(COLLECT, now)]
    return [RunTaskNow(active.id, COLLECT)] if _is_ahead(active.value, now) else []


def _unschedule(observed: ObservedRealm, now: Micros) -> list[Action]:
    """Cancel the scheduled collection. A collection that is due was requested by a person, and stays."""
    waiting = observed.tasks.active(COLLECT)
    return [cancel_scheduled(waiting)] if waiting and _is_ahead(waiting.value, now) else []


def _is_ahead(task: Task, now: Micros) -> bool:
    return task.state is TaskState.WAITING and task.due > now


def _plan_deletion(manifest: RealmManifest, realm: Realm, observed: ObservedRealm, now: Micros) -> list[Action]:
    if realm.state in _GOING:
        return _plan_end(realm, observed, now)
    if manifest.spec.deletion_protection:
        return [
            RefuseManifest(
                "DeletionProtected", f"realm {realm.id} has deletionProtection: true; set it to false before deleting it"
            )
        ]
    if manifest.spec.deletion_policy == "Retain":
        wished = _wished_state(manifest)
        called_off = realm.state in _SETTLED and realm.state is not wished and manifest.spec.drift_policy == "Correct"
        return [*([MoveRealm(wished)] if called_off else []), DetachRealm()]
    if unconfirmed := unconfirmed_purge(manifest.metadata.annotations.get(CONFIRM_PURGE), "realm", realm.id):
        return [unconfirmed]
    return _plan_purge(manifest, realm, observed, now)


def _plan_purge(manifest: RealmManifest, realm: Realm, observed: ObservedRealm, now: Micros) -> list[Action]:
    if changes := _changes(manifest, realm, "purge_hold_seconds", "deletion_policy", "deletion_protection"):
        # the hold must be known before waiting for it: plan again
        return [UpdateRealm(changes, realm.acted.get(APPLIED, ""))]
    if realm.state is RealmState.ACTIVE:
        return [MoveRealm(RealmState.INACTIVE)]
    others = [task for task in observed.tasks.all_active() if task.value.kind != PURGE]
    steps = [cancel_scheduled(task) for task in others if not task.value.stop_requested]
    if realm.state is RealmState.INACTIVE and observed.hold_until is not None and now < observed.hold_until:
        held = f"realm {realm.id} is INACTIVE and held before its purge; set deletionPolicy: Retain to keep it after all"
        return [*steps, WaitUntil("PurgeHold", held, observed.hold_until)]
    return [*steps, MoveRealm(RealmState.PURGING), *_purge(observed, now)]


def _plan_end(realm: Realm, observed: ObservedRealm, now: Micros) -> list[Action]:
    if realm.state is RealmState.PURGED:
        return [RemoveRealm()]
    return [*_purge(observed, now), WaitUntil("Purging", f"everything in realm {realm.id} is being deleted")]


def _purge(observed: ObservedRealm, now: Micros) -> list[Action]:
    """Submit the task that deletes the realm's rows."""
    if observed.tasks.active(PURGE) is not None:
        return []
    last = observed.tasks.last(PURGE)
    if last is not None and last.value.state is not TaskState.SUCCEEDED:
        return [dead_letter(last)]
    return [SubmitTask(PURGE, now)]


def _belongs_to(realm: Realm, me: RealmManager) -> bool:
    """Whether the resource managed this realm before it was created anew, or released it, and no other resource got it since."""
    if realm.manager is not None:
        return realm.manager.is_same(me)
    return realm.acted.get(FORMER) == _identity(me)


def _is_succeeded(realm: Realm, me: RealmManager) -> bool:
    """Whether the resource was created anew since, and the new one has taken the realm over."""
    return bool(me.uid) and me.uid in _succeeded(realm)


def may_return(realm: Realm, me: RealmManager, *, is_cluster_named: bool) -> bool:
    """Whether the resource takes the realm back unasked."""
    if not _belongs_to(realm, me) or _is_succeeded(realm, me):
        return False
    return realm.manager is None or is_cluster_named


def _may_adopt(realm: Realm, me: RealmManager) -> bool:
    """Whether this resource may take the realm over: its namespace manages or managed it, nobody ever did, or it was released to
    this one.
    """
    home = realm.manager.namespace if realm.manager else realm.acted.get(HOME)
    return home in (None, "", me.namespace) or realm.acted.get(RELEASE_TO) == _taker_text(me)


def _taker_text(me: RealmManager | ManifestMetadata) -> str:
    """The name of this resource in the annotation `release-to`."""
    return f"{me.namespace}/{me.name}"


def with_manager(realm: Realm, me: RealmManager, *, record: str | None = None, value: str = "") -> RealmFields:
    """The changed fields when the resource takes the realm over, which uses up a `release-to`.

    record, value  the property that records the annotation's request, and its value
    """
    succeeded = [uid for uid in _succeeded(realm) if uid != me.uid]
    if realm.manager is not None and realm.manager.is_same(me) and realm.manager.uid:
        succeeded.append(realm.manager.uid)
    kept = _without(realm, HOME, FORMER, RELEASE_TO, SUCCEEDED)
    if succeeded:
        kept[SUCCEEDED] = " ".join(succeeded[-_SUCCEEDED_LIMIT:])
    return RealmFields(manager=me, acted=kept if record is None else {**kept, record: value})


def without_manager(realm: Realm) -> RealmFields:
    """The changed fields when a resource leaves the realm: it may take it back, and its namespace stays the realm's home."""
    if realm.manager is None:
        return RealmFields(manager=None)
    left = {HOME: realm.manager.namespace, FORMER: _identity(realm.manager)}
    return RealmFields(manager=None, acted={**realm.acted, **left})


def adopt_record(me: RealmManager) -> str:
    """The property that records an adoption by this resource: one for each resource, or two would take the realm from each other
    for ever.
    """
    return f"{ADOPT} {manager_text(me)}"


def without_home(realm: Realm) -> dict[str, str]:
    """What was acted on, without the home of the realm: any resource may adopt it then."""
    return _without(realm, HOME, FORMER, RELEASE_TO)


def manager_text(manager: RealmManager | None) -> str:
    if manager is None:
        return "nobody"
    parts = (manager.cluster, manager.namespace, manager.name, manager.uid)
    return "/".join(part for part in parts if part)


def _identity(manager: RealmManager) -> str:
    return f"{manager.cluster}/{manager.namespace}/{manager.name}"


def _succeeded(realm: Realm) -> list[str]:
    return realm.acted.get(SUCCEEDED, "").split()


def _without(realm: Realm, *records: str) -> dict[str, str]:
    return {name: text for name, text in realm.acted.items() if name not in records}
