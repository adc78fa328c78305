"""Where a reference ends in a path of Nessie's version 2: names of branches and tags may hold slashes.

A path says where the name ends in one of two ways: the slashes are encoded, so that the name is one segment, or an ``@`` ends it.
``trees/test/dev@/entries`` are the entries of ``test/dev``, as are ``trees/test%2Fdev/entries``. Keys may hold an ``@``, too, and
branches may be called by the words of the API. So the rule is, for what stands behind ``trees``:

1. The first segment is the reference, where something that the API knows stands behind it: nothing, ``entries``, ``history``,
   ``history/commit``, ``history/merge``, ``history/transplant``, ``recent-changes``, ``contents``, ``contents/`` and one segment, or
   ``diff/`` and one reference.
2. Otherwise the reference reaches up to and including the first segment with an ``@``.
3. Otherwise the first segment is the reference, and what stands behind it is nothing that the API knows.

So ``trees/main/contents/a@b`` is the key ``a@b`` on ``main``. Only a branch whose name ends in such a word and one segment needs its
slashes encoded: ``trees/x/contents/y@`` is not the branch ``x/contents/y``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BARE: Final = frozenset(
    {
        (),
        ("contents",),
        ("entries",),
        ("history",),
        ("history", "commit"),
        ("history", "merge"),
        ("history", "transplant"),
        ("recent-changes",),
    }
)


def fold_reference_segments(segments: Sequence[str]) -> tuple[str, ...]:
    """Join the segments of one reference, in what stands behind ``trees``; the segments are decoded, and at least one.

    returns       the reference, and what stands behind it; both references of a comparison are one segment each
    """
    rest = _known_rest(segments[1:])
    if rest is not None:
        return (segments[0], *rest)
    length = _reference_length(segments)
    rest = _known_rest(segments[length:])
    return ("/".join(segments[:length]), *(segments[length:] if rest is None else rest))


def _known_rest(rest: Sequence[str]) -> tuple[str, ...] | None:
    """What stands behind a reference, with the other reference of a comparison folded; None: the API knows no such thing."""
    if tuple(rest) in _BARE or (len(rest) == 2 and rest[0] == "contents"):
        return tuple(rest)
    if len(rest) >= 2 and rest[0] == "diff" and _reference_length(rest[1:]) == len(rest) - 1:
        return "diff", "/".join(rest[1:])
    return None


def _reference_length(segments: Sequence[str]) -> int:
    """How many segments the reference takes at the beginning: up to the first with an ``@``, or one."""
    return next((number for number, segment in enumerate(segments, start=1) if "@" in segment), 1)
