"""Changes on top of an index, and indexes made anew."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from headwater.errors import RefusedError
from headwater.index.index_nodes import IndexContainer, IndexLimits
from headwater.index.index_reader import ChangeLayer, Chunks, Index, IndexQuery, merge_layers
from headwater.index.page import Change, IndexValue, PageRows, id_row
from headwater.index.page_columns import KEY_BYTES
from headwater.index.spill import settled, settled_anew
from headwater.store import ObjectId, StoredObject


class StoredIndex(NamedTuple):
    """An index as it is to be stored: what the commit holds, and the objects that must be written with it."""

    container: IndexContainer
    objects: list[tuple[ObjectId, StoredObject]]


class IndexEditor(Index):
    """An index with changes on top: reads like the index that ``stored`` will make. Editors may stand on editors.

    What the base holds is remembered for every key that was asked for, so that nothing is looked up twice: the base must not change
    as long as its editor is in use. All values that an editor hands out come through ``get`` and ``range``.
    """

    def __init__(self, base: Index) -> None:
        super().__init__(base._container, base._objects)
        self._base = base
        self._length = len(base)
        self._before: dict[bytes, IndexValue | None] = {}
        self._changes: dict[bytes, IndexValue | None] = {}
        self._sorted: list[bytes] | None = []

    def put(self, key: bytes, value: IndexValue) -> bool:
        """Set a key. Returns whether it was absent.

        raises        RefusedError for a key that is empty or longer than 500 bytes
        """
        if not 0 < len(key) <= KEY_BYTES:
            raise _impossible(key)
        was_absent = self._find(key) is None
        self._change(key, value)
        self._length += was_absent
        return was_absent

    def remove(self, key: bytes) -> bool:
        """Remove a key. Returns whether it was there."""
        was_there = self._find(key) is not None
        if was_there:
            self._change(key, None)
            self._length -= 1
        return was_there

    def get_many(self, keys: Iterable[bytes]) -> dict[bytes, IndexValue]:
        wanted = list(dict.fromkeys(keys))
        self._find_many(wanted)
        return {key: value for key in wanted if (value := self.get(key)) is not None}

    def changes(self) -> list[Change]:
        """What differs from the base, in key order; None says removed."""
        before, changes = self._before, self._changes
        return [(key, changes[key]) for key in self._keys() if changes[key] != before[key]]

    def absorb(self, editor: IndexEditor) -> None:
        """Take over the edits of an editor that was made on top of this one, and has seen all of this one's edits."""
        for key, value in editor.changes():
            if key not in self._changes:
                self._before[key] = editor._before[key]
            self._change(key, value)
        self._length = len(editor)

    def stored(self, new_ids: Callable[[int], list[ObjectId]], limits: IndexLimits) -> StoredIndex:
        """The index as it is to be stored. May be called again.

        new_ids       makes ids for the objects to be written
        raises        CorruptionError when a stripe that must be read is not there or is damaged; nothing was written
        """
        return StoredIndex(*settled(self._container, self._length, self._all_changes(), self._objects, new_ids, limits))

    # inside

    def _find(self, key: bytes) -> IndexValue | None:
        if key in self._changes:
            return self._changes[key]
        if key not in self._before:
            self._before[key] = self._base._find(key)
        return self._before[key]

    def _find_many(self, keys: list[bytes]) -> dict[bytes, IndexValue | None]:
        self._before |= self._base._find_many([key for key in keys if key not in self._before])
        return {key: self._changes[key] if key in self._changes else self._before[key] for key in keys}

    def _change(self, key: bytes, value: IndexValue | None) -> None:
        if key not in self._changes:
            self._sorted = None
        self._changes[key] = value

    def _keys(self) -> list[bytes]:
        """What was changed, in order. Sorted again after a new key, which is cheap for what is sorted but for its end."""
        if self._sorted is None:
            self._sorted = sorted(self._changes)
        return self._sorted

    def _chunks(self, query: IndexQuery) -> Chunks:
        keys = self._keys()
        start = 0 if query.start is None else bisect_left(keys, query.start)
        end = len(keys) if query.end is None else bisect_left(keys, query.end)
        changed = {key: self._changes[key] for key in keys[start:end]}  # a copy: edits do not disturb who is reading
        within = list(changed)
        layer = ChangeLayer(within, lambda at: changed[within[at]])
        return merge_layers(self._base._chunks(query), layer, reverse=query.reverse, keys_only=query.keys_only)

    def _all_changes(self) -> list[Change]:
        """What differs from the index at the bottom, which is no editor."""
        if not isinstance(self._base, IndexEditor):
            return self.changes()
        beneath = dict(self._base._all_changes())
        return sorted((beneath | dict(self.changes())).items(), key=lambda change: change[0])


class NewIndex:
    """An index whose entries are all there at once: stored as an editor on an empty index would store it, in a fraction of the time."""

    def __init__(self, data: Mapping[bytes, bytes], objects: Mapping[bytes, ObjectId]) -> None:
        """
        data          what each key holds
        objects       of the keys that point to an object: to which
        raises        RefusedError for a key that is empty or longer than 500 bytes
        """
        for key in data:
            if not 0 < len(key) <= KEY_BYTES:
                raise _impossible(key)
        keys = sorted(data)
        ids = [id_row(objects.get(key)) for key in keys] if objects else [id_row(None)] * len(keys)
        self._rows = PageRows(keys, ids, [data[key] for key in keys])

    def stored(self, new_ids: Callable[[int], list[ObjectId]], limits: IndexLimits) -> StoredIndex:
        """As ``IndexEditor.stored``."""
        return StoredIndex(*settled_anew(self._rows, new_ids, limits))


def _impossible(key: bytes) -> RefusedError:
    return RefusedError(f"index key {key[:40]!r} has {len(key)} bytes: 1 to {KEY_BYTES} are possible")
