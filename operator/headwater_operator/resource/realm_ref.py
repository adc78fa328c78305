"""To which realm a Catalog belongs, and whether a resource that is being deleted may go. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.reconcile import ReconcileOutcome, WaitUntil
from headwater.store import RealmId
from headwater_operator.runtime.informer_cache import CachedResource, ResourceCache


@dataclass(frozen=True, slots=True)
class Belonging:
    """
    realm         the Realm that a Catalog names, if that is there
    realm_id      its id, or what it was when it was there; None when nobody knows
    """

    realm: CachedResource | None
    realm_id: RealmId | None

    @property
    def realm_uid(self) -> str:
        """That of the Realm; empty when there is none."""
        return "" if self.realm is None else self.realm.uid

    @property
    def is_lasting(self) -> bool:
        """Whether there is a Realm, and it shall stay."""
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
    """What a Catalog that shall live waits for, as long as nobody looks after its realm."""
    where = f"{catalog.namespace}/{catalog.realm}"
    if belonging.realm is None:
        return WaitUntil("RealmMissing", f"there is no Realm {where}; the catalog is reconciled once it exists")
    if belonging.realm.is_deleted:
        return WaitUntil("RealmDeleting", f"Realm {where} is being deleted; the catalog is no longer reconciled")
    return None


def may_go(resource: CachedResource, outcome: ReconcileOutcome | Exception, belonging: Belonging | None = None) -> bool:
    """Whether nothing is left to do for a resource that is being deleted, so that the operator may let it go.

    A resource goes, too, whose realm or catalog belongs to another one, whatever its policy: it has nothing in the store, and deletes
    nothing. And so does a Catalog under Retain where the operator may not even note that nobody manages it any more: in a realm of another
    manager, and in one that is not ACTIVE and will not be made so, because its Realm is gone or going.
    """
    if isinstance(outcome, Exception) or outcome.error is not None:
        return False
    harmless = {"ManagedByAnother"}
    if belonging is not None and resource.spec.get("deletionPolicy", "Retain") == "Retain":
        harmless |= {"RealmManagedByAnother"} if belonging.is_lasting else {"RealmManagedByAnother", "RealmNotActive"}
    return {*(one.reason for one in outcome.refused), *(one.reason for one in outcome.waits)} <= harmless
