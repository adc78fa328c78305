"""The realm of a Catalog, and whether a resource that is being deleted may be released. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.reconcile import ReconcileOutcome, WaitUntil
from headwater.store import RealmId
from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache


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


def realm_id_of(realm: CachedResource) -> RealmId:
    return RealmId(str(realm.spec.get("realmId") or realm.name))


def find_realm(catalog: CachedResource, cache: ResourceCache) -> Belonging:
    realm = cache.realm_of(catalog)
    if realm is not None:
        return Belonging(realm, realm_id_of(realm))
    known = catalog.status.get("realmId")
    return Belonging(None, RealmId(known) if isinstance(known, str) and known else None)


def wait_for_realm(catalog: CachedResource, belonging: Belonging) -> WaitUntil | None:
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
    return {*(one.reason for one in outcome.refused), *(one.reason for one in outcome.waits)} <= harmless
