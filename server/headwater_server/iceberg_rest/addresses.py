"""What clients of Iceberg REST name in paths: namespaces, and the keys below them.

namespace   its levels joined by U+001F, in a segment of a path as well as in a query
"""

from __future__ import annotations

from functools import lru_cache

from headwater.catalogs import ContentKey

LEVEL_SEPARATOR = "\x1f"
"""Between the levels of a namespace."""


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
