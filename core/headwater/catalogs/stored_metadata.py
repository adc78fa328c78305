"""Iceberg metadata as objects: the pieces that make up a table's version, and how the next version shares them.

It knows commits and indexes; it must not know catalogs, branches, nor where the documents come from. The pieces of a document
lie in an index of their own, under these keys:

    f name                      a field
    l name 0x00 position        an element of a list: 8 bytes position, ascending
    m name 0x00 member          a member of a large object
    o                           a JSON object with what has a name that makes no key: too long, or with 0x00 in it

``place_elements`` gives list elements their positions, so that those which stay keep their place from version to version.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple, Protocol

from headwater.commits import Transaction
from headwater.errors import CorruptionError
from headwater.iceberg.metadata_json import MetadataParts, join_metadata, split_metadata
from headwater.index import Entry, Index, IndexContainer, IndexEditor, IndexLimits, IndexValue, NewIndex
from headwater.store import ObjectId, RealmReader, StoredObject, id_text, object_type


@object_type("iceberg-metadata")
class IcebergMetadata(StoredObject, frozen=True, kw_only=True):
    """The pieces of a metadata document, in an index of its own (see the keys above)."""

    pieces: IndexContainer

    def points_to(self) -> Iterable[ObjectId]:
        return self.pieces.points_to()


@object_type("iceberg-piece")
class IcebergPiece(StoredObject, frozen=True, kw_only=True):
    """A piece that is larger than an index entry holds, as JSON text; versions share it by pointing to it."""

    text: bytes


_LIMITS = IndexLimits(embedded_bytes=32 * 1024, stripe_bytes=32 * 1024)
_LARGE_BYTES = 2048
"""Beyond which a piece is an object of its own. A snapshot with a full summary has about 1000 bytes; a schema of forty columns is large."""
_AT_ONCE = 200
_PIECE_WEIGHT = 300
"""Bytes that a piece which is kept takes beside its text, about."""


class ObjectAdder(Protocol):
    """What adds the objects of a commit: a transaction, or staged objects of a commit to come."""

    @property
    def reader(self) -> RealmReader: ...
    def add_object(self, value: StoredObject) -> ObjectId: ...
    def add_index(self, index: IndexEditor | NewIndex, limits: IndexLimits) -> IndexContainer: ...


class _PieceEdits(NamedTuple):
    """The edits that turn the pieces of one version into those of the next.

    put           key, piece, and the entry's data: the piece itself, or a token for one that is an object of its own
    shared        the existing objects of large pieces, by their tokens
    """

    removed: list[bytes]
    put: list[tuple[bytes, bytes, bytes]]
    shared: dict[bytes, ObjectId]


class _Pieces(NamedTuple):
    """The pieces of one version, by their keys and in the order of them, and the document that they make, in the same order."""

    entries: dict[bytes, IndexValue]
    parts: MetadataParts

    @property
    def weight_bytes(self) -> int:
        """What it takes in memory, about: texts, and for each piece a key, an id and places in two dictionaries."""
        return metadata_bytes(self.parts) + _PIECE_WEIGHT * len(self.entries)


def store_metadata(adder: ObjectAdder, parts: MetadataParts, *, before: ObjectId | None) -> ObjectId:
    """Add the objects of a metadata document to a commit; returns the id of its ``IcebergMetadata``.

    before        the parent commit's version of this table, on top of which only changes are written; None: none
    raises        CorruptionError when the version before cannot be read
    """
    if before is not None:
        return _next_version(adder, parts, before)
    return adder.add_object(IcebergMetadata(pieces=adder.add_index(_first_version(adder, parts), _LIMITS)))


def _first_version(adder: ObjectAdder, parts: MetadataParts) -> NewIndex:
    data = lay_out_pieces(parts, {}, {})
    objects: dict[bytes, ObjectId] = {}
    shared: dict[bytes, ObjectId] = {}
    for key in [key for key, piece in data.items() if len(piece) > _LARGE_BYTES]:
        token = _token(data[key])
        if token not in shared:
            shared[token] = adder.add_object(IcebergPiece(text=data[key]))
        data[key], objects[key] = token, shared[token]
    return NewIndex(data, objects)


def _next_version(adder: ObjectAdder, parts: MetadataParts, before: ObjectId) -> ObjectId:
    rows = adder.reader
    metadata = rows.read_object(before, IcebergMetadata)
    held = _pieces_of(rows, before, metadata)
    # compared once: a document with ten thousand snapshots takes longer than a group of commits waits
    edits = (
        adder.memoize(f"metadata on top of {id_text(before)}", (before, parts), lambda: _edits(held, parts))
        if isinstance(adder, Transaction)
        else _edits(held, parts)
    )
    editor, shared, entries = IndexEditor(Index(metadata.pieces, rows)), dict(edits.shared), dict(held.entries)
    for key in edits.removed:
        editor.remove(key)
        del entries[key]
    for key, piece, data in edits.put:
        is_large = data is not piece
        if is_large and data not in shared:
            shared[data] = adder.add_object(IcebergPiece(text=piece))
        entries[key] = IndexValue(shared[data] if is_large else None, data)
        editor.put(key, entries[key])
    stored = adder.add_object(IcebergMetadata(pieces=adder.add_index(editor, _LIMITS)))
    if _OTHERS not in entries:
        _keep_pieces(rows, stored, _Pieces(dict(sorted(entries.items())), _in_order(parts)))
    return stored


def metadata_bytes(parts: MetadataParts) -> int:
    """What the pieces of a document take, as JSON text."""
    return sum(map(len, _all_pieces(parts)))


def read_metadata(rows: RealmReader, metadata_id: ObjectId) -> MetadataParts:
    """Read the pieces of a stored metadata document.

    raises        NotFoundError when there is no such object; CorruptionError when a part of it is missing or damaged
    """
    return _pieces_of(rows, metadata_id, rows.read_object(metadata_id, IcebergMetadata)).parts


def _pieces_of(rows: RealmReader, metadata_id: ObjectId, metadata: IcebergMetadata) -> _Pieces:
    """The pieces of a stored version, which are kept: whoever makes the next version needs them for each of its steps."""
    pieces = rows.find_derived(metadata_id, _Pieces)
    if pieces is None:
        entries = dict(Index(metadata.pieces, rows).range())
        wanted = dict.fromkeys(value.object_id for value in entries.values() if value.object_id is not None)
        texts = _texts(rows, dict.fromkeys(wanted, metadata_id))
        pieces = _Pieces(entries, _put_back(entries.items(), texts))
        _keep_pieces(rows, metadata_id, pieces)
    return pieces


def _keep_pieces(rows: RealmReader, metadata_id: ObjectId, pieces: _Pieces) -> None:
    rows.keep_derived(metadata_id, pieces, weight_bytes=pieces.weight_bytes)


def read_fields(rows: RealmReader, metadata_ids: Sequence[ObjectId], names: Sequence[str]) -> dict[ObjectId, dict[str, bytes]]:
    """Read some fields of stored metadata documents, as JSON text by name; absent fields are left out.

    All documents are read in one go, and so are their large pieces. Of a spilled document, the needed stripes are read in one go, too.

    names         of fields that are no lists
    raises        as ``read_metadata`` does
    """
    wanted = list(dict.fromkeys(metadata_ids))
    prefixes = dict.fromkeys(prefix for name in names for prefix in field_prefixes(name))
    entries: dict[ObjectId, list[Entry]] = {}
    for metadata_id, metadata in zip(wanted, rows.read_many(wanted, IcebergMetadata), strict=True):
        if metadata is None:
            metadata = rows.read_object(metadata_id, IcebergMetadata)  # which says what is missing
        index = Index(metadata.pieces, rows)
        entries[metadata_id] = [entry for prefix in prefixes for entry in index.prefix(prefix)]
    owners = {value.object_id: owner for owner, held in entries.items() for _, value in held if value.object_id is not None}
    texts = _texts(rows, owners)
    return {metadata_id: _fields(_put_back(held, texts), names) for metadata_id, held in entries.items()}


def _fields(parts: MetadataParts, names: Sequence[str]) -> dict[str, bytes]:
    maps = {name: join_metadata(MetadataParts(parts.maps[name], {})) for name in names if name in parts.maps}
    return maps | {name: parts.fields[name] for name in names if name in parts.fields}


def _put_back(entries: Iterable[Entry], texts: Mapping[ObjectId, bytes]) -> MetadataParts:
    return collect_pieces((key, value.data if value.object_id is None else texts[value.object_id]) for key, value in entries)


def _edits(held: _Pieces, parts: MetadataParts) -> _PieceEdits:
    """What turns one version into the next, from those fields alone that differ."""
    before, after = dict(held.entries), parts
    if _OTHERS not in held.entries and not _odd_names(parts):  # else names share a piece
        names = _changed_names(held.parts, parts)
        before, after = _entries_of(held, names), _only(parts, names)
    tokens = {piece: _token(piece) for piece in _all_pieces(after) if len(piece) > _LARGE_BYTES}
    pieces = lay_out_pieces(after, {key: value.data for key, value in before.items()}, tokens)
    put = []
    for key, piece in pieces.items():
        data = (tokens.get(piece) or _token(piece)) if len(piece) > _LARGE_BYTES else piece
        entry = before.get(key)
        if entry is None or entry.data != data:
            put.append((key, piece, data))
    shared = {value.data: value.object_id for value in held.entries.values() if value.object_id is not None}
    return _PieceEdits([key for key in before if key not in pieces], put, shared)


def _changed_names(before: MetadataParts, after: MetadataParts) -> set[str]:
    kinds = ((before.fields, after.fields), (before.lists, after.lists), (before.maps, after.maps))
    return {name for old, new in kinds for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _entries_of(held: _Pieces, names: Iterable[str]) -> dict[bytes, IndexValue]:
    """The entries of these fields, in the order of their keys."""
    fields = {_FIELD + name.encode() for name in names}
    stems = tuple(kind + name.encode() + b"\0" for name in names for kind in (_LIST, _MEMBER))
    return {key: value for key, value in held.entries.items() if key in fields or key.startswith(stems)}


def _all_pieces(parts: MetadataParts) -> list[bytes]:
    members = (piece for object_members in parts.maps.values() for piece in object_members.values())
    return [*parts.fields.values(), *chain.from_iterable(parts.lists.values()), *members]


def _token(piece: bytes) -> bytes:
    """The token of a piece that is an object of its own: no JSON text begins like that."""
    return b"\0" + hashlib.blake2b(piece, digest_size=16).digest()


def _texts(rows: RealmReader, owners: Mapping[ObjectId, ObjectId]) -> dict[ObjectId, bytes]:
    """The texts of large pieces, by their ids; ``owners`` names the document of each."""
    texts: dict[ObjectId, bytes] = {}
    ids = list(owners)
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        for object_id, piece in zip(some, rows.read_many(some, IcebergPiece), strict=True):
            if piece is None:
                raise CorruptionError(
                    f"object {id_text(object_id)} of realm {rows.realm!r}, a piece of the metadata {id_text(owners[object_id])},"
                    " is not there. Run `headwater fsck`"
                )
            texts[object_id] = piece.text
    return texts


_FIELD, _LIST, _MEMBER, _OTHERS = b"f", b"l", b"m", b"o"
_POSITION_BYTES = 8
_NAME_BYTES = 200
_MEMBER_BYTES = 250
"""With the name and what is around it less than the 500 bytes that a key may have."""


def lay_out_pieces(parts: MetadataParts, held: Mapping[bytes, bytes], token: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Lay out a document's pieces by their keys.

    held          the version before, in the order of keys: tokens
    token         gives the token of a piece, as in ``held``, for pieces that do not stand for themselves
    """
    others = _odd_names(parts)
    pieces = {_FIELD + name.encode(): piece for name, piece in parts.fields.items() if name not in others}
    lists = _lists_of(held)
    for name, elements in parts.lists.items():
        if name not in others:
            stem = _LIST + name.encode() + b"\0"
            positions, before = lists.get(stem, ([], []))
            after = [token.get(element, element) for element in elements] if token else list(elements)
            keys = [stem + position.to_bytes(_POSITION_BYTES, "big") for position in place_elements(positions, before, after)]
            pieces.update(zip(keys, elements, strict=True))
    for name, members in parts.maps.items():
        if name not in others:
            stem = _MEMBER + name.encode() + b"\0"
            pieces.update((stem + member.encode(), piece) for member, piece in members.items())
    if others:
        pieces[_OTHERS] = join_metadata(_only(parts, others))
    return pieces


