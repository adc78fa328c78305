"""The routes of management: every resource below ``/api/v1`` and what can be done with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headwater.errors import ConflictError, HeadwaterError, SwapConflictError
from headwater.realms import RealmClosedError
from headwater_server.call import Answer, Call, Handler
from headwater_server.management.access_answers import answer_access
from headwater_server.management.catalog_resources import (
    answer_catalog,
    answer_catalog_creation,
    answer_catalog_deletion,
    answer_catalog_patch,
    answer_catalog_undeletion,
    answer_catalogs,
)
from headwater_server.management.catalog_role_resources import (
    answer_catalog_role,
    answer_catalog_role_assignment,
    answer_catalog_role_creation,
    answer_catalog_role_deletion,
    answer_catalog_role_withdrawal,
    answer_catalog_roles,
    answer_grant_addition,
    answer_grant_revocation,
    answer_grants,
)
from headwater_server.management.managed_realm import realm_of_path
from headwater_server.management.principal_resources import (
    answer_credentials_reset,
    answer_credentials_rotation,
    answer_principal,
    answer_principal_creation,
    answer_principal_deletion,
    answer_principal_disabling,
    answer_principal_enabling,
    answer_principals,
)
from headwater_server.management.principal_role_resources import (
    answer_principal_role,
    answer_principal_role_assignment,
    answer_principal_role_creation,
    answer_principal_role_deletion,
    answer_principal_role_withdrawal,
    answer_principal_roles,
    answer_realm_grant,
    answer_realm_revocation,
)
from headwater_server.management.realm_resources import (
    answer_privileges,
    answer_realm,
    answer_realm_patch,
    answer_realms,
)
from headwater_server.management.resource_shapes import (
    AccessExplained,
    AccessQuery,
    CatalogCreation,
    CatalogList,
    CatalogPatch,
    CatalogResource,
    CatalogRoleList,
    CatalogRoleResource,
    CatalogsQuery,
    GrantChanges,
    GrantList,
    ListQuery,
    PrincipalCreation,
    PrincipalList,
    PrincipalResource,
    PrincipalRoleList,
    PrincipalRoleResource,
    PrincipalWithCredentials,
    PrivilegeList,
    RealmList,
    RealmPatch,
    RealmResource,
    RevokedGrants,
    RoleCreation,
    RotationQuery,
    RunList,
    RunResource,
    RunsQuery,
    TaskList,
    TaskResource,
    TasksQuery,
    TaskSubmission,
    UndeleteQuery,
)
from headwater_server.management.task_resources import (
    answer_run,
    answer_runs,
    answer_task,
    answer_task_cancelling,
    answer_task_submission,
    answer_tasks,
)
from headwater_server.realm_directory import RealmDirectory
from headwater_server.route_table import ErrorMeaning, Route, RouteTable

MOUNT = "/api/v1"
_REALM = "/realms/{realm}"
_CATALOGS, _CATALOG = f"{_REALM}/catalogs", f"{_REALM}/catalogs/{{catalog}}"
_PRINCIPALS, _PRINCIPAL = f"{_REALM}/principals", f"{_REALM}/principals/{{principal}}"
_PRINCIPAL_ROLES, _PRINCIPAL_ROLE = f"{_REALM}/principal-roles", f"{_REALM}/principal-roles/{{role}}"
_CATALOG_ROLES, _CATALOG_ROLE = f"{_CATALOG}/roles", f"{_CATALOG}/roles/{{role}}"
_TASKS, _RUNS = f"{_REALM}/tasks", f"{_REALM}/runs"
_READ, _CHANGE = (404,), (404, 409)
_NOTHING = {204: None}
_MANAGE, _GRANTS = "SERVICE_MANAGE_ACCESS on the realm", "CATALOG_MANAGE_ACCESS on the catalog"
_CONFLICT = ErrorMeaning(409, "ConflictException")
_MEANINGS: dict[type[HeadwaterError], ErrorMeaning] = {
    ConflictError: _CONFLICT,
    SwapConflictError: _CONFLICT,
    RealmClosedError: ErrorMeaning(503, "ServiceUnavailableException"),  # it may be served again
}


def management_table() -> RouteTable:
    """Make the table of management's routes. Each but the list of realms is judged by the realm in its path."""
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
        _realm_routes(),
        _catalog_routes(),
        _principal_routes(),
        _principal_role_routes(),
        _catalog_role_routes(),
        _task_routes(),
    )
    judged = [_judged(route) for part in parts for route in part]
    return RouteTable(MOUNT, [realms, *judged], meanings=_MEANINGS)


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


