"""Catalog roles and their grants as resources. All of it needs CATALOG_MANAGE_ACCESS on the catalog.

Whoever has that can give a role of the catalog to any principal role of the realm, by its name. It cannot give principal roles to
principals, nor anything beyond the catalog.
"""

from __future__ import annotations

from typing import Any

from headwater.access import (
    Privilege,
    SecurableKind,
    make_grant,
    parse_privilege,
    parse_securable,
    rule_of,
    securable_text,
)
from headwater.catalogs import CatalogAccess, CatalogGrant, CatalogRole, CatalogRoles
from headwater.clock import as_text
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import RealmGrants, read_principal_role, read_realm_grants
from headwater_server.call import Answer, Call
from headwater_server.management.listed_pages import page_by_name, page_by_place
from headwater_server.management.managed_realm import ManagedRealm, managed_realm
from headwater_server.management.resource_shapes import (
    CatalogRoleList,
    CatalogRoleResource,
    GrantBody,
    GrantChanges,
    GrantList,
    GrantResource,
    ListQuery,
    RevokedGrants,
    RoleCreation,
)
from headwater_server.management.route_parts import CATALOG_PATH, CHANGE_ERRORS, GRANTS_RIGHT, NO_BODY, READ_ERRORS
from headwater_server.route_table import Route

_ROLES_PATH = f"{CATALOG_PATH}/roles"
_ROLE_PATH = f"{_ROLES_PATH}/{{role}}"


