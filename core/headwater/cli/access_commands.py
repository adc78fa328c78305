"""``headwater access``: why somebody may do something, or not; and what there is to be granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import click

from headwater.access import (
    PRIVILEGES,
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
from headwater.catalogs import Catalog, CatalogDefinition, ContentKey
from headwater.cli.cli_session import CliSession
from headwater.cli.command_address import Address, scope_ref_argument
from headwater.cli.grant_commands import securable_kind_of
from headwater.cli.role_arguments import PRIVILEGE, named_securable
from headwater.clock import as_text
from headwater.console import ResultView, ViewField, list_of, prints, text_field
from headwater.realms import Principal, Realm, RealmRegistry, RealmState, read_principal, read_principal_role

_ALL = "all others"
_OF_NEW_KEYS = (Privilege.TABLE_CREATE, Privilege.VIEW_CREATE)
"""Rights by content id say nothing of them: what is created is new."""


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


ACCESS_ANSWER: ResultView[AccessAnswer] = ResultView(
    "access",
    "answers",
    (
        ViewField("allowed", "whether it may", "is_allowed"),
        ViewField("principal", "who was asked about"),
        ViewField("privilege", "the right"),
        ViewField("on", "on what, seen through which branch"),
        ViewField("why", "the reasons, in sentences"),
        ViewField(
            "rule", "the grant that allows it, with the roles through which it comes", "explanation.rule", form=text_field
        ),
        ViewField(
            "near",
            "where it is not allowed: grants that allow something else there, or this elsewhere",
            "explanation.near",
            form=list_of(str),
        ),
        ViewField("roles", "the principal roles that count"),
    ),
)

PRIVILEGE_RULE: ResultView[Privilege] = ResultView(
    "privilege",
    "privileges",
    (
        ViewField("name", "what grants call it", str, "PRIVILEGE"),
        ViewField("about", "what it allows", lambda privilege: PRIVILEGES[privilege].summary, "ALLOWS"),
        ViewField(
            "grantedOn",
            "on what it can be granted",
            lambda privilege: [kind.value for kind in SecurableKind if kind in PRIVILEGES[privilege].kinds],
            "GRANTED ON",
        ),
        ViewField(
            "includes",
            "the privileges that whoever has it has, too, with what those include",
            lambda privilege: [each.value for each in PRIVILEGES[privilege].includes],
            "INCLUDES",
        ),
    ),
)

access = click.Group("access", help="Explain who may do what, and which privileges there are.")


@access.command(name="explain")
@scope_ref_argument
@click.argument("principal", metavar="PRINCIPAL")
@click.argument("privilege", metavar="PRIVILEGE", type=PRIVILEGE)
@click.argument("securable", metavar="[SECURABLE]", required=False)
@click.option(
    "--with-role",
    "added",
    metavar="ROLE",
    multiple=True,
    help="As if it had this principal role, too, as an identity provider may say; may be repeated.",
)
@prints(ACCESS_ANSWER)
def explain_access_command(
    session: CliSession,
    address: Address,
    principal: str,
    privilege: Privilege,
    securable: str | None,
    added: tuple[str, ...],
) -> None:
    """Say whether a principal may do something through a server, by which grant and which roles, or what comes near it.

    SECURABLE is namespace:KEY, table:KEY, view:KEY or reference:NAME, or table:id=UUID; without it, the catalog or the realm is meant.
    The exit code is 0 for both answers: see `allowed`.
    """
    on = named_securable(address, securable)
    check_grantable(privilege, on.kind)
    with session.open_store() as store:
        realms = RealmRegistry(store)
        held = read_principal(realms, address.realm, principal)
        for role in added:
            read_principal_role(realms, address.realm, role)
        rows = realms.open_realm(address.realm)
        catalog = Catalog.open(rows, address.name) if address.name else None
        holder = RoleHolder(held.entity, added=frozenset(added))
        asked = _question(privilege, on, catalog, address.ref)
        session.show(ACCESS_ANSWER, _answer(AccessReader(rows), realms.read_realm(address.realm), held, holder, asked))
    if catalog is not None and session.settings.server_access:
        plugin = session.settings.server_access
        session.warn(
            f"this is what the grants say: a server with HEADWATER_SERVER_ACCESS={plugin} asks that plug-in about catalogs"
        )


@access.command(name="privileges")
@prints(PRIVILEGE_RULE, many=True)
def list_privileges_command(session: CliSession) -> None:
    """List the privileges: what each allows, on what it can be granted, and which others it includes, with what those include."""
    rows = [PRIVILEGE_RULE.data(privilege) for privilege in Privilege]
    others = len(Privilege) - 1
    told = [{**row, "includes": _ALL if len(row["includes"]) == others else row["includes"]} for row in rows]
    if session.is_text:
        session.print_result(rows, lambda: PRIVILEGE_RULE.columns(told, session.layout))
    else:
        session.show_all(PRIVILEGE_RULE, list(Privilege))


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
