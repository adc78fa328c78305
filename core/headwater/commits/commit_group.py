"""A group of commits that share one bulk write and one swap: how it is built, published, and how its outcome is found out.

A group stands on one head. A member that is taken in becomes the head of the next::

    base            the head that was looked up
    A               changes key 1         inner: its operations
    B               changes key 2         inner: its operations        sees A's edit
    C               changes key 1         last: its operations, and the indexes with all three edits

A group of one is an ordinary commit. Only the thread that has the baton (see ``commit_queue``) changes a group.

A swap whose answer was lost may have happened, may be on its way still, or may never arrive. It can do something only while the
reference's version is the one that was seen. So the very same call is repeated: when it works, or has worked, the version has
passed; and then the history tells whose commit it was::

    publisher                               database
    write and swap, version 7 to 8   ->     the answer is lost
    the same again                   ->     beaten: the version has passed 7
    looks for its commit, from the head and from every recorded move back to its seq

Where the call meets ids that another process made, it can only fail again. The version is then taken from under it, so that what may
be on its way can do nothing either, and the commit starts over with other ids.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from headwater.commits.commit import (
    TAIL,
    Changes,
    Commit,
    Head,
    Memos,
    Operation,
    PendingObject,
    Transaction,
    descends,
    load_head,
)
from headwater.errors import (
    CollisionError,
    ExpiredError,
    HeadwaterError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.index import Index, IndexContainer, IndexEditor, IndexLimits, IndexValue
from headwater.settings import duration_text
from headwater.store import ObjectBatch, ObjectId, RealmStore, Reference, StoredObject

_LOOKS = 3


class GroupFullError(Exception):
    """A member adds more than still fits: it belongs to the next group."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A commit that belongs to a group, or will.

    commit        the commit as an inner member: with operations, and without indexes
    edited        the indexes that it changes
    objects       the objects that it adds; ``added`` has them as rows
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
        """A new group on the commit that the reference points to now.

        raises        NotFoundError: no such reference · CorruptionError: its head cannot be read · UnavailableError
        """
        for _ in range(_LOOKS):
            prepared = rows.clock.monotonic()  # before the read: the age of a group must not be taken for less than it is
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
        """The last member, or the head beneath the group."""
        if not self._members:
            return self.head
        last = self._members[-1]
        return Head(last.id, last.commit, self._rows)

    @property
    def newest_id(self) -> ObjectId | None:
        return self._members[-1].id if self._members else self.seen.pointer

    @property
    def seq(self) -> int:
        """The seq of the last member."""
        return self._members[-1].commit.seq

    @property
    def is_ended(self) -> bool:
        """Whether its member was made to be the only one, so that nothing can follow."""
        return bool(self._members) and self._members[-1].inner is None

    def begin_transaction(self, rows: RealmStore, memos: Memos) -> Transaction:
        """Begin a run of a change on top of the members so far."""
        now = rows.clock.now()
        return Transaction(rows, self.seen.name, self.newest, now, base=self._base, pending=self._pending, memos=memos)

    def make_member(
        self, rows: RealmStore, tx: Transaction, *, message: str, properties: dict[str, Any], is_alone: bool
    ) -> GroupMember | None:
        """Make a member of what a run has changed; None when it has changed nothing. The group stays as it is.

        is_alone      no member will follow
        raises        RefusedError for values that cannot be stored, or not by this handle
        """
        changes = tx.changes()
        if not changes and not tx.added and not tx.is_mending and not tx.is_empty_allowed:
            return None
        added = rows.pack(tx.added.items()) if tx.added else None
        commit_id = tx.commit_id
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
        # Set before the first of these steps and cleared after the last: a group that is found torn is thrown away as a whole.
        self.is_torn = True
        for name, editor in member.edited.items():
            self._take_edits(name, editor, is_alone=member.inner is None)
        self._members.append(member)
        if member.inner is not None:
            self._bytes += member.bytes
            self._show_pending(member)
        self.is_torn = False

    def pack_rows(self, rows: RealmStore) -> ObjectBatch:
        """Pack all members and what they add; the last member with the indexes. Returns the same batch at every call.

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
            # Kept: packed again, the last commit would spill under new ids, and a repeated call could write it twice.
            self._packed = _joined([*parts, rows.pack([*spilled, (last.id, whole)])])
        return self._packed

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
        """Let later members read what this one adds."""
        self._pending[member.id] = PendingObject(member.commit, None, member.commit.time)
        for row in () if member.added is None else member.added.rows:
            if row.part == 0:
                self._pending[row.id] = PendingObject(member.objects[row.id], row.token, row.created)

    def _indexes(self, rows: RealmStore) -> tuple[dict[str, IndexContainer], list[tuple[ObjectId, StoredObject]]]:
        """The indexes after the last member, and the objects into which they spilled."""
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
        """The indexes of the head. A head that is an inner member of another group has none: they are all made anew."""
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


class PublishedGroups:
    """How many commits this process has published since it began, and in how many groups: what combining them is worth."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew in a forked child, whatever a thread of the parent was doing here."""
        self._lock = threading.Lock()
        self.groups = 0
        self.commits = 0

    def count_group(self, commits: int) -> None:
        with self._lock:
            self.groups += 1
            self.commits += commits