def catalog_role_routes() -> list[Route]:
    """Make the routes of catalog roles and their grants."""
    return [
        Route(
            method="GET",
            template=_ROLES_PATH,
            handler=answer_catalog_roles,
            name="listCatalogRoles",
            needs=GRANTS_RIGHT,
            summary="List the roles of a catalog, and the principal roles that have them.",
            query=ListQuery,
            answers={200: CatalogRoleList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_ROLES_PATH,
            handler=answer_catalog_role_creation,
            name="createCatalogRole",
            needs=GRANTS_RIGHT,
            summary="Create a role of the catalog; 200 if it is there.",
            writes=True,
            body=RoleCreation,
            answers={200: CatalogRoleResource, 201: CatalogRoleResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=_ROLE_PATH,
            handler=answer_catalog_role,
            name="getCatalogRole",
            needs=GRANTS_RIGHT,
            summary="Read a role of a catalog, and the principal roles that have it.",
            answers={200: CatalogRoleResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="DELETE",
            template=_ROLE_PATH,
            handler=answer_catalog_role_deletion,
            name="deleteCatalogRole",
            needs=GRANTS_RIGHT,
            summary="Remove a role of a catalog, and all that was granted to it.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{_ROLE_PATH}/grants",
            handler=answer_grants,
            name="listGrants",
            needs=GRANTS_RIGHT,
            summary="List what a role of a catalog may do.",
            query=ListQuery,
            answers={200: GrantList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_ROLE_PATH}/grants",
            handler=answer_grant_addition,
            name="addGrants",
            needs=GRANTS_RIGHT,
            summary="Let a role of a catalog do something; what it may do already stays.",
            writes=True,
            body=GrantChanges,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_ROLE_PATH}/grants/revoke",
            handler=answer_grant_revocation,
            name="revokeGrants",
            needs=GRANTS_RIGHT,
            summary="Take back what a role of a catalog may do, and say how much of it there was.",
            writes=True,
            body=GrantChanges,
            answers={200: RevokedGrants},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="PUT",
            template=f"{_ROLE_PATH}/principal-roles/{{principal-role}}",
            handler=answer_catalog_role_assignment,
            name="assignCatalogRole",
            needs=GRANTS_RIGHT,
            summary="Give a role of a catalog to a principal role.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="DELETE",
            template=f"{_ROLE_PATH}/principal-roles/{{principal-role}}",
            handler=answer_catalog_role_withdrawal,
            name="withdrawCatalogRole",
            needs=GRANTS_RIGHT,
            summary="Take a role of a catalog from a principal role.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_catalog_roles(call: Call[ListQuery, None]) -> Answer:
    """List the roles of a catalog."""
    realm, roles = _managed_roles(call)
    page, token = page_by_name(roles.list_roles(), call.query, name=lambda role: role.name)
    access, grants = roles.read_access(), read_realm_grants(realm.rows)
    return Answer(body=CatalogRoleList([_resource(role, access, grants) for role in page], token))


def answer_catalog_role_creation(call: Call[None, RoleCreation]) -> Answer:
    """Create a role; one of this name is answered as it is."""
    realm, roles = _managed_roles(call)
    is_new = call.body.name not in [role.name for role in roles.list_roles()]
    role = roles.create_role(call.body.name)
    return Answer(201 if is_new else 200, _resource(role, roles.read_access(), read_realm_grants(realm.rows)))


def answer_catalog_role(call: Call[None, None]) -> Answer:
    """Read a role, with the principal roles that have it."""
    realm, roles = _managed_roles(call)
    role = roles.read_role(call.path["role"])
    return Answer(body=_resource(role, roles.read_access(), read_realm_grants(realm.rows)))


def answer_catalog_role_deletion(call: Call[None, None]) -> Answer:
    """Remove a role, and everything that was granted to it."""
    _, roles = _managed_roles(call)
    roles.drop_role(call.path["role"])
    return Answer(204)


def answer_grants(call: Call[ListQuery, None]) -> Answer:
    """List what a role may do."""
    _, roles = _managed_roles(call)
    role = roles.read_role(call.path["role"])
    kept = roles.read_access().grants_of(role.name)
    page, token = page_by_place(kept, call.query, name=_grant_text)
    return Answer(body=GrantList([_grant_resource(grant, call.path["catalog"]) for grant in page], token))


def answer_grant_addition(call: Call[None, GrantChanges]) -> Answer:
    """Let a role do something; what it may do already stays as it is."""
    _, roles = _managed_roles(call)
    roles.put_grants(call.path["role"], _checked_grants(call.body, call.path["catalog"]))
    return Answer(204)


def answer_grant_revocation(call: Call[None, GrantChanges]) -> Answer:
    """Take back what a role may do."""
    _, roles = _managed_roles(call)
    return Answer(body=RevokedGrants(roles.remove_grants(call.path["role"], _checked_grants(call.body, call.path["catalog"]))))


def answer_catalog_role_assignment(call: Call[None, None]) -> Answer:
    """Give a role to a principal role, which may have it already."""
    realm, roles = _managed_roles(call)
    roles.assign_role(call.path["role"], read_principal_role(realm.registry, realm.id, call.path["principal-role"]).entity)
    return Answer(204)


def answer_catalog_role_withdrawal(call: Call[None, None]) -> Answer:
    """Take a role from a principal role; raises NotFoundError where it does not have it."""
    realm, roles = _managed_roles(call)
    role = roles.read_role(call.path["role"])
    holder = read_principal_role(realm.registry, realm.id, call.path["principal-role"])
    if role.name not in roles.read_access().roles_of(holder.entity):
        raise NotFoundError(
            f"principal role {holder.name!r} does not have the role {role.name!r} of catalog {call.path['catalog']!r}"
        )
    roles.unassign_role(role.name, holder.entity)
    return Answer(204)


def checked_grant(body: GrantBody, catalog: str) -> CatalogGrant:
    """A grant as it is kept; raises RefusedError for one that means nothing, or two things."""
    return make_grant(
        parse_privilege(body.privilege), parse_securable(body.on, catalog=catalog), references=body.branches or ""
    )


def _checked_grants(changes: GrantChanges, catalog: str) -> list[CatalogGrant]:
    grants = []
    for number, body in enumerate(changes.grants):
        try:
            grants.append(checked_grant(body, catalog))
        except RefusedError as wrong:
            raise RefusedError(f"grants[{number}]: {wrong}") from None
    return grants


def _managed_roles(call: Call[Any, Any]) -> tuple[ManagedRealm, CatalogRoles]:
    """The roles of the catalog that a call's path names; raises NotFoundError and ForbiddenError."""
    realm = managed_realm(call)
    definition = realm.allowed_catalog(call.path["catalog"], Privilege.CATALOG_MANAGE_ACCESS)
    return realm, CatalogRoles(realm.rows, definition)


def _resource(role: CatalogRole, access: CatalogAccess, grants: RealmGrants) -> CatalogRoleResource:
    holders = (grants.roles.get(entity) for entity in access.grantees_of(role.name))
    names = sorted(holder.name for holder in holders if holder is not None)
    return CatalogRoleResource(role.name, as_text(role.created), names)


def _grant_resource(grant: CatalogGrant, catalog: str) -> GrantResource:
    """A grant as the command line shows it; of one of a newer release, its kind alone."""
    rule = rule_of(grant, catalog, ())
    return GrantResource(
        privilege=grant.privilege,
        on=grant.on if rule is None else securable_text(rule.on),
        branches=None if rule is None or rule.on.kind is SecurableKind.REFERENCE else rule.where or None,
        created=as_text(grant.created) if grant.created else None,
    )


def _grant_text(grant: CatalogGrant) -> str:
    """A text that is another one for another grant of the role."""
    return "\n".join((grant.privilege, grant.on, "\0".join(grant.path), str(grant.content_id or ""), grant.references))
