"""Typed objects of a realm, of one part and of many, immutable and updateable, with writes whose answers are lost."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from two_stores import BEATEN, DONE, NOT_DONE, OTHER, REALM, UNKNOWN, Outcome, Spoiling, TwoStores, spoilings

from headwater.errors import NotFoundError, RefusedError, SwapConflictError
from headwater.store import ROW_BYTES, Backend, ObjectId, ObjectKey, RealmStore, ScanSplit, StoredObject, Versioned, object_type

__all__ = ["ObjectModel"]


@object_type("model-note")
class ModelNote(StoredObject, frozen=True, kw_only=True):
    text: str = ""
    data: bytes = b""


@object_type("model-counter", updateable=True)
class ModelCounter(StoredObject, frozen=True, kw_only=True):
    count: int = 0
    data: bytes = b""


@cache
def noise(size: int) -> bytes:
    """Bytes that do not compress."""
    return random.Random(size).randbytes(size)


IDS = [ObjectId(number) for number in (1, 2, 255, 256, (1 << 62) + 1, (1 << 63) - 1)]
ids = st.sampled_from(IDS)
which = st.integers(0, 1 << 16)
datas = st.one_of(
    st.binary(max_size=4),
    st.integers(0, 200_000).map(bytes),
    st.sampled_from([3000] * 12 + [ROW_BYTES - 100, ROW_BYTES, 2 * ROW_BYTES + 7]).map(noise),
)
notes = st.builds(ModelNote, text=st.text(max_size=3), data=datas)
counters = st.builds(
    ModelCounter, count=st.integers(-(1 << 100), 1 << 100), data=st.one_of(st.binary(max_size=4), st.just(noise(3000)))
)
handles = st.sampled_from(["writer", "reader"])


class ObjectModel(TwoStores):
    """``now`` is the truth by id: notes, and counters with their tokens. Ids with an even index are notes', the others counters'."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.notes: dict[ObjectId, ModelNote] = {}
        self.counters: dict[ObjectId, Versioned[ModelCounter]] = {}
        self.once: dict[ObjectId, list[ModelNote]] = defaultdict(list)
        """What a note was at some time: a cache may remember it, for what is immutable is not written again with other content."""
        self.versions: list[Versioned[ModelCounter]] = []
        self.keys: list[ObjectKey] = []

    @initialize(note=notes)
    def begin(self, note: ModelNote) -> None:
        self.witness = note
        self.other.write_objects([(object_id, note) for object_id in IDS])
        for object_id in IDS[1::2]:
            self._learn(object_id, self.writer.insert_object(object_id, ModelCounter()))

    # notes

    @rule(wishes=st.dictionaries(ids, notes, max_size=4), spoiling=spoilings)
    def write(self, wishes: dict[ObjectId, ModelNote], spoiling: Spoiling) -> None:
        wishes = {object_id: note for object_id, note in wishes.items() if _is_note(object_id)}
        outcome = self.attempt(("write_objects",), spoiling, lambda: self.writer.write_objects(wishes.items()))
        if outcome.how == DONE:
            self.keys = (self.keys + outcome.result)[-20:]
        for object_id, note in wishes.items():
            old, new = self.notes.get(object_id), self._true_note(object_id)
            assert new in {DONE: [note], NOT_DONE: [old], UNKNOWN: [old, note]}[outcome.how]
            self._note(object_id, new)

    @rule(handle=handles, asked=st.lists(ids, max_size=6))
    def read_notes(self, handle: str, asked: list[ObjectId]) -> None:
        asked = [object_id for object_id in asked if _is_note(object_id)]
        found = self._handle(handle).read_many(asked, ModelNote)

        assert len(found) == len(asked)
        for object_id, note in zip(asked, found, strict=True):
            assert note == self.notes.get(object_id) or note in self.once[object_id]

    @rule(handle=handles, asked=st.lists(ids, max_size=6))
    def read_notes_past_the_cache(self, handle: str, asked: list[ObjectId]) -> None:
        asked = [object_id for object_id in asked if _is_note(object_id)]

        assert self._handle(handle).without_cache().read_many(asked, ModelNote) == [self.notes.get(one) for one in asked]

    @rule(number=which, are_old=st.booleans(), spoiling=spoilings)
    def delete_notes(self, number: int, are_old: bool, spoiling: Spoiling) -> None:
        """All parts of one note, by the keys of a scan, or of writes that may have been overwritten since."""
        there = self.keys if are_old else [key for key in self._scan() if key.token is None]
        if not there:
            return
        object_id = there[number % len(there)].id
        keys = list({key.position: key for key in there if key.id == object_id}.values())
        outcome = self.attempt(("delete_objects",), spoiling, lambda: self.writer.delete_unchanged(keys))
        left = [key for key in self._scan() if key.id == object_id]

        if outcome.how == NOT_DONE:
            assert self._true_note(object_id) == self.notes.get(object_id)
        if not left:
            self._note(object_id, None)
            if outcome.how == DONE:
                assert self.writer.find_object(object_id, ModelNote) is None, "its own cache shows what it has deleted"
        elif len(left) == left[0].parts:
            assert outcome.how != DONE or not outcome.result
        else:  # a note whose parts are of two writes within one microsecond: what is left is no note
            self.backend.delete_objects(left)
            self._note(object_id, None)

    # counters

    @rule(object_id=ids, value=counters, spoiling=spoilings)
    def insert(self, object_id: ObjectId, value: ModelCounter, spoiling: Spoiling) -> None:
        if _is_note(object_id):
            return
        outcome = self.attempt(("insert_object",), spoiling, lambda: self.writer.insert_object(object_id, value))
        self._settle(object_id, outcome, value, is_possible=object_id not in self.counters)

    @rule(wishes=st.lists(st.tuples(which, counters, spoilings), min_size=1, max_size=5))
    def update_often(self, wishes: list[tuple[int, ModelCounter, Spoiling]]) -> None:
        for wish in wishes:
            self.update(*wish)

    def update(self, number: int, value: ModelCounter, spoiling: Spoiling) -> None:
        seen = self._seen(number)
        if seen is not None:
            outcome = self.attempt(("update_object",), spoiling, lambda: self.writer.update_object(seen, value))
            self._settle(seen.id, outcome, value, is_possible=self._is_as_now(seen))

    @rule(number=which, spoiling=spoilings)
    def delete(self, number: int, spoiling: Spoiling) -> None:
        seen = self._seen(number)
        if seen is not None:
            outcome = self.attempt(("delete_objects",), spoiling, lambda: self.writer.delete_object(seen))
            self._settle(seen.id, outcome, None, is_possible=self._is_as_now(seen))

    @rule(number=which, value=counters)
    def take_over(self, number: int, value: ModelCounter) -> None:
        """The reader updates between the writer's look and its update."""
        seen = self._seen(number)
        if seen is None or not self._is_as_now(seen):
            return
        self.faults.intervene("update_object", lambda: self._learn(seen.id, self.reader.update_object(seen, value)))
        with pytest.raises(SwapConflictError):
            self.writer.update_object(seen, ModelCounter(count=-1))

    @rule(handle=handles, asked=st.lists(ids, max_size=6))
    def read_counters(self, handle: str, asked: list[ObjectId]) -> None:
        asked = [object_id for object_id in asked if not _is_note(object_id)]

        assert self._handle(handle).read_many_versioned(asked, ModelCounter) == [self.counters.get(one) for one in asked]

    @rule(object_id=ids)
    def read_what_may_be_absent(self, object_id: ObjectId) -> None:
        rows = self.reader.without_cache()
        read: Callable[[], Any]
        if _is_note(object_id):
            expected, read = self.notes.get(object_id), lambda: rows.read_object(object_id, ModelNote)
        else:
            expected, read = self.counters.get(object_id), lambda: rows.read_versioned(object_id, ModelCounter)
        if expected is None:
            with pytest.raises(NotFoundError, match="acme"):
                read()
        else:
            assert read() == expected

    # what is refused

    @rule(object_id=ids)
    def large_counters_are_refused(self, object_id: ObjectId) -> None:
        large = ModelCounter(data=noise(2 * ROW_BYTES + 7))
        with pytest.raises(RefusedError, match="model-counter"):
            self.writer.insert_object(object_id, large)
        with pytest.raises(RefusedError, match="model-counter"):
            self.writer.write_objects([(object_id, large)])

    @rule(object_id=ids, note=notes)
    def inserting_notes_is_refused(self, object_id: ObjectId, note: ModelNote) -> None:
        with pytest.raises(RefusedError, match="model-note"):
            self.writer.insert_object(object_id, note)

    @rule()
    def deleting_in_the_other_realm_is_refused(self) -> None:
        with pytest.raises(RefusedError, match="acme"):
            self.writer.delete_unchanged(list(self._scan(OTHER)))

    # what holds after each step

    @invariant()
    def every_row_is_of_an_object_that_is_known(self) -> None:
        """No part is left of what was replaced, and none is missing."""
        found: dict[ObjectId, list[int]] = defaultdict(list)
        parts: dict[ObjectId, int] = {}
        for key in self._scan():
            found[key.id].append(key.part)
            parts[key.id] = key.parts
        assert found == {object_id: list(range(count)) for object_id, count in parts.items()}
        assert set(found) == {*self.notes, *self.counters}

    @invariant()
    def the_other_realm_is_untouched(self) -> None:
        if hasattr(self, "witness"):
            assert {key.id for key in self._scan(OTHER)} == set(IDS)

    def teardown(self) -> None:
        if hasattr(self, "witness"):
            assert self.other.without_cache().read_many(IDS, ModelNote) == [self.witness] * len(IDS)
        super().teardown()

    # inside

    def _settle(self, object_id: ObjectId, outcome: Outcome, value: ModelCounter | None, *, is_possible: bool) -> None:
        """``value`` None: it was to be deleted."""
        old = self.counters.get(object_id)
        new = self.reader.find_versioned(object_id, ModelCounter)
        is_changed = new != old
        if outcome.how == DONE:
            assert is_possible, "it succeeded and had to be beaten"
            assert (None if new is None else new.value) == value
            assert new == outcome.result
        elif outcome.how == BEATEN:
            assert not is_possible, "it was beaten by nobody"
            assert not is_changed
        elif outcome.how == NOT_DONE:
            assert not is_changed
        elif is_changed:
            assert is_possible
            assert (None if new is None else new.value) == value, "neither what was nor what was to be"
        self._learn(object_id, new)

    def _learn(self, object_id: ObjectId, new: Versioned[ModelCounter] | None) -> None:
        if new is None:
            self.counters.pop(object_id, None)
        else:
            self.counters[object_id] = new
            self.versions = [*self.versions, new][-20:]

    def _note(self, object_id: ObjectId, new: ModelNote | None) -> None:
        old = self.notes.pop(object_id, None)
        if old is not None:
            self.once[object_id].append(old)
        if new is not None:
            self.notes[object_id] = new

    def _seen(self, number: int) -> Versioned[ModelCounter] | None:
        """Two times of three one that is there, else any that was."""
        there = list(self.counters.values()) if number % 3 else self.versions
        return there[number % len(there)] if there else None

    def _is_as_now(self, seen: Versioned[ModelCounter]) -> bool:
        return self.counters.get(seen.id) == seen

    def _true_note(self, object_id: ObjectId) -> ModelNote | None:
        return self.reader.without_cache().find_object(object_id, ModelNote)

    def _scan(self, realm: Any = REALM) -> list[ObjectKey]:
        found = [key for key in self.backend.scan_objects(ScanSplit(), None, 10_000) if key.realm == realm]
        return sorted(found, key=lambda key: key.position)

    def _handle(self, name: str) -> RealmStore:
        return self.writer if name == "writer" else self.reader


def _is_note(object_id: ObjectId) -> bool:
    return IDS.index(object_id) % 2 == 0
