"""The part of a manifest that declares access: principals and roles of a Realm, roles and connection of a Catalog."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from headwater.access import SecurableKind
from headwater.reconcile.declared_access import (
    DeclaredCatalogRole,
    DeclaredConnection,
    DeclaredGrant,
    DeclaredPrincipal,
    DeclaredRole,
    checked_elements,
    checked_principal,
    checked_privilege,
    checked_references,
    checked_role,
    checked_server,
)
from headwater.reconcile.manifests import checked_resource_name
from headwater.reconcile.yaml_values import YamlValue

MOST_PRINCIPALS = 100
MOST_ROLES = 100
MOST_CATALOG_ROLES = 50
_PLACES = ("namespace", "table", "view", "reference")


def read_realm_access(
    principals: YamlValue, roles: YamlValue
) -> tuple[tuple[DeclaredPrincipal, ...], tuple[DeclaredRole, ...]]:
    """The principals and principal roles of a Realm. A principal has only roles that are declared beside it."""
    declared = tuple(_role(item.block("name", "privileges")) for item in _listed(roles, MOST_ROLES, "role"))
    known = {role.name for role in declared}
    items = _listed(principals, MOST_PRINCIPALS, "principal")
    return tuple(_principal(item.block("name", "roles", "disabled"), known) for item in items), declared


def _principal(fields: dict[str, YamlValue], known: Collection[str]) -> DeclaredPrincipal:
    return DeclaredPrincipal(
        name=fields["name"].required().checked(checked_principal),
        roles=_known_roles(fields["roles"], known, "this Realm"),
        disabled=fields["disabled"].flag(),
    )


def _role(fields: dict[str, YamlValue]) -> DeclaredRole:
    return DeclaredRole(
        name=fields["name"].required().checked(checked_role),
        privileges=_privileges(fields["privileges"], SecurableKind.REALM),
    )


def read_catalog_roles(value: YamlValue) -> tuple[DeclaredCatalogRole, ...]:
    """The roles of a Catalog. They are given to principal roles of its realm, which may come later."""
    return tuple(
        _catalog_role(item.block("name", "grantedTo", "grants")) for item in _listed(value, MOST_CATALOG_ROLES, "role")
    )


def _catalog_role(fields: dict[str, YamlValue]) -> DeclaredCatalogRole:
    return DeclaredCatalogRole(
        name=fields["name"].required().checked(checked_role),
        granted_to=_once(fields["grantedTo"], lambda item: item.checked(checked_role)),
        grants=tuple(_grant(item) for item in fields["grants"].items()),
    )


def _grant(item: YamlValue) -> DeclaredGrant:
    fields = item.block("privileges", *_PLACES, "references")
    given = [name for name in _PLACES if fields[name].node is not None]
    if len(given) > 1:
        item.fault(f"has {' and '.join(given)}; a grant is on one of {', '.join(_PLACES)}, or on the whole catalog without any")
    if "reference" in given and fields["references"].node is not None:
        fields["references"].fault("is for grants on content; the pattern of this one is in reference")
    kind = SecurableKind(given[0]) if given else SecurableKind.CATALOG
    return DeclaredGrant(
        privileges=_privileges(fields["privileges"].required(), kind, least=1),
        namespace=_elements(fields["namespace"]),
        table=_elements(fields["table"]),
        view=_elements(fields["view"]),
        reference=fields["reference"].checked(checked_references),
        references=fields["references"].checked(checked_references),
    )


def read_connection(value: YamlValue, roles: Sequence[DeclaredCatalogRole]) -> DeclaredConnection | None:
    """The connection of a Catalog, whose principal has only roles that the Catalog declares."""
    if value.node is None:
        return None
    fields = value.block("roles", "uri", "secretName")
    return DeclaredConnection(
        roles=_known_roles(fields["roles"].required(), {role.name for role in roles}, "this Catalog"),
        uri=fields["uri"].checked(checked_server),
        secret_name=fields["secretName"].checked(checked_resource_name),
    )


def _listed(value: YamlValue, most: int, what: str) -> list[YamlValue]:
    """The blocks of a list in which each has a name of its own."""
    items = value.items()
    if len(items) > most:
        items[most].fault(f"there may be {most} {what}s, not {len(items)}")
    lines: dict[str, int] = {}
    for item in items:
        name = item.member_word("name")
        if name and name in lines:
            line = f", in line {lines[name]}" if lines[name] else ""
            item.fault(f'another {what} is called "{name}"{line}; give each a name of its own')
        lines.setdefault(name, item.line)
    return items


def _privileges(value: YamlValue, kind: SecurableKind, *, least: int = 0) -> tuple[str, ...]:
    return _once(value, lambda item: item.checked(partial(checked_privilege, kind=kind)), least=least)


def _known_roles(value: YamlValue, known: Collection[str], where: str) -> tuple[str, ...]:
    def read(item: YamlValue) -> str:
        name = item.text()
        if name.strip() and name not in known:
            there = f"there is: {', '.join(sorted(known))}" if known else "there is none"
            item.fault(f'"{name}" is no role that {where} declares in spec.roles; {there}')
        return name

    return _once(value, read)


def _once(value: YamlValue, read: Callable[[YamlValue], str], *, least: int = 0) -> tuple[str, ...]:
    """The texts of a list, in which each stands once."""
    found: list[str] = []
    for item in value.items(least=least):
        text = read(item)
        if text and text in found:
            item.fault(f'"{text}" stands here twice; write it once')
        found.append(text)
    return tuple(found)


def _elements(value: YamlValue) -> tuple[str, ...]:
    elements = tuple(item.text() for item in value.items(least=1))
    if elements and all(map(str.strip, elements)):
        value.apply_check(checked_elements, elements)
    return elements
