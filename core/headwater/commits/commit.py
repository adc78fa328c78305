"""The commit object, the indexes that hold at it, and the ways to it from a reference or a later commit.

A commit carries its indexes, unless it is an inner member of a group: commits that were published together. Of a group only the
last member carries indexes; the others are read as the indexes beneath the group and the operations of its members from there on.

    base            carries indexes (or is the inner member of a group that a branch was put on)
      depth 1       operations
      depth 2       operations      reads as: base, the operations of depth 1, its own
      last, 0       carries indexes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.clock import Micros
from headwater.commits.gc_record import read_collection
from headwater.errors import CorruptionError, ExpiredError, UnknownOutcomeError
from headwater.index import Index, IndexContainer, IndexEditor, IndexValue
from headwater.store import ObjectId, RealmReader, Reference, StoredObject, id_text, object_type

_LOOKS = 3
TAIL = 20
"""How many ancestors a commit names, so that a walk reads them in one go."""


class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of one key of one index: put (with what it holds now) or removed."""

    index: str
    key: bytes
    object_id: ObjectId | None = None
    data: bytes = b""
    removed: bool = False

    @property
    def value(self) -> IndexValue | None:
        """What the key holds now; None when it was removed."""
        return None if self.removed else IndexValue(self.object_id, self.data)


@object_type("commit", compressed=False)
class Commit(StoredObject, frozen=True, kw_only=True):
    """One step of a reference's history: what it changed (``operations``) and what holds now (``indexes``).

    seq           1 for the first, then one more each
    tail          ids of up to 20 ancestors, nearest first; of one that mends the time, the parent's alone
    time          microseconds since 1970; later than the parent's, but for a commit that mends the time (see ``commit_times``)
    indexes       empty for an inner member of a group
    base          an inner member's: the commit beneath its group, over whose indexes its operations hold; None where the group
                  begins the history
    depth         an inner member's: how many commits there are from the base, exclusive, to this one, inclusive; otherwise 0
    """

    seq: int
    tail: tuple[ObjectId, ...] = ()
    time: Micros
    message: str = ""
    properties: dict[str, Any] = {}
    operations: tuple[Operation, ...] = ()
    indexes: dict[str, IndexContainer] = {}
    base: ObjectId | None = None
    depth: int = 0

    def points_to(self) -> Iterable[ObjectId]:
        """The objects in its indexes. An inner member points to the objects that it put, and to the commits that it is read from."""
        found: list[ObjectId] = []
        if self.depth:
            found += (operation.object_id for operation in self.operations if operation.object_id is not None)
            found += self.beneath()
        for container in self.indexes.values():
            found += container.points_to()
        return found

    def beneath(self) -> tuple[ObjectId, ...]:
        """The commits that an inner member is read from, as far as its tail names them: the members before it, and the base."""
        # Pointed to as well: a collection that keeps an inner member must keep these, or it could not be read any more.
        members = self.tail[: max(self.depth - 1, 0)]
        return members if self.base is None else (*members, self.base)


_Layers = tuple[Commit | None, dict[str, dict[bytes, IndexValue | None]]]


@dataclass(frozen=True)
class Head:
    """A commit, its id, and the reader that it came from, which reads its indexes too."""

    id: ObjectId
    commit: Commit
    rows: RealmReader

    def index(self, name: str) -> Index:
        """What holds at this commit; empty when there never was an index of that name. Another one at every call.

        raises        for an inner member of a group: ExpiredError when it was collected, CorruptionError when it is there, but
                      not all that it is read from
        """
        if not self.commit.depth:
            return Index(self.commit.indexes.get(name), self.rows)
        base, changes = self._layers
        index = Index(None if base is None else base.indexes.get(name), self.rows)
        changed = changes.get(name)
        return index if changed is None else _changed(index, changed)

    @property
    def names(self) -> list[str]:
        """The names of all indexes that there are at this commit, in order. Raises as ``index`` does."""
        base, changes = self._layers
        return sorted({*(() if base is None else base.indexes), *changes})

    def is_collected(self) -> bool:
        """Whether the commit was collected since it was read, or may be just now. Ask when something that it needs is missing."""
        # The flag is read before the commit. A sweep that took what was missed, and is over by the first look, has deleted the commit
        # by the second. A sweep that is on, or was broken off, may have taken what the commit needs before the commit itself.
        record = read_collection(self.rows)
        is_sweeping = record is not None and record.value.sweeping
        return is_sweeping or self.rows.without_cache().find_object(self.id, Commit) is None

    @property
    def _layers(self) -> _Layers:
        """The nearest commit with indexes (None: there is none yet), and what changed from there on, by index and key. Read once."""
        known: _Layers | None = vars(self).get("_known")
        if known is None:
            known = vars(self)["_known"] = self._read_layers()  # a cached_property would lock all heads while one is read
        return known

    def _read_layers(self) -> _Layers:
        base, members = self._group()
        changes: dict[str, dict[bytes, IndexValue | None]] = {}
        for _, member in sorted(members.items()):
            for operation in member.operations:
                changes.setdefault(operation.index, {})[operation.key] = operation.value
        return base, changes

    def _group(self) -> tuple[Commit | None, dict[int, Commit]]:
        """The commit with indexes beneath, and the inner members from there to this one by seq. A base may be an inner member too."""
        members: dict[int, Commit] = {}
        below: Commit | None = self.commit
        while below is not None and below.depth:
            nearer, base = self._read_beneath(below)
            members |= {member.seq: member for member in (below, *nearer)}
            below = nearer[-1] if nearer and nearer[-1].depth > 1 else base
        return below, members

    def _read_beneath(self, member: Commit) -> tuple[list[Commit], Commit | None]:
        """The members before this one, nearest first, as many as its tail names; and the base. One round trip."""
        wanted = member.beneath()
        found = []
        for commit_id, commit in zip(wanted, self.rows.read_many(wanted, Commit), strict=True):
            if commit is None:
                raise self._missing(f"commit {id_text(commit_id)}, which is not there")
            found.append(commit)
        base = None if member.base is None else found.pop()
        depths = [commit.depth for commit in found if commit.base == member.base]
        if depths != list(range(member.depth - 1, 0, -1))[:TAIL] or member.seq - member.depth != (base.seq if base else 0):
            raise self._missing("commits that are not of its group")
        return found, base

    def _missing(self, what: str) -> ExpiredError | CorruptionError:
        text = f"commit {id_text(self.id)} of realm {self.rows.realm!r}"
        if self.is_collected():
            return ExpiredError(f"{text} was collected: start again from a branch or a newer commit")
        return CorruptionError(f"{text} is read from {what}: run `headwater fsck`")


