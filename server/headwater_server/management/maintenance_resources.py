"""The stop switch of a realm and its catalogs, as a resource. The store's own is the command line's."""

from __future__ import annotations

from headwater.access import Privilege
from headwater.clock import as_text
from headwater.policies import (
    MaintenanceStop,
    StopScope,
    list_stops,
    read_scope,
    resume_maintenance,
    stop_maintenance,
)
from headwater_server.call import Answer, Call
from headwater_server.management.managed_realm import ManagedRealm, realm_under_right
from headwater_server.management.resource_shapes import MaintenanceScope, MaintenanceStopWish, StopList, StopOfMaintenance
from headwater_server.management.route_parts import CHANGE_ERRORS, READ_ERRORS, REALM_PATH
from headwater_server.route_table import Route

_PATH = f"{REALM_PATH}/maintenance"


def maintenance_routes() -> list[Route]:
    """Make the routes of the stop switch."""
    return [
        Route(
            method="GET",
            template=_PATH,
            handler=answer_stops,
            name="listStops",
            needs="TASK_READ on the realm",
            summary="List where expiry of snapshots and reports of files are stopped: the store, the realm, its catalogs.",
            answers={200: StopList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_PATH}/stop",
            handler=answer_stop,
            name="stopMaintenance",
            needs="TASK_MANAGE on the realm",
            summary="Stop them for the realm or a catalog; what is stopped already stays as it is.",
            writes=True,
            body=MaintenanceStopWish,
            answers={200: StopOfMaintenance},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_PATH}/resume",
            handler=answer_resumption,
            name="resumeMaintenance",
            needs="TASK_MANAGE on the realm",
            summary="End the stop of the realm or a catalog; answers with what is stopped still.",
            writes=True,
            body=MaintenanceScope,
            answers={200: StopList},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_stops(call: Call[None, None]) -> Answer:
    """List the stops that hold in a realm."""
    return Answer(body=_stops(realm_under_right(call, Privilege.TASK_READ)))


def answer_stop(call: Call[None, MaintenanceStopWish]) -> Answer:
    """Stop the maintenance of a realm or catalog."""
    realm = realm_under_right(call, Privilege.TASK_MANAGE)
    scope = _scope(realm, call.body.catalog)
    return Answer(body=_shown(stop_maintenance(realm.store, scope, by=realm.changed_by, why=call.body.reason)))


def answer_resumption(call: Call[None, MaintenanceScope]) -> Answer:
    """End the stop of a realm or catalog."""
    realm = realm_under_right(call, Privilege.TASK_MANAGE)
    resume_maintenance(realm.store, _scope(realm, call.body.catalog))
    return Answer(body=_stops(realm))


def _scope(realm: ManagedRealm, catalog: str | None) -> StopScope:
    return read_scope(realm.store, realm.id, "" if catalog is None else realm.seen_catalog(catalog).name)


def _stops(realm: ManagedRealm) -> StopList:
    return StopList(list(map(_shown, list_stops(realm.store, realm=realm.read_realm().id))))


def _shown(stop: MaintenanceStop) -> StopOfMaintenance:
    return StopOfMaintenance(
        realm=stop.scope.realm or None, catalog=stop.scope.catalog or None, by=stop.by, at=as_text(stop.at), reason=stop.why
    )
