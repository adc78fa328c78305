"""What manifests declare of access: principals, roles, grants and connections; and the record of what was made of that.

The record says which roles and principals a resource made, so that it takes away these alone when it no longer names them. It is kept
in the definition of the realm or the catalog, and written before anything is made.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from headwater.access import PRIVILEGES, Privilege, SecurableKind, parse_privilege
from headwater.catalogs import CatalogGrant, ContentKey
from headwater.clock import Micros
from headwater.errors import CorruptionError, RefusedError
from headwater.realms import ROOT_PRINCIPAL, SERVICE_ADMIN
from headwater.typed_values import decode_json

ACCESS = "headwater.dev/access"
"""The property of a realm or catalog with the record of what its resource made."""
CONNECTION = "connection."
"""How the principal and the role of a catalog's connection begin."""
CATALOG_ADMIN = "catalog_admin"

_PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_ROLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]{0,127}")
_REFERENCES = re.compile(r"[A-Za-z0-9*_][A-Za-z0-9*._/-]{0,199}")
_SERVER = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?")
_NAME_LIMIT = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredPrincipal:
    """A principal that a Realm declares, with the principal roles that it has."""

    name: str
    roles: tuple[str, ...] = ()
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredRole:
    """A principal role that a Realm declares, with its privileges on the whole realm."""

    name: str
    privileges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredGrant:
    """Privileges on one thing in a catalog: a namespace, table or view by the elements of its key, or references by a pattern.

    references    where privileges on content hold: a pattern of names; empty for the default branch
    """

    privileges: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    view: tuple[str, ...] = ()
    reference: str = ""
    references: str = ""

    @property
    def kind(self) -> SecurableKind:
        """On what it is; the first one where several are given, which is a fault."""
        kinds = (SecurableKind.NAMESPACE, SecurableKind.TABLE, SecurableKind.VIEW, SecurableKind.REFERENCE)
        return next((kind for kind in kinds if getattr(self, kind.value)), SecurableKind.CATALOG)

    def grants(self) -> list[CatalogGrant]:
        """The grants, one for each privilege."""
        path, references = self.namespace or self.table or self.view, self.reference or self.references
        return [
            CatalogGrant(privilege=privilege, on=self.kind.value, path=path, references=references)
            for privilege in self.privileges
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredCatalogRole:
    """A role that a Catalog declares, with the principal roles that have it."""

    name: str
    granted_to: tuple[str, ...] = ()
    grants: tuple[DeclaredGrant, ...] = ()

    def all_grants(self) -> frozenset[CatalogGrant]:
        """What the role may do."""
        return frozenset(grant for declared in self.grants for grant in declared.grants())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredConnection:
    """The connection that a Catalog declares: how workloads reach it, as a principal of its own.

    roles         the catalog's roles that this principal has
    uri           of the server; empty: as whoever carries the manifest out knows it
    secret_name   of the Secret; empty: made from the name of the Catalog
    """

    roles: tuple[str, ...] = ()
    uri: str = ""
    secret_name: str = ""


class AccessRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a resource made of roles and principals.

    applied       digest of the declaration that was carried out last; only of realms
    roles         names of the roles that it made
    principals    names of the principals that it made
    retired       of principals that it made and that are no longer declared: they are disabled
    kept          until when credentials are kept that are no longer declared: by principal, in a catalog by the name of the Secret
    connection    digest of what the connection's Secret has beside the credentials
    secret        name of that Secret; empty: the one that is made from the name of the Catalog
    """

    applied: str = ""
    roles: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    kept: Mapping[str, Micros] = {}
    connection: str = ""
    secret: str = ""

    @property
    def has_nothing(self) -> bool:
        return self == AccessRecord()

    def text(self) -> str:
        """The record as it is stored."""
        return msgspec.json.encode(self).decode()

    def with_made(self, roles: Iterable[str], principals: Iterable[str]) -> AccessRecord:
        """The record with further roles and principals."""
        return msgspec.structs.replace(
            self, roles=_names({*self.roles, *roles}), principals=_names({*self.principals, *principals})
        )


def read_record(text: str | None) -> AccessRecord:
    """The record that is stored as this text; an empty one without a text."""
    if text is None:
        return AccessRecord()
    try:
        return decode_json(text, AccessRecord)
    except msgspec.MsgspecError as fault:
        raise CorruptionError(f"the record {ACCESS} cannot be read: {fault}") from fault


def with_record(acted: Mapping[str, str], record: AccessRecord) -> dict[str, str]:
    """What a manager has to remember, with this record in it; without one where that is empty."""
    kept = {name: text for name, text in acted.items() if name != ACCESS}
    return kept if record.has_nothing else {**kept, ACCESS: record.text()}


def access_digest(principals: Iterable[DeclaredPrincipal], roles: Iterable[DeclaredRole]) -> str:
    """A digest of what a realm declares, which tells a changed declaration from access that drifted."""
    plain = [[asdict(principal) for principal in principals], [asdict(role) for role in roles]]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def connection_name(catalog: str) -> str:
    """The name of the principal of a catalog's connection, and of its role; a digest replaces the end of a long one."""
    name = CONNECTION + catalog
    if len(name) <= _NAME_LIMIT:
        return name
    digest = hashlib.blake2b(catalog.encode(), digest_size=8).hexdigest()
    return f"{name[: _NAME_LIMIT - len(digest) - 1]}-{digest}"


def checked_principal(text: str) -> str:
    """The name of a principal that a manifest may declare; raises RefusedError that says what it may have."""
    if text == ROOT_PRINCIPAL:
        raise RefusedError("root is every realm's own, and no manifest changes it; declare a principal of another name")
    _check_name(text, _PRINCIPAL, "a principal", "a letter or digit first")
    return text


def checked_role(text: str) -> str:
    """The name of a principal role or a catalog's role that a manifest may declare; raises RefusedError."""
    if text in (SERVICE_ADMIN, CATALOG_ADMIN):
        raise RefusedError(f"{text} is Headwater's own, and no manifest changes it; declare a role of another name")
    _check_name(text, _ROLE, "a role", "a letter, a digit or _ first")
    return text


def _check_name(text: str, pattern: re.Pattern[str], what: str, first: str) -> None:
    if not pattern.fullmatch(text):
        raise RefusedError(f'"{text[:200]}" is not the name of {what}; use letters, digits and . _ @ - (at most 128, {first})')
    if text.startswith(CONNECTION):
        raise RefusedError(f'names that begin with "{CONNECTION}" belong to the connections of Catalogs; take another one')


def checked_privilege(text: str, kind: SecurableKind) -> str:
    """A privilege as it is written here, which can be granted on this kind; raises RefusedError that says what would be right."""
    privilege = parse_privilege(text)
    if privilege != text:
        raise RefusedError(f'write {privilege}, not "{text}"')
    if kind not in PRIVILEGES[privilege].kinds:
        raise RefusedError(f"{privilege} cannot be granted on {_TOLD[kind]}; it can on {_kinds_of(privilege)}")
    return text


_TOLD = {
    SecurableKind.REALM: "a realm",
    SecurableKind.CATALOG: "a whole catalog",
    SecurableKind.NAMESPACE: "a namespace",
    SecurableKind.TABLE: "a table",
    SecurableKind.VIEW: "a view",
    SecurableKind.REFERENCE: "a reference",
}


def _kinds_of(privilege: Privilege) -> str:
    *others, last = [text for kind, text in _TOLD.items() if kind in PRIVILEGES[privilege].kinds]
    return f"{', '.join(others)} or {last}" if others else last


def checked_references(text: str) -> str:
    """A pattern of names of branches and tags; raises RefusedError that says what it may have."""
    if not _REFERENCES.fullmatch(text):
        raise RefusedError(
            f'"{text[:200]}" is no pattern of branches and tags; use * for any characters, and letters, digits and . _ / - (at most 200)'
        )
    return text


def checked_elements(elements: tuple[str, ...]) -> tuple[str, ...]:
    """The elements of the key of a namespace, table or view; raises RefusedError for those that no content can have."""
    if "." in elements:
        raise RefusedError('an element of a key must not be "."')
    ContentKey(elements)
    return elements


def checked_server(text: str) -> str:
    """The URL of a server without the slash at its end; raises RefusedError that says what would be right."""
    if not _SERVER.fullmatch(text) or len(text) > 500:
        raise RefusedError(f'"{text[:200]}" is no URL of a server; write for example https://headwater.example.org')
    return text.rstrip("/")


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
