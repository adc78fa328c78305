"""The paths of Nessie's API: one API for each catalog, in two versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headwater_server.nessie.reference_segments import fold_reference_segments

NESSIE_MOUNT: Final = "/nessie"
_API: Final = "/{realm}/{catalog}/api"
V1: Final = f"{_API}/v1"
V2: Final = f"{_API}/v2"
TREES: Final = f"{V2}/trees"
TREE: Final = f"{TREES}/{{ref}}"
READ_ERRORS: Final = (404,)
CHANGE_ERRORS: Final = (404, 409)
_TREES_AT: Final = 6
"""Where what stands behind ``trees`` begins in the segments of a path of version 2."""


def fold_path(segments: Sequence[str]) -> Sequence[str]:
    """Join the segments of a reference in a path of version 2; other paths stay as they are."""
    if len(segments) <= _TREES_AT or tuple(segments[3:_TREES_AT]) != ("api", "v2", "trees"):
        return segments
    return (*segments[:_TREES_AT], *fold_reference_segments(segments[_TREES_AT:]))


def nessie_path_advice(segments: Sequence[str]) -> str | None:
    """What to do about a path of no route; None where it has nothing to do with Nessie's API."""
    if segments[:1] != [NESSIE_MOUNT.removeprefix("/")]:
        return None
    return "the URI of a client ends in /nessie/REALM/CATALOG/api/v2, or in /api/v1 for clients of version 1"
