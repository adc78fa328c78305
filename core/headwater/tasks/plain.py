"""What a task may carry: plain data of bounded size, equal after every trip through the store."""

from __future__ import annotations

from typing import Any

import msgspec

from headwater.errors import RefusedError

__all__ = ["ARGUMENT_BYTES", "OUTCOME_BYTES", "require_plain"]

ARGUMENT_BYTES = 16 * 1024
OUTCOME_BYTES = 64 * 1024


def require_plain(data: dict[str, Any], what: str, *, limit_bytes: int) -> dict[str, Any]:
    """The data, if it is made of texts, numbers, booleans, None, lists and dictionaries with texts as keys.

    what          how a message names it, such as "outcome of task 0123456789abcdef"
    limit_bytes   the most that it may measure as JSON
    raises        RefusedError
    """
    _require_plain_value(data, what)
    size = len(msgspec.json.encode(data))
    if size > limit_bytes:
        raise RefusedError(
            f"{what} measures {size} bytes, and {limit_bytes} is the limit: give counts, names and ids, no payloads"
        )
    return data


def _require_plain_value(value: object, where: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise RefusedError(f"{where} has the key {key!r}: keys must be texts")
            _require_plain_value(item, f"{where}: {key}")
    elif isinstance(value, list):
        for item in value:
            _require_plain_value(item, where)
    elif not (value is None or type(value) in (str, int, float, bool)):
        raise RefusedError(
            f"{where} holds a {type(value).__name__}: texts, numbers, booleans, None, lists and dictionaries are allowed"
        )
