"""What Headwater's programs, helm and kubectl exchanged with a real API server: the recorded lines, and the stories that they tell."""

from __future__ import annotations

import base64
import functools
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["DATA", "FILES", "Line", "read_lines"]

DATA = Path(__file__).parents[1] / "kubeapi_conformance" / "data"
FILES = ("edges", "helm", "kubectl-resources", "operator", "plugin")


@dataclass(frozen=True)
class Line:
    """One request and its answer. ``number`` is its place in the order of its story.

    body      of the request: a JSON value, or bytes where that is what was sent
    """

    file: str
    number: int
    step: str
    client: str
    request: dict[str, Any]
    response: dict[str, Any]
    body: Any

    @property
    def id(self) -> str:
        return f"{self.file}:{self.number}"

    @property
    def is_watch(self) -> bool:
        return "events" in self.response

    @property
    def resource_path(self) -> str:
        """The path without its query."""
        return str(self.request["path"]).partition("?")[0]

    @property
    def resource(self) -> str:
        """The plural of what is asked for; ``api``, ``apis``, ``openapi`` or ``version`` where that is no resource."""
        parts = self.resource_path.strip("/").split("/")
        rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
        is_inside = len(rest) > 2 and rest[0] == "namespaces"
        return (rest[2] if is_inside else rest[0]) if rest else parts[0]


@functools.cache
def read_lines(file: str) -> tuple[Line, ...]:
    with lzma.open(DATA / f"{file}.jsonl.xz", "rt", encoding="utf-8") as text:
        return tuple(_lines(file, text))


def _lines(file: str, text: Any) -> Iterator[Line]:
    bodies: dict[int, Any] = {}
    for row in map(json.loads, text):
        bodies[row["n"]] = _body(row["request"].get("body"), bodies)
        yield Line(file, row["n"], row["step"], row["client"], row["request"], row["response"], bodies[row["n"]])


def _body(recorded: Any, bodies: dict[int, Any]) -> Any:
    if isinstance(recorded, dict) and "$as-in" in recorded:
        return bodies[recorded["$as-in"]]
    if isinstance(recorded, dict) and "protobuf" in recorded:
        return base64.b64decode(recorded["protobuf"])
    return recorded.encode() if isinstance(recorded, str) else recorded
