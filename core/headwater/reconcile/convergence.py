"""Converge a store to its manifests: observe, plan and act until nothing more can be done now; and preview what would be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.clock import Micros, as_text
from headwater.errors import FencedError, HeadwaterError, SwapConflictError, UnavailableError
from headwater.realms import Credentials
from headwater.reconcile.actions import (
    Action,
    AdoptRealm,
    BootstrapRealm,
    CancelTask,
    CompleteCatalog,
    CreateCatalog,
    CreateRealm,
    DeleteCatalog,
    DetachRealm,
    Effect,
    MoveRealm,
    PlannedStep,
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
    planned_step,
)
from headwater.reconcile.catalog_plan import plan_catalog
from headwater.reconcile.credentials_sink import CredentialsSink
from headwater.reconcile.manifests import CatalogManifest, Manifest, RealmManifest, ResourceName
from headwater.reconcile.observed_state import StoreObserver
from headwater.reconcile.ownership import ManagerIdentity, manager_text
from headwater.reconcile.plan_executor import CatalogExecutor, RealmExecutor
from headwater.reconcile.realm_plan import plan_realm
from headwater.store import RealmId, Store, id_text


class PlanExecutor(Protocol):
    def execute(self, action: Effect) -> str | None:
        """Carry the action out and return a description; None when nothing was left to do."""
        ...


class Planner(Protocol):
    def __call__(self) -> tuple[list[Action], Callable[[], PlanExecutor]]:
        """The plan for the state as observed now, and a function that makes its executor."""
        ...


@dataclass(frozen=True, slots=True)
class RealmPlanner:
    store: Store
    observer: StoreObserver
    manifest: RealmManifest
    manager: ManagerIdentity
    credentials: CredentialsSink

    def __call__(self) -> tuple[list[Action], Callable[[], PlanExecutor]]:
        observed = self.observer.observe_realm(self.manifest, self.manager)
        plan = plan_realm(self.manifest, observed, self.store.clock.now())
        return plan, lambda: RealmExecutor(self.store, self.manifest.spec.realm_id, observed, credentials=self.credentials)


@dataclass(frozen=True, slots=True)
class CatalogPlanner:
    """Plans for one catalog, from what the store shows at each call.

    may_be_unmanaged  whether the catalog's realm may have no manager
    realm_uid         the uid of the resource that manages its realm, if that is known
    """

    store: Store
    observer: StoreObserver
    manifest: CatalogManifest
    manager: ManagerIdentity
    may_be_unmanaged: bool
    realm_uid: str = ""

    def __call__(self) -> tuple[list[Action], Callable[[], PlanExecutor]]:
        observed = self.observer.observe_catalog(
            self.manifest, self.manager, realm_uid=self.realm_uid, may_be_unmanaged=self.may_be_unmanaged
        )
        plan = plan_catalog(self.manifest, observed, self.store.clock.now())
        return plan, lambda: CatalogExecutor(self.store, self.manifest.spec.name, observed)


Tell = Callable[[str, str], None]
"""Called after each step with its subject ("Realm acme") and a sentence about the step."""
Fence = Callable[[], None]
"""Called before each step: an exception of it ends the whole pass and is raised."""

ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOutcome:
    """The outcome of one manifest.

    steps         the steps that were taken
    error         why it could not be finished; the other manifests were carried out nevertheless
    """

    subject: str
    steps: tuple[PlannedStep, ...] = ()
    waits: tuple[WaitUntil, ...] = ()
    refused: tuple[RefuseManifest, ...] = ()
    reports: tuple[ReportDrift, ...] = ()
    error: HeadwaterError | None = None

    @property
    def done(self) -> tuple[str, ...]:
        """A sentence for each step that was taken."""
        return tuple(step.message for step in self.steps)

    @property
    def is_settled(self) -> bool:
        """Whether everything is as the manifest says."""
        return not (self.waits or self.refused or self.error)

    @property
    def waits_until(self) -> Micros | None:
        """The earliest time at which a waiting action can be done; None when nothing waits for a time."""
        return min((wait.until for wait in self.waits if wait.until is not None), default=None)


def reconcile(
    store: Store,
    manifests: Sequence[Manifest],
    *,
    credentials: CredentialsSink,
    manager: ManagerIdentity,
    tell: Tell | None = None,
) -> list[ReconcileOutcome]:
    """Bring realms and catalogs to what their manifests say, as far as that is possible now. Idempotent.

    returns       one outcome for each manifest, in the order in which they were carried out: deletions of catalogs, realms, other catalogs
    """
    passing = _Convergence(StoreObserver(store), tell=tell or _silent, fence=_no_fence)
    named = {manifest.metadata.resource for manifest in manifests if isinstance(manifest, RealmManifest)}

    def carry_out(manifest: Manifest) -> ReconcileOutcome:
        if isinstance(manifest, RealmManifest):
            return passing.converge(manifest.subject, RealmPlanner(store, passing.observer, manifest, manager, credentials))
        is_named = ResourceName(manifest.metadata.namespace, manifest.spec.realm) in named
        return passing.converge(
            manifest.subject, CatalogPlanner(store, passing.observer, manifest, manager, may_be_unmanaged=not is_named)
        )

    return [carry_out(manifest) for manifest in _in_order(manifests)]


def reconcile_realm(
    store: Store,
    manifest: RealmManifest,
    *,
    credentials: CredentialsSink,
    manager: ManagerIdentity,
    tell: Tell | None = None,
    fence: Fence | None = None,
) -> ReconcileOutcome:
    """Bring one realm to what its manifest says, as far as that is possible now.

    fence         called before each step, for a caller that may only act while it leads
    """
    passing = _Convergence(StoreObserver(store), tell=tell or _silent, fence=fence or _no_fence)
    return passing.converge(manifest.subject, RealmPlanner(store, passing.observer, manifest, manager, credentials))


def reconcile_catalog(
    store: Store,
    manifest: CatalogManifest,
    *,
    manager: ManagerIdentity,
    realm_uid: str = "",
    may_be_unmanaged: bool = False,
    tell: Tell | None = None,
    fence: Fence | None = None,
) -> ReconcileOutcome:
    """Bring one catalog to what its manifest says, as far as that is possible now.

    realm_uid         the uid of the resource that manages its realm; empty where unknown
    may_be_unmanaged  whether its realm may have no manager
    """
    passing = _Convergence(StoreObserver(store), tell=tell or _silent, fence=fence or _no_fence)
    look = CatalogPlanner(store, passing.observer, manifest, manager, may_be_unmanaged, realm_uid)
    return passing.converge(manifest.subject, look)


def _in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    def turn(manifest: Manifest) -> int:
        if isinstance(manifest, RealmManifest):
            return 1
        return 0 if manifest.metadata.is_deletion else 2

    return sorted(manifests, key=turn)


@dataclass(frozen=True, slots=True)
class _Convergence:
    """The shared parts of one pass over several manifests."""

    observer: StoreObserver
    tell: Tell
    fence: Fence

    def converge(self, subject: str, look: Planner) -> ReconcileOutcome:
        """Observe, plan and act until a plan has no step left. A manifest that fails does not stop the others."""
        steps: list[PlannedStep] = []
        plan: list[Action] = []
        try:
            for _ in range(ROUNDS):
                plan, make_actor = look()
                if not self._take(subject, plan, make_actor, steps):
                    return _outcome(subject, steps, plan)
                self.observer.forget()
            raise UnavailableError(
                f"{subject} did not settle in {ROUNDS} rounds: somebody else changes it too, try again later"
            )
        except FencedError:
            raise
        except HeadwaterError as error:
            self.observer.forget()
            return _outcome(subject, steps, plan, error)

    def _take(self, subject: str, plan: list[Action], make_actor: Callable[[], PlanExecutor], steps: list[PlannedStep]) -> bool:
        """Take the steps of a plan; returns whether anything changed, so that the state must be observed again."""
        effects = [action for action in plan if isinstance(action, Effect)]
        if not effects:
            return False
        before, actor = len(steps), make_actor()
        for effect in effects:
            self.fence()
            try:
                sentence = actor.execute(effect)
            except FencedError:
                raise
            except SwapConflictError:
                return True  # another process was faster: observe again, then decide
            if sentence is not None:
                steps.append(planned_step(effect, sentence))
                self.tell(subject, sentence)
        return len(steps) > before


def _outcome(
    subject: str, steps: list[PlannedStep], plan: list[Action], error: HeadwaterError | None = None
) -> ReconcileOutcome:
    return ReconcileOutcome(
        subject=subject,
        steps=tuple(steps),
        waits=tuple(action for action in plan if isinstance(action, WaitUntil)),
        refused=tuple(action for action in plan if isinstance(action, RefuseManifest)),
        reports=tuple(action for action in plan if isinstance(action, ReportDrift)),
        error=error,
    )


def _silent(subject: str, sentence: str) -> None:
    """The default for callers without a listener."""


def _no_fence() -> None:
    """The default for callers that need no leadership."""


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
    plan, _ = RealmPlanner(store, StoreObserver(store), manifest, manager, _Nowhere())()
    return _preview(plan, f"realm {manifest.spec.realm_id}")


def preview_catalog(
    store: Store,
    manifest: CatalogManifest,
    *,
    manager: ManagerIdentity,
    realm_uid: str = "",
    may_be_unmanaged: bool = False,
) -> PlanPreview:
    """The plan that the manifest of a catalog would lead to now. Writes nothing."""
    plan, _ = CatalogPlanner(store, StoreObserver(store), manifest, manager, may_be_unmanaged, realm_uid)()
    return _preview(plan, f"catalog {manifest.spec.realm_id}/{manifest.spec.name}")


class _Nowhere:
    """A credentials sink for a preview, which takes no step."""

    def write_credentials(self, realm_id: RealmId, credentials: Credentials) -> Credentials:
        raise TypeError("a preview writes nothing")

    def rotate_credentials(self, realm_id: RealmId, credentials: Credentials, token: str) -> Credentials:
        raise TypeError("a preview writes nothing")

    def remove_credentials(self, realm_id: RealmId, confirm: Callable[[], None]) -> None:
        raise TypeError("a preview writes nothing")

    def place(self, realm_id: RealmId) -> str:
        return ""


def _preview(plan: Sequence[Action], subject: str) -> PlanPreview:
    return PlanPreview(
        steps=tuple(sentence for action in plan if isinstance(action, Effect) for sentence in _sentences(action, subject)),
        waits=tuple(action for action in plan if isinstance(action, WaitUntil)),
        refused=tuple(action for action in plan if isinstance(action, RefuseManifest)),
        reports=tuple(action for action in plan if isinstance(action, ReportDrift)),
    )


def _sentences(action: Effect, subject: str) -> list[str]:
    """The sentences that describe an action; none for bookkeeping."""
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
        case CompleteCatalog() | RecordHandled() | RecordImported():
            return []
