"""Copies of what a restoration brings back, and the edits that put them into the indexes of the commit on top."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from headwater.catalogs import CONTENT, IDS, ContentCopies, ContentEditor, ContentKey, ContentValue
from headwater.commits import Head, Transaction
from headwater.errors import CorruptionError
from headwater.index import Index, IndexValue
from headwater.realms.principals import Principal
from headwater.restore.state_diff import StateDifference
from headwater.store import ObjectId, RealmStore, StoredObject, id_text, unknown_pointers_reason

_READ_AT_ONCE = 500


class RestoredCopies:
    """What comes back, copied: the objects of old commits may be garbage tomorrow.

    Contents are copied in batches, as merges do; the few objects of other indexes are held.
    """

    def __init__(self, rows: RealmStore, target: Head | None) -> None:
        self._rows = rows
        self._contents = None if target is None else ContentCopies(target, rows)
        self._objects: dict[ObjectId, StoredObject] = {}

    def prepare(self, wanted: Sequence[StateDifference], now: Head | None) -> None:
        """Read or copy ahead, for the state that the reference has now."""
        self.read_ahead(wanted)
        contents = [ContentValue.from_value(value) for value in _returning(wanted).values()]
        if self._contents is not None and contents:
            self._contents.prepare(contents, Index() if now is None else now.index(IDS))

    def read_ahead(self, wanted: Sequence[StateDifference]) -> None:
        """Read in bulk the objects of other indexes than the content's."""
        missing = [
            difference.then.object_id
            for difference in wanted
            if difference.index_name != CONTENT
            and difference.then is not None
            and difference.then.object_id is not None
            and difference.then.object_id not in self._objects
        ]
        missing = list(dict.fromkeys(missing))
        for start in range(0, len(missing), _READ_AT_ONCE):
            part = missing[start : start + _READ_AT_ONCE]
            for object_id, value in zip(part, self._rows.read_many(part, StoredObject), strict=True):
                self._objects[object_id] = _checked(self._rows, object_id, value)

    def apply(self, tx: Transaction, wanted: Sequence[StateDifference]) -> None:
        """Edit the indexes. Contents are put before others are removed: a renamed one then shares the metadata that it had."""
        contents = {ContentKey.from_index(key): ContentValue.from_value(value) for key, value in _returning(wanted).items()}
        if self._contents is not None and contents:
            self._contents.put_contents(tx, contents)
        copies: dict[ObjectId, ObjectId] = {}
        for difference in wanted:
            if difference.index_name != CONTENT:
                self._apply_other(tx, difference, copies)
            elif difference.then is None or self._contents is None:
                ContentEditor(tx).remove_key(ContentKey.from_index(difference.key))

    def _apply_other(self, tx: Transaction, difference: StateDifference, copies: dict[ObjectId, ObjectId]) -> None:
        index = tx.index(difference.index_name)
        if difference.then is None:
            index.remove(difference.key)
            return
        old = difference.then.object_id
        if old is not None and old not in copies:
            copies[old] = tx.add_object(_as_restored(self._objects[old], tx))
        index.put(difference.key, IndexValue(None if old is None else copies[old], bytes(difference.then.data)))


def _returning(wanted: Sequence[StateDifference]) -> dict[bytes, IndexValue]:
    """The contents that are put, by their keys in the index."""
    return {
        difference.key: difference.then
        for difference in wanted
        if difference.index_name == CONTENT and difference.then is not None
    }


def _as_restored(value: StoredObject, tx: Transaction) -> StoredObject:
    """A principal was gone, and what it was issued before stays refused: its generation is one that it never had."""
    if not isinstance(value, Principal):
        return value
    return structs.replace(value, generation=max(value.generation + 2, tx.time // 1_000_000))


def _checked(rows: RealmStore, object_id: ObjectId, value: StoredObject | None) -> StoredObject:
    where = f"object {id_text(object_id)} of realm {rows.realm!r}"
    if value is None:
        raise CorruptionError(f"{where} belongs to what is to be restored, and is not there: run `headwater fsck`")
    if why := unknown_pointers_reason(value):
        raise CorruptionError(f"{where} {why}: it cannot be copied")
    if any(True for _ in value.points_to()):
        raise CorruptionError(f"{where} ({value.type_name}) points to others: it cannot be copied by this release")
    return value
