"""Paths that are almost one of Iceberg REST: mostly the URI of a client has too little in it, or too much."""

from __future__ import annotations

from collections.abc import Sequence

from headwater_server.route_table import RouteTable

_VERSION = "v1"
_ANY_PREFIX = "-"
_URI_ADVICE = "the URI of a client ends in /iceberg, with nothing behind it"
_PREFIX_ADVICE = (
    "behind /v1 stands the prefix of a warehouse, such as REALM~CATALOG, which clients take from /v1/config by their property"
    " warehouse"
)


def path_advice(table: RouteTable, segments: Sequence[str]) -> str | None:
    """What to do about a path that no route has; None where it resembles none.

    segments      of the path, each decoded once
    """
    if not segments:  # of ``OPTIONS *``
        return None
    mount = table.mount.removeprefix("/")
    rest = [segment for segment in segments if segment]
    while rest and rest[0] in (mount, _VERSION):  # a URI with the version in it is taken twice
        rest = rest[1:]
    if not rest or table.find([mount, _VERSION, *rest]):
        return _URI_ADVICE
    for count in (0, 2):  # no prefix, or REALM/CATALOG
        if table.find([mount, _VERSION, _ANY_PREFIX, *rest[count:]]):
            return _PREFIX_ADVICE
    return None
