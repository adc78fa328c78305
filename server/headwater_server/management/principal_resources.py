"""Principals as resources. Whoever has SERVICE_MANAGE_ACCESS on the realm manages all of them.

A principal may read itself. It may renew its own credentials, too, but only with a token that was given for its present ones and that is
restricted to none of its roles: otherwise whoever holds such a token for an hour, or for one role, or former credentials that are about to
end, would get all that the principal has, for good.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.access import Privilege
from headwater.clock import as_text
from headwater.errors import ConflictError
from headwater.realms import (
    Credentials,
    CredentialsHash,
    Principal,
    RealmGrants,
    create_principal,
    disable_principal,
    drop_principal,
    enable_principal,
    find_principal,
    hash_credentials,
    list_principals,
    new_credentials,
    read_principal,
    read_realm_grants,
    reset_principal,
    rotate_principal,
    told_client_id,
    told_credential,
)
from headwater_server.call import Answer, Call
from headwater_server.identity import HashSlots
from headwater_server.management.listed_pages import page_by_name
from headwater_server.management.managed_realm import ManagedRealm, managed_realm, realm_under_right
from headwater_server.management.realm_resources import time_or_none
from headwater_server.management.resource_shapes import (
    ListQuery,
    NewCredentials,
    PrincipalCreation,
    PrincipalList,
    PrincipalResource,
    PrincipalWithCredentials,
    RotationQuery,
)
from headwater_server.management.route_parts import CHANGE_ERRORS, NO_BODY, READ_ERRORS, REALM_PATH, REALM_RIGHT
from headwater_server.route_table import Route

_MANAGE = Privilege.SERVICE_MANAGE_ACCESS
_NOT_KEPT = {"Cache-Control": "no-store"}
_PRINCIPALS_PATH = f"{REALM_PATH}/principals"
_PRINCIPAL_PATH = f"{_PRINCIPALS_PATH}/{{principal}}"


def principal_routes() -> list[Route]:
    """Make the routes of principals."""
    return [
        Route(
            method="GET",
            template=_PRINCIPALS_PATH,
            handler=answer_principals,
            name="listPrincipals",
            needs=REALM_RIGHT,
            summary="List the principals of a realm.",
            query=ListQuery,
            answers={200: PrincipalList},
            errors=READ_ERRORS,
        ),
        Route(
            method="POST",
            template=_PRINCIPALS_PATH,
            handler=answer_principal_creation,
            name="createPrincipal",
            needs=REALM_RIGHT,
            summary="Create a principal, and tell its credentials: this once.",
            writes=True,
            body=PrincipalCreation,
            answers={201: PrincipalWithCredentials},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="GET",
            template=_PRINCIPAL_PATH,
            handler=answer_principal,
            name="getPrincipal",
            needs=f"{REALM_RIGHT}, or nothing for the caller itself",
            summary="Read a principal.",
            answers={200: PrincipalResource},
            errors=READ_ERRORS,
        ),
        Route(
            method="DELETE",
            template=_PRINCIPAL_PATH,
            handler=answer_principal_deletion,
            name="deletePrincipal",
            needs=REALM_RIGHT,
            summary="Remove a principal, and what it was issued; root stays.",
            writes=True,
            answers=NO_BODY,
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL_PATH}/rotate",
            handler=answer_credentials_rotation,
            name="rotateCredentials",
            needs=f"{REALM_RIGHT}, or nothing for the caller's own, with a token that was given for them without restriction",
            summary="Give a principal other credentials; the former ones hold for a while.",
            writes=True,
            query=RotationQuery,
            answers={200: PrincipalWithCredentials},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL_PATH}/reset",
            handler=answer_credentials_reset,
            name="resetCredentials",
            needs=REALM_RIGHT,
            summary="Give a principal other credentials; the former ones, and their tokens, hold no more.",
            writes=True,
            answers={200: PrincipalWithCredentials},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL_PATH}/disable",
            handler=answer_principal_disabling,
            name="disablePrincipal",
            needs=REALM_RIGHT,
            summary="Refuse a principal, whatever it was issued.",
            writes=True,
            answers={200: PrincipalResource},
            errors=CHANGE_ERRORS,
        ),
        Route(
            method="POST",
            template=f"{_PRINCIPAL_PATH}/enable",
            handler=answer_principal_enabling,
            name="enablePrincipal",
            needs=REALM_RIGHT,
            summary="Let a disabled principal log in again, with the credentials that it had.",
            writes=True,
            answers={200: PrincipalResource},
            errors=CHANGE_ERRORS,
        ),
    ]


def answer_principals(call: Call[ListQuery, None]) -> Answer:
    """List the principals of a realm."""
    realm = realm_under_right(call, _MANAGE)
    listed, token = page_by_name(list_principals(realm.registry, realm.id), call.query, name=lambda each: each.name)
    grants = read_realm_grants(realm.rows)
    return Answer(body=PrincipalList([_resource(realm, each, grants) for each in listed], token))


def answer_principal_creation(call: Call[None, PrincipalCreation]) -> Answer:
    """Create a principal, and tell its credentials; raises ConflictError for a name that is taken."""
    realm, name = realm_under_right(call, _MANAGE), call.body.name
    if find_principal(realm.registry, realm.id, name) is not None:
        raise ConflictError(f"realm {realm.id!r} has a principal {name!r} already: reset its credentials, or name another")
    made, hashed = _new_credentials(realm)
    return _told(realm, create_principal(realm.registry, realm.id, name, hashed), made, status=201)


def answer_principal(call: Call[None, None]) -> Answer:
    """Read a principal."""
    realm, name = managed_realm(call), call.path["principal"]
    if not realm.is_caller(name):
        realm.check_right(_MANAGE)
    return _answer(realm, read_principal(realm.registry, realm.id, name))


def answer_credentials_rotation(call: Call[RotationQuery, None]) -> Answer:
    """Give a principal other credentials, beside which the former ones hold for a while."""
    realm, name = managed_realm(call), call.path["principal"]
    if not _renews_itself(realm, name):
        realm.check_right(_MANAGE)
    held = read_principal(realm.registry, realm.id, name)
    made, hashed = _new_credentials(realm)
    rotated = rotate_principal(
        realm.registry,
        realm.id,
        name,
        hashed,
        replaces=held.credentials.client_id,
        overlap_seconds=call.query.overlap_seconds,
    )
    return _told(realm, rotated, made)


def answer_credentials_reset(call: Call[None, None]) -> Answer:
    """Give a principal other credentials, and refuse the former ones from now on."""
    realm, name = realm_under_right(call, _MANAGE), call.path["principal"]
    read_principal(realm.registry, realm.id, name)  # a secret is hashed for nobody
    made, hashed = _new_credentials(realm)
    return _told(realm, reset_principal(realm.registry, realm.id, name, hashed), made)


def answer_principal_disabling(call: Call[None, None]) -> Answer:
    """Refuse a principal from now on."""
    return _changed(call, disable_principal)


def answer_principal_enabling(call: Call[None, None]) -> Answer:
    """Let a disabled principal log in again."""
    return _changed(call, enable_principal)


def answer_principal_deletion(call: Call[None, None]) -> Answer:
    """Remove a principal; root stays."""
    realm = realm_under_right(call, _MANAGE)
    drop_principal(realm.registry, realm.id, call.path["principal"])
    return Answer(204)


def _changed(call: Call[None, None], change: Callable[..., Principal]) -> Answer:
    realm, name = realm_under_right(call, _MANAGE), call.path["principal"]
    read_principal(realm.registry, realm.id, name)
    return _answer(realm, change(realm.registry, realm.id, name))


def _renews_itself(realm: ManagedRealm, name: str) -> bool:
    """Whether the caller is this principal, by a token that stands for all of it."""
    caller = realm.caller
    return caller is not None and realm.is_caller(name) and caller.has_credentials and caller.holder.only is None


def _new_credentials(realm: ManagedRealm) -> tuple[Credentials, CredentialsHash]:
    """Make credentials; raises OverloadedError while as many secrets are hashed as may be at a time."""
    made = new_credentials()
    with realm.served.part(HashSlots).take_slot():
        return made, hash_credentials(made)


def _told(realm: ManagedRealm, principal: Principal, made: Credentials, *, status: int = 200) -> Answer:
    """The one answer that shows a secret."""
    told = NewCredentials(told_client_id(realm.id, made.client_id), made.client_secret, told_credential(realm.id, made))
    resource = _resource(realm, principal, read_realm_grants(realm.rows))
    return Answer(status, PrincipalWithCredentials(resource, told), _NOT_KEPT)


def _answer(realm: ManagedRealm, principal: Principal) -> Answer:
    return Answer(body=_resource(realm, principal, read_realm_grants(realm.rows)))


def _resource(realm: ManagedRealm, principal: Principal, grants: RealmGrants) -> PrincipalResource:
    now, former = realm.store.clock.now(), principal.former
    is_held = former is not None and (principal.former_until is None or now < principal.former_until)
    return PrincipalResource(
        name=principal.name,
        client_id=told_client_id(realm.id, principal.credentials.client_id),
        created=as_text(principal.created),
        renewed=time_or_none(principal.renewed),
        disabled=time_or_none(principal.disabled),
        former_client_id=told_client_id(realm.id, former.client_id) if former is not None and is_held else None,
        former_until=time_or_none(principal.former_until) if is_held else None,
        roles=[role.name for role in grants.roles_of(principal.entity)],
    )
