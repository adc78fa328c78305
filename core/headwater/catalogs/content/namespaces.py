"""Whether every key of the state that would result has its namespaces: judged from views, for commits and merges alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Conflict, ConflictKind
from headwater.catalogs.content.types import ContentType, ContentValue, type_text

__all__ = ["View", "holes", "unseated"]

View = Mapping[ContentKey, ContentValue]
"""What is there of the keys that were asked for."""


def holes(head: View, puts: Mapping[ContentKey, ContentType | int], removals: Collection[ContentKey]) -> Iterator[Conflict]:
    """Where the state that would result lacks a namespace above a key.

    head          of the touched keys and their ancestors, and below each of ``unseated`` one key that is not removed, what is there
    puts          the type that each written key is to have
    removals      the keys that go, and are not written
    """
    for key in puts:
        if key not in head:
            yield from _missing_ancestors(key, head, puts, removals)
    going = sorted(key for key in unseated(puts, removals) if key in head and head[key].type == ContentType.NAMESPACE)
    occupied = _child_by_ancestor([*(key for key in head if key not in removals), *puts]) if going else {}
    for key in going:
        if key in occupied:
            verb = f"become {type_text(puts[key])}" if key in puts else "be deleted"
            yield Conflict(ConflictKind.NAMESPACE_NOT_EMPTY, key, f"would {verb} above {occupied[key]}")


def unseated(puts: Mapping[ContentKey, ContentType | int], removals: Collection[ContentKey]) -> set[ContentKey]:
    """The keys that are no namespaces afterwards, whatever they were: nothing may stand below them."""
    return {*removals, *(key for key, kind in puts.items() if kind != ContentType.NAMESPACE)}


def _missing_ancestors(
    key: ContentKey, head: View, puts: Mapping[ContentKey, ContentType | int], removals: Collection[ContentKey]
) -> Iterator[Conflict]:
    for ancestor in key.ancestors():
        now = head.get(ancestor)
        kind = puts.get(ancestor, None if now is None or ancestor in removals else now.type)
        if kind != ContentType.NAMESPACE and now is not None and now.type == ContentType.NAMESPACE:
            continue  # reported once, as a namespace that goes above a key
        if kind is None:
            yield Conflict(ConflictKind.NAMESPACE_ABSENT, ancestor, f"would be needed as the namespace of {key}")
        elif kind != ContentType.NAMESPACE:
            yield Conflict(
                ConflictKind.NOT_A_NAMESPACE, ancestor, f"is {type_text(kind)}, and cannot be the namespace of {key}"
            )


def _child_by_ancestor(keys: Iterable[ContentKey]) -> dict[ContentKey, ContentKey]:
    return {ancestor: key for key in keys for ancestor in key.ancestors()}