def _odd_names(parts: MetadataParts) -> set[str]:
    """The names of fields that make no keys, or have members that make none."""
    names = {name for name in (*parts.fields, *parts.lists, *parts.maps) if "\0" in name or not _fits(name, _NAME_BYTES)}
    return names | {name for name, members in parts.maps.items() if not all(_fits(member, _MEMBER_BYTES) for member in members)}


def collect_pieces(pieces: Iterable[tuple[bytes, bytes]]) -> MetadataParts:
    """Collect the parts of a document from its pieces, given in the order of their keys."""
    fields: dict[str, bytes] = {}
    lists: dict[str, list[bytes]] = {}
    maps: dict[str, dict[str, bytes]] = {}
    others = MetadataParts({}, {})
    for key, piece in pieces:
        kind, rest = key[:1], key[1:]
        if kind == _LIST:
            lists.setdefault(rest[: -_POSITION_BYTES - 1].decode(), []).append(piece)
        elif kind == _FIELD:
            fields[rest.decode()] = piece
        elif kind == _MEMBER:
            name, _, member = rest.partition(b"\0")
            maps.setdefault(name.decode(), {})[member.decode()] = piece
        else:
            others = split_metadata(piece)
    whole = {name: tuple(elements) for name, elements in lists.items()}
    return MetadataParts(fields | others.fields, whole | others.lists, maps | others.maps)


