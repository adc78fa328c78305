"""The path and the query of a request as its client meant them: each segment and each value is decoded once, and no more."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import unquote_to_bytes

from headwater.errors import RefusedError

_ORIGIN = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.\-]*://[^/]*")
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
QUERY_PARAMETERS_LIMIT = 100
_FORM_ENCODING_CLIENT = "Apache Iceberg "


def is_form_encoding(headers: Mapping[str, str]) -> bool:
    """True for Iceberg's Java client, by the version that it sends: in paths, too, it writes a space as ``+``, and a plus sign as ``%2B``.

    Clients in other languages write a plus sign as it is. Source: apache/iceberg issue 17759; releases after 1.11 write ``%20``.
    """
    return headers.get("x-client-version", "").startswith(_FORM_ENCODING_CLIENT)


def path_segments(raw_path: bytes, *, is_form_encoded: bool = False) -> list[str]:
    """The segments of a path that came as ``/a%2Fb/c`` or, from clients that take the server for a proxy, as ``http://host/a%2Fb/c``.

    ``..`` is a segment like any other: a table may have that name, and no file is ever looked up by a path.

    is_form_encoded   a plus sign is a space; otherwise it is itself
    raises        RefusedError for a percent sign without two hexadecimal digits, and for bytes that are not UTF-8
    """
    if is_form_encoded:
        raw_path = raw_path.replace(b"+", b" ")
    if not raw_path.startswith(b"/") and (origin := _ORIGIN.match(raw_path)):
        raw_path = raw_path[origin.end() :] or b"/"
    return [_decoded(segment, "the path") for segment in raw_path.split(b"/")[1:]]


def query_parameters(raw_query: bytes, names: Collection[str], *, repeated: Collection[str] = ()) -> dict[str, str | list[str]]:
    """The parameters of a query that have one of the names; an empty value stays empty, a name without ``=`` has an empty value.

    repeated      those of the names that may stand there several times: their values are lists
    raises        RefusedError for what cannot be decoded, for another name that stands there twice, and for too many parameters
    """
    parameters: dict[str, str | list[str]] = {}
    parts = [part for part in raw_query.split(b"&") if part]
    if len(parts) > QUERY_PARAMETERS_LIMIT:
        raise RefusedError(f"the query has {len(parts)} parameters; at most {QUERY_PARAMETERS_LIMIT} are read")
    for part in parts:
        raw_name, _, raw_value = part.replace(b"+", b" ").partition(b"=")
        name, value = _decoded(raw_name, "the query"), _decoded(raw_value, "the query")
        if name in repeated:
            values = parameters.setdefault(name, [])
            assert isinstance(values, list), "only what may be repeated is a list"
            values.append(value)
            continue
        if name in parameters:
            raise RefusedError(f"the query has {name!r} twice; give it once")
        if name in names:
            parameters[name] = value
    return parameters


def _decoded(raw: bytes, where: str) -> str:
    if broken := _BROKEN_ESCAPE.search(raw):
        shown = raw[broken.start() : broken.start() + 3].decode("ascii", "replace")
        raise RefusedError(
            f"{where} has {shown!r}, where a percent sign needs two hexadecimal digits; write %25 for the sign itself"
        )
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError as fault:
        raise RefusedError(f"{where} has bytes that are not UTF-8") from fault
