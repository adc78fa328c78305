"""The actions that bring roles, principals and grants to what a manifest declares: each idempotent, and told in words of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.access import Securable, SecurableKind
from headwater.catalogs import CatalogGrant
from headwater.clock import Micros, as_text
from headwater.reconcile.connection_form import ConnectionForm
from headwater.reconcile.declared_access import AccessRecord


@dataclass(frozen=True, slots=True)
class RecordAccess:
    """Record what the resource made, or is about to make."""

    record: AccessRecord


@dataclass(frozen=True, slots=True)
class CreatePrincipalRole:
    role: str


@dataclass(frozen=True, slots=True)
class DropPrincipalRole:
    role: str


@dataclass(frozen=True, slots=True)
class GrantOnRealm:
    role: str
    privileges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RevokeOnRealm:
    role: str
    privileges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProvidePrincipal:
    """Keep credentials where a person finds them, then give them to the principal, which is created or enabled."""

    principal: str


@dataclass(frozen=True, slots=True)
class ProvideConnection:
    """Keep credentials and addresses where workloads find them, then give the credentials to the connection's principal."""

    form: ConnectionForm


@dataclass(frozen=True, slots=True)
class RetirePrincipal:
    """Disable a principal. Its credentials stay where they are kept ``until`` then, and it has them again if it is declared before."""

    principal: str
    until: Micros


@dataclass(frozen=True, slots=True)
class RetireConnection:
    """Disable the principal of a connection. What workloads found stays ``until`` then."""

    form: ConnectionForm
    until: Micros


@dataclass(frozen=True, slots=True)
class RemoveCredentials:
    """Remove the credentials of a principal that is no longer declared from where they are kept."""

    principal: str


@dataclass(frozen=True, slots=True)
class RemoveConnection:
    """Remove what workloads found of a connection that is no longer declared."""

    form: ConnectionForm


@dataclass(frozen=True, slots=True)
class RotatePrincipal:
    """Give a principal new credentials, kept under this token first; ``form`` is that of a connection."""

    principal: str
    token: str
    form: ConnectionForm | None = None


@dataclass(frozen=True, slots=True)
class DisablePrincipal:
    principal: str


@dataclass(frozen=True, slots=True)
class EnablePrincipal:
    principal: str


@dataclass(frozen=True, slots=True)
class AssignPrincipalRole:
    principal: str
    role: str


@dataclass(frozen=True, slots=True)
class UnassignPrincipalRole:
    principal: str
    role: str


@dataclass(frozen=True, slots=True)
class CreateCatalogRole:
    role: str


@dataclass(frozen=True, slots=True)
class DropCatalogRole:
    role: str


@dataclass(frozen=True, slots=True)
class GrantInCatalog:
    role: str
    grants: tuple[CatalogGrant, ...]


@dataclass(frozen=True, slots=True)
class RevokeInCatalog:
    role: str
    grants: tuple[CatalogGrant, ...]


@dataclass(frozen=True, slots=True)
class AssignCatalogRole:
    role: str
    principal_role: str


@dataclass(frozen=True, slots=True)
class UnassignCatalogRole:
    role: str
    principal_role: str


AccessAction = (
    RecordAccess
    | CreatePrincipalRole
    | DropPrincipalRole
    | GrantOnRealm
    | RevokeOnRealm
    | ProvidePrincipal
    | ProvideConnection
    | RetirePrincipal
    | RetireConnection
    | RemoveCredentials
    | RemoveConnection
    | RotatePrincipal
    | DisablePrincipal
    | EnablePrincipal
    | AssignPrincipalRole
    | UnassignPrincipalRole
    | CreateCatalogRole
    | DropCatalogRole
    | GrantInCatalog
    | RevokeInCatalog
    | AssignCatalogRole
    | UnassignCatalogRole
)
IN_CATALOG = (
    *(ProvideConnection, RetireConnection, RemoveConnection, CreateCatalogRole, DropCatalogRole),
    *(GrantInCatalog, RevokeInCatalog, AssignCatalogRole, UnassignCatalogRole),
)
"""The kinds of actions on a catalog; the others are on its realm."""

