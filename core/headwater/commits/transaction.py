"""What a change sees and edits: the head, its indexes, and the objects that it adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from headwater.clock import Micros
from headwater.commits.commit import Commit, Head
from headwater.errors import RefusedError, UnreadableError
from headwater.index import Index, IndexContainer, IndexEditor, Limits, NewIndex, Value
from headwater.store import ObjectId, RealmStore, StoredObject, Versioned, id_text

T = TypeVar("T")
Memos = dict[str, tuple[object, object]]
"""What the runs of one change have worked out: by name, what it was derived from and what came of it."""
Changes = dict[str, list[tuple[bytes, Value | None]]]
"""What was edited: by index, in key order; None says removed."""


class Transaction:
    """One run of a change on one head. Nothing is written before the change has returned.

    The head may be a commit that is not written yet: one of another thread, in the same group. ``rows`` reads what such commits
    have added as if it were written.

    commit_time   later than the head's, whatever clock made that
    time          what a change writes down as the moment at which it happens: the same, unless the head is of a clock that was ahead
    """

    def __init__(
        self,
        rows: RealmStore,
        reference: str,
        head: Head | None,
        now: Micros,
        *,
        base: Callable[[str], Index],
        unpublished: Mapping[ObjectId, PendingObject],
        memos: Memos,
    ) -> None:
        self.reference = reference
        self.commit_time = now if head is None else Micros(max(now, head.commit.time + 1))
        credible = now + round(rows.settings.clock_bound_seconds * 1_000_000)
        self.time = self.commit_time if self.commit_time <= credible else now
        self.is_mending = False
        self.added: dict[ObjectId, StoredObject] = {}
        self.message: str | None = None
        self.properties: dict[str, Any] = {}
        self._rows = rows
        self._head = head
        self._base = base
        self._unpublished = unpublished
        self._memos = memos
        self._editors: dict[str, _Editor] = {}
        self._known = _Known(self.added)

    def mend_time(self, after: Micros) -> None:
        """Make a commit also of no change, with the time now, though the head's lies ahead.

        after         the time of the last commit that is not ahead
        """
        assert not self._unpublished, "a commit that mends the time is the first of its group"
        self.is_mending, self.commit_time = True, Micros(max(self.time, after + 1))

    @property
    def rows(self) -> RealmStore:
        if self._unpublished and not isinstance(self._rows, PendingReader):
            self._rows = PendingReader(self._rows, self._unpublished)
        return self._rows

    @property
    def head(self) -> Commit | None:
        return None if self._head is None else self._head.commit

    @property
    def head_id(self) -> ObjectId | None:
        return None if self._head is None else self._head.id

    def index(self, name: str) -> IndexEditor:
        """The index as the commit will hold it; edits show at once."""
        editor = self._editors.get(name)
        if editor is None:
            editor = self._editors[name] = _Editor(self._base(name), self._known)
        return editor

    def add(self, value: StoredObject) -> ObjectId:
        """Add an object; it is written together with the commit, or not at all."""
        object_id = self._rows.new_id()
        self.added[object_id] = value
        return object_id

    def add_index(self, index: IndexEditor | NewIndex, limits: Limits) -> IndexContainer:
        """Store an index that is to lie in an object which this change adds; what it spills into is added, too."""
        stored = index.stored(self._rows.new_ids, limits)
        self.added.update(stored.objects)
        return stored.container

    def memo(self, name: str, of: object, make: Callable[[], T]) -> T:
        """What ``make`` returns, called once for all runs of this change, as long as ``of`` equals what it was then.

        For work that is worth keeping when the commit has to start over: parsing, planning, comparing. ``make`` must depend on
        nothing but ``of``, and so neither add objects nor edit indexes.

        name          of this piece of work, within the change
        of            all that it is derived from, compared by ``==``: values that do not change, such as ids and keys
        """
        known = self._memos.get(name)
        if known is None or known[0] != of:
            known = self._memos[name] = (of, make())
        return cast(T, known[1])

    def set_message(self, message: str) -> None:
        """Instead of the message that ``commit_change`` was given. A run that edits and adds nothing makes no commit, whatever it says."""
        self.message = message

    def set_property(self, key: str, value: Any) -> None:
        """Beside the properties that ``commit_change`` was given, or instead of one of them."""
        self.properties[key] = value

    def changes(self) -> Changes:
        """What was edited, without the indexes that are as before."""
        changed = {name: editor.changes() for name, editor in sorted(self._editors.items())}
        return {name: changes for name, changes in changed.items() if changes}

    def editor(self, name: str) -> IndexEditor:
        """An index that was edited."""
        return self._editors[name]


class _Known:
    """The objects that a commit may point to: those that it adds, and those that it read in its parent's indexes.

    Listings are noted as calls, not entry by entry: they are read again if ever an object is asked for that nothing else tells of.
    """

    def __init__(self, added: Mapping[ObjectId, StoredObject]) -> None:
        self.read: set[ObjectId] = set()
        self.listings: list[Callable[[], Iterator[tuple[bytes, Value]]]] = []
        self._added = added

    def has(self, object_id: ObjectId) -> bool:
        if object_id in self._added or object_id in self.read:
            return True
        while self.listings:
            listing = self.listings.pop()
            self.read.update(value.object_id for _, value in listing() if value.object_id is not None)
            if object_id in self.read:
                return True
        return False


class _Editor(IndexEditor):
    """Refuses values that point to an object which this commit neither adds nor found in the parent's indexes.

    A reader that kept an id from an older commit could otherwise bring back what the collector is about to delete. What one
    index holds may move into another.
    """

    def __init__(self, base: Index, known: _Known) -> None:
        super().__init__(base)
        self._known = known

    def get(self, key: bytes) -> Value | None:
        value = super().get(key)
        if value is not None and value.object_id is not None:
            self._known.read.add(value.object_id)
        return value

    def range(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, Value]]:
        base, wide = self._base, None if limit is None else limit + len(self._changes)  # as many may hide behind a change
        self._known.listings.append(lambda: base.range(start, end, reverse=reverse, limit=wide))
        return super().range(start, end, reverse=reverse, limit=limit)

    def put(self, key: bytes, value: Value) -> bool:
        if not isinstance(value.data, bytes):  # found only when the whole group is written, it would be told to another member
            raise RefusedError(f"what an index holds under {key!r} is bytes, not {type(value.data).__name__}")
        if value.object_id is not None and not self._known.has(value.object_id):
            self._find(key)
            held = self._before[key]  # what the key holds in the parent is known as well
            if held is None or held.object_id != value.object_id:
                raise RefusedError(
                    f"object {id_text(value.object_id)} is neither added by this commit nor held by its parent:"
                    " add it, or read it here first"
                )
        return super().put(key, value)


S = TypeVar("S", bound=StoredObject)


class PendingObject(NamedTuple):
    """An object that will be written together with its group, and what its row will say. ``token``: of an updateable one."""

    value: StoredObject
    token: str | None
    created: Micros


class PendingReader(RealmStore):
    """A handle that also finds what the earlier members of a group have added.

    A change reads through it. Its head may be a commit that no database holds yet, and so may be the objects that its
    indexes point to.
    """

    def __init__(self, rows: RealmStore, unpublished: Mapping[ObjectId, PendingObject]) -> None:
        super().__init__(rows.store, rows.realm, rows.key, rows._gate, rows._cache)
        self._unpublished = unpublished

    def find(self, object_id: ObjectId, cls: type[S]) -> S | None:
        found = self._unpublished.get(object_id)
        return super().find(object_id, cls) if found is None else self._as(object_id, found.value, cls)

    def read_many(self, object_ids: Sequence[ObjectId], cls: type[S]) -> list[S | None]:
        ahead = {object_id: self.find(object_id, cls) for object_id in object_ids if object_id in self._unpublished}
        if not ahead:
            return super().read_many(object_ids, cls)
        others = [object_id for object_id in object_ids if object_id not in ahead]
        found = ahead | dict(zip(others, super().read_many(others, cls), strict=True))
        return [found[object_id] for object_id in object_ids]

    def read_many_versioned(self, object_ids: Sequence[ObjectId], cls: type[S]) -> list[Versioned[S] | None]:
        others = [object_id for object_id in object_ids if object_id not in self._unpublished]
        found = dict(zip(others, super().read_many_versioned(others, cls), strict=True))
        return [found[object_id] if object_id in found else self._versioned(object_id, cls) for object_id in object_ids]

    def _versioned(self, object_id: ObjectId, cls: type[S]) -> Versioned[S]:
        value, token, created = self._unpublished[object_id]
        typed = self._as(object_id, value, cls)
        if typed is None or token is None:
            raise UnreadableError(f"object {id_text(object_id)} in realm {self.realm!r} has no version token")
        return Versioned(object_id, typed, token, created)