def field_prefixes(name: str) -> tuple[bytes, ...]:
    """The key prefixes under which a field that is no list may lie, possibly beside others."""
    return (_FIELD + name.encode(), _MEMBER + name.encode() + b"\0", _OTHERS)


def piece_text(key: bytes) -> str:
    """Describe the position of a piece in its document."""
    kind, rest = key[:1], key[1:]
    if kind == _LIST:
        return f"an element of {rest[: -_POSITION_BYTES - 1].decode(errors='replace')}"
    if kind == _FIELD:
        return rest.decode(errors="replace")
    if kind == _MEMBER:
        name, _, member = rest.partition(b"\0")
        return f"{member.decode(errors='replace')} of {name.decode(errors='replace')}"
    return "fields with long names"


def _lists_of(held: Mapping[bytes, bytes]) -> dict[bytes, tuple[list[int], list[bytes]]]:
    """The positions and elements of each list."""
    lists: dict[bytes, tuple[list[int], list[bytes]]] = {}
    for key, piece in held.items():
        if key[:1] == _LIST:
            stem = key[:-_POSITION_BYTES]
            positions, elements = lists.setdefault(stem, ([], []))
            positions.append(int.from_bytes(key[-_POSITION_BYTES:], "big"))
            elements.append(piece)
    return lists


