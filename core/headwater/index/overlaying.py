"""Sorted changes laid over a stream of sorted entries, chunk by chunk.

A chunk is a list in key order, never an empty one. Its items are entries, or keys alone for who wants no values. A stream that is
read backwards has its last chunk first; within each, key order stays.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.index.values import Value

__all__ = ["Chunk", "Chunks", "Layer", "growing", "overlaid"]

Chunk = list[Any]
"""Entries, or keys."""
Chunks = Iterator[Chunk]
_FIRST = 16
_LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Layer:
    """Changes to be laid over a stream: their keys in order, and what a key holds from now on (None: it is removed)."""

    keys: Sequence[bytes]
    value: Callable[[int], Value | None]


def overlaid(stream: Chunks, layer: Layer, *, reverse: bool, keys_only: bool) -> Chunks:
    """The stream with the changes; a change hides what the stream has under its key, and a removal hides itself too."""
    if not layer.keys:
        return stream
    return (_backwards if reverse else _forwards)(stream, layer, keys_only)


def growing(start: int, end: int, *, reverse: bool, step: int = _FIRST) -> Iterator[tuple[int, int]]:
    """A range of positions in parts that begin small, for who wants only a few, and grow, for who wants all."""
    while start < end:
        if reverse:
            cut = max(end - step, start)
            yield cut, end
            end = cut
        else:
            cut = min(start + step, end)
            yield start, cut
            start = cut
        step = min(4 * step, _LARGEST)


def _forwards(stream: Chunks, layer: Layer, keys_only: bool) -> Chunks:
    keys, at = layer.keys, 0
    for chunk in stream:
        if at < len(keys) and keys[at] <= (last := _key(chunk[-1], keys_only)):
            stop = bisect_right(keys, last, at)
            chunk = _patched(chunk, layer, at, stop, keys_only)
            at = stop
        if chunk:
            yield chunk
    for start, end in growing(at, len(keys), reverse=False):
        if rest := _patched([], layer, start, end, keys_only):
            yield rest


def _backwards(stream: Chunks, layer: Layer, keys_only: bool) -> Chunks:
    keys, at = layer.keys, len(layer.keys)
    for chunk in stream:
        if at and keys[at - 1] >= (first := _key(chunk[0], keys_only)):
            stop = bisect_left(keys, first, 0, at)
            chunk = _patched(chunk, layer, stop, at, keys_only)
            at = stop
        if chunk:
            yield chunk
    for start, end in growing(0, at, reverse=True):
        if rest := _patched([], layer, start, end, keys_only):
            yield rest


def _patched(chunk: Chunk, layer: Layer, start: int, end: int, keys_only: bool) -> Chunk:
    """The chunk after the changes from a position to another."""
    patched: Chunk = []
    at = 0
    for position in range(start, end):
        key, value = layer.keys[position], layer.value(position)
        place = bisect_left(chunk, key if keys_only else (key,), at)
        patched += chunk[at:place]
        if value is not None:
            patched.append(key if keys_only else (key, value))
        at = place + (place < len(chunk) and _key(chunk[place], keys_only) == key)
    patched += chunk[at:]
    return patched


def _key(item: Any, keys_only: bool) -> bytes:
    key: bytes = item if keys_only else item[0]
    return key
