"""A metadata document taken apart into pieces that versions of a table share, and put together again with equal values.

A list of the document's top level becomes its elements; everything else a field as it is. Pieces are the JSON text that was read, so
that fields which nobody here knows, and numbers of any size, come back as they were.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

__all__ = ["Parts", "put_together", "take_apart"]


@dataclass(frozen=True, slots=True)
class Parts:
    """A JSON object in pieces: its lists by their elements, its other fields whole; all of them JSON text."""

    fields: dict[str, bytes]
    lists: dict[str, tuple[bytes, ...]]


def take_apart(text: bytes) -> Parts:
    """The pieces of a JSON object.

    text          plain JSON, decoded from whatever it was packed with
    """
    raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    fields: dict[str, bytes] = {}
    lists: dict[str, tuple[bytes, ...]] = {}
    for name, value in raw.items():
        piece = bytes(value)
        if piece.startswith(b"["):
            lists[name] = tuple(bytes(one) for one in msgspec.json.decode(piece, type=list[msgspec.Raw]))
        else:
            fields[name] = piece
    return Parts(fields, lists)


def put_together(parts: Parts) -> bytes:
    """The JSON object of these pieces; the order of its fields is not kept."""
    fields = [(name, piece) for name, piece in parts.fields.items()]
    lists = [(name, b"[" + b",".join(elements) + b"]") for name, elements in parts.lists.items()]
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + piece for name, piece in (*fields, *lists)) + b"}"
