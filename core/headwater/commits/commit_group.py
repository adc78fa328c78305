"""Commits that share one bulk write and one swap: each is made on what those before it leave, and one batch holds them all.

A group stands on one head. A member that is taken in becomes the head of the next::

    base            the head that was looked up
    A               changes key 1         inner: its operations
    B               changes key 2         inner: its operations        sees A's edit
    C               changes key 1         last: its operations, and the indexes with all three edits

A group of one is an ordinary commit. Whoever has the baton (see ``commit_queue``) is the only one that changes a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from headwater.commits.commit import TAIL, Commit, Head, Operation, load_head
from headwater.commits.transaction import Changes, Memos, PendingObject, Transaction
from headwater.errors import ExpiredError, UnavailableError
from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue
from headwater.store import ObjectBatch, ObjectId, RealmStore, Reference, StoredObject

_LOOKS = 3


class GroupFullError(Exception):
    """A member adds more than still fits: it belongs to the next group."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A commit that belongs to a group, or will.

    commit        as an inner member has it
    edited        the indexes that it changes
    objects       what it adds; ``added``: the same as rows
    inner         the commit as a row: made early, to know its size; the last member's is made anew, with the indexes.
                  None: it was made to be the only member, and nothing can follow it
    """

    id: ObjectId
    commit: Commit
    edited: dict[str, IndexEditor]
    objects: dict[ObjectId, StoredObject]
    added: ObjectBatch | None
    inner: ObjectBatch | None

    @property
    def bytes(self) -> int:
        return sum(len(row.value) for batch in (self.added, self.inner) if batch for row in batch.rows)


class CommitGroup:
    """Commits on one head that are published together, or not at all.

    seen          the reference as it was looked up
    head          its commit
    prepared      when it was looked up, in monotonic seconds
    """

    def __init__(self, rows: RealmStore, seen: Reference, head: Head | None, prepared: float) -> None:
        self._rows = rows
        self.seen = seen
        self.head = head
        self.prepared = prepared
        # Invariant: set while a member is added. Still set afterwards: its thread was stopped in between, and members, editors and
        # pending objects may not fit together. It is never published then.
        self.is_torn = False
        # Invariant: set from before the call that may publish the group until it is certain that it did not. Nobody joins any more.
        self.is_open = False
        # Invariant: seq of each is one more than that of the one before it, and all but the last have their inner row.
        self._members: list[GroupMember] = []
        # Invariant: what the inner rows and the added objects of all members take.
        self._bytes = 0
        # Invariant: an editor holds the edits of all members to its index; an index without one is as in the head.
        self._editors: dict[str, IndexEditor] = {}
        self._bases: dict[str, Index] = {}
        # Invariant: every member but one that is alone, and all that they add.
        self._pending: dict[ObjectId, PendingObject] = {}
        # Invariant: once set it stays, for a call whose answer was lost is repeated with the same bytes. Nobody joins any more.
        self._packed: ObjectBatch | None = None

    @classmethod
    def on_head(cls, rows: RealmStore, reference: str) -> CommitGroup:
        """A group on what the reference points to now.

        raises        NotFoundError: no such reference · CorruptionError: its head cannot be read · UnavailableError
        """
        for _ in range(_LOOKS):
            prepared = rows.clock.monotonic()
            seen = rows.read_reference(reference, fresh=True)
            try:
                return cls(rows, seen, load_head(rows, seen), prepared)
            except ExpiredError:
                continue  # this thread was stopped between the two reads, for longer than a head stays readable
        raise UnavailableError(f"reference {reference!r} of realm {rows.realm!r} could not be read at one moment: try again")

    def __len__(self) -> int:
        return len(self._members)

    @property
    def newest(self) -> Head | None:
        """The last member, or the head beneath."""
        if not self._members:
            return self.head
        last = self._members[-1]
        return Head(last.id, last.commit, self._rows)

    @property
    def newest_id(self) -> ObjectId | None:
        return self._members[-1].id if self._members else self.seen.pointer

    @property
    def seq(self) -> int:
        """Of the last member."""
        return self._members[-1].commit.seq

    @property
    def is_ended(self) -> bool:
        """Its only member was made to be that: nothing can follow it."""
        return bool(self._members) and self._members[-1].inner is None

    def begin_transaction(self, rows: RealmStore, memos: Memos) -> Transaction:
        """A run of a change on top of what was taken in."""
        now = rows.clock.now()
        return Transaction(rows, self.seen.name, self.newest, now, base=self._base, pending=self._pending, memos=memos)

    def make_member(
        self, rows: RealmStore, tx: Transaction, *, message: str, properties: dict[str, Any], is_alone: bool
    ) -> GroupMember | None:
        """What a run has made, to be taken in; None when it has changed nothing. The group stays as it is.

        is_alone      nobody will follow
        raises        RefusedError for what cannot be stored, or not by this handle
        """
        changes = tx.changes()
        if not changes and not tx.added and not tx.is_mending:
            return None
        added = rows.pack(tx.added.items()) if tx.added else None
        commit_id = rows.new_id()
        commit = self._commit(tx, changes, message, properties)
        inner = None if is_alone else rows.pack([(commit_id, commit)])
        return GroupMember(commit_id, commit, {name: tx.editor(name) for name in changes}, tx.added, added, inner)

    def add_member(self, rows: RealmStore, member: GroupMember) -> None:
        """Make a commit the newest.

        raises        GroupFullError; then the group is as before
        """
        if self._members and self._bytes + member.bytes > rows.settings.commit_group_bytes:
            raise GroupFullError("what it adds does not fit into the group of commits that it met")
        assert not self.is_open and self._packed is None, "a group that is packed or published takes nobody in"
        assert not self._members or member.commit.seq == self.seq + 1, "a member is made on the one before it"
        self.is_torn = True
        for name, editor in member.edited.items():
            self._take_edits(name, editor, is_alone=member.inner is None)
        self._members.append(member)
        if member.inner is not None:
            self._bytes += member.bytes
            self._show_pending(member)
        self.is_torn = False

    def pack_rows(self, rows: RealmStore) -> ObjectBatch:
        """All that the members add and are, the last of them with the indexes. The same at every call.

        raises        what reading and packing raise; then nothing was written
        """
        if self._packed is None:
            last = self._members[-1]
            indexes, spilled = self._indexes(rows)
            whole = msgspec.structs.replace(last.commit, indexes=indexes, base=None, depth=0)
            parts = [member.added for member in self._members if member.added is not None]
            for member in self._members[:-1]:
                assert member.inner is not None, "a commit that was to be alone has a successor"
                parts.append(member.inner)
            self._packed = _joined([*parts, rows.pack([*spilled, (last.id, whole)])])
        return self._packed

    # inside

    def _commit(self, tx: Transaction, changes: Changes, message: str, properties: dict[str, Any]) -> Commit:
        """The commit as an inner member."""
        parent_id, parent = tx.head_id, tx.head
        return Commit(
            seq=parent.seq + 1 if parent else 1,
            tail=(parent_id, *parent.tail)[: 1 if tx.is_mending else TAIL] if parent and parent_id else (),
            time=tx.commit_time,
            message=message if tx.message is None else tx.message,
            properties=properties | tx.properties,
            operations=tuple(_operation(name, key, value) for name, edits in changes.items() for key, value in edits),
            base=self.seen.pointer,
            depth=len(self._members) + 1,
        )

    def _base(self, name: str) -> Index:
        """The index as the members so far leave it."""
        editor = self._editors.get(name)
        if editor is not None:
            return editor
        base = self._bases.get(name)
        if base is None:
            base = self._bases[name] = Index() if self.head is None else self.head.index(name)
        return base

    def _take_edits(self, name: str, editor: IndexEditor, *, is_alone: bool) -> None:
        base = self._base(name)
        if is_alone and not isinstance(base, IndexEditor):
            self._editors[name] = editor
            return
        if name not in self._editors:
            self._editors[name] = base if isinstance(base, IndexEditor) else IndexEditor(base)
        self._editors[name].absorb(editor)

    def _show_pending(self, member: GroupMember) -> None:
        """Let the members to come read what this one adds."""
        self._pending[member.id] = PendingObject(member.commit, None, member.commit.time)
        for row in () if member.added is None else member.added.rows:
            if row.part == 0:
                self._pending[row.id] = PendingObject(member.objects[row.id], row.token, row.created)

    def _indexes(self, rows: RealmStore) -> tuple[dict[str, IndexContainer], list[tuple[ObjectId, StoredObject]]]:
        """What holds after the last member, and the objects that it was spilled into."""
        settings = rows.settings
        limits = IndexLimits(embedded_bytes=settings.index_embedded_bytes, stripe_bytes=settings.index_stripe_bytes)
        indexes, spilled = self._kept_indexes(), list[tuple[ObjectId, StoredObject]]()
        for name, editor in self._editors.items():
            if name not in indexes or editor.changes():
                stored = editor.stored(rows.new_ids, limits)
                indexes[name] = stored.container
                spilled += stored.objects
        return indexes, spilled

    def _kept_indexes(self) -> dict[str, IndexContainer]:
        """Those of the head. An inner member of another group, on which a branch was put, has none: they are all made anew."""
        if self.head is None:
            return {}
        if not self.head.commit.depth:
            return dict(self.head.commit.indexes)
        for name in self.head.names:
            base = self._base(name)
            self._editors.setdefault(name, base if isinstance(base, IndexEditor) else IndexEditor(base))
        return {}


def _operation(index: str, key: bytes, value: IndexValue | None) -> Operation:
    if value is None:
        return Operation(index, key, removed=True)
    return Operation(index, key, object_id=value.object_id, data=value.data)


def _joined(parts: list[ObjectBatch]) -> ObjectBatch:
    if len(parts) == 1:
        return parts[0]
    joined = ObjectBatch([], [], [])
    for part in parts:
        joined.rows.extend(part.rows)
        joined.remembered.extend(part.remembered)
        joined.others.extend(part.others)
    return joined