def _realm_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_REALM,
            handler=answer_realm,
            name="getRealm",
            needs=_MANAGE,
            summary="Read the definition of a realm.",
            answers={200: RealmResource},
            errors=_READ,
        ),
        Route(
            method="PATCH",
            template=_REALM,
            handler=answer_realm_patch,
            name="updateRealm",
            needs=_MANAGE,
            summary="Set and remove properties of a realm.",
            writes=True,
            body=RealmPatch,
            answers={200: RealmResource},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=f"{_REALM}/privileges",
            handler=answer_privileges,
            name="listPrivileges",
            needs="a token of the realm",
            summary="List the privileges that can be granted, and on what.",
            answers={200: PrivilegeList},
            errors=_READ,
        ),
        Route(
            method="GET",
            template=f"{_REALM}/access",
            handler=answer_access,
            name="explainAccess",
            needs=f"{_MANAGE}, or nothing for the caller's own rights",
            summary="Explain by which grant a principal has a privilege on something, or why it has not.",
            query=AccessQuery,
            answers={200: AccessExplained},
            errors=_READ,
        ),
    ]


def _catalog_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_CATALOGS,
            handler=answer_catalogs,
            name="listCatalogs",
            needs="CATALOG_LIST on a catalog, or any right in it, for the catalog to be in the list; CATALOG_DROP for a deleted one",
            summary="List the catalogs that the caller may see, or the deleted ones that it may undelete.",
            query=CatalogsQuery,
            answers={200: CatalogList},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_CATALOGS,
            handler=answer_catalog_creation,
            name="createCatalog",
            needs="CATALOG_CREATE on the realm",
            summary="Create a catalog; 200 if it is there with the same fields.",
            writes=True,
            body=CatalogCreation,
            answers={200: CatalogResource, 201: CatalogResource},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_CATALOG,
            handler=answer_catalog,
            name="getCatalog",
            needs="CATALOG_READ_PROPERTIES on the catalog",
            summary="Read the definition of a catalog.",
            answers={200: CatalogResource},
            errors=_READ,
        ),
        Route(
            method="PATCH",
            template=_CATALOG,
            handler=answer_catalog_patch,
            name="updateCatalog",
            needs=(
                "CATALOG_WRITE_PROPERTIES on the catalog; for places also CATALOG_CREATE on the realm; for the default branch also"
                " CATALOG_MANAGE_ACCESS on the catalog"
            ),
            summary="Change the definition of a catalog; what is left out stays.",
            writes=True,
            body=CatalogPatch,
            answers={200: CatalogResource},
            errors=_CHANGE,
        ),
        Route(
            method="DELETE",
            template=_CATALOG,
            handler=answer_catalog_deletion,
            name="deleteCatalog",
            needs="CATALOG_DROP on the catalog",
            summary="Delete a catalog; until its hold is over it can be undeleted.",
            writes=True,
            answers={200: CatalogResource},
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_CATALOG}/undelete",
            handler=answer_catalog_undeletion,
            name="undeleteCatalog",
            needs="CATALOG_DROP on the catalog",
            summary="Undelete the catalog of an id, or the one of a name that was deleted last.",
            writes=True,
            query=UndeleteQuery,
            answers={200: CatalogResource},
            errors=_CHANGE,
        ),
    ]


