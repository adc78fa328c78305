"""What names a warehouse: one reference of a catalog of a realm, as clients are configured with it, and as paths have it.

    warehouse   REALM/CATALOG or REALM/CATALOG@REFERENCE, as a client is configured
    prefix      realm, catalog and reference joined by ``~``, percent-encoded; a client gets it from ``/v1/config``, and puts it into
                every path as it is. None of the three can begin with ``~`` or, but for the reference, hold one

A reference is a branch, or anything else that names a commit, such as a tag or ``main~1``; without one it is the default branch. A
client that spells out a prefix by itself may write U+001F for a slash in a reference, because many proxies let no ``%2F`` through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from headwater.errors import NotFoundError, RefusedError

_PROXIED_SLASH = "\x1f"
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
            raise RefusedError(
                "no warehouse is named, and not exactly one catalog is served here: set the client's warehouse to REALM/CATALOG or"
                " REALM/CATALOG@REFERENCE"
            )
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
        match = _PREFIX.fullmatch(segment.replace(_PROXIED_SLASH, "/")) if len(segment) <= _PREFIX_LIMIT else None
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
