"""Metadata files as JSON: decodes their bytes, packed or not, tells the files that a document names, and splits it into pieces.

Versions of a table share pieces. A list at the document's top level becomes its elements, a large object its members; everything
else is a field as it is. Pieces are the JSON text that was read, without white space between its tokens. So unknown fields,
numbers of any size, and fractions come back as they were written.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.errors import RefusedError
from headwater.iceberg.plain_metadata import plain_metadata
from headwater.iceberg.survey_outcomes import QuarantineCode, RejectedTable
from headwater.typed_values import json_decoder

MAX_BYTES = 256 * 1024 * 1024
"""The largest metadata that is read, packed or unpacked: beyond it a file is an attack or a mistake."""

MOST_LEVELS = 200
"""How deep a document may be nested. The interpreter's own limit depends on who calls: what one stage reads, another would not."""

MOST_MEMBERS = 10_000
"""Of how many members gzip may be: tools that pack in blocks of their own need half of it for the largest metadata."""

_STEP = 4096
_OPENING = b"[{"
_GZIP = b"\x1f\x8b"
_UNREAD_CODECS = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}


def decode_metadata(data: bytes, *, path: str) -> dict[str, Any]:
    """Decode the JSON object in a metadata file; gzip is detected by the content, whatever the name says.

    raises        RejectedTable with CORRUPT, UNKNOWN_CODEC or TOO_LARGE
    """
    return parse_metadata(unpack_metadata(data, path=path), path=path, size=len(data))


def parse_metadata(text: bytes, *, path: str, size: int) -> dict[str, Any]:
    """Parse the JSON object in the text that ``unpack_metadata`` returned for a metadata file of this size.

    raises        RejectedTable with CORRUPT
    """
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise RejectedTable(
            QuarantineCode.CORRUPT,
            f"{path} ({size} bytes) is no JSON ({fault}): restore it from a backup, or remove it if never committed",
        ) from fault
    if not isinstance(document, dict):
        raise RejectedTable(
            QuarantineCode.CORRUPT, f"{path} holds a JSON {type(document).__name__}, not an object: restore it from a backup"
        )
    if _is_deeper(document, text, MOST_LEVELS):
        raise RejectedTable(
            QuarantineCode.CORRUPT,
            f"{path} is nested deeper than {MOST_LEVELS} levels, as no engine writes it: restore it from a backup",
        )
    return document


def unpack_metadata(data: bytes, *, path: str) -> bytes:
    """Unpack the text of a metadata file, without gzip and byte order marks; it may not be JSON.

    raises        RejectedTable with CORRUPT, UNKNOWN_CODEC or TOO_LARGE
    """
    if not data:
        raise RejectedTable(
            QuarantineCode.CORRUPT, f"{path} is empty: restore it from a backup, or remove it if it was never committed"
        )
    for magic, codec in _UNREAD_CODECS.items():
        if data.startswith(magic):
            raise RejectedTable(
                QuarantineCode.UNKNOWN_CODEC, f"{path} is packed with {codec}: only gzip and plain JSON are read, rewrite it"
            )
    text = _unpacked(data, path) if data.startswith(_GZIP) else data
    return text.removeprefix(b"\xef\xbb\xbf")


def _unpacked(data: bytes, path: str) -> bytes:
    """Unpack all gzip members one after the other."""
    texts, left = [], MAX_BYTES
    rest, step = memoryview(data), len(data)
    for _ in range(MOST_MEMBERS):
        unpacker = zlib.decompressobj(wbits=31)
        while rest and not unpacker.eof:
            given = rest[:step]
            try:
                text = unpacker.decompress(given, left + 1)
            except zlib.error as fault:
                raise RejectedTable(
                    QuarantineCode.CORRUPT, f"{path} is broken gzip ({fault}): restore it from a backup"
                ) from fault
            left -= len(text)
            if left < 0:
                raise RejectedTable(
                    QuarantineCode.TOO_LARGE,
                    f"{path} unpacks to more than {MAX_BYTES} bytes: expire snapshots of the table first",
                )
            texts.append(text)
            rest = rest[len(given) - len(unpacker.unused_data) :]
            step *= 2
        if not unpacker.eof:
            raise RejectedTable(QuarantineCode.CORRUPT, f"{path} is gzip that ends early: restore it from a backup")
        if not rest:
            return b"".join(texts)
        step = _STEP  # the rest behind a member is copied each time: copying all of it for every member would take hours
    raise RejectedTable(
        QuarantineCode.CORRUPT,
        f"{path} is gzip of more than {MOST_MEMBERS} members, as no engine writes it: restore it from a backup",
    )


