"""The simple JSON paths of printer columns: ``.status.conditions[?(@.type=="Ready")].status``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["compile_path"]

Step = Callable[[Any], list[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\]|\\.)+)
      | \[\?\(\s*@\.(?P<field>[\w.\-/\\]+)\s*==\s*(?P<value>"[^"]*"|'[^']*'|[\w.\-]+)\s*\)\]
      | \[(?P<index>-?\d+|\*)\]
      | \['(?P<quoted>[^']+)'\]""",
    re.VERBOSE,
)


def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """A function that gives all values at the path. Raises ValueError for a path beyond this."""
    steps: list[Step] = []
    rest = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    at = 0
    while at < len(rest):
        token = _TOKEN.match(rest, at)
        if token is None:
            raise ValueError(f"this JSON path is not understood: {text}")
        steps.append(_step(token))
        at = token.end()

    def find(body: Any) -> list[Any]:
        values = [body]
        for step in steps:
            values = [found for value in values for found in step(value)]
        return [value for value in values if value is not None]

    return find


def _step(token: re.Match[str]) -> Step:
    if token["field"]:
        names, text = token["field"].split("."), token["value"]
        wanted = text[1:-1] if text[0] in "\"'" else json.loads(text)
        return lambda value: [item for item in _items(value) if _inside(item, names) == wanted]
    if token["index"] == "*":
        return _items
    if token["index"]:
        number = int(token["index"])
        return lambda value: value[number : number + 1 or None] if isinstance(value, list) else []
    name = token["quoted"] or re.sub(r"\\(.)", r"\1", token["name"])
    return lambda value: [value[name]] if isinstance(value, Mapping) and name in value else []


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, list) else []


def _inside(item: Any, names: list[str]) -> Any:
    for name in names:
        item = item.get(name) if isinstance(item, Mapping) else None
    return item
