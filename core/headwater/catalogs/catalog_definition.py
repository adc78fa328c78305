"""The definition of a catalog: an immutable value, which every change replaces as a whole."""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Literal, TypedDict
from uuid import UUID

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.iceberg import comparable_location
from headwater.store import StoredObject, StoredPart, object_type

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


class CatalogState(StrEnum):
    ACTIVE = "ACTIVE"
    DELETED = "DELETED"


class CatalogManager(StoredPart, frozen=True, kw_only=True):
    """The Kubernetes resource that manages a catalog."""

    known_by = ("cluster", "namespace", "name", "uid")

    cluster: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    def is_same(self, other: CatalogManager) -> bool:
        """True for the same resource, even if it was recreated with another uid."""
        return (self.cluster, self.namespace, self.name) == (other.cluster, other.namespace, other.name)


class ImportSpec(StoredPart, frozen=True, kw_only=True):
    """One import of existing tables.

    locations     prefixes to search
    mode          ``once`` per content of this specification, or ``sync`` with every run
    schedule      a cron expression, for ``sync``
    include       patterns of table keys; none means all
    exclude       patterns of table keys that are left out even if ``include`` names them
    path          how a path below a location gives a key, as in ``{namespace}.db/{table}``; None: every folder is an element
    namespace     elements put in front of every key
    inventory     URL of a list of files, read instead of listing the locations
    verify        how deep a table is checked before it is imported
    tolerate      codes of faults with which a table is imported nevertheless
    gone          whether a ``sync`` reports tables whose metadata is gone, or drops them
    """

    known_by = ("name",)

    name: str
    locations: tuple[str, ...] = ()
    mode: Literal["once", "sync"] = "once"
    schedule: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    path: str | None = None
    namespace: tuple[str, ...] = ()
    inventory: str | None = None
    verify: Literal["metadata", "manifests", "files"] = "metadata"
    tolerate: tuple[str, ...] = ()
    gone: Literal["report", "drop"] = "report"

    def digest(self) -> str:
        """Digest all fields that are not default, as 32 hex digits: equal for equal specifications of every release."""
        default = ImportSpec(name=self.name)
        given = {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) != getattr(default, name)}
        plain = json.dumps({"name": self.name, **given}, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(plain.encode(), digest_size=16).hexdigest()


class LakeSchedule(StoredPart, frozen=True, kw_only=True):
    """When a catalog's lake is worked on: a cron expression in the time zone of the realm. Empty: at a time spread by catalog."""

    schedule: str = ""
    suspend: bool = False


class CatalogMaintenance(StoredPart, frozen=True, kw_only=True):
    """The scheduled work on a catalog's lake. None: what is not said.

    expire_snapshots  not said: once a day, as long as the catalog has a policy of snapshots or metadata files
    report_files      not said: never
    """

    expire_snapshots: LakeSchedule | None = None
    report_files: LakeSchedule | None = None


class CatalogFiles(StoredPart, frozen=True, kw_only=True):
    """What a catalog says of its lake's files.

    places        locations, besides those of its home tables, whose files are all its tables'
    """

    places: tuple[str, ...] = ()

    def check_inside(self, base_location: str, allowed_locations: tuple[str, ...]) -> None:
        """Check that the places lie below the base location, or in an allowed one; raises RefusedError."""
        for place in self.places:
            if not any(_lies_in(place, base, may_equal=base != base_location) for base in (base_location, *allowed_locations)):
                raise RefusedError(
                    f"{place!r} is no place for files: name a location below the base location {base_location!r}, or in one of the"
                    " allowed locations"
                )


def _lies_in(place: str, base: str, *, may_equal: bool) -> bool:
    inner, outer = comparable_location(place), comparable_location(base)
    return inner.startswith(f"{outer}/") or (may_equal and inner == outer)


class _OptionalFields(TypedDict, total=False):
    allowed_locations: tuple[str, ...]
    default_branch: str
    properties: dict[str, str]
    imports: tuple[ImportSpec, ...]
    imported: dict[str, str]
    manager: CatalogManager | None
    former: CatalogManager | None
    deletion_policy: Literal["Retain", "Purge"]
    deletion_protection: bool
    hold_seconds: float | None
    acted: dict[str, str]
    files: CatalogFiles
    maintenance: CatalogMaintenance


class CatalogFields(_OptionalFields):
    """The fields of a catalog that a caller chooses when it is created."""

    base_location: str


class CatalogChanges(_OptionalFields, total=False):
    """The fields of a catalog that a caller may change."""

    base_location: str


@object_type("catalog")
class CatalogDefinition(StoredObject, frozen=True, kw_only=True):
    """One catalog of a realm.

    id            16 hex digits, never used again; a catalog created later under the same name has another id
    imported      names of completed imports, each with the digest of the specification that was followed
    hold_seconds  how long it can be restored after its deletion; None: as the settings say
    held_until    of a deleted catalog: nothing of it is removed before; None: it is being purged and cannot be restored
    former        of a catalog without a manager: the resource that released it and may adopt it again; None: any resource may
    unfinished    its creation did not complete: its own references, or its default branch, may be missing
    acted         what its manager has to remember: annotations that act once, with the value last acted on, and the access that it made
    """

    id: str
    name: str
    state: CatalogState = CatalogState.ACTIVE
    base_location: str = ""
    allowed_locations: tuple[str, ...] = ()
    default_branch: str = "main"
    properties: dict[str, str] = {}
    imports: tuple[ImportSpec, ...] = ()
    imported: dict[str, str] = {}
    created: Micros = Micros(0)
    updated: Micros = Micros(0)
    manager: CatalogManager | None = None
    deletion_policy: Literal["Retain", "Purge"] = "Retain"
    deletion_protection: bool = False
    hold_seconds: float | None = None
    held_until: Micros | None = None
    former: CatalogManager | None = None
    unfinished: bool = False
    acted: dict[str, str] = {}
    files: CatalogFiles = CatalogFiles()
    maintenance: CatalogMaintenance = CatalogMaintenance()

    @property
    def places(self) -> tuple[str, ...]:
        """The locations where its tables may have files: the base location, the allowed ones, and those of its imports."""
        imported = (location for spec in self.imports for location in spec.locations)
        return tuple(location for location in (self.base_location, *self.allowed_locations, *imported) if location)

    @property
    def is_held(self) -> bool:
        """True if it was deleted and can be restored."""
        return self.state is CatalogState.DELETED and self.held_until is not None


@object_type("catalog-role")
class CatalogRole(StoredObject, frozen=True, kw_only=True):
    """A role within one catalog."""

    name: str
    created: Micros = Micros(0)
    properties: dict[str, str] = {}


@object_type("catalog-grants")
class CatalogGrants(StoredObject, frozen=True, kw_only=True):
    """The privileges on a whole catalog that one of its roles was given when the catalog was created."""

    role: str
    privileges: tuple[str, ...] = ()


class CatalogGrant(StoredPart, frozen=True, kw_only=True):
    """What a role of a catalog may do, and on what.

    on            ``catalog``, ``namespace``, ``table``, ``view`` or ``reference``
    path          the key of a namespace, table or view; empty for one that is known by its content id
    content_id    of a table or view, whatever its key is
    references    patterns with ``*``: of ``reference`` the names that are meant; otherwise those on which it holds, empty for the
                  default branch
    """

    privilege: str
    on: str = "catalog"
    path: tuple[str, ...] = ()
    content_id: UUID | None = None
    references: str = ""
    created: Micros = Micros(0)


def checked_catalog_name(name: str) -> str:
    """Check the name of a catalog and return it.

    raises        RefusedError that says which names are valid
    """
    if not _NAME.fullmatch(name):
        raise RefusedError(
            f"{name!r} is not a catalog name: use 1 to 128 of the characters A-Z a-z 0-9 _ . -, with a letter, a digit or _ first"
        )
    return name
