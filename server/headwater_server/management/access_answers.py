"""Why somebody may do something, or may not: the rule that decides, with the roles through which it comes.

Whoever has SERVICE_MANAGE_ACCESS may ask about everybody. Everybody may ask about itself, and learns of nothing that it may not see.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from headwater.access import (
    AccessReader,
    Privilege,
    ReferenceName,
    RoleHolder,
    Securable,
    SecurableKind,
    explain_access,
    parse_privilege,
    reference_of,
)
from headwater.catalogs import Catalog, CatalogDefinition, ContentKey
from headwater.clock import Micros
from headwater.errors import NotFoundError, RefusedError
from headwater.realms import read_principal
from headwater_server.call import Answer, Call
from headwater_server.management.managed_realm import REALM, ManagedRealm, managed_realm
from headwater_server.management.realm_resources import time_or_none
from headwater_server.management.resource_shapes import AccessExplained, AccessQuery
from headwater_server.management.route_parts import READ_ERRORS, REALM_PATH, REALM_RIGHT
from headwater_server.route_table import Route


def access_routes() -> list[Route]:
    """Make the routes of explanations."""
    return [
        Route(
            method="GET",
            template=f"{REALM_PATH}/access",
            handler=answer_access,
            name="explainAccess",
            needs=f"{REALM_RIGHT}, or nothing for the caller's own rights",
            summary="Explain by which grant a principal has a privilege on something, or why it has not.",
            query=AccessQuery,
            answers={200: AccessExplained},
            errors=READ_ERRORS,
        ),
    ]


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about, seen through a reference."""

    on: Securable
    reference: ReferenceName


@dataclass(frozen=True, slots=True)
class _AskedPrincipal:
    """Whose rights are asked about."""

    name: str
    holder: RoleHolder
    disabled: Micros | None = None


def answer_access(call: Call[AccessQuery, None]) -> Answer:
    """Explain whether a principal has a privilege on something."""
    realm, query = managed_realm(call), call.query
    privilege = parse_privilege(query.privilege)
    asked = _asked_principal(realm, query.principal)
    definition = None if query.catalog is None else realm.seen_catalog(query.catalog)
    if not realm.is_explained_by_grants(privilege, definition):
        raise RefusedError("catalog: a plug-in decides here about catalogs, and not the grants: its policies tell why")
    question = _question(realm, query, privilege, definition)
    reader = AccessReader(realm.rows)
    explanation = explain_access(reader.read_rules(asked.holder, definition), privilege, question.on, question.reference)
    return Answer(
        body=AccessExplained(
            principal=asked.name,
            privilege=privilege.value,
            on=str(question.on),
            reference=None if definition is None else question.reference.name,
            allowed=explanation.rule is not None and asked.disabled is None,
            disabled=time_or_none(asked.disabled),
            rule=None if explanation.rule is None else str(explanation.rule),
            near=list(map(str, explanation.near)),
            roles=[role.name for role in reader.read_roles(asked.holder)],
        )
    )


def _asked_principal(realm: ManagedRealm, principal: str | None) -> _AskedPrincipal:
    """Whose rights are asked about: the caller's own, as its token has them, or those of a principal with all of its roles."""
    caller = realm.caller
    if caller is not None and principal in (None, caller.name):
        return _AskedPrincipal(caller.name, caller.holder)
    if principal is None:
        raise RefusedError("principal: name one, for nobody has to prove here who calls")
    realm.check_right(Privilege.SERVICE_MANAGE_ACCESS)
    held = read_principal(realm.registry, realm.id, principal)
    return _AskedPrincipal(held.name, RoleHolder(held.entity), held.disabled)


def _question(realm: ManagedRealm, query: AccessQuery, privilege: Privilege, definition: CatalogDefinition | None) -> _Question:
    named = [(kind, text) for kind in _KEYED if (text := getattr(query, kind.value)) is not None]
    if len(named) > 1:
        raise RefusedError(f"{named[1][0]}: a question is about one thing; it names a {named[0][0]} already")
    if definition is None:
        if named or query.reference is not None:
            raise RefusedError("catalog: name the one that this is in")
        return _Question(REALM, ReferenceName("", is_default=True))
    reference = reference_of(query.reference, definition)
    if named:
        kind, text = named[0]
        key = ContentKey.parse(text)
        content_id = None if kind is SecurableKind.NAMESPACE else _find_content_id(realm, definition, query.reference, key)
        return _Question(Securable(kind=kind, catalog=definition.name, path=key.elements, content_id=content_id), reference)
    if privilege.value.startswith("REFERENCE_"):
        return _Question(
            Securable(kind=SecurableKind.REFERENCE, catalog=definition.name, pattern=reference.name or "*"), reference
        )
    return _Question(Securable(kind=SecurableKind.CATALOG, catalog=definition.name), reference)


_KEYED = (SecurableKind.NAMESPACE, SecurableKind.TABLE, SecurableKind.VIEW)


def _find_content_id(realm: ManagedRealm, definition: CatalogDefinition, reference: str | None, key: ContentKey) -> UUID | None:
    """The content id at a key, by which grants are sought first; None where nothing stands there, or the reference is not there."""
    with suppress(NotFoundError):
        content = Catalog(realm.rows, definition).get_content(reference, key)
        return None if content is None else content.id
    return None
