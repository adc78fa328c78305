"""Converge a store to its manifests: observe, plan and act until nothing more can be done now; and preview what would be done.

Each step is a swap of the observed state, and returns a sentence on what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from headwater.catalogs import CatalogDefinition, CatalogFields, Catalogs
from headwater.clock import Micros, as_text
from headwater.errors import (
    ConflictError,
    FencedError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
)
from headwater.jobs import PURGE
from headwater.policies import declare_policies
from headwater.realms import (
    ROOT_PRINCIPAL,
    Credentials,
    CredentialsHash,
    Realm,
    RealmFields,
    RealmRegistry,
    RealmState,
    bootstrap,
    find_root,
    hash_credentials,
    new_credentials,
    reset_principal,
    verify_secret,
)
from headwater.reconcile.access_actions import AccessAction, RecordAccess
from headwater.reconcile.access_steps import AccessSteps
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
    only,
    planned_step,
    policy_changes,
)
from headwater.reconcile.catalog_plan import plan_catalog
from headwater.reconcile.credentials_sink import CredentialsSink
from headwater.reconcile.declared_access import ACCESS, read_record, with_record
from headwater.reconcile.manifests import (
    ROTATE_CREDENTIALS,
    CatalogManifest,
    ManagerIdentity,
    Manifest,
    RealmManifest,
    ResourceName,
)
from headwater.reconcile.observed_state import StoreObserver
from headwater.reconcile.plan_preview import future_sentences
from headwater.reconcile.realm_plan import APPLIED, manager_text, plan_realm, with_manager, without_home, without_manager
from headwater.reconcile.step_failures import StepFailures
from headwater.store import ObjectId, Store, id_text
from headwater.tasks import Task, TaskQueue

T = TypeVar("T")
Tell = Callable[[str, str], None]
"""Called after each step with its subject ("Realm acme") and a sentence about the step."""
Fence = Callable[[], None]
"""Called before each step: an exception of it ends the whole pass and is raised."""

ROUNDS = 20
BOOTSTRAPPED = "headwater.dev/bootstrapped-client"
"""The property with the client id of the credentials that replaced those of an interrupted bootstrap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileOutcome:
    """The outcome of one manifest.

    steps         the steps that were taken
    error         why it could not be finished; the other manifests were carried out nevertheless
    more_errors   of further steps: one that fails stops only those that need it
    """

    subject: str
    steps: tuple[PlannedStep, ...] = ()
    waits: tuple[WaitUntil, ...] = ()
    refused: tuple[RefuseManifest, ...] = ()
    reports: tuple[ReportDrift, ...] = ()
    error: HeadwaterError | None = None
    more_errors: tuple[HeadwaterError, ...] = ()

    @property
    def done(self) -> tuple[str, ...]:
        """A sentence for each step that was taken."""
        return tuple(step.message for step in self.steps)

    @property
    def errors(self) -> tuple[HeadwaterError, ...]:
        """All errors, in the order of the steps that failed."""
        return () if self.error is None else (self.error, *self.more_errors)

    @property
    def error_text(self) -> str | None:
        """What all errors say; None: there is none."""
        return "; ".join(map(str, self.errors)) or None

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
    server_url: str = "",
    tell: Tell | None = None,
) -> list[ReconcileOutcome]:
    """Bring realms and catalogs to what their manifests say, as far as that is possible now. Idempotent.

    server_url    where catalogs are served, for connections that do not say
    returns       one outcome for each manifest, in the order in which they were carried out: deletions of catalogs, realms, other catalogs
    """
    observer = StoreObserver(store)
    named = {manifest.metadata.resource for manifest in manifests if isinstance(manifest, RealmManifest)}
    outcomes = []
    for manifest in in_turn(manifests):
        convergence: _RealmConvergence | _CatalogConvergence
        if isinstance(manifest, RealmManifest):
            convergence = _RealmConvergence(observer, manifest, manager, credentials)
        else:
            is_named = ResourceName(manifest.metadata.namespace, manifest.spec.realm) in named
            convergence = _CatalogConvergence(
                observer, manifest, manager, credentials, may_be_unmanaged=not is_named, server_url=server_url
            )
        outcomes.append(_converge(convergence, tell=tell, fence=None))
    return outcomes


