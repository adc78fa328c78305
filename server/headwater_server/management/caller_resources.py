"""What a server tells of itself to everybody, and to its callers of themselves: a console asks it first, to offer only what is allowed.

Nothing here decides: each route asks for its right again.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

from headwater.access import (
    AccessDecisions,
    AccessReader,
    PluginDecisions,
    Privilege,
    ReferenceName,
    Securable,
    SecurableKind,
    reference_of,
)
from headwater.catalogs import CatalogDefinition
from headwater_server.call import Answer, Call
from headwater_server.identity import CallerProof
from headwater_server.management.caller_shapes import (
    CallerInCatalog,
    CallerResource,
    CatalogRights,
    CatalogRightsQuery,
    RealmRights,
    ServerConfig,
)
from headwater_server.management.managed_realm import managed_realm
from headwater_server.management.route_parts import CATALOG_PATH, READ_ERRORS, REALM_PATH
from headwater_server.route_table import Route

TOKEN_ENDPOINT = "/iceberg/v1/oauth/tokens"
REVOCATION_ENDPOINT = "/iceberg/v1/oauth/revoke"


def config_route() -> Route:
    """Make the route that answers everybody."""
    return Route(
        method="GET",
        template="/config",
        handler=answer_server_config,
        name="getServerConfig",
        is_open=True,
        needs="nothing",
        summary="Tell the server's version, and how callers prove who they are.",
        answers={200: ServerConfig},
    )


def caller_routes() -> list[Route]:
    """Make the routes by which callers learn of themselves."""
    return [
        Route(
            method="GET",
            template=f"{REALM_PATH}/me",
            handler=answer_caller,
            name="getCaller",
            needs="a token of the realm",
            summary="Tell who calls, and what it may do in the realm.",
            answers={200: CallerResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="GET",
            template=f"{CATALOG_PATH}/me",
            handler=answer_caller_in_catalog,
            name="getCallerInCatalog",
            needs="CATALOG_LIST on the catalog, or any right in it",
            summary="Tell what the caller may do in a catalog, through one of its references.",
            query=CatalogRightsQuery,
            answers={200: CallerInCatalog},
            errors=READ_ERRORS,
        ),
    ]


def answer_server_config(call: Call[None, None]) -> Answer:
    """Tell the server's version, and how callers prove who they are."""
    proof = call.served.part(CallerProof.of_settings)
    gives_tokens = proof is not None and proof.tokens is not None
    endpoints = (TOKEN_ENDPOINT, REVOCATION_ENDPOINT) if gives_tokens else (None, None)
    return Answer(body=ServerConfig(_version(), proof is not None, *endpoints))


def answer_caller(call: Call[None, None]) -> Answer:
    """Tell who calls, and what it may do in the realm."""
    realm = managed_realm(call)
    realm.read_realm()
    caller = realm.caller
    roles = [] if caller is None else sorted({role.name for role in AccessReader(realm.rows).read_roles(caller.holder)})
    held = [each for each in Privilege if realm.is_allowed(each)]
    return Answer(
        body=CallerResource(
            realm=realm.id,
            principal=None if caller is None else caller.name,
            roles=roles,
            privileges=[each.value for each in held],
            may=RealmRights(
                manage_access=Privilege.SERVICE_MANAGE_ACCESS in held,
                create_catalogs=Privilege.CATALOG_CREATE in held,
                read_tasks=Privilege.TASK_READ in held,
                manage_tasks=Privilege.TASK_MANAGE in held,
            ),
        )
    )


def answer_caller_in_catalog(call: Call[CatalogRightsQuery, None]) -> Answer:
    """Tell what the caller may do in a catalog. Of a reference that is not there it tells what it might do with one of that name."""
    realm = managed_realm(call)
    definition = realm.seen_catalog(call.path["catalog"])
    reference = reference_of(call.query.ref, definition)
    name = reference.name or "*"
    decisions = realm.decisions_in(definition)

    def on_catalog(privilege: Privilege) -> bool:
        return realm.is_allowed(privilege, definition)

    def on_reference(privilege: Privilege) -> bool:
        on = Securable(kind=SecurableKind.REFERENCE, catalog=definition.name, pattern=name)
        return decisions is None or decisions.allows(privilege, on, reference)

    return Answer(
        body=CallerInCatalog(
            catalog=definition.name,
            default_branch=definition.default_branch,
            ref=name,
            may=CatalogRights(
                read_definition=on_catalog(Privilege.CATALOG_READ_PROPERTIES),
                write_definition=on_catalog(Privilege.CATALOG_WRITE_PROPERTIES),
                drop=on_catalog(Privilege.CATALOG_DROP),
                manage_access=on_catalog(Privilege.CATALOG_MANAGE_ACCESS),
                manage_metadata=on_catalog(Privilege.CATALOG_MANAGE_METADATA),
                manage_content=on_catalog(Privilege.CATALOG_MANAGE_CONTENT),
                read_history=on_reference(Privilege.REFERENCE_READ_HISTORY),
                create_reference=on_reference(Privilege.REFERENCE_CREATE),
                drop_reference=on_reference(Privilege.REFERENCE_DROP),
                assign_reference=on_reference(Privilege.REFERENCE_ASSIGN),
                write_tables=decisions is None or _writes_tables(decisions, definition, reference),
            ),
        )
    )


def _writes_tables(decisions: AccessDecisions, definition: CatalogDefinition, reference: ReferenceName) -> bool:
    """Whether every table may be written. A plug-in is asked about the catalog as a whole, as it knows of no other way to say so."""
    if isinstance(decisions, PluginDecisions):
        on = Securable(kind=SecurableKind.CATALOG, catalog=definition.name)
        return decisions.allows(Privilege.TABLE_WRITE_DATA, on, reference)
    return decisions.holds_wide(Privilege.TABLE_WRITE_DATA, reference)


@cache
def _version() -> str:
    return version("headwater")
