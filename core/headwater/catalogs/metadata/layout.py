"""Under which keys the pieces of a metadata document lie, and back. Pure.

f name                      a field
l name 0x00 position        an element of a list: 8 bytes position, ascending
m name 0x00 member          a member of a large object
o                           a JSON object with what has a name that makes no key: too long, or with 0x00 in it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.catalogs.iceberg.parts import Parts, put_together, take_apart
from headwater.catalogs.metadata.positions import placed

__all__ = ["collected", "laid_out", "piece_text", "prefixes_of"]

_FIELD, _LIST, _MEMBER, _OTHERS = b"f", b"l", b"m", b"o"
_POSITION = 8
_NAME_BYTES = 200
_MEMBER_BYTES = 250
"""With the name and what is around it less than the 500 bytes that a key may have."""


def laid_out(parts: Parts, held: Mapping[bytes, bytes], token: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The pieces by their keys.

    held          what the version before holds, in the order of keys: tokens
    token         what stands for a piece in ``held``, of the pieces that do not stand for themselves
    """
    others = {name for name in (*parts.fields, *parts.lists, *parts.maps) if "\0" in name or not _fits(name, _NAME_BYTES)}
    others |= {name for name, members in parts.maps.items() if not all(_fits(member, _MEMBER_BYTES) for member in members)}
    pieces = {_FIELD + name.encode(): piece for name, piece in parts.fields.items() if name not in others}
    lists = _lists_of(held)
    for name, elements in parts.lists.items():
        if name not in others:
            stem = _LIST + name.encode() + b"\0"
            positions, before = lists.get(stem, ([], []))
            after = [token.get(element, element) for element in elements] if token else list(elements)
            keys = [stem + position.to_bytes(_POSITION, "big") for position in placed(positions, before, after)]
            pieces.update(zip(keys, elements, strict=True))
    for name, members in parts.maps.items():
        if name not in others:
            stem = _MEMBER + name.encode() + b"\0"
            pieces.update((stem + member.encode(), piece) for member, piece in members.items())
    if others:
        pieces[_OTHERS] = put_together(_only(parts, others))
    return pieces


def collected(pieces: Iterable[tuple[bytes, bytes]]) -> Parts:
    """The parts of a document from its pieces, which come in the order of their keys."""
    fields: dict[str, bytes] = {}
    lists: dict[str, list[bytes]] = {}
    maps: dict[str, dict[str, bytes]] = {}
    others = Parts({}, {})
    for key, piece in pieces:
        kind, rest = key[:1], key[1:]
        if kind == _LIST:
            lists.setdefault(rest[: -_POSITION - 1].decode(), []).append(piece)
        elif kind == _FIELD:
            fields[rest.decode()] = piece
        elif kind == _MEMBER:
            name, _, member = rest.partition(b"\0")
            maps.setdefault(name.decode(), {})[member.decode()] = piece
        else:
            others = take_apart(piece)
    whole = {name: tuple(elements) for name, elements in lists.items()}
    return Parts(fields | others.fields, whole | others.lists, maps | others.maps)


def prefixes_of(name: str) -> tuple[bytes, ...]:
    """What the keys begin with under which a field that is no list may lie, and perhaps others beside it."""
    return (_FIELD + name.encode(), _MEMBER + name.encode() + b"\0", _OTHERS)


def piece_text(key: bytes) -> str:
    """Where a piece stands in its document, in words."""
    kind, rest = key[:1], key[1:]
    if kind == _LIST:
        return f"an element of {rest[: -_POSITION - 1].decode(errors='replace')}"
    if kind == _FIELD:
        return rest.decode(errors="replace")
    if kind == _MEMBER:
        name, _, member = rest.partition(b"\0")
        return f"{member.decode(errors='replace')} of {name.decode(errors='replace')}"
    return "fields with long names"


def _lists_of(held: Mapping[bytes, bytes]) -> dict[bytes, tuple[list[int], list[bytes]]]:
    """Of each list its positions and what stands there."""
    lists: dict[bytes, tuple[list[int], list[bytes]]] = {}
    for key, piece in held.items():
        if key[:1] == _LIST:
            stem = key[:-_POSITION]
            found = lists.get(stem)
            if found is None:
                found = lists[stem] = ([], [])
            found[0].append(int.from_bytes(key[-_POSITION:], "big"))
            found[1].append(piece)
    return lists


def _fits(name: str, most: int) -> bool:
    return len(name) <= most // 4 or len(name.encode()) <= most


def _only(parts: Parts, names: set[str]) -> Parts:
    return Parts(
        {name: piece for name, piece in parts.fields.items() if name in names},
        {name: elements for name, elements in parts.lists.items() if name in names},
        {name: members for name, members in parts.maps.items() if name in names},
    )
