"""References of a realm and what they must be, told anew in plain words: versions, recent pointers, moves, tombstones, caches."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from two_stores import BEATEN, DONE, NOT_DONE, OTHER, REALM, TTL_SECONDS, UNKNOWN, Outcome, Spoiling, TwoStores, spoilings

from headwater.clock import Micros
from headwater.errors import RefusedError
from headwater.store import Backend, ObjectId, RealmStore, Reference, ReferenceMove, id_time

__all__ = ["ReferenceModel"]

NAMES = ["main", "Main", "cat/1/heads/\u00e4"]
CHANGES = ["advance", "move", "record", "raise", "delete"]
KEPT_POINTERS = 20
Maker = Callable[[Reference], Reference]

names = st.sampled_from(NAMES)
pointers = st.integers(1, 9).map(ObjectId)
"""Ids of long ago; of an odd one the model makes a new one, see ``_made``."""
which = st.integers(0, 1 << 16)
handles = st.sampled_from(["writer", "reader"])


class ReferenceModel(TwoStores):
    """``now`` is the truth by name; ``told`` every row that ever was true, with the time until which it was."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.now: dict[str, Reference] = {}
        self.told: dict[str, list[tuple[Reference, float]]] = defaultdict(list)
        self.seen: dict[tuple[str, str], int] = defaultdict(int)
        """The highest version of a name that a handle has shown."""

    @initialize(pointer=pointers)
    def begin(self, pointer: ObjectId) -> None:
        pointer = self._made(pointer)
        self.witnesses = [self.other.create_reference(name, pointer) for name in NAMES]
        for name in NAMES[:2]:
            self._note(name, self.writer.create_reference(name, pointer), "writer")

    # changes

    @rule(name=names, pointer=st.one_of(st.none(), pointers), spoiling=spoilings)
    def create(self, name: str, pointer: ObjectId | None, spoiling: Spoiling) -> None:
        old = self.now.get(name)
        pointer = None if pointer is None else self._made(pointer)
        since = self._since(old)
        outcome = self.attempt(
            ("create_reference", "swap_reference"), spoiling, lambda: self.writer.create_reference(name, pointer)
        )
        if old is None:
            self._settle(name, outcome, lambda new: self._is_fresh(new, pointer, None))
        elif old.deleted is None:
            self._settle(name, outcome, None)
        else:
            left = [ReferenceMove(old.pointer, Micros(old.deleted & ~1))] if old.pointer is not None else []
            expected = dataclasses.replace(_onto(old, pointer), moves=_recorded(left, old, since), deleted=None)
            self._settle(name, outcome, lambda new: _is_confirmed(new, expected, spoiling.times))

    @rule(name=names, spoiling=spoilings)
    def bury(self, name: str, spoiling: Spoiling) -> None:
        outcome = self.attempt(("create_reference",), spoiling, lambda: self.writer.bury_reference(name))
        is_free = name not in self.now
        self._settle(name, outcome, (lambda new: self._is_fresh(new, None, self.clock.now())) if is_free else None)

    @rule(name=names, wishes=st.lists(st.tuples(which, pointers, spoilings, st.sampled_from(CHANGES)), min_size=1, max_size=5))
    def change_often(self, name: str, wishes: list[tuple[int, ObjectId, Spoiling, str]]) -> None:
        for wish in wishes:
            self.change(name, *wish)
            self.clock.advance(0.001)

    def change(self, name: str, number: int, pointer: ObjectId, spoiling: Spoiling, how: str) -> None:
        seen = self._seen(name, number)
        if seen is None or seen.deleted is not None:
            return
        pointer = self._made(pointer)
        now, since = self.clock.now(), self._since(seen)
        left = [ReferenceMove(seen.pointer, Micros(now & ~1))] if seen.pointer is not None else []
        act: Callable[[], Reference]
        act, expected = {
            "advance": (lambda: self.writer.advance_reference(seen, pointer), _onto(seen, pointer)),
            "move": (
                lambda: self.writer.move_reference(seen, pointer),
                dataclasses.replace(_onto(seen, pointer), moves=_recorded(left, seen, since)),
            ),
            "record": (
                lambda: self.writer.record_move(seen, pointer),
                dataclasses.replace(_next(seen), moves=_noted(pointer, now, seen, since)),
            ),
            "raise": (lambda: self.writer.raise_version(seen), _next(seen)),
            "delete": (lambda: self.writer.delete_reference(seen), dataclasses.replace(_next(seen), deleted=now)),
        }[how]
        outcome = self.attempt(("swap_reference",), spoiling, act)
        if self._is_as_now(seen):
            self._settle(name, outcome, lambda new: _is_confirmed(new, expected, spoiling.times))
        elif outcome.how == DONE:
            assert spoiling.times  # a repeated swap that found its own result says so, whoever made it
            assert outcome.result == self.now[name]
            assert _is_confirmed(outcome.result, expected, spoiling.times)
        else:
            self._settle(name, outcome, None)

    @rule(name=names, number=which, spoiling=spoilings)
    def remove(self, name: str, number: int, spoiling: Spoiling) -> None:
        seen = self._seen(name, number)
        if seen is None:
            return
        if seen.deleted is None:
            with pytest.raises(RefusedError):
                self.writer.remove_tombstone(seen)
            return
        self.clock.advance(1)  # tombstones are kept for hours: no id of the next creation is as near as its version was raised
        outcome = self.attempt(("remove_reference",), spoiling, lambda: self.writer.remove_tombstone(seen))
        self._settle(name, outcome, (lambda new: new is None) if self._is_as_now(seen) else None)

    @rule(name=names, pointer=pointers, spoiling=spoilings)
    def take_over(self, name: str, pointer: ObjectId, spoiling: Spoiling) -> None:
        """The reader writes between the writer's look and its swap."""
        seen = self.now.get(name)
        if seen is None or seen.deleted is not None:
            return
        self.faults.intervene(
            "swap_reference", lambda: self._note(name, self.reader.advance_reference(seen, pointer), "reader")
        )
        outcome = self.attempt(("swap_reference",), Spoiling("not at all", 0), lambda: self.writer.raise_version(seen))

        assert outcome.how == BEATEN

    def _settle(self, name: str, outcome: Outcome, is_right: Callable[[Any], bool] | None) -> None:
        """Compare what the database has now with what the outcome says. ``is_right`` None: it had to be beaten."""
        old, new = self.now.get(name), self._truth(name)
        if outcome.how == DONE:
            assert is_right is not None, "it succeeded and had to be beaten"
            assert is_right(new)
            assert outcome.result == new
            self._note(name, new, "writer")
        elif outcome.how == BEATEN:
            assert is_right is None, "it was beaten by nobody"
            assert new == old
        elif outcome.how == NOT_DONE:
            assert new == old
        else:
            assert outcome.how == UNKNOWN
            assert new == old or (is_right is not None and is_right(new)), "neither what was nor what was to be"
            if new != old:
                self._note(name, new, None)

    def _note(self, name: str, new: Reference | None, by: str | None) -> None:
        old = self.now.pop(name, None)
        if old is not None:
            self.told[name].append((old, self.clock.monotonic()))
        if new is not None:
            assert all(new.version > earlier.version for earlier, _ in self.told[name]), "versions only grow"
            self.now[name] = new
            if by is not None:
                self.seen[by, name] = new.version

    # reading

    @rule(handle=handles, name=names)
    def read_fresh(self, handle: str, name: str) -> None:
        found = self._handle(handle).find_reference(name, fresh=True)

        assert found == self._alive(name)
        self._show(handle, name, found)

    @rule(handle=handles, name=names)
    def read_cached(self, handle: str, name: str) -> None:
        found = self._handle(handle).find_reference(name)
        if found is None:
            assert self._alive(name) is None, "absence was told, and it was not so"
            return

        assert found.deleted is None
        if found != self.now.get(name):
            ends = [end for earlier, end in self.told[name] if earlier == found]
            assert ends, "it never was so"
            assert self.clock.monotonic() - ends[0] <= TTL_SECONDS, "it was told for longer than the time to live"
        self._show(handle, name, found)

    @rule(handle=handles, asked=st.lists(names, max_size=5))
    def read_rows(self, handle: str, asked: list[str]) -> None:
        found = self._handle(handle).find_rows(asked)

        assert found == [self.now.get(name) for name in asked]
        for name, row in zip(asked, found, strict=True):
            self._show(handle, name, row)

    @rule(handle=handles, name=names)
    def read_past_the_cache(self, handle: str, name: str) -> None:
        assert self._handle(handle).without_cache().find_reference(name) == self._alive(name)

    @rule(handle=handles)
    def scan(self, handle: str) -> None:
        found = {
            key.name: (key.pointer, key.version, key.created, key.deleted) for key in self._handle(handle).scan_references()
        }

        assert found == {name: (row.pointer, row.version, row.created, row.deleted) for name, row in self.now.items()}

    def _show(self, handle: str, name: str, found: Reference | None) -> None:
        if found is not None:
            assert found.version >= self.seen[handle, name], "an older version than one that this handle has shown"
            self.seen[handle, name] = found.version

    @invariant()
    def the_database_holds_what_is_known(self) -> None:
        assert self.backend.read_references(REALM, NAMES) == [self.now.get(name) for name in NAMES]

    @invariant()
    def the_other_realm_is_untouched(self) -> None:
        if hasattr(self, "witnesses"):
            assert self.backend.read_references(OTHER, NAMES) == self.witnesses

    # inside

    def _handle(self, name: str) -> RealmStore:
        return self.writer if name == "writer" else self.reader

    def _truth(self, name: str) -> Reference | None:
        return self.backend.read_references(REALM, [name])[0]

    def _alive(self, name: str) -> Reference | None:
        row = self.now.get(name)
        return None if row is None or row.deleted is not None else row

    def _seen(self, name: str, number: int) -> Reference | None:
        """Two times of three the row of now, else one of those that it was."""
        earlier = [row for row, _ in self.told[name]]
        if number % 3 or not earlier:
            return self.now.get(name)
        return earlier[number % len(earlier)]

    def _is_as_now(self, seen: Reference) -> bool:
        row = self.now.get(seen.name)
        return row is not None and (row.pointer, row.version) == (seen.pointer, seen.version)

    def _is_fresh(self, new: Reference | None, pointer: ObjectId | None, deleted: Micros | None) -> bool:
        return new is not None and (new.pointer, new.created, new.recent, new.moves, new.deleted) == (
            pointer,
            self.clock.now(),
            (),
            (),
            deleted,
        )

    def _made(self, pointer: ObjectId) -> ObjectId:
        """Odd ones are made now."""
        return self.stores[0].new_id() if pointer % 2 else pointer

    def _since(self, seen: Reference | None) -> int:
        """Moves older than this need not be kept: the longer grace, and what clocks and commits may differ by.

        Counted from the making of what the row points to, which is no clock of the writer's alone.
        """
        settings = self.settings
        grace = max(settings.reader_grace_seconds, settings.writer_grace_seconds)
        now = self.clock.now() if seen is None or seen.pointer is None else min(self.clock.now(), id_time(seen.pointer))
        return now - round((grace + settings.clock_bound_seconds + settings.commit_timeout_seconds) * 1_000_000)


