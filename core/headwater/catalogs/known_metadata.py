"""The metadata files that commits of a catalog have named: a file that is known here is no news from outside.

Existing commits show it themselves: each has the contents that it put. Before a collection deletes commits, their files are
noted in the catalog's reference ``cat/<id>/refs``, which outlives branches and drops. So a commit
writes nothing for it, and all ways in which a file comes into the catalog are covered, because all of them are commits.

    index ``known``       16 bytes BLAKE2b of the folder, 8 of the file's name  ->  8 bytes time of the commit, ``i`` where an import
                                                                                    brought it and ``w`` otherwise, name of the branch
                          16 bytes BLAKE2b of the folder, 8 times 0x00          ->  8 bytes time: of what was forgotten, the last; ``i``
    index ``known-to``    name of a branch's or tag's reference                 ->  8 bytes commit up to which it is noted

Of a folder the ``KEPT`` files that became known last stay noted. What is forgotten is older than all of them, and so is its
document: a file that says it was written before the last that was forgotten counts as known.

What a branch leaves when it is put elsewhere stays recorded in its row, and is walked from there. The record goes with a later
move, once it is older than the grace. Whoever moves a branch notes before that what such a record alone leads to.

A client writes a metadata file before the commit that names it, and the file stays where that commit does not happen. So files
of this catalog's clients carry a mark in their names (``own_name``): by its name alone such a file is not news from outside,
for this catalog; for every other catalog it is a file like any.

    00003-ce7c1722-5acc-84ea-826a-20d40e2f8e95.metadata.json     a number and a UUID, as every reader of Iceberg takes it apart
          6 random bytes, version 8 (RFC 9562: free to use) and ``4ea``, the variant and 14 random bits, 6 bytes BLAKE2b of the
          catalog's id
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

import structlog

from headwater.catalogs.catalog_definition import CatalogDefinition
from headwater.catalogs.content import ContentType, ContentValue, IcebergTable, IcebergView
from headwater.catalogs.content_operations import CONTENT
from headwater.catalogs.history.commit_meta import is_by_import
from headwater.catalogs.registry import (
    BY_ID,
    REFS_INDEX,
    ListedRef,
    OwnRefKind,
    RefKind,
    all_definitions,
    content_reference,
    listed_refs,
    own_reference,
    parse_reference,
)
from headwater.clock import Micros
from headwater.commits import Commit, Head, LogEnd, Transaction, commit_change, read_head, read_log
from headwater.errors import CorruptionError, ExpiredError, NotFoundError, RefusedError
from headwater.iceberg import comparable_location
from headwater.index import Index, IndexValue, after_prefix
from headwater.store import ObjectId, RealmStore, Reference, StoredObject, id_text

_log = structlog.get_logger()

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
_MANY_FILES = 1000
"""Commits that an import has to walk over, or files that they have to tell of, before it notes these to spare the next one the way."""


class MetadataOrigin(NamedTuple):
    """Where a file became known first: the branch or tag, and the time of the commit.

    is_own        it was put through this catalog; otherwise an import found it, or the commit that put it is gone
    """

    branch: str
    time: Micros
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class KnownFolder:
    """The known metadata files in one folder.

    forgotten     the latest time at which a file became known that is not noted any more; 0: all are noted
    """

    files: Mapping[bytes, MetadataOrigin]
    forgotten: Micros = _NEVER

    def __bool__(self) -> bool:
        return bool(self.files) or self.forgotten > 0

    def find_origin(self, location: str) -> MetadataOrigin | None:
        """Where a file became known; None: it is unknown, or was forgotten."""
        return self.files.get(_key(location)[_FOLDER_BYTES:])

    @property
    def has_own(self) -> bool:
        """True if any file was put through this catalog."""
        return any(origin.is_own for origin in self.files.values())

    def is_last(self, location: str) -> bool:
        """True if a file is the last one that became known from outside."""
        origin = self.find_origin(location)
        return origin is not None and origin.time >= max(
            known.time for known in self.files.values() if not known.is_own or known is origin
        )


class KnownMetadata:
    """The metadata files that a catalog knows: those noted, and those of later commits. Reads when created, and in ``look_again``.

    A branch whose head is lost is passed over, with a warning: the files that its older heads name stay known.

    note          write notes where many files have accumulated; else nothing is written
    """

    def __init__(
        self, rows: RealmStore, definition: CatalogDefinition, *, note: bool = False, fence: Callable[[], None] | None = None
    ) -> None:
        self._walk = _HistoryWalk(rows, definition, is_strict=False).walk_all()
        if note and (self._walk.walked >= _WORTH_NOTING or len(self._walk.files) >= _MANY_FILES):
            self._walk.write_notes(fence)
            self._walk = _HistoryWalk(rows, definition, is_strict=False).walk_all()
        self._since: dict[bytes, dict[bytes, MetadataOrigin]] = {}
        self._take_over()

    def look_again(self, own: Collection[ObjectId] = ()) -> None:
        """Read the commits made since the last look: the heads, and each new commit.

        own           commits of the caller, whose files need no look-up
        """
        self._walk.passed_over.update(own)
        self._walk.walk_all()
        self._take_over()

    def _take_over(self) -> None:
        files, self._walk.files = self._walk.files, {}
        for key, origin in files.items():
            since, name = self._since.setdefault(key[:_FOLDER_BYTES], {}), key[_FOLDER_BYTES:]
            since[name] = min(since.get(name, origin), origin, key=attrgetter("time"))

    def find_many(self, locations: Sequence[str]) -> dict[str, MetadataOrigin]:
        """Find where files became known; unknown files are left out."""
        keys = {location: _key(location) for location in locations}
        noted = self._walk.noted.get_many(keys.values())
        origins = {}
        for location, key in keys.items():
            since = self._since.get(key[:_FOLDER_BYTES], {}).get(key[_FOLDER_BYTES:])
            if key in noted:
                origins[location] = _origin(key, noted[key])
            elif since is not None:
                origins[location] = since
        return origins

    def known_folder(self, folder: str) -> KnownFolder:
        """The known files of a folder."""
        stem = _key(f"{folder}/x")[:_FOLDER_BYTES]
        noted = dict(_entries(self._walk.noted, stem))
        forgotten = noted.pop(_FORGOTTEN, None)
        files = self._since.get(stem, {}) | noted
        return KnownFolder(files, _NEVER if forgotten is None else forgotten.time)


def note_known(rows: RealmStore, definition: CatalogDefinition, *, fence: Callable[[], None] | None = None) -> int:
    """Note the files that commits of a catalog name and no note has yet; returns their number.

    raises        what reading commits and ``commit_change`` raise, also for a lost head: then nothing may be deleted
    """
    walk = _HistoryWalk(rows, definition).walk_all()
    walk.write_notes(fence)
    return len(walk.files)


def note_forgotten(rows: RealmStore, definition: CatalogDefinition, row: Reference, target: ObjectId | None) -> int:
    """Note the files of commits that a branch left so long ago that its row drops them with the next move; returns their number.

    Usually there are none: a collection has noted them meanwhile. Otherwise this walks from there down to the branch's present
    history, and reads nothing of other branches.

    target        the commit that the branch moves to
    raises        what reading commits and ``commit_change`` raise
    """
    left = [move.pointer for move in rows.moves_to_forget(row)]
    if not left:
        return 0
    walk = _HistoryWalk(rows, definition, is_strict=False).look_at_lines(row.name, left, [row.pointer, target])
    walk.write_notes(None)
    return len(walk.files)


def note_all_known(rows: RealmStore, *, fence: Callable[[], None] | None = None) -> int:
    """Note the files of all catalogs of a realm, with deleted ones because they can be restored."""
    return sum(note_known(rows, definition, fence=fence) for definition, _ in all_definitions(rows, index=BY_ID))


class _PutContent(NamedTuple):
    """A table or view that a commit put, with the id of its content object."""

    object_id: ObjectId
    origin: MetadataOrigin


@dataclass(slots=True)
class _HistoryWalk:
    """Walks the histories of a catalog down to the commits that are noted.

    is_strict     a lost head raises; otherwise it is passed over
    files         the files that became known since, by key
    heads         the commits up to which ``files`` is complete, by reference
    passed_over   commits whose files are not taken
    """

    rows: RealmStore
    definition: CatalogDefinition
    is_strict: bool = True
    noted: Index = field(default_factory=Index)
    files: dict[bytes, MetadataOrigin] = field(default_factory=dict)
    heads: dict[str, ObjectId] = field(default_factory=dict)
    walked: int = 0
    passed_over: set[ObjectId] = field(default_factory=set)
    _before: dict[str, ObjectId] = field(default_factory=dict)
    _met: set[ObjectId] = field(default_factory=set)
    _held: list[_HistoryLine] = field(default_factory=list)
    _waiting: list[_PutContent] = field(default_factory=list)

    @property
    def _reference(self) -> str:
        return own_reference(self.definition.id, OwnRefKind.REFS)

    def walk_all(self) -> _HistoryWalk:
        """Walk the commits made since the notes and since the last look."""
        refs = self._refs()
        if refs is None:
            return self
        self._begin(refs)
        names = sorted(listed_refs(refs.index(REFS_INDEX)), key=self._is_last)
        rows = self.rows.find_rows([name.reference(self.definition.id) for name in names])
        for name, row in zip(names, rows, strict=True):
            if row is not None:
                self._look_at(name, row)
        self._read()
        return self

    def look_at_lines(self, reference: str, starts: Sequence[ObjectId], held: Sequence[ObjectId | None]) -> _HistoryWalk:
        """Walk some lines of one branch, down to commits that are noted, or in the history of ``held``."""
        refs, name = self._refs(), parse_reference(reference)
        if refs is None or name is None:
            return self
        self._begin(refs)
        self.heads = dict(self._before)
        self._held += [_HistoryLine(self.rows, pointer) for pointer in held if pointer is not None]
        for start in starts:
            self._walk(start, name.name)
        self._read()
        return self

    def _begin(self, refs: Head) -> None:
        self.noted = refs.index(_KNOWN)
        self._before = {key.decode(): _commit_in(value) for key, value in refs.index(_NOTED).range()}
        self._met |= set(self._before.values())
        top = self._before.get(content_reference(self.definition.id, RefKind.BRANCH, self.definition.default_branch))
        self._held = [] if top is None else [_HistoryLine(self.rows, top)]

    def write_notes(self, fence: Callable[[], None] | None) -> None:
        """Write the notes in commits of bounded size, the heads with the last of them. Then forget the oldest files of full folders.

        Oldest files are written first: a forgotten file must be older than those that stay.
        """
        if not self.files and self.heads == self._before:
            return
        entries = sorted(self.files.items(), key=lambda entry: entry[1].time)
        blocks = [entries[start : start + _WRITTEN_AT_ONCE] for start in range(0, len(entries), _WRITTEN_AT_ONCE)] or [[]]
        for number, block in enumerate(blocks, start=1):
            self._write(block, fence, is_last=number == len(blocks))
        self._forget(fence)

    def _write(self, block: Sequence[tuple[bytes, MetadataOrigin]], fence: Callable[[], None] | None, *, is_last: bool) -> None:
        def change(tx: Transaction) -> None:
            known = tx.index(_KNOWN)
            held = known.get_many(key for key, _ in block)
            for key, origin in block:
                if key not in held:
                    known.put(key, _value(origin))
            if is_last:
                noted = tx.index(_NOTED)
                for name in [name for name in self._before if name not in self.heads]:
                    noted.remove(name.encode())
                for name, commit_id in self.heads.items():
                    noted.put(name.encode(), IndexValue(None, commit_id.to_bytes(8, "big")))

        commit_change(self.rows, self._reference, change, message=f"note {len(block)} metadata files", fence=fence)

    def _forget(self, fence: Callable[[], None] | None) -> None:
        """Trim full folders. Counting may take longer than a commit may, so it is outside; each trim is a commit of its own."""
        refs = self._refs()
        known = None if refs is None else refs.index(_KNOWN)
        if known is None or len(known) <= 2 * KEPT:
            return
        for stem in sorted({key[:_FOLDER_BYTES] for key in self.files}):  # sorted, because neighbors lie in one stripe
            if _is_full(known, stem):
                commit_change(
                    self.rows, self._reference, partial(_trim, stem=stem), message="forget metadata files", fence=fence
                )

    def _refs(self) -> Head | None:
        try:
            return read_head(self.rows, self._reference, fresh=True)
        except NotFoundError:
            return None  # a catalog without branches

    def _is_last(self, name: ListedRef) -> tuple[bool, bool, str]:
        """Sort the default branch first: files that other branches share are attributed to it."""
        return name.kind is RefKind.TAG, name.name != self.definition.default_branch, name.name

    def _look_at(self, name: ListedRef, row: Reference) -> None:
        """Walk a branch or tag, also under a tombstone: its head and the commits that it left, some of which may be collected."""
        for move in row.moves:
            self._walk(move.pointer, name.name)
        if row.pointer is None:
            return
        if self._walk(row.pointer, name.name) or row.deleted is not None:
            self.heads[row.name] = row.pointer
        else:
            self._pass_over(name, row)

    def _pass_over(self, name: ListedRef, row: Reference) -> None:
        """Pass over a lost head, which is damage, or raise if strict: the files that only it names are unknown, so nothing may be deleted.

        Raising for every reader would block all other branches, and the repair of this one.
        """
        assert row.pointer is not None
        if self.is_strict:
            raise ExpiredError(
                f"{name.kind} {name.name!r} of catalog {self.definition.name!r} of realm {self.rows.realm!r} is at commit"
                f" {id_text(row.pointer)}, which is lost: run `headwater fsck`"
            )
        for pointer in row.recent:
            self._walk(pointer, name.name)
        if row.name in self._before:
            self.heads[row.name] = self._before[row.name]
        _log.warning(
            "a head is lost, and which metadata files it named: run headwater fsck",
            reference=row.name,
            commit=id_text(row.pointer),
            realm=self.rows.realm,
        )

    def _walk(self, start: ObjectId, branch: str) -> bool:
        """Walk down to a commit that was walked before, is noted or is held. A walk that ends earlier takes all of the oldest commit.

        returns       whether such a commit was reached
        """
        if start in self._met:
            return True
        last: Head | None = None
        try:
            down = read_log(self.rows, start)
        except ExpiredError:
            return False
        for number, head in enumerate(down):
            if head.id in self._met or (number % _LOOK_EVERY == 0 and any(line.has(head) for line in self._held)):
                return True
            self._met.add(head.id)
            self.walked += 1
            if head.id not in self.passed_over:
                self._take(head.commit, branch)
            last = head
        if last is not None and down.end is not LogEnd.BEGINNING:
            self._take_all(last, branch)
        return True

    def _take(self, commit: Commit, branch: str) -> None:
        origin = MetadataOrigin(branch, commit.time, not is_by_import(commit))
        for operation in commit.operations:
            if operation.index == CONTENT and operation.value is not None:
                self._note(operation.value, origin)

    def _take_all(self, oldest: Head, branch: str) -> None:
        """Take the whole content of the oldest remaining commit. It may be half deleted: then nothing below it was kept anyway."""
        try:
            for _, value in oldest.index(CONTENT).range():
                self._note(value, MetadataOrigin(branch, oldest.commit.time))
        except (ExpiredError, CorruptionError):
            if not oldest.is_collected():
                raise

    def _note(self, value: IndexValue, origin: MetadataOrigin) -> None:
        content = ContentValue.from_value(value)
        if content.type in (ContentType.ICEBERG_TABLE, ContentType.ICEBERG_VIEW):
            self._waiting.append(_PutContent(content.object_id, origin))
            if len(self._waiting) >= _READ_AT_ONCE:
                self._read()

    def _read(self) -> None:
        """Read the metadata locations of the tables met. Objects of commits left by earlier collections may be missing."""
        waiting, self._waiting = self._waiting, []
        contents = self.rows.read_many([put.object_id for put in waiting], StoredObject)
        for put, content in zip(waiting, contents, strict=True):
            if isinstance(content, IcebergTable | IcebergView):
                key = _key(content.metadata_location)
                known = self.files.get(key)
                if known is None or put.origin.time < known.time:
                    self.files[key] = put.origin


class _HistoryLine:
    """A history, asked for commits from its head downwards. Reads one commit in twenty, and each once."""

    def __init__(self, rows: RealmStore, top: ObjectId) -> None:
        self._rows = rows
        self._top = top
        self._at: Head | None = None

    def has(self, commit: Head) -> bool:
        """True if the history has a commit; False also if it was cut before the answer was found."""
        seq = commit.commit.seq
        at = self._at if self._at is not None and self._at.commit.seq >= seq else self._read(self._top)
        while at is not None:
            self._at, distance, tail = at, at.commit.seq - seq, at.commit.tail
            if distance <= 0:
                return at.id == commit.id
            if distance <= len(tail):
                return tail[distance - 1] == commit.id
            at = self._read(tail[-1]) if tail else None
        return False

    def _read(self, commit_id: ObjectId) -> Head | None:
        commit = self._rows.find_object(commit_id, Commit)
        return None if commit is None else Head(commit_id, commit, self._rows)


def _is_full(known: Index, stem: bytes) -> bool:
    """True if a folder has more than twice as many files as are kept, not counting the marker of forgotten files."""
    return len(list(known.keys(stem, after_prefix(stem), limit=2 * KEPT + 2))) > 2 * KEPT + 1


def _trim(tx: Transaction, *, stem: bytes) -> None:
    """Remove the oldest files of a folder. The marker of forgotten files only ever moves forward."""
    known = tx.index(_KNOWN)
    entries = dict(_entries(known, stem))
    before = entries.pop(_FORGOTTEN, None)
    ordered = sorted(entries, key=lambda name: entries[name].time, reverse=True)
    if len(ordered) <= KEPT:
        return
    for name in ordered[KEPT:]:
        known.remove(stem + name)
    last = max(entries[ordered[KEPT]].time, _NEVER if before is None else before.time)
    known.put(stem + _FORGOTTEN, _value(MetadataOrigin("", last)))


def _entries(known: Index, stem: bytes) -> Iterator[tuple[bytes, MetadataOrigin]]:
    """The notes of a folder: the rest of each key, and the value."""
    for key, value in known.prefix(stem):
        yield bytes(key[_FOLDER_BYTES:]), _origin(key, value)


def _origin(key: bytes, value: IndexValue) -> MetadataOrigin:
    data = bytes(value.data)
    kind = data[_TIME_BYTES : _TIME_BYTES + 1]
    if len(key) != _FOLDER_BYTES + _NAME_BYTES or kind not in (_OWN, _IMPORTED):
        raise CorruptionError(f"index entry {bytes(key)!r}: {data!r} notes no metadata file")
    return MetadataOrigin(data[_TIME_BYTES + 1 :].decode(), Micros(int.from_bytes(data[:_TIME_BYTES], "big")), kind == _OWN)


def _value(origin: MetadataOrigin) -> IndexValue:
    kind = _OWN if origin.is_own else _IMPORTED
    return IndexValue(None, origin.time.to_bytes(_TIME_BYTES, "big") + kind + origin.branch.encode())


def _commit_in(value: IndexValue) -> ObjectId:
    return ObjectId(int.from_bytes(value.data, "big"))


def _key(location: str) -> bytes:
    with suppress(RefusedError):  # a client may put any text: a malformed location stands for itself
        location = comparable_location(location)
    folder, _, name = location.rpartition("/")
    return _digest(folder, _FOLDER_BYTES) + _digest(name, _NAME_BYTES)


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=size).digest()


_VERSION_8 = 0x8
_MARK = 0x4EA
_VARIANT = 0b10
_OWN_NAME = re.compile(r"[0-9]+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:\.\w+)?\.metadata\.json")


def own_name(catalog_id: str, version: int) -> str:
    """Make a new name for a metadata file of a table or view, for a commit to this catalog."""
    random = secrets.randbits(62)
    number = (
        random >> 14 << 80 | _VERSION_8 << 76 | _MARK << 64 | _VARIANT << 62 | (random & 0x3FFF) << 48 | _mark_of(catalog_id)
    )
    return f"{version:05d}-{UUID(int=number)}.metadata.json"


def is_own_name(catalog_id: str, name: str) -> bool:
    """True if a client of this catalog wrote the file of this name, whether or not its commit happened."""
    match = _OWN_NAME.fullmatch(name)
    if match is None:
        return False
    number = UUID(match[1]).int
    return number >> 64 & 0xFFFF == _VERSION_8 << 12 | _MARK and number & (1 << 48) - 1 == _mark_of(catalog_id)


def _mark_of(catalog_id: str) -> int:
    return int.from_bytes(hashlib.blake2b(catalog_id.encode(), digest_size=6).digest(), "big")
