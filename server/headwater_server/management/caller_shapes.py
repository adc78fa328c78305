"""The shapes of what a server tells of itself, and of what it tells callers of themselves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from headwater_server.management.resource_shapes import Name


class ServerConfig(Struct, frozen=True, rename="camel"):
    """What a client has to know before it can log in."""

    version: str
    authentication: Annotated[
        bool, Meta(description="Callers have to prove who they are; otherwise GET /api/v1/realms lists realms")
    ]
    token_endpoint: Annotated[
        str | None,
        Meta(
            description="Where credentials are exchanged for a token; null: nobody needs one, or identity providers alone give them"
        ),
    ]
    revocation_endpoint: Annotated[
        str | None, Meta(description="Where such a token is ended before its time, as RFC 7009 has it; null: as above")
    ]


class RealmRights(Struct, frozen=True, rename="camel"):
    """What a caller may do in a realm, in brief."""

    manage_access: bool
    create_catalogs: bool
    read_tasks: bool
    manage_tasks: bool


class CallerResource(Struct, frozen=True, rename="camel"):
    """Who calls.

    principal     null: nobody has to prove who calls
    roles         the principal roles that count
    privileges    those that it has on the realm, by name, with those that others include
    """

    realm: str
    principal: str | None
    roles: list[str]
    privileges: list[str]
    may: RealmRights


class CatalogRightsQuery(Struct, frozen=True, rename="camel"):
    """The branch or tag to tell of; without it, the default branch."""

    ref: Name | None = None


class CatalogRights(Struct, frozen=True, rename="camel"):
    """What a caller may do in a catalog, in brief; a single thing may be allowed or refused beyond that.

    create_reference   of the name that was asked for; and so with the other rights on references
    write_tables       every table, seen through the reference
    """

    read_definition: bool
    write_definition: bool
    drop: bool
    manage_access: bool
    manage_metadata: bool
    manage_content: bool
    read_history: bool
    create_reference: bool
    drop_reference: bool
    assign_reference: bool
    write_tables: bool


class CallerInCatalog(Struct, frozen=True, rename="camel"):
    """What a caller may do in a catalog, on one reference."""

    catalog: str
    default_branch: str
    ref: str
    may: CatalogRights
