"""An oracle of who may do what: it tries every grant in the plainest way, and knows a lake as dictionaries of keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from uuid import UUID

from headwater.catalogs import CatalogGrant

Path = tuple[str, ...]
DEFAULT, BRANCH = "main", "dev"

_CHAINS = (
    "TABLE_WRITE_DATA > TABLE_READ_DATA > TABLE_READ_PROPERTIES > TABLE_LIST",
    "TABLE_WRITE_DATA > TABLE_WRITE_PROPERTIES > TABLE_READ_PROPERTIES",
    "TABLE_DROP > TABLE_LIST",
    "TABLE_FULL_METADATA > TABLE_CREATE",
    "TABLE_FULL_METADATA > TABLE_DROP",
    "TABLE_FULL_METADATA > TABLE_WRITE_PROPERTIES",
    "VIEW_FULL_METADATA > VIEW_READ_PROPERTIES > VIEW_LIST",
    "VIEW_FULL_METADATA > VIEW_CREATE",
    "NAMESPACE_FULL_METADATA > NAMESPACE_CREATE",
    "NAMESPACE_FULL_METADATA > NAMESPACE_DROP > NAMESPACE_LIST",
    "NAMESPACE_FULL_METADATA > NAMESPACE_READ_PROPERTIES > NAMESPACE_LIST",
    "CATALOG_MANAGE_CONTENT > TABLE_WRITE_DATA",
    "CATALOG_MANAGE_CONTENT > TABLE_FULL_METADATA",
    "CATALOG_MANAGE_CONTENT > VIEW_FULL_METADATA",
    "CATALOG_MANAGE_CONTENT > NAMESPACE_FULL_METADATA",
    "CATALOG_MANAGE_CONTENT > REFERENCE_READ_HISTORY",
)
GRANTED = (
    "TABLE_LIST",
    "TABLE_READ_PROPERTIES",
    "TABLE_READ_DATA",
    "TABLE_WRITE_DATA",
    "TABLE_WRITE_PROPERTIES",
    "TABLE_DROP",
    "TABLE_CREATE",
    "TABLE_FULL_METADATA",
    "VIEW_LIST",
    "VIEW_READ_PROPERTIES",
    "VIEW_FULL_METADATA",
    "NAMESPACE_LIST",
    "NAMESPACE_READ_PROPERTIES",
    "NAMESPACE_CREATE",
    "NAMESPACE_DROP",
    "NAMESPACE_FULL_METADATA",
    "CATALOG_MANAGE_CONTENT",
)
"""The privileges that this oracle knows."""


def is_included(privilege: str, granted: str) -> bool:
    """Whether whoever was granted one privilege has another."""
    if privilege == granted:
        return True
    links = [link for chain in _CHAINS for link in pairwise(chain.split(" > "))]
    return any(is_included(privilege, lower) for higher, lower in links if higher == granted)


@dataclass
class NaiveAccess:
    """The grants of one caller, and what stands where: kind and content id by reference and path."""

    grants: list[CatalogGrant] = field(default_factory=list)
    contents: dict[str, dict[Path, tuple[str, UUID]]] = field(default_factory=lambda: {DEFAULT: {}})

    def holds(self, privilege: str, kind: str, path: Path, reference: str, *, content_id: UUID | None = None) -> bool:
        return any(
            is_included(privilege, grant.privilege)
            and self._is_there(grant, reference)
            and _is_on(grant, kind, path, content_id)
            for grant in self.grants
        )

    def reaches(self, reference: str) -> bool:
        return reference in self.contents and any(self._is_there(grant, reference) for grant in self.grants)

    def is_shown(self, path: Path, reference: str) -> bool:
        """Whether a namespace is listed: by a right on it, or because of what may be seen at or below it."""
        if any(self.holds(f"{kind}_LIST", "namespace", path, reference) for kind in ("NAMESPACE", "TABLE", "VIEW")):
            return True
        seen = [grant.path for grant in self.grants if grant.path and self._is_there(grant, reference)]
        by_id = {grant.content_id for grant in self.grants}
        for key, (kind, content_id) in self.contents[reference].items():
            if content_id in by_id and self.holds(f"{kind.upper()}_LIST", kind, key, reference, content_id=content_id):
                seen.append(key)
        return any(each[: len(path)] == path for each in seen)

    def find(self, kind: str, path: Path, reference: str) -> UUID | None:
        """The content id of something of a kind."""
        held = self.contents[reference].get(path)
        return held[1] if held is not None and held[0] == kind else None

    def listed(self, kind: str, parent: Path, reference: str) -> list[str]:
        """The names directly below a namespace that a listing shows."""
        names = []
        for path, (of, content_id) in self.contents[reference].items():
            if of != kind or path[:-1] != parent:
                continue
            if kind == "namespace":
                is_seen = self.is_shown(path, reference)
            else:
                is_seen = self.holds(f"{kind.upper()}_LIST", kind, path, reference, content_id=content_id)
            names += [path[-1]] if is_seen else []
        return sorted(names)

    def refusal(self, privilege: str, kind: str, path: Path, reference: str) -> int | None:
        """The status by which a right on what stands at a path, or might, is refused; None: it is held."""
        held = self.contents[reference].get(path)
        content_id = None if held is None else held[1]
        if self.holds(privilege, kind, path, reference, content_id=content_id):
            return None
        if kind == "namespace":
            is_seen = self.is_shown(path, reference)
            if is_seen and privilege == "NAMESPACE_LIST":
                return None
        else:
            is_seen = self.holds(f"{kind.upper()}_LIST", kind, path, reference, content_id=content_id)
        return 403 if is_seen and held is not None else 404

    def refusal_to_create(self, kind: str, path: Path, reference: str) -> int | None:
        if self.holds(f"{kind.upper()}_CREATE", kind, path, reference):
            return None
        return 403 if len(path) == 1 or self.is_shown(path[:-1], reference) else 404

    def _is_there(self, grant: CatalogGrant, reference: str) -> bool:
        pattern = grant.references or ("*" if grant.privilege == "CATALOG_MANAGE_CONTENT" else DEFAULT)
        return fnmatchcase(reference, pattern)


def _is_on(grant: CatalogGrant, kind: str, path: Path, content_id: UUID | None) -> bool:
    if grant.on == "catalog":
        return True
    if grant.content_id is not None:
        return grant.content_id == content_id
    if grant.on == "namespace":
        return path[: len(grant.path)] == grant.path and (kind == "namespace" or path != grant.path)
    return (grant.on, grant.path) == (kind, path)
