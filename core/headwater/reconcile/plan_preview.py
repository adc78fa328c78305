"""The preview of what a manifest would lead to now: the plan in sentences. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.clock import as_text
from headwater.reconcile.access_actions import AccessAction, access_sentence
from headwater.reconcile.actions import (
    Action,
    AdoptRealm,
    BootstrapRealm,
    CancelTask,
    CompleteCatalog,
    CreateCatalog,
    CreateRealm,
    DeclarePolicies,
    DeleteCatalog,
    DetachRealm,
    Effect,
    MoveRealm,
    RecordHandled,
    RecordImported,
    RefuseManifest,
    RemoveRealm,
    ReportDrift,
    RotateCredentials,
    RunTaskNow,
    SubmitTask,
    UpdateCatalog,
    UpdateRealm,
    WaitUntil,
    catalog_changes,
    names_in_manifest,
    only,
    policy_changes,
)
from headwater.reconcile.catalog_plan import plan_catalog
from headwater.reconcile.manifests import CatalogManifest, ManagerIdentity, RealmManifest
from headwater.reconcile.observed_state import StoreObserver
from headwater.reconcile.realm_plan import manager_text, plan_realm
from headwater.store import Store, id_text


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPreview:
    """The next plan; what follows its steps is planned when they are done.

    steps         a sentence each, in their order
    """

    steps: tuple[str, ...] = ()
    waits: tuple[WaitUntil, ...] = ()
    refused: tuple[RefuseManifest, ...] = ()
    reports: tuple[ReportDrift, ...] = ()


def preview_realm(store: Store, manifest: RealmManifest, *, manager: ManagerIdentity) -> PlanPreview:
    """The plan that the manifest would lead to now. Writes nothing."""
    observed = StoreObserver(store).observe_realm(manifest, manager)
    return _preview(plan_realm(manifest, observed, store.clock.now()), manifest.described)


def preview_catalog(
    store: Store,
    manifest: CatalogManifest,
    *,
    manager: ManagerIdentity,
    realm_uid: str = "",
    may_be_unmanaged: bool = False,
    server_url: str = "",
) -> PlanPreview:
    """The plan that the manifest of a catalog would lead to now. Writes nothing."""
    observed = StoreObserver(store).observe_catalog(
        manifest, manager, realm_uid=realm_uid, may_be_unmanaged=may_be_unmanaged, server_url=server_url
    )
    plan = plan_catalog(manifest, observed, store.clock.now())
    return _preview(plan, manifest.described)


def _preview(plan: Sequence[Action], subject: str) -> PlanPreview:
    return PlanPreview(
        steps=tuple(
            sentence for action in plan if isinstance(action, Effect) for sentence in future_sentences(action, subject)
        ),
        waits=only(plan, WaitUntil),
        refused=only(plan, RefuseManifest),
        reports=only(plan, ReportDrift),
    )


def future_sentences(action: Effect, subject: str) -> list[str]:
    """The sentences that describe an action that is planned; none for bookkeeping."""
    if isinstance(action, AccessAction):
        sentence = access_sentence(action, subject)
        return [sentence] if sentence else []
    match action:
        case CreateRealm() | CreateCatalog():
            return [f"create {subject}"]
        case BootstrapRealm():
            return [f"bootstrap {subject}, and keep the credentials of its root"]
        case RotateCredentials():
            return [f"rotate the credentials of the root of {subject}"]
        case MoveRealm(to):
            return [f"move {subject} to {to}"]
        case UpdateRealm(changes, _):
            return [f"update {subject}: {names_in_manifest(changes)}"] if changes else []
        case UpdateCatalog(changes):
            return [catalog_changes(changes, subject).future]
        case DeclarePolicies(_, kinds):
            return [policy_changes(kinds, subject).future]
        case AdoptRealm(manager, _, _):
            return [f"adopt {subject} for {manager_text(manager)}"]
        case DetachRealm():
            return [f"leave {subject} as it is, without a manager"]
        case RemoveRealm():
            return [f"delete the entry and the credentials of {subject}"]
        case SubmitTask(kind, due, about, _):
            return [f"ask for {f'{kind} {about}'.strip()} of {subject}, due {as_text(due)}"]
        case RunTaskNow(task, kind):
            return [f"let {kind} of {subject} run now (task {id_text(task)})"]
        case CancelTask(task, kind, about):
            return [f"cancel {f'{kind} {about}'.strip()} of {subject} (task {id_text(task)})"]
        case DeleteCatalog():
            return [f"delete {subject}"]
        case CompleteCatalog() | RecordHandled() | RecordImported():
            return []
