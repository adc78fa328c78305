"""One pass through the store for a Realm or a Catalog: reconcile, observe, and answer a requested plan.

Also the Realm that a Catalog names, whether a resource that is being deleted may be released, and the annotation
`headwater.dev/plan`, which requests a plan for the current spec or another one, once for each token.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import structlog

from headwater.catalogs import CatalogManager
from headwater.errors import FencedError, HeadwaterError, UnavailableError, UnknownOutcomeError
from headwater.realms import RealmManager, RealmRegistry
from headwater.reconcile import (
    CatalogDescription,
    CatalogManifest,
    ConnectionForm,
    ContentCounts,
    ManagerIdentity,
    ManifestError,
    PlannedStep,
    PlanPreview,
    RealmDescription,
    RealmManifest,
    ReconcileOutcome,
    RefuseManifest,
    TaskDescription,
    WaitUntil,
    describe_catalog,
    describe_realm,
    preview_catalog,
    preview_realm,
    read_manifest,
    reconcile_catalog,
    reconcile_realm,
)
from headwater.reconcile.declared_access import connection_name
from headwater.reconcile.manifests import PLAN
from headwater.settings import Settings
from headwater.store import RealmId, Store
from headwater_operator.kube import KubeApi
from headwater_operator.resource.conditions import FOREIGN, UNSEEN, SecretSeen, UnreadState, realm_id_of
from headwater_operator.resource.credentials_secret import SecretCredentials
from headwater_operator.resource.resource_status import PlanMade, asked_plan, catalog_status, realm_status
from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache
from headwater_operator.runtime.served_schema import SchemaOlderError, has_shrunk

log = structlog.get_logger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PassResult:
    """The result of a pass: an exception when it had no outcome at all. ``belonging`` is that of a Catalog.

    is_shrunk     the resource was not acted on, because its spec changed and its generation did not
    """

    outcome: ReconcileOutcome | Exception
    belonging: Belonging | None = None
    is_shrunk: bool = False

    @property
    def error(self) -> Exception | None:
        return self.outcome if isinstance(self.outcome, Exception) else self.outcome.error

    @property
    def steps(self) -> tuple[PlannedStep, ...]:
        return () if isinstance(self.outcome, Exception) else self.outcome.steps

    @property
    def refused(self) -> tuple[RefuseManifest, ...]:
        return () if isinstance(self.outcome, Exception) else self.outcome.refused

    @property
    def is_foreign(self) -> bool:
        """Whether the realm or catalog belongs to another resource."""
        return any(refusal.reason in FOREIGN for refusal in self.refused)


@dataclass(frozen=True, slots=True)
class ObservedStatus:
    """The observed state after a pass.

    outcome       the outcome of the pass, including this observation
    tasks         the active ones
    is_seen       whether the store was read, and answered
    is_away       whether it gave no answer; what it holds may also be damaged
    realm         the description of a realm that is the resource's own
    catalog       the description of a catalog that is the resource's own, in the realm ``realm_id``
    """

    outcome: ReconcileOutcome | Exception
    status: dict[str, Any]
    tasks: tuple[TaskDescription, ...]
    is_seen: bool
    is_away: bool = False
    realm: RealmDescription | None = None
    catalog: CatalogDescription | None = None
    realm_id: str = ""


@dataclass(frozen=True, slots=True)
class RealmPass:
    """A pass for a Realm. ``cluster`` is the identity of every Realm of this cluster without its uid.

    raises        FencedError from each method, and nothing else
    """

    store: Store
    settings: Settings
    cluster: ManagerIdentity
    fence: Callable[[], None]
    api: KubeApi
    counts: ContentCounts

    def reconcile_store(self, resource: CachedResource) -> PassResult:
        """Bring the store to what the resource says, as far as that is possible now."""
        if shrunk := _shrunk(resource):
            return PassResult(shrunk, is_shrunk=True)

        def carry_out() -> ReconcileOutcome:
            manifest = self._read(resource.body())
            return reconcile_realm(
                self.store,
                manifest,
                credentials=self._credentials(resource),
                manager=_identity(self.cluster, resource),
                tell=_tell,
                fence=self.fence,
            )

        outcome = _attempt(carry_out)
        if resource.is_deleted and isinstance(outcome, ManifestError) and self._made_nothing(resource):
            return PassResult(ReconcileOutcome(subject=str(resource.key)))
        return PassResult(outcome)

    def read_status(self, resource: CachedResource, acted: PassResult) -> ObservedStatus:
        """Observe the state and make the status from it."""
        realm_id = realm_id_of(resource)
        outcome, realm, is_away = _seen(acted, lambda: describe_realm(self.store, realm_id, counts=self.counts))
        is_foreign = acted.is_foreign
        if isinstance(realm, RealmDescription) and not is_foreign and realm.manager != _manager(self.cluster, resource):
            realm = None  # the pass ended too early to find out: another's realm concerns nobody else
        is_own = isinstance(realm, RealmDescription) and not is_foreign
        secret: SecretSeen | UnreadState = self._secret(resource, realm_id) if is_own else UNSEEN
        plan = _make_plan(resource, lambda body: self._preview(resource, body))
        status = realm_status(resource, outcome, realm, now=self.store.clock.now(), secret=secret, plan=plan)
        if not isinstance(realm, RealmDescription) or not is_own:
            return ObservedStatus(outcome, status, (), realm is not UNSEEN, is_away)
        return ObservedStatus(outcome, status, realm.tasks, True, realm=realm)

    def _made_nothing(self, resource: CachedResource) -> bool:
        """Whether the store is known to have no realm of this resource; then its spec does not matter."""
        try:
            realm = RealmRegistry(self.store).find_realm(realm_id_of(resource))
        except HeadwaterError:
            return False
        return realm is None or realm.manager is None or not _is_same(realm.manager, self.cluster, resource)

    def _read(self, body: dict[str, Any]) -> RealmManifest:
        return cast(RealmManifest, read_manifest(body, settings=self.settings))

    def _preview(self, resource: CachedResource, body: dict[str, Any]) -> PlanPreview:
        return preview_realm(self.store, self._read(body), manager=_identity(self.cluster, resource))

    def _credentials(self, resource: CachedResource) -> SecretCredentials:
        return SecretCredentials(self.api, resource.namespace, resource.name)

    def _secret(self, resource: CachedResource, realm_id: RealmId) -> SecretSeen | UnreadState:
        sink = self._credentials(resource)
        return _look_for_secrets(sink, realm_id, [sink.of_principal(name) for name in _principals(resource)])


@dataclass(frozen=True, slots=True)
class CatalogPass:
    """A pass for a Catalog, like ``RealmPass`` for a Realm."""

    store: Store
    settings: Settings
    cluster: ManagerIdentity
    fence: Callable[[], None]
    api: KubeApi
    cache: ResourceCache
    counts: ContentCounts
    server_url: str = ""

    def reconcile_store(self, resource: CachedResource) -> PassResult:
        belonging = _find_realm(resource, self.cache)
        if shrunk := _shrunk(resource):
            return PassResult(shrunk, belonging, is_shrunk=True)

        def carry_out() -> ReconcileOutcome:
            manifest = self._read(resource.body(), belonging)
            if resource.is_deleted and belonging.realm_id is None:
                return ReconcileOutcome(subject=manifest.subject)  # it never had a realm
            wait = None if resource.is_deleted else _wait_for_realm(resource, belonging)
            if wait is not None:
                return ReconcileOutcome(subject=manifest.subject, waits=(wait,))
            return reconcile_catalog(
                self.store,
                manifest,
                credentials=self._credentials(resource),
                manager=_identity(self.cluster, resource),
                realm_uid=belonging.realm_uid,
                server_url=self.server_url,
                # a Realm that was deleted under Retain left its realm unmanaged, and its Catalogs with it
                may_be_unmanaged=belonging.realm is None,
                tell=_tell,
                fence=self.fence,
            )

        return PassResult(_attempt(carry_out), belonging)

    def read_status(self, resource: CachedResource, acted: PassResult) -> ObservedStatus:
        belonging = acted.belonging or _find_realm(resource, self.cache)
        name = str(resource.spec.get("name") or resource.name)
        realm_id = belonging.realm_id
        outcome, catalog, is_away = _seen(
            acted, lambda: describe_catalog(self.store, realm_id, name, counts=self.counts) if realm_id is not None else None
        )
        is_foreign = acted.is_foreign
        if isinstance(catalog, CatalogDescription) and not is_foreign and not self._is_own(resource, catalog):
            catalog = None  # as with realms
        status = catalog_status(
            resource,
            outcome,
            catalog,
            now=self.store.clock.now(),
            realm=belonging.realm,
            realm_id=belonging.realm_id,
            secret=self._secret(resource, realm_id) if isinstance(catalog, CatalogDescription) else None,
            plan=_make_plan(resource, lambda body: self._preview(resource, body, belonging)),
        )
        if not isinstance(catalog, CatalogDescription) or is_foreign:
            return ObservedStatus(outcome, status, (), catalog is not UNSEEN, is_away)
        works = (*(entry.active for entry in catalog.imports), *(work.active for work in catalog.lake_work))
        tasks = tuple(task for task in works if task is not None)
        return ObservedStatus(outcome, status, tasks, True, catalog=catalog, realm_id=realm_id or "")

    def _secret(self, resource: CachedResource, realm_id: RealmId | None) -> SecretSeen | UnreadState | None:
        """The Secret of the connection that the Catalog declares."""
        connection = resource.spec.get("connection")
        if not isinstance(connection, Mapping) or realm_id is None:
            return None
        name = str(resource.spec.get("name") or resource.name)
        form = ConnectionForm(connection_name(name), catalog=name, uri="", secret_name=str(connection.get("secretName") or ""))
        return _look_for_secrets(self._credentials(resource).of_connection(form), realm_id, [])

    def _is_own(self, resource: CachedResource, catalog: CatalogDescription) -> bool:
        return catalog.manager is not None and _is_same(catalog.manager, self.cluster, resource)

    def _read(self, body: dict[str, Any], belonging: Belonging) -> CatalogManifest:
        return cast(CatalogManifest, read_manifest(body, settings=self.settings, realm_id=belonging.realm_id))

    def _preview(self, resource: CachedResource, body: dict[str, Any], belonging: Belonging) -> PlanPreview:
        manifest = self._read(body, belonging)
        wait = None if resource.is_deleted else _wait_for_realm(resource, belonging)
        if wait is not None:
            return PlanPreview(waits=(wait,))
        return preview_catalog(
            self.store,
            manifest,
            manager=_identity(self.cluster, resource),
            realm_uid=belonging.realm_uid,
            may_be_unmanaged=belonging.realm is None,
            server_url=self.server_url,
        )

    def _credentials(self, resource: CachedResource) -> SecretCredentials:
        return SecretCredentials(self.api, resource.namespace, resource.name)


def _shrunk(resource: CachedResource) -> SchemaOlderError | None:
    """Why the spec of a resource cannot be what its author asks for; None where it can."""
    if not has_shrunk(resource.kind, resource.generation, resource.spec, resource.status):
        return None
    return SchemaOlderError(
        f"the spec of {resource.key} changed and its generation {resource.generation} did not: an older definition of {resource.kind} in "
        "the cluster has dropped fields, so it is not acted on. Apply the CRDs of this operator's chart, then the manifest again; to have "
        "the spec acted on as it is, change any field of it"
    )


def _principals(resource: CachedResource) -> list[str]:
    """The names of the principals that a Realm declares, whatever else is in its spec."""
    declared = resource.spec.get("principals")
    named = [entry.get("name") for entry in declared if isinstance(entry, Mapping)] if isinstance(declared, list) else []
    return [name for name in named if isinstance(name, str)]


def _look_for_secrets(
    sink: SecretCredentials, realm_id: RealmId, others: Sequence[SecretCredentials]
) -> SecretSeen | UnreadState:
    try:
        missing = tuple((other.name, other.principal) for other in others if not other.exists(realm_id))
        return SecretSeen(sink.name, sink.exists(realm_id), missing)
    except HeadwaterError as fault:
        log.warning("the Secret could not be looked for", error=str(fault))
        return UNSEEN


def _identity(cluster: ManagerIdentity, resource: CachedResource) -> ManagerIdentity:
    return replace(cluster, uid=resource.uid)


def _manager(cluster: ManagerIdentity, resource: CachedResource) -> RealmManager:
    return RealmManager(cluster=cluster.cluster, namespace=resource.namespace, name=resource.name, uid=resource.uid)


def _is_same(manager: RealmManager | CatalogManager, cluster: ManagerIdentity, resource: CachedResource) -> bool:
    """Whether the manager is this resource. With another uid it was recreated, or is one of another cluster without a name."""
    if (manager.cluster, manager.namespace, manager.name) != (cluster.cluster, resource.namespace, resource.name):
        return False
    return cluster.is_cluster_named or manager.uid == resource.uid


def _tell(subject: str, sentence: str) -> None:
    """Log each step as soon as it is taken, so that the log survives if the process is killed after it."""
    log.info("step taken", step=sentence)


def _attempt(carry_out: Callable[[], ReconcileOutcome]) -> ReconcileOutcome | Exception:
    try:
        return carry_out()
    except FencedError:
        raise
    except HeadwaterError as fault:
        return fault
    except Exception as fault:  # the outermost handler: the failure becomes a condition, and is retried
        log.exception("a pass ended in a bug")
        return fault


def _seen(acted: PassResult, look: Callable[[], T]) -> tuple[ReconcileOutcome | Exception, T | UnreadState, bool]:
    """Observe after a pass: its outcome, including a bug while observing; the state; and whether the store is unreachable."""
    try:
        return acted.outcome, look(), False
    except FencedError:
        raise
    except HeadwaterError as fault:
        log.warning("the store does not tell how things stand", error=str(fault))
        return acted.outcome, UNSEEN, isinstance(fault, UnavailableError | UnknownOutcomeError)
    except Exception as fault:  # the same handler
        log.exception("a look at the store ended in a bug")
        return (acted.outcome if isinstance(acted.outcome, Exception) else fault), UNSEEN, False


@dataclass(frozen=True, slots=True)
class Belonging:
    """The realm that a Catalog belongs to.

    realm         the Realm that a Catalog names, if it exists
    realm_id      its id, or the last known one; None when unknown
    """

    realm: CachedResource | None
    realm_id: RealmId | None

    @property
    def realm_uid(self) -> str:
        """The uid of the Realm; empty when there is none."""
        return "" if self.realm is None else self.realm.uid

    @property
    def is_lasting(self) -> bool:
        """Whether there is a Realm, and it is not being deleted."""
        return self.realm is not None and not self.realm.is_deleted


def _find_realm(catalog: CachedResource, cache: ResourceCache) -> Belonging:
    realm = cache.realm_of(catalog)
    if realm is not None:
        return Belonging(realm, realm_id_of(realm))
    known = catalog.status.get("realmId")
    return Belonging(None, RealmId(known) if isinstance(known, str) and known else None)


def _wait_for_realm(catalog: CachedResource, belonging: Belonging) -> WaitUntil | None:
    """The reason why a Catalog waits while nobody manages its realm."""
    where = f"{catalog.namespace}/{catalog.realm}"
    if belonging.realm is None:
        return WaitUntil("RealmMissing", f"there is no Realm {where}; the catalog is reconciled once it exists")
    if belonging.realm.is_deleted:
        return WaitUntil("RealmDeleting", f"Realm {where} is being deleted; the catalog is no longer reconciled")
    return None


def may_go(resource: CachedResource, outcome: ReconcileOutcome | Exception, belonging: Belonging | None = None) -> bool:
    """Whether nothing is left to do for a resource that is being deleted, so that the operator may release it.

    A resource whose realm or catalog belongs to another one is released, too, whatever its policy: it has nothing in the store, and
    deletes nothing. So is a Catalog under Retain where the operator may not even record that it is unmanaged: in a realm of another
    manager, and in one that is not ACTIVE and will not become so, because its Realm is deleted or being deleted.
    """
    if isinstance(outcome, Exception) or outcome.error is not None:
        return False
    harmless = {"ManagedByAnother"}
    if belonging is not None and resource.spec.get("deletionPolicy", "Retain") == "Retain":
        harmless |= {"RealmManagedByAnother"} if belonging.is_lasting else {"RealmManagedByAnother", "RealmNotActive"}
    reasons = {*(refusal.reason for refusal in outcome.refused), *(wait.reason for wait in outcome.waits)}
    return reasons <= harmless


def _make_plan(resource: CachedResource, preview: Callable[[dict[str, Any]], PlanPreview]) -> PlanMade | None:
    """Make a requested plan that was not made yet; None when there is none to make, or the store does not answer.

    preview       makes a plan of a body, and writes nothing
    """
    token = asked_plan(resource)
    if token is None:
        return None
    body = _asked_body(resource)
    made = PlanPreview(refused=(body,)) if isinstance(body, RefuseManifest) else _previewed(body, preview)
    return None if made is None else PlanMade(token, made)


def _asked_body(resource: CachedResource) -> dict[str, Any] | RefuseManifest:
    try:
        question = json.loads(resource.annotations[PLAN])
    except (ValueError, RecursionError):
        question = None
    spec = question.get("spec") if isinstance(question, Mapping) else None
    if not isinstance(question, Mapping) or not isinstance(spec, Mapping | None):
        return RefuseManifest(
            "SpecInvalid", f'the annotation {PLAN} must be JSON such as {{"token": "a1", "spec": {{}}}}, with or without spec'
        )
    return resource.body() if spec is None else {**resource.body(), "spec": dict(spec)}


def _previewed(body: dict[str, Any], preview: Callable[[dict[str, Any]], PlanPreview]) -> PlanPreview | None:
    try:
        return preview(body)
    except (FencedError, UnavailableError, UnknownOutcomeError):
        return None
    except ManifestError as fault:
        faults = (f"{wrong.path}: {wrong.message}" if wrong.path else wrong.message for wrong in fault.faults)
        return PlanPreview(refused=tuple(RefuseManifest("SpecInvalid", told) for told in faults))
    except HeadwaterError as fault:
        return PlanPreview(refused=(RefuseManifest("Refused", str(fault)),))
    except RecursionError:
        return PlanPreview(refused=(RefuseManifest("SpecInvalid", "the spec of the plan is nested too deeply"),))
    except Exception as fault:
        log.exception("a plan ended in a bug")
        return PlanPreview(refused=(RefuseManifest("InternalError", f"{type(fault).__name__}: a bug in Headwater"),))
