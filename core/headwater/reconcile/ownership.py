"""Ownership of a realm: which resource may manage it, and how it passes from one resource to another.

Anybody who may write in a namespace may create a resource there, so a realm does not leave its namespace on the taker's request alone:
its manager must agree by the annotation `release-to`, or a person with access to the store must release it.

A resource that is created anew has another uid, and continues as the manager: after a deletion under Retain, from a backup of its
cluster, or in a cluster that took the name over. A uid that was succeeded in this way never takes the realm back unasked. Otherwise a
forgotten copy of the cluster would do so at its next pass, and the two would alternate for ever.

All clusters without a chosen name have the same default name. There a realm that is managed under another uid may be in use in another
cluster, so it is taken over only on request; a realm that was released is taken back all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.catalogs import CatalogManager
from headwater.realms import Realm, RealmFields, RealmManager, RealmRegistry
from headwater.reconcile.manifests import ADOPT, RELEASE_TO, ManifestMetadata, ResourceName
from headwater.store import Store

HOME = "headwater.dev/home"
"""The property of an unmanaged realm that holds the namespace of the resource that it was detached from."""
FORMER = "headwater.dev/former-manager"
"""The property that holds that resource: its cluster, namespace and name, separated by slashes."""
SUCCEEDED = "headwater.dev/succeeded-uids"
"""The property with the uids that its resource had earlier while it managed the realm: the latest last."""
_SUCCEEDED_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerIdentity:
    """The identity that applies a manifest: a manager without the namespace and the name, which are those of the manifest.

    cluster           as realms and catalogs remember it
    uid               the uid of the resource; empty for a file
    is_cluster_named  the name of the cluster was chosen. Otherwise another cluster may have the same name, and only a
                      released realm is taken back unasked
    """

    cluster: str = ""
    uid: str = ""
    is_cluster_named: bool = True

    def of_realm(self, resource: ResourceName) -> RealmManager:
        return RealmManager(cluster=self.cluster, namespace=resource.namespace, name=resource.name, uid=self.uid)

    def of_catalog(self, resource: ResourceName) -> CatalogManager:
        return CatalogManager(cluster=self.cluster, namespace=resource.namespace, name=resource.name, uid=self.uid)


def belongs_to(realm: Realm, me: RealmManager) -> bool:
    """Whether the resource managed this realm before it was created anew, or released it, and no other resource got it since."""
    if realm.manager is not None:
        return realm.manager.is_same(me)
    return realm.acted.get(FORMER) == _identity(me)


def is_succeeded(realm: Realm, me: RealmManager) -> bool:
    """Whether the resource was created anew since, and the new one has taken the realm over."""
    return bool(me.uid) and me.uid in _succeeded(realm)


def may_return(realm: Realm, me: RealmManager, *, is_cluster_named: bool) -> bool:
    """Whether the resource takes the realm back unasked."""
    if not belongs_to(realm, me) or is_succeeded(realm, me):
        return False
    return realm.manager is None or is_cluster_named


def may_adopt(realm: Realm, me: RealmManager) -> bool:
    """Whether this resource may take the realm over: its namespace manages or managed it, nobody ever did, or it was released to
    this one.
    """
    home = realm.manager.namespace if realm.manager else realm.acted.get(HOME)
    return home in (None, "", me.namespace) or realm.acted.get(RELEASE_TO) == taker_text(me)


def taker_text(me: RealmManager | ManifestMetadata) -> str:
    """The name of this resource in the annotation `release-to`."""
    return f"{me.namespace}/{me.name}"


def with_manager(realm: Realm, me: RealmManager, *, record: str | None = None, value: str = "") -> RealmFields:
    """The changed fields when the resource takes the realm over, which uses up a `release-to`.

    record, value  the property that records the annotation's request, and its value
    """
    succeeded = [uid for uid in _succeeded(realm) if uid != me.uid]
    if realm.manager is not None and realm.manager.is_same(me) and realm.manager.uid:
        succeeded.append(realm.manager.uid)
    kept = _without(realm, HOME, FORMER, RELEASE_TO, SUCCEEDED)
    if succeeded:
        kept[SUCCEEDED] = " ".join(succeeded[-_SUCCEEDED_LIMIT:])
    return RealmFields(manager=me, acted=kept if record is None else {**kept, record: value})


def without_manager(realm: Realm) -> RealmFields:
    """The changed fields when a resource leaves the realm: it may take it back, and its namespace stays the realm's home."""
    if realm.manager is None:
        return RealmFields(manager=None)
    left = {HOME: realm.manager.namespace, FORMER: _identity(realm.manager)}
    return RealmFields(manager=None, acted={**realm.acted, **left})


def release_realm(store: Store, realm_id: str) -> Realm:
    """Release a realm for good, whoever manages it: any resource may adopt it then. For a person with access to the store.

    raises        NotFoundError when there is none; SwapConflictError when another process changes it at the same time
    """
    realms = RealmRegistry(store)
    realm = realms.read_realm(realm_id)
    return realms.update_realm(realm, manager=None, acted=_without(realm, HOME, FORMER, RELEASE_TO))


def adopt_record(me: RealmManager) -> str:
    """The property that records an adoption by this resource: one for each resource, or two would take the realm from each other
    for ever.
    """
    return f"{ADOPT} {manager_text(me)}"


def manager_text(manager: RealmManager | None) -> str:
    if manager is None:
        return "nobody"
    parts = (manager.cluster, manager.namespace, manager.name, manager.uid)
    return "/".join(part for part in parts if part)


def _identity(manager: RealmManager) -> str:
    return f"{manager.cluster}/{manager.namespace}/{manager.name}"


def _succeeded(realm: Realm) -> list[str]:
    return realm.acted.get(SUCCEEDED, "").split()


def _without(realm: Realm, *records: str) -> dict[str, str]:
    return {name: text for name, text in realm.acted.items() if name not in records}