PUBLISHED = PublishedGroups()
os.register_at_fork(after_in_child=PUBLISHED.forget)
_LATE_TRIES = 20
_log = structlog.get_logger()


def publish_group(rows: RealmStore, group: CommitGroup, *, until: float, pause: Callable[[int], None]) -> bool:
    """Publish a group. Returns whether it became the head, and only once that is certain. Deletes what a beaten group wrote.

    Another thread may call it again for the same group, when the first one was stopped in the middle.

    until         the monotonic second after which an unknown outcome stays unknown
    pause         waits before another try, given the number of tries
    raises        UnknownOutcomeError: nobody knows whether it was published · UnavailableError: it was not, because the database is
                  away or the group is too old · any other error of packing and writing: it was not
    """
    if group.is_open:
        is_applied = _find_out(rows, group, until, pause, UnknownOutcomeError("its publisher was stopped"))
    else:
        batch = group.pack_rows(rows)
        _check_age(rows, group)  # after packing, which may take long; from here to the swap there is only the call itself
        is_applied = _write(rows, group, batch, until, pause)
    if is_applied:
        PUBLISHED.count_group(len(group))
        _record_late_move(rows, group)
    else:
        # Only here is it certain that the group did not and will not become the head. To delete its rows after any other outcome
        # could delete what the reference points to.
        _clean_up(rows, group)
    return is_applied


def _check_age(rows: RealmStore, group: CommitGroup) -> None:
    """Refuse a group that is older than the commit time-out."""
    # Readers' grace counts from the time in a commit: none may become the head long after its own time.
    if rows.clock.monotonic() - group.prepared > rows.settings.commit_timeout_seconds:
        timeout = duration_text(rows.settings.commit_timeout_seconds)
        raise UnavailableError(
            f"preparing the commit took longer than the time-out of {timeout}: change less at once, or raise HEADWATER_COMMIT_TIMEOUT"
        )


def _write(rows: RealmStore, group: CommitGroup, batch: ObjectBatch, until: float, pause: Callable[[int], None]) -> bool:
    assert group.newest_id is not None
    # Before the call, and not after it: this thread may be stopped inside, and whoever takes over must find out what became of the
    # call before anything is done again.
    group.is_open = True
    try:
        rows.write_and_advance(batch, group.seen, group.newest_id)
    except SwapConflictError:
        return False
    except UnknownOutcomeError as unclear:
        return _find_out(rows, group, until, pause, unclear)
    except HeadwaterError:
        group.is_open = False  # the backend says that it did certainly nothing
        raise
    return True


def _find_out(
    rows: RealmStore, group: CommitGroup, until: float, pause: Callable[[int], None], unclear: UnknownOutcomeError
) -> bool:
    # The very bytes of the first call: if both arrive, the second changes nothing.
    batch, commit_id = group.pack_rows(rows), group.newest_id
    assert commit_id is not None, "a group without members is not published"
    tries = 0
    while True:
        try:
            rows.write_and_advance_again(batch, group.seen, commit_id)
            return True
        except SwapConflictError:
            has_passed = True  # by our own first call, perhaps: only the history tells
        except CollisionError as taken:
            # The same ids can only collide again. Raising the version makes the first call lose, too, wherever it still is: only then
            # may the commit start over with other ids, or it could be made twice.
            if _is_precluded(rows, group):
                group.is_open = False
                raise
            has_passed, unclear = _has_passed(rows, group), UnknownOutcomeError(str(taken))
        except HeadwaterError as fault:
            has_passed = isinstance(fault, RefusedError) and _has_passed(rows, group)  # the gate closed: only looking is left
            unclear = UnknownOutcomeError(str(fault))
        # Before the version has passed, a look into the history says nothing: the first call may still arrive.
        if has_passed:
            try:
                return _is_published(rows, group, commit_id)
            except HeadwaterError as fault:
                unclear = UnknownOutcomeError(str(fault))
        if rows.clock.monotonic() >= until:
            raise unclear
        tries += 1
        pause(tries)