def _principal_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_PRINCIPALS,
            handler=answer_principals,
            name="listPrincipals",
            needs=_MANAGE,
            summary="List the principals of a realm.",
            query=ListQuery,
            answers={200: PrincipalList},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_PRINCIPALS,
            handler=answer_principal_creation,
            name="createPrincipal",
            needs=_MANAGE,
            summary="Create a principal, and tell its credentials: this once.",
            writes=True,
            body=PrincipalCreation,
            answers={201: PrincipalWithCredentials},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_PRINCIPAL,
            handler=answer_principal,
            name="getPrincipal",
            needs=f"{_MANAGE}, or nothing for the caller itself",
            summary="Read a principal.",
            answers={200: PrincipalResource},
            errors=_READ,
        ),
        Route(
            method="DELETE",
            template=_PRINCIPAL,
            handler=answer_principal_deletion,
            name="deletePrincipal",
            needs=_MANAGE,
            summary="Remove a principal, and what it was issued; root stays.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL}/rotate",
            handler=answer_credentials_rotation,
            name="rotateCredentials",
            needs=f"{_MANAGE}, or nothing for the caller's own, with a token that was given for them without restriction",
            summary="Give a principal other credentials; the former ones hold for a while.",
            writes=True,
            query=RotationQuery,
            answers={200: PrincipalWithCredentials},
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL}/reset",
            handler=answer_credentials_reset,
            name="resetCredentials",
            needs=_MANAGE,
            summary="Give a principal other credentials; the former ones, and their tokens, hold no more.",
            writes=True,
            answers={200: PrincipalWithCredentials},
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL}/disable",
            handler=answer_principal_disabling,
            name="disablePrincipal",
            needs=_MANAGE,
            summary="Refuse a principal, whatever it was issued.",
            writes=True,
            answers={200: PrincipalResource},
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL}/enable",
            handler=answer_principal_enabling,
            name="enablePrincipal",
            needs=_MANAGE,
            summary="Let a disabled principal log in again, with the credentials that it had.",
            writes=True,
            answers={200: PrincipalResource},
            errors=_CHANGE,
        ),
    ]


def _principal_role_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_PRINCIPAL_ROLES,
            handler=answer_principal_roles,
            name="listPrincipalRoles",
            needs=_MANAGE,
            summary="List the roles of a realm, and what they may do in all of it.",
            query=ListQuery,
            answers={200: PrincipalRoleList},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_PRINCIPAL_ROLES,
            handler=answer_principal_role_creation,
            name="createPrincipalRole",
            needs=_MANAGE,
            summary="Create a role of the realm; 200 if it is there.",
            writes=True,
            body=RoleCreation,
            answers={200: PrincipalRoleResource, 201: PrincipalRoleResource},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_PRINCIPAL_ROLE,
            handler=answer_principal_role,
            name="getPrincipalRole",
            needs=_MANAGE,
            summary="Read a role of the realm, and who has it.",
            answers={200: PrincipalRoleResource},
            errors=_READ,
        ),
        Route(
            method="DELETE",
            template=_PRINCIPAL_ROLE,
            handler=answer_principal_role_deletion,
            name="deletePrincipalRole",
            needs=_MANAGE,
            summary="Take a role of the realm from everybody, and remove it; service_admin stays.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="PUT",
            template=f"{_PRINCIPAL_ROLE}/principals/{{principal}}",
            handler=answer_principal_role_assignment,
            name="assignPrincipalRole",
            needs=_MANAGE,
            summary="Give a principal a role.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="DELETE",
            template=f"{_PRINCIPAL_ROLE}/principals/{{principal}}",
            handler=answer_principal_role_withdrawal,
            name="withdrawPrincipalRole",
            needs=_MANAGE,
            summary="Take a role from a principal.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="PUT",
            template=f"{_PRINCIPAL_ROLE}/privileges/{{privilege}}",
            handler=answer_realm_grant,
            name="grantOnRealm",
            needs=_MANAGE,
            summary="Let a role do something in the whole realm.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="DELETE",
            template=f"{_PRINCIPAL_ROLE}/privileges/{{privilege}}",
            handler=answer_realm_revocation,
            name="revokeOnRealm",
            needs=_MANAGE,
            summary="Take a privilege in the whole realm from a role.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
    ]