def _is_confirmed(new: Reference, expected: Reference, lost_answers: int) -> bool:
    """Whether it is as expected, apart from the writes that confirmed what only a read had shown: one for each lost answer at most."""
    confirmations = new.version - expected.version
    return 0 <= confirmations <= lost_answers and dataclasses.replace(new, version=expected.version) == expected


def _next(seen: Reference) -> Reference:
    return dataclasses.replace(seen, version=seen.version + 1)


def _onto(seen: Reference, pointer: ObjectId | None) -> Reference:
    left = () if seen.pointer is None else (seen.pointer,)
    return dataclasses.replace(_next(seen), pointer=pointer, recent=(*left, *seen.recent)[:KEPT_POINTERS])


def _noted(left: ObjectId, now: int, seen: Reference, since: int) -> tuple[ReferenceMove, ...]:
    """A note has an odd time; the last move that is none stays told."""
    moves = _recorded([ReferenceMove(left, Micros(now | 1))], seen, since)
    real = [move for move in seen.moves if move.time % 2 == 0][:1]
    return moves + tuple(move for move in real if move not in moves)


def _recorded(left: Iterable[ReferenceMove], seen: Reference, since: int) -> tuple[ReferenceMove, ...]:
    return (*left, *(move for move in seen.moves if move.time >= since))