def _is_deeper(document: dict[str, Any], text: bytes, levels: int) -> bool:
    """True if a document is nested too deeply. Descends level by level, no further than the number of brackets allows."""
    left = len(text) - len(text.translate(None, _OPENING))  # brackets within texts count, too: an upper bound
    inside: list[Any] = [document]
    for level in range(levels):
        left -= len(inside)
        if not inside or level + left < levels:
            return False
        inside = [
            value
            for holder in inside
            for value in (holder.values() if holder.__class__ is dict else holder)
            if value.__class__ is dict or value.__class__ is list
        ]
    return bool(inside)


def named_files(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The files that a document itself names, each with what it is, in a document that may not have been validated.

    These are manifest lists, the manifests that version 1 may name inline, and statistics; not earlier metadata files.
    """
    for snapshot in objects_in(document, "snapshots"):
        if isinstance(snapshot.get("manifest-list"), str):
            yield f"manifest list of snapshot {snapshot.get('snapshot-id')}", snapshot["manifest-list"]
        inline = snapshot.get("manifests")
        yield from (("manifest", path) for path in (inline if isinstance(inline, list) else ()) if isinstance(path, str))
    for name in ("statistics", "partition-statistics"):
        yield from ((name, path) for path in _texts_in(document, name, "statistics-path"))


def statistics_files(document: Mapping[str, Any]) -> list[str]:
    return [path for name in ("statistics", "partition-statistics") for path in _texts_in(document, name, "statistics-path")]


def logged_files(document: Mapping[str, Any]) -> list[str]:
    """The earlier metadata files, as the document's own log has them, oldest first."""
    return _texts_in(document, "metadata-log", "metadata-file")


def snapshots_with_refs(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The snapshots of a table's metadata, oldest first, each with the names of the table's branches and tags on it, as ``refs``."""
    refs = document.get("refs") or {}
    for snapshot in objects_in(document, "snapshots"):
        names = [name for name, ref in refs.items() if ref.get("snapshot-id") == snapshot["snapshot-id"]]
        yield {**snapshot, "refs": sorted(names)}


def objects_in(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects of a list in a document that may not have been validated."""
    entries = document.get(name)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _texts_in(document: Mapping[str, Any], name: str, field_name: str) -> list[str]:
    return [entry[field_name] for entry in objects_in(document, name) if isinstance(entry.get(field_name), str)]


_LARGE_BYTES = 1024
"""Beyond which an object of the top level is divided: ten thousand refs are, what properties a table has as a rule is not."""
_OBJECT = json_decoder(dict[str, msgspec.Raw])
_LIST = json_decoder(list[msgspec.Raw])


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
    """Split a JSON object into pieces, in its plain form. Of members with the same name the last one counts, as for other readers.

    text          plain JSON, unpacked
    raises        RefusedError when it is no JSON object in UTF-8, or nested deeper than the interpreter reads
    """
    try:
        if not text.isascii():
            text.decode()  # nothing below looks into strings
        raw = _OBJECT.decode(plain_metadata(msgspec.json.format(text.removeprefix(b"\xef\xbb\xbf"), indent=-1)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise RefusedError(f"a metadata document of {len(text)} bytes cannot be taken apart: {fault}") from fault
    parts = MetadataParts({}, {})
    for name, value in raw.items():
        piece = bytes(value)
        if piece[0] == 0x5B and len(piece) > 2:  # [...]
            parts.lists[name] = tuple(map(bytes, _LIST.decode(piece)))
        elif piece[0] == 0x7B and len(piece) > _LARGE_BYTES:  # {...}
            parts.maps[name] = {member: bytes(element) for member, element in _OBJECT.decode(piece).items()}
        else:
            parts.fields[name] = piece
    return parts


def join_metadata(parts: MetadataParts) -> bytes:
    """Join the JSON object of these pieces; the order of its fields is not kept."""
    lists = {name: b"[" + b",".join(elements) + b"]" for name, elements in parts.lists.items()}
    maps = {name: _object(members.items()) for name, members in parts.maps.items()}
    return _object((parts.fields | lists | maps).items())


def _object(members: Iterable[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + piece for name, piece in members) + b"}"
