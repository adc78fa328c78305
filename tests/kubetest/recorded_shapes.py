"""Whether what Headwater's programs ask of the API server of the tests is something that a real one was seen to take."""

from __future__ import annotations

import functools
import json
import re
import urllib.request

from kubeapi.shapes import shape_of
from kubetest.recordings import Line, read_lines

__all__ = ["NOT_RECORDED", "assert_recorded", "recorded_shapes", "unrecorded_shapes"]

METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
PROGRAMS = ("headwater-operator", "kopf")
"""As what Headwater's programs name themselves; what a test asks itself comes from others."""

METADATA_ONLY = "https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches"
MERGE_PATCHES = "https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-update"
NOT_RECORDED: dict[str, str] = {
    f"GET /apis/headwater.dev/v1alpha1/realms?{query} accepts {METADATA_LIST} sends nothing": f"every resource can: {METADATA_ONLY}"
    for query in ("limit=integer", "continue=text&limit=integer")
} | {
    "PATCH /api/v1/namespaces/{namespace}/pods/{name}?fieldManager=text accepts application/json"
    " sends application/merge-patch+json {metadata}": f"the recorded patches of Events and of our kinds are of this type: {MERGE_PATCHES}"
}
"""Shapes that no real server was asked in, each with why one would take it. Whoever records again empties this."""

_NEVER_TAKEN = (400, 405, 406, 415)


@functools.cache
def recorded_shapes() -> frozenset[str]:
    """Those of operator, self-check and plugin that a real server did not refuse for what they are."""
    lines = [line for file in ("operator", "plugin") for line in read_lines(file)]
    return frozenset(
        general(_shape(line))
        for line in lines
        if line.request["user-agent"].startswith(PROGRAMS) and line.response["status"] not in _NEVER_TAKEN
    )


def unrecorded_shapes(control: str) -> dict[str, str]:
    """What the server behind this URL was asked by Headwater's programs in a shape that no recording has: shape, and an example."""
    with urllib.request.urlopen(f"{control}/_control/shapes", timeout=30) as answer:
        asked: list[dict[str, str]] = json.load(answer)["shapes"]
    known = recorded_shapes() | set(map(general, NOT_RECORDED))
    ours = [one for one in asked if one["user_agent"].startswith(PROGRAMS)]
    return {one["shape"]: one["path"] for one in ours if general(one["shape"]) not in known}


def assert_recorded(control: str | None) -> None:
    """``control`` is None for a real server, which says by itself what it does not take."""
    unknown = unrecorded_shapes(control) if control is not None else {}
    told = "\n".join(f"  {shape}\n    such as {path}" for shape, path in unknown.items())
    assert not unknown, (
        f"no recording has these shapes of requests, so nobody knows whether a real server takes them:\n{told}\n"
        "ask in a way that was recorded, or write into NOT_RECORDED why a real server takes this one"
    )


def general(shape: str) -> str:
    """The shape without what makes no difference to a server: which of our kinds is meant, for all of which it runs the same code,
    and of collections whether one namespace is asked for or all, with a selector or without.
    """
    shape = re.sub(r"^(\S+ \S+)/(realms|catalogs)(?=[/? ])", r"\1/{ours}", shape)
    anywhere = re.sub(r"^(GET \S+)/namespaces/\{namespace\}(/[a-z]+|/\{ours\})(?=[? ])", r"\1\2", shape)
    return re.sub(r"\?(?= )", "", re.sub(r"(label|field)Selector=text&?|&(label|field)Selector=text", "", anywhere))


def _shape(line: Line) -> str:
    query = [(name, value) for name, value in line.request.get("query", ())]
    media = line.request.get("content-type", "")
    path = line.resource_path
    return shape_of(line.request["method"], path, query, accept=line.request["accept"], media=media, body=line.body)
