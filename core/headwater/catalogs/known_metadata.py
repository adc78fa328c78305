"""Which metadata files any commit of a catalog has ever named: what lies in a table's folder and is known here is no news from outside.

The commits tell it themselves, as long as they are there: each has the contents that it put. Before a collection deletes any, what
they tell is noted in the catalog's reference ``cat/<id>/refs``, which outlives branches and drops. So a commit writes nothing for it,
and all ways in which a file comes into the catalog are covered, for all are commits.

    index ``known``       16 bytes BLAKE2b of the folder, 8 of the file's name  ->  8 bytes time of the commit, ``i`` where an import
                                                                                    brought it and ``w`` otherwise, name of the branch
                          16 bytes BLAKE2b of the folder, 8 times 0x00          ->  8 bytes time: of what was forgotten, the last; ``i``
    index ``known-to``    name of a branch's or tag's reference                 ->  8 bytes commit up to which it is noted

Of a folder the ``KEPT`` files that became known last stay noted. What is forgotten is older than all of them, and so is its
document: a file that says it was written before the last that was forgotten counts as known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from headwater.catalogs.content.indexes import CONTENT
from headwater.catalogs.content.types import ContentType, ContentValue, IcebergTable, IcebergView
from headwater.catalogs.definitions import CatalogDefinition
from headwater.catalogs.iceberg import comparable
from headwater.catalogs.listing import BY_ID, all_definitions
from headwater.catalogs.names import NAMES, ListedName, NameKind, OwnPart, content_reference, listed_names, own_reference
from headwater.clock import Micros
from headwater.commits import Commit, End, Head, Transaction, commit, descends, head, log
from headwater.errors import ExpiredError, MissingError, RefusedError, UnknownOutcomeError, UnreadableError
from headwater.index import Index, Value, after_prefix
from headwater.store import ObjectId, RealmStore, Reference, StoredObject

__all__ = ["KEPT", "KnownFolder", "KnownMetadata", "Origin", "note_all_known", "note_known"]

KEPT = 1000
"""Files of a folder that stay noted, at least; at most twice as many do."""

_KNOWN, _NOTED = "known", "known-to"
_FOLDER_BYTES, _NAME_BYTES, _TIME_BYTES = 16, 8, 8
_FORGOTTEN = bytes(_NAME_BYTES)
_OWN, _IMPORTED = b"w", b"i"
_NEVER = Micros(0)
_READ_AT_ONCE = 500
_WRITTEN_AT_ONCE = 1000
_LOOK_EVERY = 20
_WORTH_NOTING = 256
"""Commits that an import has to walk over before it notes what they tell, to spare the next one the way."""


class Origin(NamedTuple):
    """Where a file became known first: on which branch or tag, by a commit of which time.

    is_own        somebody put it through this catalog; otherwise an import found it, or the commit that put it is gone
    """

    branch: str
    time: Micros
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class KnownFolder:
    """What is known of the metadata files in one folder.

    forgotten     of the files that are not noted any more, the latest became known then; 0: all are noted
    """

    files: Mapping[bytes, Origin]
    forgotten: Micros = _NEVER

    def __bool__(self) -> bool:
        return bool(self.files) or self.forgotten > 0

    def find(self, location: str) -> Origin | None:
        """Where a file became known; None: nowhere, or that was forgotten."""
        return self.files.get(_key(location)[_FOLDER_BYTES:])

    @property
    def has_own(self) -> bool:
        """Whether anything was put through this catalog."""
        return any(origin.is_own for origin in self.files.values())

    def is_last(self, location: str) -> bool:
        """Whether a file is what became known last from outside."""
        origin = self.find(location)
        return origin is not None and origin.time >= max(
            known.time for known in self.files.values() if not known.is_own or known is origin
        )


class KnownMetadata:
    """What a catalog knows now: what was noted, and what commits tell since. Looks once, when it is made.

    note          whether to write it down where much has come together; else nothing is written
    """

    def __init__(
        self, rows: RealmStore, definition: CatalogDefinition, *, note: bool = False, fence: Callable[[], None] | None = None
    ) -> None:
        told = _Telling(rows, definition).look()
        if note and told.walked >= _WORTH_NOTING:
            told.note(fence)
            told = _Telling(rows, definition).look()
        self._noted = told.noted
        self._since: dict[bytes, dict[bytes, Origin]] = {}
        for key, origin in told.files.items():
            self._since.setdefault(key[:_FOLDER_BYTES], {})[key[_FOLDER_BYTES:]] = origin

    def find_many(self, locations: Sequence[str]) -> dict[str, Origin]:
        """Where files became known, of those that are."""
        keys = {location: _key(location) for location in locations}
        noted = {} if self._noted is None else self._noted.get_many(keys.values())
        found = {}
        for location, key in keys.items():
            since = self._since.get(key[:_FOLDER_BYTES], {}).get(key[_FOLDER_BYTES:])
            if key in noted:
                found[location] = _origin(key, noted[key])
            elif since is not None:
                found[location] = since
        return found

    def of(self, folder: str) -> KnownFolder:
        """What is known of the files in a folder."""
        stem = _key(f"{folder}/x")[:_FOLDER_BYTES]
        noted = dict(() if self._noted is None else _entries(self._noted, stem))
        forgotten = noted.pop(_FORGOTTEN, None)
        files = self._since.get(stem, {}) | noted
        return KnownFolder(files, _NEVER if forgotten is None else forgotten.time)


def note_known(rows: RealmStore, definition: CatalogDefinition, *, fence: Callable[[], None] | None = None) -> int:
    """Note what the commits of a catalog tell that was not noted yet; returns how many files that were.

    raises        what reading commits and ``commit`` raise: then nothing may be deleted
    """
    told = _Telling(rows, definition).look()
    told.note(fence)
    return len(told.files)


def note_all_known(rows: RealmStore, *, fence: Callable[[], None] | None = None) -> int:
    """The same of all catalogs of a realm, of deleted ones too: they can come back."""
    return sum(note_known(rows, definition, fence=fence) for definition, _ in all_definitions(rows, index=BY_ID))


class _Found(NamedTuple):
    """A table or view that a commit put: the object with its content."""

    object_id: ObjectId
    origin: Origin


@dataclass(slots=True)
class _Telling:
    """Walks the histories of a catalog down to what is noted.

    files         what became known since, by key
    heads         the commits up to which that is all, by reference
    """

    rows: RealmStore
    definition: CatalogDefinition
    noted: Index | None = None
    files: dict[bytes, Origin] = field(default_factory=dict)
    heads: dict[str, ObjectId] = field(default_factory=dict)
    walked: int = 0
    _before: dict[str, ObjectId] = field(default_factory=dict)
    _met: set[ObjectId] = field(default_factory=set)
    _waiting: list[_Found] = field(default_factory=list)

    @property
    def _reference(self) -> str:
        return own_reference(self.definition.id, OwnPart.REFS)

    def look(self) -> _Telling:
        refs = self._refs()
        if refs is None:
            return self
        self.noted = refs.index(_KNOWN)
        self._before = {key.decode(): _commit_in(value) for key, value in refs.index(_NOTED).range()}
        self._met = set(self._before.values())
        names = sorted(listed_names(refs.index(NAMES)), key=self._is_last)
        rows = self.rows.find_rows([name.reference(self.definition.id) for name in names])
        for name, row in zip(names, rows, strict=True):
            if row is not None:
                self._look_at(name, row)
        self._read()
        return self

    def note(self, fence: Callable[[], None] | None) -> None:
        """Write it down, in commits of bounded size; the heads with the last of them."""
        if not self.files and self.heads == self._before:
            return
        entries = list(self.files.items())
        blocks = [entries[start : start + _WRITTEN_AT_ONCE] for start in range(0, len(entries), _WRITTEN_AT_ONCE)] or [[]]
        for number, block in enumerate(blocks, start=1):
            self._write(block, fence, is_last=number == len(blocks))

    def _write(self, block: Sequence[tuple[bytes, Origin]], fence: Callable[[], None] | None, *, is_last: bool) -> None:
        def change(tx: Transaction) -> None:
            known = tx.index(_KNOWN)
            held = known.get_many(key for key, _ in block)
            for key, origin in block:
                if key not in held:
                    known.put(key, _value(origin))
            for stem in {key[:_FOLDER_BYTES] for key, _ in block}:
                _forget(tx, stem)
            if is_last:
                noted = tx.index(_NOTED)
                for name in [name for name in self._before if name not in self.heads]:
                    noted.remove(name.encode())
                for name, commit_id in self.heads.items():
                    noted.put(name.encode(), Value(None, commit_id.to_bytes(8, "big")))

        commit(self.rows, self._reference, change, message=f"note {len(block)} metadata files", fence=fence)

    def _refs(self) -> Head | None:
        try:
            return head(self.rows, self._reference, fresh=True)
        except MissingError:
            return None  # a catalog without branches

    def _is_last(self, name: ListedName) -> tuple[bool, bool, str]:
        """The default branch first: what it shares with others is known from it."""
        return name.kind is NameKind.TAG, name.name != self.definition.default_branch, name.name

    def _look_at(self, name: ListedName, row: Reference) -> None:
        """A branch or tag, its tombstone too: what it points to, and what it has left. Of the latter some may be collected."""
        for move in row.moves:
            self._walk(move.pointer, name.name)
        if row.pointer is None:
            return
        self._walk(row.pointer, name.name, is_alive=row.deleted is None)
        self.heads[row.name] = row.pointer

    def _walk(self, start: ObjectId, branch: str, *, is_alive: bool = False) -> None:
        """Down to what was walked over before, or was noted; what the oldest commit held where the way ends earlier."""
        if start in self._met:
            return
        last: Head | None = None
        try:
            down = log(self.rows, start)
        except ExpiredError:
            if is_alive:
                raise
            return
        for number, found in enumerate(down):
            if found.id in self._met or (number % _LOOK_EVERY == 0 and self._is_noted(found)):
                return
            self._met.add(found.id)
            self.walked += 1
            self._take(found.commit, branch)
            last = found
        if last is not None and down.end is not End.BEGINNING:
            self._take_all(last, branch)

    def _is_noted(self, found: Head) -> bool:
        """Whether a commit is beneath what is noted of the default branch, on which most others grow."""
        top = self._before.get(content_reference(self.definition.id, NameKind.BRANCH, self.definition.default_branch))
        if top is None:
            return False
        try:
            return descends(self.rows, top, found.id, found.commit.seq)
        except UnknownOutcomeError:
            return False  # history was cut in between

    def _take(self, told: Commit, branch: str) -> None:
        origin = Origin(branch, told.time, "import" not in told.properties.get("properties", {}))
        for operation in told.operations:
            if operation.index == CONTENT and operation.value is not None:
                self._note(operation.value, origin)

    def _take_all(self, oldest: Head, branch: str) -> None:
        """What a commit holds that is the oldest one left. It may be half deleted: then nothing below was kept anyway."""
        try:
            for _, value in oldest.index(CONTENT).range():
                self._note(value, Origin(branch, oldest.commit.time))
        except (ExpiredError, UnreadableError):
            if not oldest.is_collected():
                raise

    def _note(self, value: Value, origin: Origin) -> None:
        content = ContentValue.decode(value)
        if content.type in (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW):
            self._waiting.append(_Found(content.object_id, origin))
            if len(self._waiting) >= _READ_AT_ONCE:
                self._read()

    def _read(self) -> None:
        """Where the metadata of the tables lies that were met. Of what earlier collections left, objects may be missing."""
        waiting, self._waiting = self._waiting, []
        contents = self.rows.read_many([found.object_id for found in waiting], StoredObject)
        for found, content in zip(waiting, contents, strict=True):
            if isinstance(content, IcebergTable | IcebergView):
                key = _key(content.metadata_location)
                there = self.files.get(key)
                if there is None or found.origin.time < there.time:
                    self.files[key] = found.origin


def _forget(tx: Transaction, stem: bytes) -> None:
    """Let go of the oldest files of a folder that has twice as many as are kept."""
    known = tx.index(_KNOWN)
    if len(list(known.keys(stem, after_prefix(stem), limit=2 * KEPT + 2))) <= 2 * KEPT + 1:
        return
    entries = dict(_entries(known, stem))
    entries.pop(_FORGOTTEN, None)
    ordered = sorted(entries, key=lambda name: entries[name].time, reverse=True)
    for name in ordered[KEPT:]:
        known.remove(stem + name)
    known.put(stem + _FORGOTTEN, _value(Origin("", entries[ordered[KEPT]].time)))


def _entries(known: Index, stem: bytes) -> Iterator[tuple[bytes, Origin]]:
    """What is noted of a folder: the rest of each key, and the value."""
    for key, value in known.prefix(stem):
        yield bytes(key[_FOLDER_BYTES:]), _origin(key, value)


def _origin(key: bytes, value: Value) -> Origin:
    data = bytes(value.data)
    kind = data[_TIME_BYTES : _TIME_BYTES + 1]
    if len(key) != _FOLDER_BYTES + _NAME_BYTES or kind not in (_OWN, _IMPORTED):
        raise UnreadableError(f"index entry {bytes(key)!r}: {data!r} notes no metadata file")
    return Origin(data[_TIME_BYTES + 1 :].decode(), Micros(int.from_bytes(data[:_TIME_BYTES], "big")), kind == _OWN)


def _value(origin: Origin) -> Value:
    kind = _OWN if origin.is_own else _IMPORTED
    return Value(None, origin.time.to_bytes(_TIME_BYTES, "big") + kind + origin.branch.encode())


def _commit_in(value: Value) -> ObjectId:
    return ObjectId(int.from_bytes(value.data, "big"))


def _key(location: str) -> bytes:
    with suppress(RefusedError):  # whatever a client put: it is a name for itself
        location = comparable(location)
    folder, _, name = location.rpartition("/")
    return _digest(folder, _FOLDER_BYTES) + _digest(name, _NAME_BYTES)


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()
