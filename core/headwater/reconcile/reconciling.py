"""Looks, plans and acts until nothing more can be done now: for one manifest, or in one pass for many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headwater.clock import Micros
from headwater.errors import BeatenError, FencedError, HeadwaterError, UnavailableError
from headwater.reconcile.actions import Action, Effect, Refuse, Report, Step, Wait, step_of
from headwater.reconcile.credentials import CredentialsSink
from headwater.reconcile.looking import Actor, CatalogLook, Look, RealmLook
from headwater.reconcile.manifests import CatalogManifest, Manifest, RealmManifest, ResourceName
from headwater.reconcile.observing import Observer
from headwater.reconcile.owning import ManagerIdentity
from headwater.store import Store

__all__ = ["Outcome", "Tell", "reconcile", "reconcile_catalog", "reconcile_realm"]

Tell = Callable[[str, str], None]
"""Called after each step with its subject ("Realm acme") and a sentence that says what was done."""
Fence = Callable[[], None]
"""Called before each step: what it raises ends everything, and comes through."""

ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one manifest.

    steps         what was done
    error         why it could not be finished; the other manifests were carried out all the same
    """

    subject: str
    steps: tuple[Step, ...] = ()
    waits: tuple[Wait, ...] = ()
    refused: tuple[Refuse, ...] = ()
    reports: tuple[Report, ...] = ()
    error: HeadwaterError | None = None

    @property
    def done(self) -> tuple[str, ...]:
        """A sentence for each step that was taken."""
        return tuple(step.message for step in self.steps)

    @property
    def is_settled(self) -> bool:
        """Everything is as the manifest says."""
        return not (self.waits or self.refused or self.error)

    @property
    def waits_until(self) -> Micros | None:
        """The earliest time at which something can be done; None when nothing waits for a time."""
        return min((wait.until for wait in self.waits if wait.until is not None), default=None)


def reconcile(
    store: Store,
    manifests: Sequence[Manifest],
    *,
    credentials: CredentialsSink,
    manager: ManagerIdentity,
    tell: Tell | None = None,
) -> list[Outcome]:
    """Bring realms and catalogs to what their manifests say, as far as that is possible now. Done twice, the second one changes nothing.

    returns       one outcome for each manifest, in the order in which they were carried out: deletions of catalogs, realms, other catalogs
    """
    passing = _Pass(Observer(store), tell=tell or _silent, fence=_no_fence)
    named = {manifest.metadata.resource for manifest in manifests if isinstance(manifest, RealmManifest)}

    def carry_out(manifest: Manifest) -> Outcome:
        if isinstance(manifest, RealmManifest):
            return passing.converge(manifest.subject, RealmLook(store, passing.observer, manifest, manager, credentials))
        is_named = ResourceName(manifest.metadata.namespace, manifest.spec.realm) in named
        return passing.converge(
            manifest.subject, CatalogLook(store, passing.observer, manifest, manager, may_be_unmanaged=not is_named)
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
) -> Outcome:
    """The same for one realm.

    fence         called before each step, for whoever may only act while it leads
    """
    passing = _Pass(Observer(store), tell=tell or _silent, fence=fence or _no_fence)
    return passing.converge(manifest.subject, RealmLook(store, passing.observer, manifest, manager, credentials))


def reconcile_catalog(
    store: Store,
    manifest: CatalogManifest,
    *,
    manager: ManagerIdentity,
    realm_uid: str = "",
    may_be_unmanaged: bool = False,
    tell: Tell | None = None,
    fence: Fence | None = None,
) -> Outcome:
    """The same for one catalog.

    realm_uid         of the resource that its realm belongs to; empty where that is not known
    may_be_unmanaged  whether its realm may belong to nobody
    """
    passing = _Pass(Observer(store), tell=tell or _silent, fence=fence or _no_fence)
    look = CatalogLook(store, passing.observer, manifest, manager, may_be_unmanaged, realm_uid)
    return passing.converge(manifest.subject, look)


def _in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    def turn(manifest: Manifest) -> int:
        if isinstance(manifest, RealmManifest):
            return 1
        return 0 if manifest.metadata.is_deletion else 2

    return sorted(manifests, key=turn)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What the manifests of one pass have in common."""

    observer: Observer
    tell: Tell
    fence: Fence

    def converge(self, subject: str, look: Look) -> Outcome:
        """Look, plan and act until a plan has no step left. A manifest that fails does not stop the others."""
        steps: list[Step] = []
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

    def _take(self, subject: str, plan: list[Action], make_actor: Callable[[], Actor], steps: list[Step]) -> bool:
        """Take the steps of a plan; whether anything changed, so that another look is due."""
        effects = [action for action in plan if isinstance(action, Effect)]
        if not effects:
            return False
        before, actor = len(steps), make_actor()
        for effect in effects:
            self.fence()
            try:
                sentence = actor.act(effect)
            except FencedError:
                raise
            except BeatenError:
                return True  # somebody else was faster: what to do now is found out by looking again
            if sentence is not None:
                steps.append(step_of(effect, sentence))
                self.tell(subject, sentence)
        return len(steps) > before


def _outcome(subject: str, steps: list[Step], plan: list[Action], error: HeadwaterError | None = None) -> Outcome:
    return Outcome(
        subject=subject,
        steps=tuple(steps),
        waits=tuple(action for action in plan if isinstance(action, Wait)),
        refused=tuple(action for action in plan if isinstance(action, Refuse)),
        reports=tuple(action for action in plan if isinstance(action, Report)),
        error=error,
    )


def _silent(subject: str, sentence: str) -> None:
    """Nobody listens."""


def _no_fence() -> None:
    """Nobody else may be in charge."""
