"""Why somebody may do something in a realm or a catalog, or may not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headwater.access import (
    AccessExplanation,
    AccessReader,
    AccessRule,
    Privilege,
    ReferenceName,
    RoleHolder,
    Securable,
    SecurableKind,
    check_grantable,
    explain_access,
    reference_of,
)
from headwater.api.role_owners import RoleScope
from headwater.catalogs import Catalog, CatalogDefinition, Content, ContentKey, ContentType, content_type_of
from headwater.clock import as_text
from headwater.realms import Principal, Realm, RealmRegistry, RealmState, read_principal, read_principal_role
from headwater.store import Store

_OF_NEW_KEYS = (Privilege.TABLE_CREATE, Privilege.VIEW_CREATE)
"""Rights by content id say nothing of them: what is created is new."""
_KINDS = {
    ContentType.NAMESPACE: SecurableKind.NAMESPACE,
    ContentType.ICEBERG_TABLE: SecurableKind.TABLE,
    ContentType.ICEBERG_VIEW: SecurableKind.VIEW,
}


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """Whether a principal may do something, and why."""

    principal: str
    privilege: Privilege
    on: str
    is_allowed: bool
    why: Sequence[str]
    explanation: AccessExplanation
    roles: Sequence[str]


def explain_rights(
    store: Store,
    scope: RoleScope,
    principal: str,
    privilege: Privilege,
    on: Securable,
    *,
    ref: str | None = None,
    roles: Sequence[str] = (),
) -> AccessAnswer:
    """Whether a principal may do something through a server, by which grant and which roles, or what comes near it.

    ref           of the catalog, through which it is seen; None: the default branch
    roles         principal roles that it is taken to have beside its own
    raises        NotFoundError for who and what is not there; RefusedError for a privilege that cannot be granted on such a thing
    """
    check_grantable(privilege, on.kind)
    realms = RealmRegistry(store)
    held = read_principal(realms, scope.realm, principal)
    for role in roles:
        read_principal_role(realms, scope.realm, role)
    rows = realms.open_realm(scope.realm)
    catalog = Catalog.open(rows, scope.name) if scope.name else None
    holder = RoleHolder(held.entity, added=frozenset(roles))
    asked = _question(privilege, on, catalog, ref)
    return _answer(AccessReader(rows), realms.read_realm(scope.realm), held, holder, asked)


def securable_kind_of(content: Content) -> SecurableKind | None:
    """The kind of securable that a content is; None: rights on one of its type come from what lies above it."""
    kind = content_type_of(content)
    return _KINDS.get(kind) if isinstance(kind, ContentType) else None


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked about, seen through a reference.

    catalog       None: the realm is asked about
    doubt         what a person should know beside the answer; None: nothing
    """

    privilege: Privilege
    on: Securable
    reference: ReferenceName
    catalog: CatalogDefinition | None = None
    doubt: str | None = None

    @property
    def told(self) -> str:
        if self.on.kind in (SecurableKind.REALM, SecurableKind.CATALOG, SecurableKind.REFERENCE):
            return str(self.on)
        return f"{self.on} on {self.reference.name or 'a commit that only its hash names'}"


def _question(privilege: Privilege, on: Securable, catalog: Catalog | None, ref: str | None) -> _Question:
    """The question, about what stands there now; a table or view is known by its key and by its content id, whichever was named.

    raises        NotFoundError for a reference that is not there
    """
    asked = _Question(privilege, on, ReferenceName(None))
    if catalog is None:
        return asked
    definition, where = catalog.definition, ref or catalog.definition.default_branch
    asked = replace(asked, catalog=definition, reference=reference_of(ref, definition))
    if on.kind is SecurableKind.REFERENCE:
        return replace(asked, reference=ReferenceName(on.pattern, is_default=on.pattern == definition.default_branch))
    if on.content_id is not None:
        entry = catalog.find_by_id(ref, [on.content_id]).get(on.content_id)
        if entry is None:
            return replace(asked, doubt=f"nothing with this content id is on {where}")
        return replace(asked, on=replace(on, path=entry.key.elements))
    if not on.path:
        return asked
    content = catalog.get_content(ref, ContentKey(on.path))
    if content is None or securable_kind_of(content) is not on.kind:
        doubt = f"no {on.kind} is at {ContentKey(on.path)} on {where}: this is the answer for one that will be"
        return replace(asked, doubt=doubt)
    if on.kind is SecurableKind.NAMESPACE or privilege in _OF_NEW_KEYS:
        return asked
    return replace(asked, on=replace(on, content_id=content.id))


def _obstacles(realm: Realm, held: Principal) -> Iterator[str]:
    """Why a server lets a principal do nothing at all."""
    if realm.state is not RealmState.ACTIVE:
        yield f"realm {realm.id} is {realm.state}: a server serves only an ACTIVE one"
    if held.disabled is not None:
        yield f"{held.name} is disabled since {as_text(held.disabled)}: `headwater principal enable {realm.id} {held.name}`"


def _answer(reader: AccessReader, realm: Realm, held: Principal, holder: RoleHolder, asked: _Question) -> AccessAnswer:
    rules = reader.read_rules(holder, asked.catalog)
    explanation = explain_access(rules, asked.privilege, asked.on, asked.reference)
    roles = [role.name for role in reader.read_roles(holder)]
    obstacles = list(_obstacles(realm, held))
    if explanation.rule is not None:
        reason = _granted(explanation.rule, asked.privilege)
    elif not roles:
        reason = f"{held.name} has no role: `headwater role assign {realm.id} ROLE --to {held.name}` gives it one"
    elif not rules.rules:
        place = f"realm {realm.id}" if asked.catalog is None else f"catalog {asked.catalog.name}"
        reason = f"nothing in {place} is granted to its roles: {', '.join(roles)}"
    else:
        reason = f"none of the grants that reach it gives {asked.privilege} on {asked.told}"
    return AccessAnswer(
        principal=held.name,
        privilege=asked.privilege,
        on=asked.told,
        is_allowed=explanation.rule is not None and not obstacles,
        why=[*obstacles, reason, *([] if asked.doubt is None else [asked.doubt])],
        explanation=explanation,
        roles=roles,
    )


def _granted(rule: AccessRule, asked: Privilege) -> str:
    including = "" if rule.privilege is asked else f", which includes {asked},"
    return f"{rule.privilege} on {rule.on} is granted{including} through {' and '.join(rule.roles)}"
