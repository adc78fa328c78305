"""One look at what a manifest is about: what is there, what is to be done about it, and who can do that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from headwater.reconcile.acting import CatalogActor, RealmActor
from headwater.reconcile.actions import Action, Effect
from headwater.reconcile.catalog_planning import plan_catalog
from headwater.reconcile.credentials import CredentialsSink
from headwater.reconcile.manifests import CatalogManifest, RealmManifest
from headwater.reconcile.observing import Observer
from headwater.reconcile.owning import ManagerIdentity
from headwater.reconcile.realm_planning import plan_realm
from headwater.store import Store

__all__ = ["Actor", "CatalogLook", "Look", "RealmLook"]


class Actor(Protocol):
    def act(self, action: Effect) -> str | None:
        """Do it, and tell what was done; None when there was nothing to do any more."""
        ...


class Look(Protocol):
    def __call__(self) -> tuple[list[Action], Callable[[], Actor]]:
        """What is planned for what is seen now, and who carries it out."""
        ...


@dataclass(frozen=True, slots=True)
class RealmLook:
    store: Store
    observer: Observer
    manifest: RealmManifest
    manager: ManagerIdentity
    credentials: CredentialsSink

    def __call__(self) -> tuple[list[Action], Callable[[], Actor]]:
        observed = self.observer.realm(self.manifest, self.manager)
        plan = plan_realm(self.manifest, observed, self.store.clock.now())
        return plan, lambda: RealmActor(self.store, self.manifest.spec.realm_id, observed, credentials=self.credentials)


@dataclass(frozen=True, slots=True)
class CatalogLook:
    """
    may_be_unmanaged  whether the catalog's realm may belong to nobody
    realm_uid         of the resource that its realm belongs to, if that is known
    """

    store: Store
    observer: Observer
    manifest: CatalogManifest
    manager: ManagerIdentity
    may_be_unmanaged: bool
    realm_uid: str = ""

    def __call__(self) -> tuple[list[Action], Callable[[], Actor]]:
        observed = self.observer.catalog(
            self.manifest, self.manager, realm_uid=self.realm_uid, may_be_unmanaged=self.may_be_unmanaged
        )
        plan = plan_catalog(self.manifest, observed, self.store.clock.now())
        return plan, lambda: CatalogActor(self.store, self.manifest.spec.name, observed)