def _catalog_role_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_CATALOG_ROLES,
            handler=answer_catalog_roles,
            name="listCatalogRoles",
            needs=_GRANTS,
            summary="List the roles of a catalog, and the principal roles that have them.",
            query=ListQuery,
            answers={200: CatalogRoleList},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_CATALOG_ROLES,
            handler=answer_catalog_role_creation,
            name="createCatalogRole",
            needs=_GRANTS,
            summary="Create a role of the catalog; 200 if it is there.",
            writes=True,
            body=RoleCreation,
            answers={200: CatalogRoleResource, 201: CatalogRoleResource},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_CATALOG_ROLE,
            handler=answer_catalog_role,
            name="getCatalogRole",
            needs=_GRANTS,
            summary="Read a role of a catalog, and the principal roles that have it.",
            answers={200: CatalogRoleResource},
            errors=_READ,
        ),
        Route(
            method="DELETE",
            template=_CATALOG_ROLE,
            handler=answer_catalog_role_deletion,
            name="deleteCatalogRole",
            needs=_GRANTS,
            summary="Remove a role of a catalog, and all that was granted to it.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=f"{_CATALOG_ROLE}/grants",
            handler=answer_grants,
            name="listGrants",
            needs=_GRANTS,
            summary="List what a role of a catalog may do.",
            query=ListQuery,
            answers={200: GrantList},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=f"{_CATALOG_ROLE}/grants",
            handler=answer_grant_addition,
            name="addGrants",
            needs=_GRANTS,
            summary="Let a role of a catalog do something; what it may do already stays.",
            writes=True,
            body=GrantChanges,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="POST",
            template=f"{_CATALOG_ROLE}/grants/revoke",
            handler=answer_grant_revocation,
            name="revokeGrants",
            needs=_GRANTS,
            summary="Take back what a role of a catalog may do, and say how much of it there was.",
            writes=True,
            body=GrantChanges,
            answers={200: RevokedGrants},
            errors=_CHANGE,
        ),
        Route(
            method="PUT",
            template=f"{_CATALOG_ROLE}/principal-roles/{{principal-role}}",
            handler=answer_catalog_role_assignment,
            name="assignCatalogRole",
            needs=_GRANTS,
            summary="Give a role of a catalog to a principal role.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
        Route(
            method="DELETE",
            template=f"{_CATALOG_ROLE}/principal-roles/{{principal-role}}",
            handler=answer_catalog_role_withdrawal,
            name="withdrawCatalogRole",
            needs=_GRANTS,
            summary="Take a role of a catalog from a principal role.",
            writes=True,
            answers=_NOTHING,
            errors=_CHANGE,
        ),
    ]


def _task_routes() -> list[Route]:
    return [
        Route(
            method="GET",
            template=_TASKS,
            handler=answer_tasks,
            name="listTasks",
            needs="TASK_READ on the realm",
            summary="List the tasks of a realm: the active ones as they are due, then those that ended.",
            query=TasksQuery,
            answers={200: TaskList},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=_TASKS,
            handler=answer_task_submission,
            name="submitTask",
            needs="TASK_MANAGE on the realm",
            summary="Ask for a task now; 200 with the one that is active already.",
            writes=True,
            body=TaskSubmission,
            answers={200: TaskResource, 201: TaskResource},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=f"{_TASKS}/{{task}}",
            handler=answer_task,
            name="getTask",
            needs="TASK_READ on the realm",
            summary="Read a task of a realm.",
            answers={200: TaskResource},
            errors=_READ,
        ),
        Route(
            method="POST",
            template=f"{_TASKS}/{{task}}/cancel",
            handler=answer_task_cancelling,
            name="cancelTask",
            needs="TASK_MANAGE on the realm",
            summary="Cancel a waiting task; ask the worker of a running one to stop.",
            writes=True,
            answers={200: TaskResource},
            errors=_CHANGE,
        ),
        Route(
            method="GET",
            template=_RUNS,
            handler=answer_runs,
            name="listRuns",
            needs="TASK_READ on the realm",
            summary="List what the tasks of a realm did, newest first.",
            query=RunsQuery,
            answers={200: RunList},
            errors=_READ,
        ),
        Route(
            method="GET",
            template=f"{_RUNS}/{{run}}",
            handler=answer_run,
            name="getRun",
            needs="TASK_READ on the realm",
            summary="Read what one attempt of a task did.",
            answers={200: RunResource},
            errors=_READ,
        ),
    ]
