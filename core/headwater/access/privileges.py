"""The privileges: what each is for, on what it can be granted, and which others it includes.

The names are those of Apache Polaris where it has one. ``REFERENCE_*`` and ``TASK_*`` are Headwater's own: Polaris has no branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from headwater.errors import RefusedError


class SecurableKind(StrEnum):
    """What a privilege is granted on. A grant on one holds for everything below it."""

    REALM = "realm"
    CATALOG = "catalog"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"
    REFERENCE = "reference"


class Privilege(StrEnum):
    """A right to do one kind of thing."""

    SERVICE_MANAGE_ACCESS = "SERVICE_MANAGE_ACCESS"
    TASK_READ = "TASK_READ"
    TASK_MANAGE = "TASK_MANAGE"

    CATALOG_CREATE = "CATALOG_CREATE"
    CATALOG_DROP = "CATALOG_DROP"
    CATALOG_LIST = "CATALOG_LIST"
    CATALOG_READ_PROPERTIES = "CATALOG_READ_PROPERTIES"
    CATALOG_WRITE_PROPERTIES = "CATALOG_WRITE_PROPERTIES"
    CATALOG_FULL_METADATA = "CATALOG_FULL_METADATA"
    CATALOG_MANAGE_ACCESS = "CATALOG_MANAGE_ACCESS"
    CATALOG_MANAGE_METADATA = "CATALOG_MANAGE_METADATA"
    CATALOG_MANAGE_CONTENT = "CATALOG_MANAGE_CONTENT"

    REFERENCE_LIST = "REFERENCE_LIST"
    REFERENCE_READ_HISTORY = "REFERENCE_READ_HISTORY"
    REFERENCE_CREATE = "REFERENCE_CREATE"
    REFERENCE_DROP = "REFERENCE_DROP"
    REFERENCE_ASSIGN = "REFERENCE_ASSIGN"
    REFERENCE_FULL_METADATA = "REFERENCE_FULL_METADATA"

    NAMESPACE_CREATE = "NAMESPACE_CREATE"
    NAMESPACE_DROP = "NAMESPACE_DROP"
    NAMESPACE_LIST = "NAMESPACE_LIST"
    NAMESPACE_READ_PROPERTIES = "NAMESPACE_READ_PROPERTIES"
    NAMESPACE_WRITE_PROPERTIES = "NAMESPACE_WRITE_PROPERTIES"
    NAMESPACE_FULL_METADATA = "NAMESPACE_FULL_METADATA"

    TABLE_CREATE = "TABLE_CREATE"
    TABLE_DROP = "TABLE_DROP"
    TABLE_LIST = "TABLE_LIST"
    TABLE_READ_PROPERTIES = "TABLE_READ_PROPERTIES"
    TABLE_WRITE_PROPERTIES = "TABLE_WRITE_PROPERTIES"
    TABLE_READ_DATA = "TABLE_READ_DATA"
    TABLE_WRITE_DATA = "TABLE_WRITE_DATA"
    TABLE_FULL_METADATA = "TABLE_FULL_METADATA"

    VIEW_CREATE = "VIEW_CREATE"
    VIEW_DROP = "VIEW_DROP"
    VIEW_LIST = "VIEW_LIST"
    VIEW_READ_PROPERTIES = "VIEW_READ_PROPERTIES"
    VIEW_WRITE_PROPERTIES = "VIEW_WRITE_PROPERTIES"
    VIEW_FULL_METADATA = "VIEW_FULL_METADATA"


@dataclass(frozen=True, slots=True)
class PrivilegeRule:
    """What holds for a privilege.

    summary       what it allows, for the docs
    kinds         what it can be granted on
    includes      the privileges that whoever has it has, too: directly, not through others
    """

    summary: str
    kinds: frozenset[SecurableKind]
    includes: tuple[Privilege, ...] = ()


_P, _K = Privilege, SecurableKind
_ON_REALM = frozenset({_K.REALM})
_ON_CATALOGS = _ON_REALM | {_K.CATALOG}
_ON_REFERENCES = _ON_CATALOGS | {_K.REFERENCE}
_ON_NAMESPACES = _ON_CATALOGS | {_K.NAMESPACE}
_ON_TABLES = _ON_NAMESPACES | {_K.TABLE}
_ON_VIEWS = _ON_NAMESPACES | {_K.VIEW}

PRIVILEGES: Mapping[Privilege, PrivilegeRule] = MappingProxyType(
    {
        _P.SERVICE_MANAGE_ACCESS: PrivilegeRule(
            "Manage a realm: its principals, roles, grants, catalogs and tasks. It includes every other privilege.",
            _ON_REALM,
            tuple(privilege for privilege in _P if privilege is not _P.SERVICE_MANAGE_ACCESS),
        ),
        _P.TASK_READ: PrivilegeRule("See the tasks and runs of a realm.", _ON_REALM),
        _P.TASK_MANAGE: PrivilegeRule("Submit, suspend and cancel tasks.", _ON_REALM, (_P.TASK_READ,)),
        _P.CATALOG_CREATE: PrivilegeRule("Create catalogs.", _ON_REALM),
        _P.CATALOG_DROP: PrivilegeRule("Delete a catalog, and take that back.", _ON_CATALOGS),
        _P.CATALOG_LIST: PrivilegeRule("See that a catalog is there.", _ON_CATALOGS),
        _P.CATALOG_READ_PROPERTIES: PrivilegeRule("Read the definition of a catalog.", _ON_CATALOGS, (_P.CATALOG_LIST,)),
        _P.CATALOG_WRITE_PROPERTIES: PrivilegeRule(
            "Change the definition of a catalog.", _ON_CATALOGS, (_P.CATALOG_READ_PROPERTIES,)
        ),
        _P.CATALOG_FULL_METADATA: PrivilegeRule(
            "Create, delete, read and change catalogs.",
            _ON_CATALOGS,
            (_P.CATALOG_CREATE, _P.CATALOG_DROP, _P.CATALOG_WRITE_PROPERTIES),
        ),
        _P.CATALOG_MANAGE_ACCESS: PrivilegeRule(
            "Manage the roles and grants of a catalog. Whoever has it can grant every right in the catalog to itself.",
            _ON_CATALOGS,
            (_P.CATALOG_LIST,),
        ),
        _P.CATALOG_MANAGE_METADATA: PrivilegeRule(
            "Do everything in a catalog, except with the data of tables, with references and with grants.",
            _ON_CATALOGS,
            (_P.CATALOG_WRITE_PROPERTIES, _P.NAMESPACE_FULL_METADATA, _P.TABLE_FULL_METADATA, _P.VIEW_FULL_METADATA),
        ),
        _P.CATALOG_MANAGE_CONTENT: PrivilegeRule(
            "Do everything in a catalog, except with grants.",
            _ON_CATALOGS,
            (_P.CATALOG_MANAGE_METADATA, _P.REFERENCE_FULL_METADATA, _P.TABLE_WRITE_DATA),
        ),
        _P.REFERENCE_LIST: PrivilegeRule("See that a branch or tag is there, and where it points.", _ON_REFERENCES),
        _P.REFERENCE_READ_HISTORY: PrivilegeRule(
            "Read what a branch or tag held earlier, and its log; on every reference (*) also commits by their bare hash.",
            _ON_REFERENCES,
            (_P.REFERENCE_LIST,),
        ),
        _P.REFERENCE_CREATE: PrivilegeRule("Create a branch or tag of that name.", _ON_REFERENCES, (_P.REFERENCE_LIST,)),
        _P.REFERENCE_DROP: PrivilegeRule("Delete a branch or tag.", _ON_REFERENCES, (_P.REFERENCE_LIST,)),
        _P.REFERENCE_ASSIGN: PrivilegeRule(
            "Point a branch or tag at any commit.", _ON_REFERENCES, (_P.REFERENCE_READ_HISTORY,)
        ),
        _P.REFERENCE_FULL_METADATA: PrivilegeRule(
            "Do everything with branches and tags themselves.",
            _ON_REFERENCES,
            (_P.REFERENCE_CREATE, _P.REFERENCE_DROP, _P.REFERENCE_ASSIGN),
        ),
        _P.NAMESPACE_CREATE: PrivilegeRule("Create namespaces below.", _ON_NAMESPACES),
        _P.NAMESPACE_DROP: PrivilegeRule("Drop a namespace.", _ON_NAMESPACES, (_P.NAMESPACE_LIST,)),
        _P.NAMESPACE_LIST: PrivilegeRule("See that a namespace is there.", _ON_NAMESPACES),
        _P.NAMESPACE_READ_PROPERTIES: PrivilegeRule(
            "Read the properties of a namespace.", _ON_NAMESPACES, (_P.NAMESPACE_LIST,)
        ),
        _P.NAMESPACE_WRITE_PROPERTIES: PrivilegeRule(
            "Change the properties of a namespace.", _ON_NAMESPACES, (_P.NAMESPACE_READ_PROPERTIES,)
        ),
        _P.NAMESPACE_FULL_METADATA: PrivilegeRule(
            "Create, drop, read and change namespaces.",
            _ON_NAMESPACES,
            (_P.NAMESPACE_CREATE, _P.NAMESPACE_DROP, _P.NAMESPACE_WRITE_PROPERTIES),
        ),
        _P.TABLE_CREATE: PrivilegeRule("Create and register tables below, or one of that name.", _ON_TABLES),
        _P.TABLE_DROP: PrivilegeRule("Drop a table.", _ON_TABLES, (_P.TABLE_LIST,)),
        _P.TABLE_LIST: PrivilegeRule("See that a table is there.", _ON_TABLES),
        _P.TABLE_READ_PROPERTIES: PrivilegeRule("Load a table's metadata.", _ON_TABLES, (_P.TABLE_LIST,)),
        _P.TABLE_WRITE_PROPERTIES: PrivilegeRule(
            "Commit what changes no data: schema, properties, sort order.", _ON_TABLES, (_P.TABLE_READ_PROPERTIES,)
        ),
        _P.TABLE_READ_DATA: PrivilegeRule("Read a table's files.", _ON_TABLES, (_P.TABLE_READ_PROPERTIES,)),
        _P.TABLE_WRITE_DATA: PrivilegeRule(
            "Commit snapshots, and write a table's files.", _ON_TABLES, (_P.TABLE_READ_DATA, _P.TABLE_WRITE_PROPERTIES)
        ),
        _P.TABLE_FULL_METADATA: PrivilegeRule(
            "Create, drop, load and change tables, except for their data.",
            _ON_TABLES,
            (_P.TABLE_CREATE, _P.TABLE_DROP, _P.TABLE_WRITE_PROPERTIES),
        ),
        _P.VIEW_CREATE: PrivilegeRule("Create and register views below, or one of that name.", _ON_VIEWS),
        _P.VIEW_DROP: PrivilegeRule("Drop a view.", _ON_VIEWS, (_P.VIEW_LIST,)),
        _P.VIEW_LIST: PrivilegeRule("See that a view is there.", _ON_VIEWS),
        _P.VIEW_READ_PROPERTIES: PrivilegeRule(
            "Load a view. It reads its tables as whoever runs it.", _ON_VIEWS, (_P.VIEW_LIST,)
        ),
        _P.VIEW_WRITE_PROPERTIES: PrivilegeRule("Change a view.", _ON_VIEWS, (_P.VIEW_READ_PROPERTIES,)),
        _P.VIEW_FULL_METADATA: PrivilegeRule(
            "Create, drop, load and change views.", _ON_VIEWS, (_P.VIEW_CREATE, _P.VIEW_DROP, _P.VIEW_WRITE_PROPERTIES)
        ),
    }
)
EVERYWHERE = frozenset(
    {_P.SERVICE_MANAGE_ACCESS, _P.CATALOG_MANAGE_ACCESS, _P.CATALOG_MANAGE_METADATA, _P.CATALOG_MANAGE_CONTENT}
    | {privilege for privilege, rule in PRIVILEGES.items() if _K.REFERENCE in rule.kinds}
)
"""Held on every reference where a grant names none; all others are held on the default branch then."""


def included_privileges(privileges: Iterable[Privilege]) -> frozenset[Privilege]:
    """These privileges, and all that they include, directly or not."""
    found: set[Privilege] = set()
    left = list(privileges)
    while left:
        privilege = left.pop()
        if privilege not in found:
            found.add(privilege)
            left.extend(PRIVILEGES[privilege].includes)
    return frozenset(found)


INCLUDED: Mapping[Privilege, frozenset[Privilege]] = MappingProxyType(
    {privilege: included_privileges([privilege]) for privilege in Privilege}
)
"""By privilege: itself, and everything that it includes."""


def parse_privilege(text: str) -> Privilege:
    """A privilege by its name, in any case, also with dashes; raises RefusedError that names near ones."""
    name = text.strip().upper().replace("-", "_")
    try:
        return Privilege(name)
    except ValueError:
        near = [privilege.value for privilege in Privilege if name and name.split("_")[0] == privilege.value.split("_")[0]]
        names = ", ".join(near or sorted(Privilege))
        raise RefusedError(f"{text[:100]!r} is no privilege: name one of {names}") from None


def check_grantable(privilege: Privilege, kind: SecurableKind) -> None:
    """raises RefusedError for a kind of securable on which a privilege means nothing"""
    allowed = PRIVILEGES[privilege].kinds
    if kind not in allowed:
        names = ", ".join(each.value for each in SecurableKind if each in allowed)
        raise RefusedError(f"{privilege} cannot be granted on a {kind}: it is granted on {names}")