_PAST = {
    "assign": "assigned",
    "create": "created",
    "disable": "disabled",
    "drop": "dropped",
    "enable": "enabled",
    "grant": "granted",
    "provide": "provided",
    "remove": "removed",
    "revoke": "revoked",
    "rotate": "rotated",
    "take": "took",
}


def access_sentence(action: AccessAction, subject: str) -> str:
    """What an action will do, as a sentence without a capital; empty for bookkeeping. ``subject`` is the realm or the catalog."""
    match action:
        case RecordAccess():
            return ""
        case CreatePrincipalRole(role) | CreateCatalogRole(role):
            return f"create role {role} of {subject}"
        case DropPrincipalRole(role) | DropCatalogRole(role):
            return f"drop role {role} of {subject}"
        case GrantOnRealm(role, privileges):
            return f"grant {', '.join(privileges)} on {subject} to role {role}"
        case RevokeOnRealm(role, privileges):
            return f"revoke {', '.join(privileges)} on {subject} of role {role}"
        case ProvidePrincipal(principal):
            return f"provide principal {principal} of {subject} with credentials"
        case RetirePrincipal(principal, until):
            return f"disable principal {principal} of {subject}; its credentials are kept until {as_text(until)}"
        case RemoveCredentials(principal):
            return f"remove the credentials of principal {principal} of {subject}, which is no longer declared"
        case ProvideConnection(form):
            return f"provide the connection of {subject} with credentials of principal {form.principal}"
        case RetireConnection(form, until):
            return f"disable principal {form.principal} of {subject}; its connection is kept until {as_text(until)}"
        case RemoveConnection(form):
            return f"remove the connection of {subject} as principal {form.principal}, which is no longer declared"
        case RotatePrincipal(principal, _, _):
            return f"rotate the credentials of principal {principal} of {subject}"
        case DisablePrincipal(principal):
            return f"disable principal {principal} of {subject}"
        case EnablePrincipal(principal):
            return f"enable principal {principal} of {subject}"
        case AssignPrincipalRole(principal, role):
            return f"assign role {role} of {subject} to principal {principal}"
        case UnassignPrincipalRole(principal, role):
            return f"take role {role} of {subject} from principal {principal}"
        case GrantInCatalog(role, grants):
            return f"grant {told_grants(grants, subject)} to role {role}"
        case RevokeInCatalog(role, grants):
            return f"revoke {told_grants(grants, subject)} of role {role}"
        case AssignCatalogRole(role, principal_role):
            return f"assign role {role} of {subject} to principal role {principal_role}"
        case UnassignCatalogRole(role, principal_role):
            return f"take role {role} of {subject} from principal role {principal_role}"


def done_sentence(action: AccessAction, subject: str) -> str:
    """What an action did."""
    verb, _, rest = access_sentence(action, subject).partition(" ")
    return f"{_PAST[verb]} {rest}"


def told_grants(grants: Iterable[CatalogGrant], catalog: str) -> str:
    """Grants in one sentence, sorted."""
    return ", ".join(grant_texts(grants, catalog))


def grant_texts(grants: Iterable[CatalogGrant], catalog: str) -> list[str]:
    """Grants in words, sorted: ``TABLE_LIST on namespace sales of catalog acme/lake``."""
    return sorted(f"{grant.privilege} on {_place(grant, catalog)}" for grant in grants)


def _place(grant: CatalogGrant, catalog: str) -> str:
    if grant.on == SecurableKind.CATALOG or grant.on not in set(SecurableKind):
        return catalog
    kind = SecurableKind(grant.on)
    pattern = grant.references if kind is SecurableKind.REFERENCE else ""
    on = Securable(kind=kind, path=grant.path, content_id=grant.content_id, pattern=pattern)
    where = str(on).removesuffix(" of catalog None")
    return f"{where} of {catalog}" + (f" ({grant.references})" if grant.references and not pattern else "")
