"""How folders become keys in an import: what a manifest may say about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.catalogs import ContentKey
from headwater.errors import RefusedError

__all__ = ["checked_namespace", "checked_path"]

_PATH = re.compile(r"[^{}\x00-\x1f\x7f]*(\{[a-z][a-z0-9_]*\}[^{}\x00-\x1f\x7f]*)*")
_EXAMPLE = "write for example {namespace}.db/{table}"


def checked_path(text: str) -> str:
    """The pattern as it is.

    raises        RefusedError that says what is wrong with it
    """
    if not _PATH.fullmatch(text):
        raise RefusedError(
            f'"{text}" must have words of lower-case letters in its braces, and no control characters; {_EXAMPLE}'
        )
    if text.count("{table}") != 1:
        raise RefusedError(f'"{text}" must have {{table}} once; {_EXAMPLE}')
    if {"", ".", ".."} & set(text.split("/")):
        raise RefusedError(
            f'"{text}" must be folders below a location: no / at its ends, no //, no segments "." and ".." in it; {_EXAMPLE}'
        )
    return text


def checked_namespace(elements: Sequence[str]) -> tuple[str, ...]:
    """The elements that are put in front of keys, as they are.

    raises        RefusedError where no table could have a key below them
    """
    if "." in elements:
        raise RefusedError('an element of a namespace must not be "."')
    ContentKey((*elements, "t"))
    return tuple(elements)
