"""The shape of a request: everything of it but its values. Two requests of one shape are taken alike by a server, or refused alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["shape_of"]

_BOOLS = ("true", "false")


def shape_of(
    method: str, path: str, query: Iterable[tuple[str, str]], *, accept: str, media: str = "", body: Any = None
) -> str:
    """One line: method, path with placeholders, types of the parameters, what is accepted, what is sent, and its top-level keys.

    body      a JSON value; of a JSON patch each operation counts with its path
    """
    parameters = "&".join(sorted(f"{name}={_type_of(value)}" for name, value in query))
    sent = f"{media} {{{', '.join(_keys(body))}}}" if body is not None else "nothing"
    return f"{method} {_template(path)}{'?' if parameters else ''}{parameters} accepts {accept or 'nothing'} sends {sent}"


def _template(path: str) -> str:
    parts = path.strip("/").split("/")
    start = {"api": 2, "apis": 3}.get(parts[0], len(parts))
    rest = parts[start:]
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = ["namespaces", "{namespace}", rest[2], *(["{name}"] if len(rest) > 3 else []), *rest[4:]]
    elif len(rest) > 1:
        rest = [rest[0], "{name}", *rest[2:]]
    return "/" + "/".join([*parts[:start], *rest])


def _type_of(value: str) -> str:
    if re.fullmatch(r"[+-]?\d+", value):
        return "integer"
    if re.fullmatch(r"[+-]?\d*\.\d*", value):
        return "decimal"
    return "bool" if value in _BOOLS else "text" if value else "empty"


def _keys(body: Any) -> list[str]:
    if isinstance(body, dict):
        return sorted(body)
    if isinstance(body, list):
        return [re.sub(r"/\d+(?=/|$)", "/N", f"{one.get('op')} {one.get('path')}") for one in body if isinstance(one, dict)]
    return [type(body).__name__]