def _fits(name: str, most: int) -> bool:
    return len(name) <= most // 4 or len(name.encode()) <= most


def _in_order(parts: MetadataParts) -> MetadataParts:
    """The parts as ``collect_pieces`` returns them."""
    maps = {name: dict(sorted(members.items())) for name, members in sorted(parts.maps.items())}
    return MetadataParts(dict(sorted(parts.fields.items())), dict(sorted(parts.lists.items())), maps)


def _only(parts: MetadataParts, names: set[str]) -> MetadataParts:
    return MetadataParts(
        {name: piece for name, piece in parts.fields.items() if name in names},
        {name: elements for name, elements in parts.lists.items() if name in names},
        {name: members for name, members in parts.maps.items() if name in names},
    )


_FIRST_POSITION = 1 << 62
_POSITION_STEP = 1 << 20
"""Between neighbours that were written one after the other: there is room for twenty insertions in the same place, at the least."""
_POSITIONS_END = 1 << 63


def place_elements(held: Sequence[int], before: Sequence[bytes], after: Sequence[bytes]) -> list[int]:
    """Give each element of a list an ascending position; as many elements as possible keep their position.

    held          the positions of the version before, ascending
    before        its elements, one for each position
    after         the elements to be placed
    """
    if not held:
        return _fresh(len(after))
    kept = _kept(before, after)
    positions: list[int] = []
    start = 0
    while start < len(kept):
        if kept[start] >= 0:
            positions.append(held[kept[start]])
            start += 1
            continue
        end = start + 1
        while end < len(kept) and kept[end] < 0:
            end += 1
        low = kept[start - 1] if start else -1
        high = kept[end] if end < len(kept) else len(held)
        new = _between(held, low, high, end - start)
        if new is None:
            return _fresh(len(after))
        positions += new
        start = end
    return positions


