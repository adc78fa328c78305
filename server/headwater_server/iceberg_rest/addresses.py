"""What clients of Iceberg REST name: a warehouse, the prefix that stands for it in paths, namespaces and the keys below them.

    warehouse   REALM/CATALOG or REALM/CATALOG@REFERENCE, as a client is configured
    prefix      realm, catalog and reference joined by ``~``, percent-encoded; a client gets it from ``/v1/config``, and puts it into
                every path as it is. None of the three can begin with ``~`` or, but for the reference, hold one
    namespace   its levels joined by U+001F, in a segment of a path as well as in a query

A reference is a branch, or anything else that names a commit, such as a tag or ``main~1``; without one it is the default branch. A
client that spells out a prefix by itself may write U+001F for a slash in a reference, because many proxies let no ``%2F`` through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from headwater.catalogs import ContentKey
from headwater.errors import NotFoundError, RefusedError

LEVEL_SEPARATOR = "\x1f"
"""Between the levels of a namespace."""
_PREFIX_SEPARATOR = "~"
_DEFAULT_BRANCH = "-"
_PREFIX_LIMIT = 2000
"""More than realm, catalog and reference may have together: a prefix is remembered before anybody has proved who calls."""
_WAREHOUSE = re.compile(r"(?P<realm>[^/@]+)/(?P<catalog>[^/@]+)(?:@(?P<reference>.+))?", re.DOTALL)
_PREFIX = re.compile(r"(?P<realm>[^/~]+)~(?P<catalog>[^/~]+)(?:~(?P<reference>.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WarehouseAddress:
    """One reference of a catalog of a realm. ``reference`` None: the default branch, whichever it is when a request comes."""

    realm: str
    catalog: str
    reference: str | None = None

    @classmethod
    def from_warehouse(cls, text: str) -> WarehouseAddress:
        """Parse a client's property ``warehouse``.

        raises        RefusedError where there is none; NotFoundError for a text that no warehouse has
        """
        if not text:
            raise RefusedError("no warehouse is named: set the client's warehouse to REALM/CATALOG or REALM/CATALOG@REFERENCE")
        match = _WAREHOUSE.fullmatch(text)
        if match is None:
            raise NotFoundError(
                f"there is no warehouse {text!r}: set the client's warehouse to REALM/CATALOG or REALM/CATALOG@REFERENCE"
            )
        return cls._from_match(match)

    @classmethod
    @lru_cache(maxsize=1000)
    def from_prefix(cls, segment: str) -> WarehouseAddress:
        """Parse the prefix of a path, which was decoded once; raises NotFoundError for a text that is no prefix."""
        match = _PREFIX.fullmatch(segment.replace(LEVEL_SEPARATOR, "/")) if len(segment) <= _PREFIX_LIMIT else None
        if match is None:
            raise NotFoundError(
                f"the path's prefix {segment[:200]!r} names no warehouse: let the client take it from /v1/config, by the property"
                " warehouse alone, or write REALM~CATALOG or REALM~CATALOG~REFERENCE"
            )
        return cls._from_match(match)

    @classmethod
    def _from_match(cls, match: re.Match[str]) -> WarehouseAddress:
        reference = match["reference"]
        return cls(match["realm"], match["catalog"], None if reference == _DEFAULT_BRANCH else reference)

    @property
    def prefix(self) -> str:
        """The prefix, encoded: clients put it into paths unchanged."""
        parts = (self.realm, self.catalog) if self.reference is None else (self.realm, self.catalog, self.reference)
        return _PREFIX_SEPARATOR.join(quote(part, safe="~") for part in parts)

    def __str__(self) -> str:
        return f"{self.realm}/{self.catalog}" + ("" if self.reference is None else f"@{self.reference}")


def parse_namespace(segment: str) -> ContentKey:
    """The key of a namespace, from a segment of a path that was decoded once.

    raises        RefusedError for what no namespace can be called
    """
    return ContentKey(tuple(segment.split(LEVEL_SEPARATOR)))


def parse_parent(parent: str | None) -> ContentKey | None:
    """The namespace that a listing goes below, from a query that was decoded once; None for the top, also for an empty text."""
    return parse_namespace(parent) if parent else None


@lru_cache(maxsize=4096)
def key_below(namespace: str, name: str) -> ContentKey:
    """The key of a table or view, from segments of a path that were decoded once.

    raises        RefusedError for what no table or view can be called
    """
    return parse_namespace(namespace).child(name)