def _is_precluded(rows: RealmStore, group: CommitGroup) -> bool:
    """Raise the version that the swap expects. Returns True if that worked: then the swap did nothing, and never will."""
    try:
        rows.raise_version(group.seen)
    except HeadwaterError:
        return False
    return True


def _has_passed(rows: RealmStore, group: CommitGroup) -> bool:
    """Whether the reference is beyond the version that the swap expects, so that the swap can do nothing any more."""
    try:
        row = rows.find_row(group.seen.name)
    except HeadwaterError:
        return False
    return row is not None and row.version > group.seen.version


def _is_published(rows: RealmStore, group: CommitGroup, commit_id: ObjectId) -> bool:
    """Whether the history has the group; if so, only once a durable write says so, too.

    What is in the history now may be lost in a failover, because a read shows commits that no synchronous standby has::

        publisher                               primary                              standby
        write and swap, version 7 to 8   ->     commits, and waits for the standby   is away
                                                the wait is cancelled, or the
                                                backend is terminated
        looks: its commit is the head    <-
        raises the version to 9          ->     commits, and waits for the standby   has 8 and 9, or the outcome is unknown
    """
    for _ in range(_LOOKS):
        row = rows.find_row(group.seen.name)
        # A row that was created again has none of the moves of the former one: "not found" would prove nothing.
        if row is None or row.created != group.seen.created:
            raise UnknownOutcomeError("the reference was removed since, and with it its record of what it pointed to")
        if not _is_in_history(rows, row, group, commit_id):
            return False
        try:
            rows.confirm_reference(row)
        except SwapConflictError:
            continue
        return True
    raise UnknownOutcomeError("the reference changes too fast for a write that confirms the commit")


def _is_in_history(rows: RealmStore, row: Reference, group: CommitGroup, commit_id: ObjectId) -> bool:
    # From every pointer that was left, too: somebody may have moved the branch off our commit since.
    starts = [pointer for pointer in (row.pointer, *(move.pointer for move in row.moves)) if pointer is not None]
    cut: UnknownOutcomeError | None = None
    for start in starts:
        try:
            if descends(rows, start, commit_id, group.seq):
                return True
        except UnknownOutcomeError as fault:
            cut = fault  # another start may lead to it
    if cut is not None:
        raise cut
    return False


def _record_late_move(rows: RealmStore, group: CommitGroup) -> None:
    """Note the pointer that a late swap left, with the time now: readers' grace counts from commits' times otherwise.

    A publisher that learns of its swap only hours later may find that pointer's commit collected, or about to be. So a note is no
    move: the commit is kept only if the last collection did not let it go, and nothing can point to it otherwise.
    """
    left = group.seen.pointer
    if left is None or rows.clock.monotonic() - group.prepared <= rows.settings.commit_timeout_seconds:
        return
    for _ in range(_LATE_TRIES):
        try:
            row = rows.find_row(group.seen.name)
            # Past the cache, which may have a commit that was collected since: then there is nothing left to keep.
            if row is not None and rows.without_cache().find_object(left, Commit) is not None:
                rows.record_move(row, left)
        except SwapConflictError:
            continue
        except HeadwaterError as fault:
            _log.warning("a late move was not recorded", reference=group.seen.name, realm=rows.realm, fault=str(fault))
        return


def _clean_up(rows: RealmStore, group: CommitGroup) -> None:
    """Delete what the lost attempt wrote. Best effort: the collector deletes what is left."""
    try:
        rows.discard(group.pack_rows(rows))
    except HeadwaterError as fault:
        _log.debug("a lost attempt's objects were left to the collector", reference=group.seen.name, fault=str(fault))
