"""Realms as resources: their definitions, and the properties in them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET

from headwater.access import PRIVILEGES, Privilege, SecurableKind
from headwater.catalogs import CatalogManager
from headwater.clock import Micros, as_text
from headwater.errors import RefusedError
from headwater.realms import Realm, RealmManager, RealmRegistry
from headwater.settings import duration_text
from headwater.store import ObjectId, id_text
from headwater_server.call import Answer, Call
from headwater_server.management.catalog_places import check_realm_properties
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.managed_realm import managed_realm, realm_under_right
from headwater_server.management.resource_shapes import (
    PROPERTIES_LIMIT,
    ListQuery,
    MaintenancePlan,
    ManagerName,
    PrivilegeList,
    PrivilegeResource,
    RealmList,
    RealmPatch,
    RealmResource,
)
from headwater_server.management.route_parts import CHANGE_ERRORS, READ_ERRORS, REALM_PATH, REALM_RIGHT
from headwater_server.route_table import Route


def realm_routes() -> list[Route]:
    """Make the routes of a realm itself, and of what can be granted in it."""
    return [
        Route(
            method="GET",
            template=REALM_PATH,
            handler=answer_realm,
            name="getRealm",
            needs=REALM_RIGHT,
            summary="Read the definition of a realm.",
            answers={200: RealmResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="PATCH",
            template=REALM_PATH,
            handler=answer_realm_patch,
            name="updateRealm",
            needs=REALM_RIGHT,
            summary="Set and remove properties of a realm.",
            writes=True,
            body=RealmPatch,
            answers={200: RealmResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{REALM_PATH}/privileges",
            handler=answer_privileges,
            name="listPrivileges",
            needs="a token of the realm",
            summary="List the privileges that can be granted, and on what.",
            answers={200: PrivilegeList},
            errors=READ_ERRORS,
        ),
    ]


def answer_realms(call: Call[ListQuery, None]) -> Answer:
    """List the realms that are served here. Nobody judges who may: it is for servers that ask nobody who calls."""
    served = [realm for realm in RealmRegistry(call.served.store).list_realms() if call.served.serves(realm.id)]
    page, token = page_by_name(served, call.query, name=lambda realm: realm.id)
    return Answer(body=RealmList(list(map(realm_resource, page)), token))


def answer_realm(call: Call[None, None]) -> Answer:
    """Read the definition of a realm."""
    realm = realm_under_right(call, Privilege.SERVICE_MANAGE_ACCESS)
    return Answer(body=realm_resource(realm.read_realm()))


def answer_realm_patch(call: Call[None, RealmPatch]) -> Answer:
    """Change the properties of a realm; raises SwapConflictError when another change was faster."""
    realm = realm_under_right(call, Privilege.SERVICE_MANAGE_ACCESS)
    seen, changes = realm.read_realm(), call.body.properties
    if changes is UNSET:
        return Answer(body=realm_resource(seen))
    check_realm_properties(realm, changes)
    return Answer(body=realm_resource(realm.registry.update_realm(seen, properties=merged(seen.properties, changes))))


def answer_privileges(call: Call[None, None]) -> Answer:
    """List what can be granted."""
    managed_realm(call).read_realm()
    return Answer(
        body=PrivilegeList(
            [
                PrivilegeResource(
                    privilege.value,
                    rule.summary,
                    [kind.value for kind in SecurableKind if kind in rule.kinds],
                    [other.value for other in rule.includes],
                )
                for privilege, rule in PRIVILEGES.items()
            ]
        )
    )


def realm_resource(realm: Realm) -> RealmResource:
    maintenance = realm.maintenance
    return RealmResource(
        id=realm.id,
        state=realm.state.value,
        key=id_text(ObjectId(realm.key)),
        created=as_text(realm.created),
        updated=as_text(realm.updated),
        properties=realm.properties,
        deletion_policy=realm.deletion_policy,
        deletion_protection=realm.deletion_protection,
        drift_policy=realm.drift_policy,
        purge_hold=duration_or_none(realm.purge_hold_seconds),
        maintenance=MaintenancePlan(maintenance.schedule or None, maintenance.time_zone, maintenance.suspend),
        manager=manager_name(realm.manager),
    )


def manager_name(manager: RealmManager | CatalogManager | None) -> ManagerName | None:
    return None if manager is None else ManagerName(manager.cluster, manager.namespace, manager.name, manager.uid)


def merged(properties: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """Properties after changes, of which those that are None remove; raises RefusedError where they become too many."""
    kept = {name: value for name, value in {**properties, **changes}.items() if value is not None}
    if len(kept) > max(PROPERTIES_LIMIT, len(properties)):
        raise RefusedError(f"properties: there may be {PROPERTIES_LIMIT}, and not {len(kept)}; remove some by null")
    return kept


def time_or_none(micros: Micros | None) -> str | None:
    return None if micros is None else as_text(micros)


def duration_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else duration_text(seconds)
