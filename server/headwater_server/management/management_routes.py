"""The routes of management: every resource below ``/api/v1`` and what can be done with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from headwater.errors import ConflictError, HeadwaterError, SwapConflictError
from headwater.realms import RealmClosedError
from headwater_server.call import Answer, Call, Handler
from headwater_server.management.access_answers import access_routes
from headwater_server.management.caller_resources import caller_routes, config_route
from headwater_server.management.catalog_resources import catalog_routes
from headwater_server.management.catalog_role_resources import catalog_role_routes
from headwater_server.management.contents import contents_routes
from headwater_server.management.lake_file_resources import lake_file_routes
from headwater_server.management.maintenance_resources import maintenance_routes
from headwater_server.management.managed_realm import realm_of_path
from headwater_server.management.policy_resources import policy_routes
from headwater_server.management.principal_resources import principal_routes
from headwater_server.management.principal_role_resources import principal_role_routes
from headwater_server.management.realm_resources import answer_realms, realm_routes
from headwater_server.management.resource_shapes import ListQuery, RealmList
from headwater_server.management.table_home_resources import table_home_routes
from headwater_server.management.task_resources import task_routes
from headwater_server.realm_directory import RealmDirectory
from headwater_server.route_table import ErrorMeaning, Route, RouteTable

MOUNT = "/api/v1"
_CONFLICT = ErrorMeaning(409, "ConflictException")
_MEANINGS: dict[type[HeadwaterError], ErrorMeaning] = {
    ConflictError: _CONFLICT,
    SwapConflictError: _CONFLICT,
    RealmClosedError: ErrorMeaning(503, "ServiceUnavailableException"),  # it may be served again
}


@cache
def management_table() -> RouteTable:
    """Make the table of management's routes. Each but the configuration and the list of realms is judged by the realm in its path."""
    realms = Route(
        method="GET",
        template="/realms",
        handler=answer_realms,
        name="listRealms",
        needs="nothing, and is refused where callers have to prove who they are",
        summary="List realms; only where nobody has to prove who calls.",
        query=ListQuery,
        answers={200: RealmList},
    )
    parts = (
        realm_routes(),
        caller_routes(),
        access_routes(),
        catalog_routes(),
        catalog_role_routes(),
        contents_routes(),
        table_home_routes(),
        lake_file_routes(),
        policy_routes(),
        principal_routes(),
        principal_role_routes(),
        task_routes(),
        maintenance_routes(),
    )
    judged = [_judged(route) for part in parts for route in part]
    return RouteTable(MOUNT, [config_route(), realms, *judged], meanings=_MEANINGS)


def _judged(route: Route) -> Route:
    handler = _seen_at_once(route.handler) if route.writes else route.handler
    return replace(route, realm_of=realm_of_path, handler=handler)


def _seen_at_once(handler: Handler) -> Handler:
    """A handler after which this server knows of the change, whoever makes the next request."""

    def answer_change(call: Call[Any, Any]) -> Answer:
        try:
            return handler(call)
        finally:
            call.served.part(RealmDirectory).forget_realm(call.path["realm"])

    return answer_change
