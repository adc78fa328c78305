"""How folders become keys in an import: what a manifest may say about it."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.catalogs import ContentKey
from headwater.catalogs.iceberg.mapping import pattern_of
from headwater.errors import RefusedError

__all__ = ["checked_namespace", "checked_path"]


def checked_path(text: str) -> str:
    """The pattern as it is.

    raises        RefusedError that says what is wrong with it
    """
    return pattern_of(text).text


def checked_namespace(elements: Sequence[str]) -> tuple[str, ...]:
    """The elements that are put in front of keys, as they are.

    raises        RefusedError where no table could have a key below them
    """
    if "." in elements:
        raise RefusedError('an element of a namespace must not be "."')
    ContentKey((*elements, "t"))
    return tuple(elements)