def in_turn(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Manifests in the order in which they are carried out: deletions of catalogs, realms, other catalogs."""
    return sorted(manifests, key=_turn)


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
    return _converge(_RealmConvergence(StoreObserver(store), manifest, manager, credentials), tell=tell, fence=fence)


def reconcile_catalog(
    store: Store,
    manifest: CatalogManifest,
    *,
    credentials: CredentialsSink,
    manager: ManagerIdentity,
    realm_uid: str = "",
    may_be_unmanaged: bool = False,
    server_url: str = "",
    tell: Tell | None = None,
    fence: Fence | None = None,
) -> ReconcileOutcome:
    """Bring one catalog to what its manifest says, as far as that is possible now.

    realm_uid         the uid of the resource that manages its realm; empty where unknown
    may_be_unmanaged  whether its realm may have no manager
    server_url        where catalogs are served, for a connection that does not say
    """
    convergence = _CatalogConvergence(
        StoreObserver(store),
        manifest,
        manager,
        credentials,
        realm_uid=realm_uid,
        may_be_unmanaged=may_be_unmanaged,
        server_url=server_url,
    )
    return _converge(convergence, tell=tell, fence=fence)


def release_realm(store: Store, realm_id: str) -> Realm:
    """Release a realm for good, whoever manages it: any resource may adopt it then. For a person with access to the store.

    raises        NotFoundError when there is none; SwapConflictError when another process changes it at the same time
    """
    realms = RealmRegistry(store)
    realm = realms.read_realm(realm_id)
    return realms.update_realm(realm, manager=None, acted=without_home(realm))


def _turn(manifest: Manifest) -> int:
    if isinstance(manifest, RealmManifest):
        return 1
    return 0 if manifest.metadata.is_deletion else 2


def _converge(
    convergence: _RealmConvergence | _CatalogConvergence, *, tell: Tell | None, fence: Fence | None
) -> ReconcileOutcome:
    """Observe, plan and act until a plan has no step left. A manifest that fails does not stop the others."""
    subject = convergence.manifest.subject
    steps: list[PlannedStep] = []
    plan: list[Action] = []
    try:
        for _ in range(ROUNDS):
            plan, failures = convergence.make_plan(), StepFailures()
            if not _take_steps(convergence, plan, steps, failures, tell=tell, fence=fence):
                return _outcome(subject, steps, plan, *failures.errors)
            convergence.observer.forget()
        raise UnavailableError(f"{subject} did not settle in {ROUNDS} rounds: somebody else changes it too, try again later")
    except FencedError:
        raise
    except HeadwaterError as error:
        convergence.observer.forget()
        return _outcome(subject, steps, plan, error)


def _take_steps(
    convergence: _RealmConvergence | _CatalogConvergence,
    plan: Sequence[Action],
    steps: list[PlannedStep],
    failures: StepFailures,
    *,
    tell: Tell | None,
    fence: Fence | None,
) -> bool:
    """Take the steps of a plan; returns whether anything changed, so that the state must be observed again.

    A step that fails stops only those that need what it was to bring about.
    """
    before = len(steps)
    for effect in [action for action in plan if isinstance(action, Effect)]:
        if failures.is_in_vain(effect):
            continue
        if fence is not None:
            fence()
        try:
            sentence = convergence.execute(effect)
        except FencedError:
            raise
        except SwapConflictError:
            return True  # another process was faster: observe again, then decide
        except HeadwaterError as error:
            failures.note(effect, error)
            continue
        if sentence is not None:
            future = future_sentences(effect, convergence.manifest.described)
            steps.append(planned_step(effect, sentence, "; ".join(future)))
            if tell is not None:
                tell(convergence.manifest.subject, sentence)
    return len(steps) > before


def _outcome(subject: str, steps: Sequence[PlannedStep], plan: Sequence[Action], *errors: HeadwaterError) -> ReconcileOutcome:
    return ReconcileOutcome(
        subject=subject,
        steps=tuple(steps),
        waits=only(plan, WaitUntil),
        refused=only(plan, RefuseManifest),
        reports=only(plan, ReportDrift),
        error=errors[0] if errors else None,
        more_errors=errors[1:],
    )


class _RealmConvergence:
    """A pass over one realm. Every change is a swap of the definition that the plan is based on, or that the previous step wrote.

    If another process was faster, a step raises SwapConflictError; then observe and plan again.
    """

    def __init__(
        self, observer: StoreObserver, manifest: RealmManifest, manager: ManagerIdentity, credentials: CredentialsSink
    ) -> None:
        self.observer = observer
        self.manifest = manifest
        self._manager = manager
        self._credentials = credentials
        self._store = observer.store
        self._realms = RealmRegistry(observer.store)
        self._id = manifest.spec.realm_id
        self._definition: Realm | None = None

    def make_plan(self) -> list[Action]:
        """The plan for the state as it is now."""
        observed = self.observer.observe_realm(self.manifest, self._manager)
        self._definition = observed.realm
        return plan_realm(self.manifest, observed, self._store.clock.now())

    def execute(self, action: Effect) -> str | None:
        """Carry the action out and return a description; None when nothing was left to do."""
        match action:
            case CreateRealm(fields):
                self._definition = self._realms.create_realm(self._id, **fields)
                return f"created realm {self._id}"
            case BootstrapRealm():
                return self._bootstrap()
            case RotateCredentials(token):
                return self._rotate(token)
            case MoveRealm(to):
                return self._move(to)
            case UpdateRealm(changes, digest):
                acted = {**self._realm.acted, APPLIED: digest}
                self._update(RealmFields(**changes, acted=acted))
                return (
                    f"updated realm {self._id}: {names_in_manifest(changes)}"
                    if changes
                    else f"saved retention and schedule of realm {self._id}"
                )
            case AdoptRealm(manager, annotation, value):
                former = manager_text(self._realm.manager)
                self._update(with_manager(self._realm, manager, record=annotation, value=value))
                verb = "took back" if annotation is None else "adopted"
                return f"{verb} realm {self._id}, which was managed by {former}"
            case DetachRealm():
                self._update(without_manager(self._realm))
                return f"detached realm {self._id}, which stays {self._realm.state}"
            case RecordHandled(annotation, value):
                return self._record(annotation, value)
            case RemoveRealm():
                return self._remove()
            case RecordAccess(record):
                self._update(RealmFields(acted=with_record(self._realm.acted, record)))
                return f"noted what Realm {self.manifest.metadata.name} declares of access"
        if isinstance(action, AccessAction):
            return self._access_steps().take_step(action)
        return _act_on_task(self._store, self._realm, action)

    def _access_steps(self) -> AccessSteps:
        return AccessSteps(self._realms, self._realm, self._credentials, check_unchanged=self._check_unchanged)

    @property
    def _realm(self) -> Realm:
        if self._definition is None:
            raise RefusedError(f"there is no realm {self._id!r}")
        return self._definition

    def _bootstrap(self) -> str:
        """Store the credentials, then their hash: wherever this is interrupted, the realm ends with the one stored set.

        The realm belongs to this manager and has served nobody yet: credentials of its root from an earlier manager or a deleted
        Secret are unused, and are replaced.
        """
        kept = self._credentials.write_credentials(self._id, new_credentials())
        hashed = hash_credentials(kept)
        foreign = self._foreign_root(kept, hashed)
        if foreign is not None:
            # a concurrent bootstrap with those credentials fails from here on, and cannot bring them into an ACTIVE realm
            self._update(RealmFields(acted={**self._realm.acted, BOOTSTRAPPED: kept.client_id}))
        before = self._realm
        self._definition = bootstrap(self._realms, self._id, hashed, seen=before, replaces=foreign)
        if self._definition.manager != before.manager:
            raise SwapConflictError(f"realm {self._id!r} was changed meanwhile: read it again")
        if self._foreign_root(kept, hashed) is not None:
            raise ConflictError(
                f"realm {self._id!r} was bootstrapped with other credentials than those in {self._credentials.place(self._id)}, by "
                f"somebody else at the same time: annotate {ROTATE_CREDENTIALS}: 1 (or any other word) to have new ones made"
            )
        return f"bootstrapped realm {self._id}; the credentials of its root are in {self._credentials.place(self._id)}"

    def _foreign_root(self, kept: Credentials, hashed: CredentialsHash) -> str | None:
        """The client id of the root's credentials, if they differ from the stored ones."""
        root = find_root(self._realms, self._id)
        if root is None or root.credentials == hashed or verify_secret(root.credentials, kept):
            return None
        return root.credentials.client_id

    def _rotate(self, token: str) -> str | None:
        """Store new credentials under the token, then their hash: wherever this is interrupted, it ends with the one stored set.

        A token that was used before creates none, and reports none.
        """
        made = new_credentials()
        kept = self._credentials.rotate_credentials(self._id, made, token)
        root = find_root(self._realms, self._id)
        if root is None or not verify_secret(root.credentials, kept):
            reset_principal(self._realms, self._id, ROOT_PRINCIPAL, hash_credentials(kept))
        elif kept != made:
            return None
        return f"rotated the credentials of the root of realm {self._id}; they are in {self._credentials.place(self._id)}"

    def _remove(self) -> str | None:
        if not self._realms.is_realm_empty(self._realm):  # a late writer left rows: purge once more
            return _act_on_task(self._store, self._realm, SubmitTask(PURGE, self._store.clock.now()))
        # credentials first: they are all that a later realm of this id could mistake for its own
        record = read_record(self._realm.acted.get(ACCESS))
        for principal in sorted({*record.principals, *record.kept}):
            self._credentials.of_principal(principal).remove_credentials(self._id, self._check_unchanged)
        self._credentials.remove_credentials(self._id, self._check_unchanged)
        self._realms.remove_realm(self._realm)
        return f"deleted realm {self._id}"

    def _check_unchanged(self) -> None:
        """Check that the realm is still the planned one. Another process may have removed and recreated it since:

        this one     plans the removal of the PURGED realm ........................ removes the credentials: of which realm?
        the other    ..................................... removes it, makes it anew
        """
        if self._realms.find_realm(self._id) != self._realm:
            raise SwapConflictError(f"realm {self._id!r} was changed meanwhile: read it again")

    def _move(self, to: RealmState) -> str:
        before = self._realm.state
        self._definition = self._realms.move_realm(self._realm, to)
        return f"moved realm {self._id} from {before} to {to}"

    def _update(self, changes: RealmFields) -> None:
        self._definition = self._realms.update_realm(self._realm, **changes)

    def _record(self, annotation: str, value: str | None) -> str:
        self._update(RealmFields(acted=_with_handled(self._realm.acted, annotation, value)))
        return _handled(annotation, value)


class _CatalogConvergence:
    """A pass over one catalog, like ``_RealmConvergence`` over a realm.

    realm_uid         the uid of the resource that manages its realm, if that is known
    may_be_unmanaged  whether its realm may have no manager
    """

    def __init__(
        self,
        observer: StoreObserver,
        manifest: CatalogManifest,
        manager: ManagerIdentity,
        credentials: CredentialsSink,
        *,
        realm_uid: str = "",
        may_be_unmanaged: bool = False,
        server_url: str = "",
    ) -> None:
        self.observer = observer
        self.manifest = manifest
        self._manager = manager
        self._credentials = credentials
        self._server_url = server_url
        self._realm_uid = realm_uid
        self._may_be_unmanaged = may_be_unmanaged
        self._store = observer.store
        self._name = manifest.spec.name
        self._found_realm: Realm | None = None
        self._definition: CatalogDefinition | None = None
        self._opened: Catalogs | None = None

    def make_plan(self) -> list[Action]:
        """The plan for the state as it is now."""
        observed = self.observer.observe_catalog(
            self.manifest,
            self._manager,
            realm_uid=self._realm_uid,
            may_be_unmanaged=self._may_be_unmanaged,
            server_url=self._server_url,
        )
        self._found_realm, self._definition, self._opened = observed.realm, observed.catalog, None
        return plan_catalog(self.manifest, observed, self._store.clock.now())

    def execute(self, action: Effect) -> str | None:
        """Carry the action out and return a description; None when nothing was left to do."""
        match action:
            case CreateCatalog(fields):
                return self._create(fields)
            case CompleteCatalog():
                return self._complete(self._catalog)
            case UpdateCatalog(changes):
                self._definition = self._catalogs.update_catalog(self._catalog, **changes)
                return catalog_changes(changes, f"catalog {self._name} of realm {self._realm.id}").past
            case DeclarePolicies(policies, kinds):
                declare_policies(RealmRegistry(self._store).open_realm(self._realm.id), self._catalog, policies)
                return policy_changes(kinds, f"catalog {self._name} of realm {self._realm.id}").past
            case RecordImported(name, digest):
                imported = {**self._catalog.imported, name: digest}
                self._definition = self._catalogs.update_catalog(self._catalog, imported=imported)
                return f"recorded that import {name} of catalog {self._name} is done"
            case DeleteCatalog():
                deleted = self._catalogs.delete_catalog(self._name, seen=self._catalog)
                until = as_text((deleted.held_until or 0) + 999_999)
                return f"deleted catalog {self._name} of realm {self._realm.id}; it can be undeleted until {until}"
            case RecordHandled(annotation, value):
                self._remember(_with_handled(self._catalog.acted, annotation, value))
                return _handled(annotation, value)
            case RecordAccess(record):
                self._remember(with_record(self._catalog.acted, record))
                return f"noted what Catalog {self.manifest.metadata.name} declares of access"
        if isinstance(action, AccessAction):
            return self._access_steps().take_step(action)
        return _act_on_task(self._store, self._realm, action)

    def _remember(self, acted: dict[str, str]) -> None:
        self._definition = self._catalogs.update_catalog(self._catalog, acted=acted)

    def _access_steps(self) -> AccessSteps:
        return AccessSteps(
            RealmRegistry(self._store),
            self._realm,
            self._credentials,
            check_unchanged=self._check_unchanged,
            catalog=self._catalog,
        )

    def _check_unchanged(self) -> None:
        if self._catalogs.find_catalog(self._name) != self._definition:
            raise SwapConflictError(f"catalog {self._name!r} of realm {self._realm.id!r} was changed meanwhile: read it again")

    def _create(self, fields: CatalogFields) -> str:
        try:
            self._definition = self._catalogs.create_catalog(self._name, **fields)
        except ConflictError as beaten:
            # a resource or a person created it meanwhile: observe again to see whose it is
            raise SwapConflictError(str(beaten)) from beaten
        return f"created catalog {self._name} of realm {self._realm.id}"

    def _complete(self, definition: CatalogDefinition) -> str | None:
        completed = self._catalogs.complete_catalog(definition)
        if completed != msgspec.structs.replace(definition, unfinished=False):
            raise SwapConflictError(f"catalog {self._name!r} of realm {self._realm.id!r} was changed by another: read it again")
        self._definition = completed
        return f"completed catalog {self._name} of realm {self._realm.id}" if definition.unfinished else None

    @property
    def _catalogs(self) -> Catalogs:
        if self._opened is None:
            self._opened = Catalogs(RealmRegistry(self._store).open_realm(self._realm.id))
        return self._opened

    @property
    def _realm(self) -> Realm:
        if self._found_realm is None:
            raise RefusedError(f"catalog {self._name!r} has no realm")
        return self._found_realm

    @property
    def _catalog(self) -> CatalogDefinition:
        if self._definition is None:
            raise RefusedError(f"there is no catalog {self._name!r} in realm {self._realm.id!r}")
        return self._definition


def _act_on_task(store: Store, realm: Realm, action: Effect) -> str | None:
    tasks = TaskQueue(store)
    match action:
        case SubmitTask(kind, due, subject, arguments):
            submitted = tasks.submit_task(
                kind, realm=realm.id, realm_key=realm.key, subject=subject, arguments=arguments, due=due
            )
            what = f"{kind} {subject}".strip()
            when = f"due {as_text(due)}" if due > store.clock.now() else "due now"
            return f"asked for {what} of realm {realm.id}, {when} (task {id_text(submitted.id)})" if submitted.created else None
        case RunTaskNow(task, kind):
            _steer(tasks.run_now, task)
            return f"let {kind} of realm {realm.id} run now (task {id_text(task)})"
        case CancelTask(task, kind, subject):
            _steer(tasks.cancel_task, task)
            return f"cancelled {f'{kind} {subject}'.strip()} of realm {realm.id} (task {id_text(task)})"
    raise TypeError(f"{type(action).__name__} cannot be done here")


def _steer(step: Callable[[ObjectId], Task], task: ObjectId) -> None:
    """Act on a task that was active when it was observed. If it has ended since, observe again."""
    try:
        step(task)
    except (RefusedError, NotFoundError) as ended:
        raise SwapConflictError(str(ended)) from ended


def _with_handled(acted: Mapping[str, str], annotation: str, value: str | None) -> dict[str, str]:
    """What was acted on, with an annotation's value in it, or without the annotation."""
    kept = {name: text for name, text in acted.items() if name != annotation}
    return kept if value is None else {**kept, annotation: value}


def _handled(annotation: str, value: str | None) -> str:
    name = annotation.split(" ")[0]
    return f"noted that {name} is gone" if value is None else f"noted that {name}: {value} was acted on"
