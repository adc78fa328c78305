"""Who may look after a realm, and how it passes from one resource to another.

A resource may be made by whoever may write in its namespace, so a realm does not leave its namespace by the wish of the taker alone:
the resource that has it must agree, by the annotation `release-to`, or a person with access to the store lets go of it.
"""

from __future__ import annotations

from headwater.realms import Manager, Realm, RealmFields, Realms
from headwater.reconcile.manifests import ADOPT, RELEASE_TO, Metadata
from headwater.store import Store

__all__ = ["HOME", "adopt_record", "adopted", "detached", "manager_text", "may_adopt", "release_realm", "taker_text"]

HOME = "headwater.dev/home"
"""Where a realm that nobody manages any more keeps the namespace of the resource that it was detached from."""


def may_adopt(realm: Realm, me: Manager) -> bool:
    """Whether this resource may take the realm over: its namespace has or had it, nobody ever had it, or it was released to this one."""
    home = realm.manager.namespace if realm.manager else realm.acted.get(HOME)
    return home in (None, "", me.namespace) or realm.acted.get(RELEASE_TO) == taker_text(me)


def taker_text(me: Manager | Metadata) -> str:
    """As the annotation `release-to` names a resource."""
    return f"{me.namespace}/{me.name}"


def adopted(realm: Realm, me: Manager, *, record: str, value: str) -> RealmFields:
    """What changes when the resource takes the realm over: an agreement is used up by it."""
    kept = {name: text for name, text in realm.acted.items() if name not in (HOME, RELEASE_TO)}
    return RealmFields(manager=me, acted={**kept, record: value})


def detached(realm: Realm) -> RealmFields:
    """What changes when its resource leaves the realm to nobody: its namespace stays its home."""
    home = {HOME: realm.manager.namespace} if realm.manager else {}
    return RealmFields(manager=None, acted={**realm.acted, **home})


def release_realm(store: Store, realm_id: str) -> Realm:
    """Let go of a realm for good, whoever manages it: any resource may adopt it then. For a person with access to the store.

    raises        MissingError when there is none; BeatenError when somebody else changes it at the same time
    """
    realms = Realms(store)
    realm = realms.read(realm_id)
    kept = {name: text for name, text in realm.acted.items() if name not in (HOME, RELEASE_TO)}
    return realms.update(realm, manager=None, acted=kept)


def adopt_record(me: Manager) -> str:
    """Where a realm keeps that this resource has adopted it: one record each, or two of them would take it from each other for ever."""
    return f"{ADOPT} {manager_text(me)}"


def manager_text(manager: Manager | None) -> str:
    if manager is None:
        return "nobody"
    parts = (manager.cluster, manager.namespace, manager.name, manager.uid)
    return "/".join(part for part in parts if part)
