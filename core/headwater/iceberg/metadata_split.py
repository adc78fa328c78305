"""A metadata document split into pieces that versions of a table share, and joined again with equal values.

A list at the document's top level becomes its elements, a large object its members; everything else is a field as it is. Pieces
are the JSON text that was read, without the white space between its tokens: so fields that nobody here knows, numbers of any
size, and fractions come back as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from headwater.errors import RefusedError

_LARGE_BYTES = 1024
"""Beyond which an object of the top level is divided: ten thousand refs are, what properties a table has as a rule is not."""
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class MetadataParts:
    """A JSON object in pieces, all of them JSON text.

    fields        by name: what is whole, empty lists included
    lists         by name: lists by their elements, of which there is at least one
    maps          by name: large objects by their members
    """

    fields: dict[str, bytes]
    lists: dict[str, tuple[bytes, ...]]
    maps: dict[str, dict[str, bytes]] = field(default_factory=dict)


def split_metadata(text: bytes) -> MetadataParts:
    """The pieces of a JSON object. Of members with the same name the last one counts, as it does for who reads the document.

    text          plain JSON, decoded from whatever it was packed with
    raises        RefusedError when it is no JSON object in UTF-8, or nested deeper than the interpreter reads
    """
    try:
        if not text.isascii():
            text.decode()  # nothing below looks into strings
        raw = _OBJECT.decode(msgspec.json.format(text.removeprefix(b"\xef\xbb\xbf"), indent=-1))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise RefusedError(f"a metadata document of {len(text)} bytes cannot be taken apart: {fault}") from fault
    parts = MetadataParts({}, {})
    for name, value in raw.items():
        piece = bytes(value)
        if piece[0] == 0x5B and len(piece) > 2:  # [...]
            parts.lists[name] = tuple(map(bytes, _LIST.decode(piece)))
        elif piece[0] == 0x7B and len(piece) > _LARGE_BYTES:  # {...}
            parts.maps[name] = {member: bytes(one) for member, one in _OBJECT.decode(piece).items()}
        else:
            parts.fields[name] = piece
    return parts


def join_metadata(parts: MetadataParts) -> bytes:
    """The JSON object of these pieces; the order of its fields is not kept."""
    lists = {name: b"[" + b",".join(elements) + b"]" for name, elements in parts.lists.items()}
    maps = {name: _object(members.items()) for name, members in parts.maps.items()}
    return _object((parts.fields | lists | maps).items())


def _object(members: Iterable[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + piece for name, piece in members) + b"}"
