"""Parameters of a query, each by the Go type that a real server parses it as. Parameters that a verb does not know are passed over.

Source: strconv.ParseInt, and Convert_Slice_string_To_bool of k8s.io/apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubeapi.failures import Failure

__all__ = ["check_numbers", "read_flag", "read_number"]

Query = Mapping[str, str]

_LISTING = ("limit", "timeoutSeconds")
_NUMBERS = {
    "list": _LISTING,
    "watch": _LISTING,
    "delete": ("gracePeriodSeconds",),
    "deletecollection": (*_LISTING, "gracePeriodSeconds"),
    "log": ("limitBytes", "sinceSeconds", "tailLines"),
}
"""The int64 parameters of each verb."""


def check_numbers(verb: str, query: Query) -> None:
    """raises Failure (400) for one that is no int64, also where nothing here asks for its value"""
    for name in _NUMBERS.get(verb, ()):
        read_number(query, name)


def read_number(query: Query, name: str) -> int | None:
    """An int64. ``600.0``, ``1e3`` and nothing at all are none."""
    text = query.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise _no_number(text, "invalid syntax")
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise _no_number(text, "value out of range")
    return number


def read_flag(query: Query, name: str) -> bool:
    """A bool, which refuses nothing: only ``false``, ``0`` and its absence are false."""
    text = query.get(name)
    return text is not None and text.lower() not in ("false", "0")


def _no_number(text: str, why: str) -> Failure:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return Failure.bad_request(f'strconv.ParseInt: parsing "{quoted}": {why}')
