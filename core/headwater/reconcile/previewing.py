"""What would be done for a manifest, in sentences, without doing any of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headwater.clock import as_text
from headwater.realms import Credentials
from headwater.reconcile.actions import (
    Action,
    AdoptRealm,
    Bootstrap,
    CancelTask,
    CompleteCatalog,
    CreateCatalog,
    CreateRealm,
    DeleteCatalog,
    DetachRealm,
    Effect,
    MoveRealm,
    RecordActed,
    RecordImported,
    Refuse,
    RemoveRealm,
    Report,
    RotateCredentials,
    RunTaskNow,
    SubmitTask,
    UpdateCatalog,
    UpdateRealm,
    Wait,
)
from headwater.reconcile.looking import CatalogLook, RealmLook
from headwater.reconcile.manifests import CatalogManifest, RealmManifest
from headwater.reconcile.observing import Observer
from headwater.reconcile.owning import ManagerIdentity, manager_text
from headwater.reconcile.wording import catalog_changes, names_in_manifest
from headwater.store import RealmId, Store, id_text

__all__ = ["Preview", "plan_of_catalog", "plan_of_realm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The next plan; what comes after its steps is planned when they are done.

    steps         a sentence each, in their order
    """

    steps: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    refused: tuple[Refuse, ...] = ()
    reports: tuple[Report, ...] = ()


def plan_of_realm(store: Store, manifest: RealmManifest, *, manager: ManagerIdentity) -> Preview:
    """What the manifest would lead to now. Nothing is written."""
    plan, _ = RealmLook(store, Observer(store), manifest, manager, _Nowhere())()
    return _preview(plan, f"realm {manifest.spec.realm_id}")


def plan_of_catalog(
    store: Store,
    manifest: CatalogManifest,
    *,
    manager: ManagerIdentity,
    realm_uid: str = "",
    may_be_unmanaged: bool = False,
) -> Preview:
    """The same for a catalog."""
    plan, _ = CatalogLook(store, Observer(store), manifest, manager, may_be_unmanaged, realm_uid)()
    return _preview(plan, f"catalog {manifest.spec.realm_id}/{manifest.spec.name}")


class _Nowhere:
    """A sink for who takes no step."""

    def write(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        raise TypeError("a preview writes nothing")

    def rotate(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        raise TypeError("a preview writes nothing")

    def remove(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        raise TypeError("a preview writes nothing")

    def place(self, realm_id: RealmId) -> str:
        return ""


def _preview(plan: Sequence[Action], subject: str) -> Preview:
    return Preview(
        steps=tuple(sentence for action in plan if isinstance(action, Effect) for sentence in _sentences(action, subject)),
        waits=tuple(action for action in plan if isinstance(action, Wait)),
        refused=tuple(action for action in plan if isinstance(action, Refuse)),
        reports=tuple(action for action in plan if isinstance(action, Report)),
    )


def _sentences(action: Effect, subject: str) -> list[str]:
    """None for what a person has no use for."""
    match action:
        case CreateRealm() | CreateCatalog():
            return [f"create {subject}"]
        case Bootstrap():
            return [f"bootstrap {subject}, and keep the credentials of its root"]
        case RotateCredentials():
            return [f"rotate the credentials of the root of {subject}"]
        case MoveRealm(to):
            return [f"move {subject} to {to}"]
        case UpdateRealm(changes, _):
            return [f"update {subject}: {names_in_manifest(changes)}"] if changes else []
        case UpdateCatalog(changes):
            return [catalog_changes(changes, subject).future]
        case AdoptRealm(manager, _, _):
            return [f"adopt {subject} for {manager_text(manager)}"]
        case DetachRealm():
            return [f"leave {subject} as it is, managed by nobody"]
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
        case CompleteCatalog() | RecordActed() | RecordImported():
            return []
