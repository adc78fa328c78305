"""Who may look after a realm, and how it passes from one resource to another.

A resource may be made by whoever may write in its namespace, so a realm does not leave its namespace by the wish of the taker alone:
the resource that has it must agree, by the annotation `release-to`, or a person with access to the store lets go of it.

A resource that is made again has another uid, and goes on where it was: after a deletion under Retain, from a backup of its cluster, in
another cluster that took the name over. A uid that was succeeded so never comes back by itself. Otherwise a forgotten copy of the cluster
would take the realm back at its next look, and the two would do so for ever.

A cluster that nobody gave a name has the same one as all others of that kind. There a realm that is still managed under another uid may
well be in use in another cluster, so it is taken over only when somebody asks for it; what was let go is taken back all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.catalogs import CatalogManager
from headwater.realms import Realm, RealmFields, RealmManager, RealmRegistry
from headwater.reconcile.manifests import ADOPT, RELEASE_TO, ManifestMetadata, ResourceName
from headwater.store import Store

HOME = "headwater.dev/home"
"""Where a realm that nobody manages any more keeps the namespace of the resource that it was detached from."""
FORMER = "headwater.dev/former-manager"
"""Where it keeps that resource: its cluster, namespace and name, with slashes between."""
SUCCEEDED = "headwater.dev/succeeded-uids"
"""Where a realm keeps the uids that its resource had before it was made again while it had the realm: the latest last."""
_SUCCEEDED_LIMIT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerIdentity:
    """Who applies a manifest: all of a manager but the namespace and the name, which are those of the manifest.

    cluster           as realms and catalogs remember it
    uid               of the resource; empty for a file
    is_cluster_named  somebody chose the name of the cluster. Otherwise another cluster may have the same one, and only what was
                      let go is taken back without being asked to
    """

    cluster: str = ""
    uid: str = ""
    is_cluster_named: bool = True

    def of_realm(self, resource: ResourceName) -> RealmManager:
        return RealmManager(cluster=self.cluster, namespace=resource.namespace, name=resource.name, uid=self.uid)

    def of_catalog(self, resource: ResourceName) -> CatalogManager:
        return CatalogManager(cluster=self.cluster, namespace=resource.namespace, name=resource.name, uid=self.uid)


def belongs_to(realm: Realm, me: RealmManager) -> bool:
    """Whether the resource had this realm before it was made again, or let go of it, and nobody else was given it since."""
    if realm.manager is not None:
        return realm.manager.is_same(me)
    return realm.acted.get(FORMER) == _identity(me)


def is_succeeded(realm: Realm, me: RealmManager) -> bool:
    """Whether the resource was made again since, and the new one has taken the realm over."""
    return bool(me.uid) and me.uid in _succeeded(realm)


def may_return(realm: Realm, me: RealmManager, *, is_cluster_named: bool) -> bool:
    """Whether the resource takes the realm back without being asked to."""
    if not belongs_to(realm, me) or is_succeeded(realm, me):
        return False
    return realm.manager is None or is_cluster_named


def may_adopt(realm: Realm, me: RealmManager) -> bool:
    """Whether this resource may take the realm over: its namespace has or had it, nobody ever had it, or it was released to this one."""
    home = realm.manager.namespace if realm.manager else realm.acted.get(HOME)
    return home in (None, "", me.namespace) or realm.acted.get(RELEASE_TO) == taker_text(me)


def taker_text(me: RealmManager | ManifestMetadata) -> str:
    """As the annotation `release-to` names a resource."""
    return f"{me.namespace}/{me.name}"


def with_manager(realm: Realm, me: RealmManager, *, record: str | None = None, value: str = "") -> RealmFields:
    """What changes when the resource takes the realm over: an agreement is used up by it.

    record, value  where to keep that an annotation asked for this, and how
    """
    succeeded = [uid for uid in _succeeded(realm) if uid != me.uid]
    if realm.manager is not None and realm.manager.is_same(me) and realm.manager.uid:
        succeeded.append(realm.manager.uid)
    kept = _without(realm, HOME, FORMER, RELEASE_TO, SUCCEEDED)
    if succeeded:
        kept[SUCCEEDED] = " ".join(succeeded[-_SUCCEEDED_LIMIT:])
    return RealmFields(manager=me, acted=kept if record is None else {**kept, record: value})


def without_manager(realm: Realm) -> RealmFields:
    """What changes when its resource leaves the realm to nobody: it may come back for it, and its namespace stays the realm's home."""
    if realm.manager is None:
        return RealmFields(manager=None)
    left = {HOME: realm.manager.namespace, FORMER: _identity(realm.manager)}
    return RealmFields(manager=None, acted={**realm.acted, **left})


def release_realm(store: Store, realm_id: str) -> Realm:
    """Let go of a realm for good, whoever manages it: any resource may adopt it then. For a person with access to the store.

    raises        NotFoundError when there is none; SwapConflictError when somebody else changes it at the same time
    """
    realms = RealmRegistry(store)
    realm = realms.read_realm(realm_id)
    return realms.update_realm(realm, manager=None, acted=_without(realm, HOME, FORMER, RELEASE_TO))


def adopt_record(me: RealmManager) -> str:
    """Where a realm keeps that this resource has adopted it: one record each, or two of them would take it from each other for ever."""
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
