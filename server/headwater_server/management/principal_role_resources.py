"""Principal roles as resources: who has them, and what they may do in the whole realm. All of it needs SERVICE_MANAGE_ACCESS."""

from __future__ import annotations

from headwater.access import Privilege, SecurableKind, check_grantable, parse_privilege
from headwater.clock import as_text
from headwater.errors import NotFoundError
from headwater.realms import (
    PrincipalRole,
    RealmGrants,
    assign_principal_role,
    create_principal_role,
    drop_principal_role,
    grant_on_realm,
    list_principals,
    read_principal,
    read_principal_role,
    read_realm_grants,
    revoke_on_realm,
    unassign_principal_role,
)
from headwater_server.call import Answer, Call
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.managed_realm import ManagedRealm, realm_under_right
from headwater_server.management.resource_shapes import (
    ListedPrincipalRole,
    ListQuery,
    PrincipalRoleList,
    PrincipalRoleResource,
    RoleCreation,
)
from headwater_server.management.route_parts import CHANGE_ERRORS, NO_BODY, READ_ERRORS, REALM_PATH, REALM_RIGHT
from headwater_server.route_table import Route

_MANAGE = Privilege.SERVICE_MANAGE_ACCESS
_ROLES_PATH = f"{REALM_PATH}/principal-roles"
_ROLE_PATH = f"{_ROLES_PATH}/{{role}}"


def principal_role_routes() -> list[Route]:
    """Make the routes of principal roles."""
    return [
        Route(
            method="GET",
            template=_ROLES_PATH,
            handler=answer_principal_roles,
            name="listPrincipalRoles",
            needs=REALM_RIGHT,
            summary="List the roles of a realm, and what they may do in all of it.",
            query=ListQuery,
            answers={200: PrincipalRoleList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_ROLES_PATH,
            handler=answer_principal_role_creation,
            name="createPrincipalRole",
            needs=REALM_RIGHT,
            summary="Create a role of the realm; 200 if it is there.",
            writes=True,
            body=RoleCreation,
            answers={200: PrincipalRoleResource, 201: PrincipalRoleResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=_ROLE_PATH,
            handler=answer_principal_role,
            name="getPrincipalRole",
            needs=REALM_RIGHT,
            summary="Read a role of the realm, and who has it.",
            answers={200: PrincipalRoleResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="DELETE",
            template=_ROLE_PATH,
            handler=answer_principal_role_deletion,
            name="deletePrincipalRole",
            needs=REALM_RIGHT,
            summary="Take a role of the realm from everybody, and remove it; service_admin stays.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="PUT",
            template=f"{_ROLE_PATH}/principals/{{principal}}",
            handler=answer_principal_role_assignment,
            name="assignPrincipalRole",
            needs=REALM_RIGHT,
            summary="Give a principal a role.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=f"{_ROLE_PATH}/principals/{{principal}}",
            handler=answer_principal_role_withdrawal,
            name="withdrawPrincipalRole",
            needs=REALM_RIGHT,
            summary="Take a role from a principal.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="PUT",
            template=f"{_ROLE_PATH}/privileges/{{privilege}}",
            handler=answer_realm_grant,
            name="grantOnRealm",
            needs=REALM_RIGHT,
            summary="Let a role do something in the whole realm.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=f"{_ROLE_PATH}/privileges/{{privilege}}",
            handler=answer_realm_revocation,
            name="revokeOnRealm",
            needs=REALM_RIGHT,
            summary="Take a privilege in the whole realm from a role.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_principal_roles(call: Call[ListQuery, None]) -> Answer:
    """List the roles of a realm."""
    grants = read_realm_grants(realm_under_right(call, _MANAGE).rows)
    roles = sorted(grants.roles.values(), key=lambda role: role.name)
    page, token = page_by_name(roles, call.query, name=lambda role: role.name)
    listed = [ListedPrincipalRole(role.name, as_text(role.created), grants.privileges_of(role.entity)) for role in page]
    return Answer(body=PrincipalRoleList(listed, token))


def answer_principal_role_creation(call: Call[None, RoleCreation]) -> Answer:
    """Create a role; one of this name is answered as it is."""
    realm, name = realm_under_right(call, _MANAGE), call.body.name
    is_new = read_realm_grants(realm.rows).named(name) is None
    role = create_principal_role(realm.registry, realm.id, name)
    return Answer(201 if is_new else 200, _resource(realm, role, read_realm_grants(realm.rows)))


def answer_principal_role(call: Call[None, None]) -> Answer:
    """Read a role, with the principals that have it."""
    realm = realm_under_right(call, _MANAGE)
    role = read_principal_role(realm.registry, realm.id, call.path["role"])
    return Answer(body=_resource(realm, role, read_realm_grants(realm.rows)))


def answer_principal_role_deletion(call: Call[None, None]) -> Answer:
    """Take a role from everybody who has it, and remove it; service_admin stays."""
    realm = realm_under_right(call, _MANAGE)
    drop_principal_role(realm.registry, realm.id, call.path["role"])
    return Answer(204)


def answer_principal_role_assignment(call: Call[None, None]) -> Answer:
    """Give a principal a role, which it may have already."""
    realm = realm_under_right(call, _MANAGE)
    assign_principal_role(realm.registry, realm.id, call.path["role"], call.path["principal"])
    return Answer(204)


def answer_principal_role_withdrawal(call: Call[None, None]) -> Answer:
    """Take a role from a principal; raises NotFoundError where it does not have it."""
    realm, name, principal = realm_under_right(call, _MANAGE), call.path["role"], call.path["principal"]
    role = read_principal_role(realm.registry, realm.id, name)
    held = read_principal(realm.registry, realm.id, principal)
    if held.entity not in read_realm_grants(realm.rows).members_of(role.entity):
        raise NotFoundError(f"principal {principal!r} of realm {realm.id!r} does not have the role {name!r}")
    unassign_principal_role(realm.registry, realm.id, name, principal)
    return Answer(204)


def answer_realm_grant(call: Call[None, None]) -> Answer:
    """Let a role do something in the whole realm; it may do so already."""
    realm, privilege = realm_under_right(call, _MANAGE), parse_privilege(call.path["privilege"])
    check_grantable(privilege, SecurableKind.REALM)
    grant_on_realm(realm.registry, realm.id, call.path["role"], privilege.value)
    return Answer(204)


def answer_realm_revocation(call: Call[None, None]) -> Answer:
    """Take a privilege in the whole realm from a role; raises NotFoundError where it does not have it."""
    realm, privilege, name = realm_under_right(call, _MANAGE), parse_privilege(call.path["privilege"]), call.path["role"]
    role = read_principal_role(realm.registry, realm.id, name)
    if privilege.value not in read_realm_grants(realm.rows).privileges_of(role.entity):
        raise NotFoundError(f"role {name!r} of realm {realm.id!r} was not granted {privilege} on the realm")
    revoke_on_realm(realm.registry, realm.id, name, privilege.value)
    return Answer(204)


def _resource(realm: ManagedRealm, role: PrincipalRole, grants: RealmGrants) -> PrincipalRoleResource:
    members = set(grants.members_of(role.entity))
    principals = [each.name for each in list_principals(realm.registry, realm.id) if each.entity in members]
    return PrincipalRoleResource(role.name, as_text(role.created), grants.privileges_of(role.entity), principals)