def _changed(base: Index, changes: Mapping[bytes, IndexValue | None]) -> Index:
    editor = IndexEditor(base)
    editor.get_many(changes)  # all that must be read to know the length, together
    for key, value in changes.items():
        if value is None:
            editor.remove(key)
        else:
            editor.put(key, value)
    return editor


def read_head(rows: RealmReader, reference: str, *, fresh: bool = False) -> Head | None:
    """The newest commit of a reference; None when it has none yet.

    fresh         ask the database; otherwise the reference may be as old as its time to live in the cache
    raises        NotFoundError: no such reference · CorruptionError: it points to a commit that is not there
    """
    for _ in range(_LOOKS):
        try:
            return load_head(rows, rows.read_reference(reference, fresh=fresh))
        except ExpiredError:
            fresh = True  # what the cache remembers was collected since, or this process was stopped for long
        except CorruptionError:
            if fresh:
                raise
            fresh = True
    return load_head(rows, rows.read_reference(reference, fresh=True))


def read_commit(rows: RealmReader, commit_id: ObjectId) -> Head:
    """A commit by its id.

    raises        ExpiredError when it is not there (any more)
    """
    found = rows.find_object(commit_id, Commit)
    if found is None:
        raise ExpiredError(f"commit {id_text(commit_id)} is not in realm {rows.realm!r}: it was collected, or never was")
    return Head(commit_id, found, rows)


def load_head(rows: RealmReader, reference: Reference) -> Head | None:
    """The commit that a reference points to; None when it has none yet.

    raises        CorruptionError when it points to a commit that is not there: never to be taken for "no commit yet" ·
                  ExpiredError when it points elsewhere by now, or was deleted: read it again. Between the read of the row and this
                  one its process was stopped for longer than the reader's grace, or the row came from a cache
    """
    if reference.pointer is None:
        return None
    found = rows.find_object(reference.pointer, Commit)
    if found is None:
        now = rows.find_row(reference.name)
        if now is None or now.pointer != reference.pointer or now.deleted is not None:
            raise ExpiredError(
                f"reference {reference.name!r} of realm {rows.realm!r} has left commit {id_text(reference.pointer)}, which was collected"
                " since: read it again"
            )
        raise CorruptionError(
            f"reference {reference.name!r} of realm {rows.realm!r} points to commit {id_text(reference.pointer)}, which is not there;"
            f" recent pointers: {', '.join(id_text(i) for i in reference.recent[:3]) or 'none'}. Nothing was changed: run `headwater fsck`"
        )
    return Head(reference.pointer, found, rows)


def descends(rows: RealmReader, start: ObjectId, wanted: ObjectId, seq: int) -> bool:
    """Whether ``wanted``, whose seq is known, is ``start`` or one of its ancestors. Reads one commit in twenty.

    raises        UnknownOutcomeError when history was cut before the answer was found
    """
    while True:
        found = rows.find_object(start, Commit)
        if found is None:
            raise UnknownOutcomeError(f"commit {id_text(start)} of realm {rows.realm!r} is not there any more")
        distance = found.seq - seq
        if distance <= 0:
            return start == wanted
        if distance <= len(found.tail):
            return found.tail[distance - 1] == wanted
        if not found.tail:
            return False
        start = found.tail[-1]
