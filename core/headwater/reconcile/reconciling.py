"""One pass over all manifests: look, plan, act, until nothing more can be done now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.catalogs import CatalogManager
from headwater.clock import Micros
from headwater.errors import BeatenError, HeadwaterError, UnavailableError
from headwater.realms import Manager
from headwater.reconcile.acting import CatalogActor, RealmActor
from headwater.reconcile.actions import Action, Effect, Refuse, Report, Wait
from headwater.reconcile.catalog_planning import plan_catalog
from headwater.reconcile.credentials import CredentialsSink
from headwater.reconcile.manifests import CatalogManifest, Manifest, RealmManifest
from headwater.reconcile.observing import Observer
from headwater.reconcile.realm_planning import plan_realm
from headwater.store import Store

__all__ = ["Outcome", "Tell", "reconcile"]

Tell = Callable[[str, str], None]
"""Called after each step with its subject ("Realm acme") and a sentence that says what was done."""

ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one manifest.

    done          a sentence for each step that was taken
    error         why it could not be finished; the other manifests were carried out all the same
    """

    subject: str
    done: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    refused: tuple[Refuse, ...] = ()
    reports: tuple[Report, ...] = ()
    error: HeadwaterError | None = None

    @property
    def is_settled(self) -> bool:
        """Everything is as the manifest says."""
        return not (self.waits or self.refused or self.error)

    @property
    def waits_until(self) -> Micros | None:
        """The earliest time at which something can be done; None when nothing waits for a time."""
        return min((wait.until for wait in self.waits if wait.until is not None), default=None)


class _Actor(Protocol):
    def act(self, action: Effect) -> str | None: ...


_Look = Callable[[], tuple[list[Action], Callable[[], _Actor]]]


def reconcile(
    store: Store,
    manifests: Sequence[Manifest],
    *,
    credentials: CredentialsSink,
    manager: Manager,
    tell: Tell | None = None,
) -> list[Outcome]:
    """Bring realms and catalogs to what their manifests say, as far as that is possible now. Done twice, the second one changes nothing.

    manager       who asks; its namespace and name are those of each manifest
    returns       one outcome for each manifest, in the order in which they were carried out: deletions of catalogs, realms, other catalogs
    """
    observer = Observer(store)
    named = {manifest.metadata.resource for manifest in manifests if isinstance(manifest, RealmManifest)}

    def carry_out(manifest: Manifest) -> Outcome:
        if isinstance(manifest, RealmManifest):
            look = _look_at_realm(store, observer, manifest, _manager_of(manifest, manager), credentials)
        else:
            is_named = any(
                (realm.namespace, realm.name) == (manifest.metadata.namespace, manifest.spec.realm) for realm in named
            )
            look = _look_at_catalog(
                store, observer, manifest, _catalog_manager_of(manifest, manager), may_be_unmanaged=not is_named
            )
        return _converge(manifest.subject, look, observer, tell or _silent)

    return [carry_out(manifest) for manifest in _in_order(manifests)]


def _in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    def turn(manifest: Manifest) -> int:
        if isinstance(manifest, RealmManifest):
            return 1
        return 0 if manifest.metadata.is_deletion else 2

    return sorted(manifests, key=turn)


def _manager_of(manifest: RealmManifest, manager: Manager) -> Manager:
    resource = manifest.metadata.resource
    return Manager(cluster=manager.cluster, namespace=resource.namespace, name=resource.name, uid=manager.uid)


def _catalog_manager_of(manifest: CatalogManifest, manager: Manager) -> CatalogManager:
    resource = manifest.metadata.resource
    return CatalogManager(cluster=manager.cluster, namespace=resource.namespace, name=resource.name, uid=manager.uid)


def _look_at_realm(
    store: Store, observer: Observer, manifest: RealmManifest, me: Manager, credentials: CredentialsSink
) -> _Look:
    def look() -> tuple[list[Action], Callable[[], _Actor]]:
        observed = observer.realm(manifest, me)
        plan = plan_realm(manifest, observed, store.clock.now())
        return plan, lambda: RealmActor(store, manifest.spec.realm_id, observed, credentials=credentials)

    return look


def _look_at_catalog(
    store: Store, observer: Observer, manifest: CatalogManifest, me: CatalogManager, *, may_be_unmanaged: bool
) -> _Look:
    def look() -> tuple[list[Action], Callable[[], _Actor]]:
        observed = observer.catalog(manifest, me, may_be_unmanaged=may_be_unmanaged)
        plan = plan_catalog(manifest, observed, store.clock.now())
        return plan, lambda: CatalogActor(store, manifest.spec.name, observed)

    return look


def _converge(subject: str, look: _Look, observer: Observer, tell: Tell) -> Outcome:
    """Look, plan and act until a plan has no step left. A manifest that fails does not stop the others."""
    done: list[str] = []
    plan: list[Action] = []
    try:
        for _ in range(ROUNDS):
            plan, make_actor = look()
            if not _take_steps(plan, make_actor, done, lambda sentence: tell(subject, sentence)):
                return _outcome(subject, done, plan)
            observer.forget()
        raise UnavailableError(f"{subject} did not settle in {ROUNDS} rounds: somebody else changes it too, try again later")
    except HeadwaterError as error:
        observer.forget()
        return _outcome(subject, done, plan, error)


def _take_steps(plan: list[Action], make_actor: Callable[[], _Actor], done: list[str], tell: Callable[[str], None]) -> bool:
    """Whether anything changed, so that another look is due."""
    effects = [action for action in plan if isinstance(action, Effect)]
    if not effects:
        return False
    before, actor = len(done), make_actor()
    for effect in effects:
        try:
            sentence = actor.act(effect)
        except BeatenError:
            return True  # somebody else was faster: what to do now is found out by looking again
        if sentence is not None:
            done.append(sentence)
            tell(sentence)
    return len(done) > before


def _outcome(subject: str, done: list[str], plan: list[Action], error: HeadwaterError | None = None) -> Outcome:
    return Outcome(
        subject=subject,
        done=tuple(done),
        waits=tuple(action for action in plan if isinstance(action, Wait)),
        refused=tuple(action for action in plan if isinstance(action, Refuse)),
        reports=tuple(action for action in plan if isinstance(action, Report)),
        error=error,
    )


def _silent(subject: str, sentence: str) -> None:
    """Nobody listens."""
