"""To which realm a Catalog belongs, and whether a resource that is being deleted may go. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.reconcile import Outcome, Wait
from headwater.store import RealmId
from headwater_operator.resources import Resource, ResourceCache

__all__ = ["Belonging", "find_realm", "may_go", "realm_id_of", "wait_for_realm"]


@dataclass(frozen=True, slots=True)
class Belonging:
    """
    realm         the Realm that a Catalog names, if that is there
    realm_id      its id, or what it was when it was there; None when nobody knows
    """

    realm: Resource | None
    realm_id: RealmId | None

    @property
    def realm_uid(self) -> str:
        """That of the Realm; empty when there is none."""
        return "" if self.realm is None else self.realm.uid

    @property
    def is_lasting(self) -> bool:
        """Whether there is a Realm, and it shall stay."""
        return self.realm is not None and not self.realm.is_deleted


def realm_id_of(realm: Resource) -> RealmId:
    return RealmId(str(realm.spec.get("realmId") or realm.name))


def find_realm(catalog: Resource, cache: ResourceCache) -> Belonging:
    realm = cache.realm_of(catalog)
    if realm is not None:
        return Belonging(realm, realm_id_of(realm))
    known = catalog.status.get("realmId")
    return Belonging(None, RealmId(known) if isinstance(known, str) and known else None)


def wait_for_realm(catalog: Resource, belonging: Belonging) -> Wait | None:
    """What a Catalog that shall live waits for, as long as nobody looks after its realm."""
    where = f"{catalog.namespace}/{catalog.realm}"
    if belonging.realm is None:
        return Wait("RealmMissing", f"there is no Realm {where}; the catalog is looked after once it is there")
    if belonging.realm.is_deleted:
        return Wait("RealmDeleting", f"Realm {where} is being deleted; the catalog is not looked after any more")
    return None


def may_go(resource: Resource, outcome: Outcome | Exception, belonging: Belonging | None = None) -> bool:
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