def _fresh(count: int) -> list[int]:
    return list(range(_FIRST_POSITION, _FIRST_POSITION + _POSITION_STEP * count, _POSITION_STEP))


def _kept(before: Sequence[bytes], after: Sequence[bytes]) -> list[int]:
    """Match each element to an element of the version before, in ascending order, or to -1."""
    if after and after[0] in before:  # the usual case: elements were removed at the front and appended at the end
        first = before.index(after[0])
        stay = len(before) - first
        if after[:stay] == before[first:] and set(before[:first]).isdisjoint(after[stay:]):
            return [*range(first, len(before)), *[-1] * (len(after) - stay)]
    places: dict[bytes, deque[int]] = {}
    for at, element in enumerate(before):
        places.setdefault(element, deque()).append(at)
    matches = []
    for element in after:
        free = places.get(element)
        matches.append(free.popleft() if free else -1)
    met = [at for at in matches if at >= 0]
    if any(left > right for left, right in pairwise(met)):
        stays = _ascending(met)
        matches = [at if at in stays else -1 for at in matches]
    return matches


def _ascending(numbers: Sequence[int]) -> set[int]:
    """The longest ascending subsequence of these distinct numbers."""
    tails: list[int] = []
    previous: dict[int, int] = {}
    for number in numbers:
        at = bisect_left(tails, number)
        previous[number] = tails[at - 1] if at else -1
        tails[at : at + 1] = [number]
    chosen, last = set(), tails[-1] if tails else -1
    while last >= 0:
        chosen.add(last)
        last = previous[last]
    return chosen


def _between(held: Sequence[int], low: int, high: int, count: int) -> list[int] | None:
    """Ascending positions for elements between two that stay; freed positions are used first. None: there is no room.

    low, high     which of ``held`` stay: -1 and its length stand for its ends
    """
    free = list(held[low + 1 : high])
    more = count - len(free)
    if more <= 0:
        return free[:count]
    if high == len(held):
        free += [held[-1] + _POSITION_STEP * at for at in range(1, more + 1)]
        return free if free[-1] < _POSITIONS_END else None
    if low < 0:
        new = [held[0] - _POSITION_STEP * at for at in range(more, 0, -1)]
        return new + free if new[0] >= 0 else None
    room = (held[high] - held[low]) // (count + 1)
    return [held[low] + room * at for at in range(1, count + 1)] if room else None
