"""What a change sees and edits: the head, its indexes, and the objects that it adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headwater.clock import Micros
from headwater.commits.objects import TAIL, Commit, Head, Operation
from headwater.errors import RefusedError
from headwater.index import Index, IndexEditor, Limits, Value
from headwater.store import ObjectId, RealmStore, StoredObject, id_text

__all__ = ["Transaction"]


class Transaction:
    """One run of a change on one head. Nothing is written before the change has returned."""

    def __init__(self, rows: RealmStore, reference: str, head: Head | None, time: Micros) -> None:
        self.rows = rows
        self.reference = reference
        self.time = time
        self._head = head
        self._editors: dict[str, _Editor] = {}
        self._added: dict[ObjectId, StoredObject] = {}
        self._found: set[ObjectId] = set()
        settings = rows.settings
        self._limits = Limits(embedded_bytes=settings.index_embedded_bytes, stripe_bytes=settings.index_stripe_bytes)
        self._message: str | None = None
        self._properties: dict[str, Any] = {}

    @property
    def head(self) -> Commit | None:
        return None if self._head is None else self._head.commit

    @property
    def head_id(self) -> ObjectId | None:
        return None if self._head is None else self._head.id

    def index(self, name: str) -> IndexEditor:
        """The index as the commit will hold it; edits show at once."""
        if name not in self._editors:
            base = Index() if self._head is None else self._head.index(name)
            self._editors[name] = _Editor(base, self._added, self._found)
        return self._editors[name]

    def add(self, value: StoredObject) -> ObjectId:
        """Add an object; it is written together with the commit, or not at all."""
        object_id = self.rows.new_id()
        self._added[object_id] = value
        return object_id

    def set_message(self, message: str) -> None:
        self._message = message

    def set_property(self, key: str, value: Any) -> None:
        self._properties[key] = value

    def objects(self) -> Iterable[tuple[ObjectId, StoredObject]]:
        return self._added.items()

    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self._added and not any(editor.changes() for editor in self._editors.values())

    def commit(self, *, message: str, properties: dict[str, Any]) -> Commit:
        """The commit that says what was edited."""
        operations = []
        indexes = dict(self.head.indexes) if self.head else {}
        for name, editor in sorted(self._editors.items()):
            changes = editor.changes()
            operations += [_operation(name, key, value) for key, value in changes]
            if changes:
                indexes[name], spilled = editor.stored(self.rows.new_ids, self._limits)
                self._added.update(spilled)
        return Commit(
            seq=self.head.seq + 1 if self.head else 1,
            tail=(self._head.id, *self._head.commit.tail)[:TAIL] if self._head else (),
            time=self.time,
            message=message if self._message is None else self._message,
            properties=properties | self._properties,
            operations=tuple(operations),
            indexes=indexes,
        )


class _Editor(IndexEditor):
    """Refuses values that point to an object which this commit neither adds nor found in the parent's indexes.

    A reader that kept an id from an older commit could otherwise bring back what the collector is about to delete.
    """

    def __init__(self, base: Index, added: dict[ObjectId, StoredObject], found: set[ObjectId]) -> None:
        super().__init__(base)
        self._added = added
        self._found = found  # by all editors of the transaction: what one index holds may move into another

    def get(self, key: bytes) -> Value | None:
        value = super().get(key)
        self._note(value)
        return value

    def range(
        self, start: bytes | None = None, end: bytes | None = None, *, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[bytes, Value]]:
        for key, value in super().range(start, end, reverse=reverse, limit=limit):
            self._note(value)
            yield key, value

    def put(self, key: bytes, value: Value) -> bool:
        was_absent = super().put(key, value) if self._is_known(key, value) else None
        if was_absent is None:
            assert value.object_id is not None
            raise RefusedError(
                f"object {id_text(value.object_id)} is neither added by this commit nor held by its parent: add it, or read it here first"
            )
        return was_absent

    def _is_known(self, key: bytes, value: Value) -> bool:
        known = value.object_id is None or value.object_id in self._added or value.object_id in self._found
        if not known:
            self.get(key)  # what the key holds now is known as well
        return known or value.object_id in self._found

    def _note(self, value: Value | None) -> None:
        if value is not None and value.object_id is not None:
            self._found.add(value.object_id)


def _operation(index: str, key: bytes, value: Value | None) -> Operation:
    if value is None:
        return Operation(index, key, removed=True)
    return Operation(index, key, object_id=value.object_id, data=value.data)
