"""Two indexes as commits hold them, beside two dictionaries: edits, commits, cold reloads, old commits, and collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from index_sweep import collect_all_but
from odd_keys import near_key, new_data, new_key
from questions import assert_answers_alike, assert_same

from headwater.commits import (
    IndexListing,
    IndexPage,
    Operation,
    Transaction,
    commit_change,
    read_commit,
    read_head,
    read_next_page,
    read_page,
)
from headwater.errors import ExpiredError
from headwater.index import Index, IndexEditor, IndexValue
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store, StoredObject, object_type

__all__ = ["CommittedIndex", "Leaf"]

NAMES = ("things", "others")
Contents = dict[str, dict[bytes, IndexValue]]
Edit = Callable[[Transaction, Contents], None]

seeds = st.integers(0, (1 << 32) - 1)


@object_type("test-leaf")
class Leaf(StoredObject, frozen=True, kw_only=True):
    """What a value points to."""

    number: int


class Pinned(NamedTuple):
    """A commit, and what held there."""

    commit_id: ObjectId
    contents: Contents


@dataclass
class Walk:
    """A listing that is read page by page, and what is still to come."""

    commit_id: ObjectId
    token: str
    rest: list[tuple[bytes, IndexValue]]


class CommittedIndex(RuleBasedStateMachine):
    """``now`` is what the head holds; ``pinned`` what older commits hold; ``gone`` what was collected; ``walks`` are under way."""

    def __init__(self, store: Store, met: set[int], *, largest: int = 10_000) -> None:
        """``met`` collects the numbers of levels that indexes had."""
        super().__init__()
        self.met = met
        self.largest = largest
        self.home = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        self.rows = self.home
        self.now: Contents = {name: {} for name in NAMES}
        self.pinned: list[Pinned] = []
        self.gone: list[ObjectId] = []
        self.walks: list[Walk] = []
        self.added = False
        self.rows.ensure_reference("main")

    @initialize(seed=seeds, count=st.sampled_from([0, 300, 2500]))
    def begin(self, seed: int, count: int) -> None:
        """With nothing, with some stripes, or with lists of stripes."""
        if count:
            self.load(seed, count)

    # edits, each a commit

    @rule(seed=seeds, count=st.sampled_from([1, 2, 5, 12, 12, 200]))
    def edit(self, seed: int, count: int) -> None:
        """A few keys here and there: what a writer does all day."""
        chance = Random(seed)
        self._commit(chance, lambda tx, new: self._edit_some(tx, new, chance, count))

    @rule(seed=seeds, count=st.sampled_from([20, 60, 120, 400]))
    def load(self, seed: int, count: int) -> None:
        """Many neighbours at once, in key order: what an import does."""
        chance = Random(seed)
        name, stem, first = chance.choice(NAMES), new_key(chance)[:400], chance.randrange(500)

        def change(tx: Transaction, new: Contents) -> None:
            for number in range(first, first + count):
                data = new_data(chance, largest=60) if count < 500 else chance.randbytes(12)
                self._put(tx, new, name, stem + b"/%05d" % number, IndexValue(None, data))

        self._commit(chance, change)

    @rule(seed=seeds, share=st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    def clear(self, seed: int, share: float) -> None:
        """Remove neighbours, so that whole stripes go."""
        chance = Random(seed)
        name = chance.choice(NAMES)
        keys = sorted(self.now[name])
        begin = chance.randint(0, round(len(keys) * (1 - share)))
        wanted = keys[begin : begin + round(len(keys) * share)]

        def change(tx: Transaction, new: Contents) -> None:
            for key in wanted:
                self._remove(tx, new, name, key)

        self._commit(chance, change)

    @rule(seed=seeds)
    def add_again(self, seed: int) -> None:
        """Put back what an older commit held and this one does not."""
        chance = Random(seed)
        old = chance.choice(self.pinned).contents if self.pinned else self.now

        def change(tx: Transaction, new: Contents) -> None:
            for name in NAMES:
                for key, value in old[name].items():
                    if key not in new[name] and chance.random() < 0.5:
                        self._put(tx, new, name, key, IndexValue(None, value.data))

        self._commit(chance, change)

    @rule(seed=seeds)
    def change_nothing(self, seed: int) -> None:
        """Put what is there, remove what is not, put and remove again: nothing to commit."""
        chance = Random(seed)
        name = chance.choice(NAMES)

        def change(tx: Transaction, new: Contents) -> None:
            for key, value in list(new[name].items())[:3]:
                self._put(tx, new, name, key, IndexValue(None, b"passing"))
                assert tx.index(name).put(key, value) is False
                new[name][key] = value
            fresh = b"fresh" + new_key(chance)[:400]
            if fresh not in new[name]:
                self._put(tx, new, name, fresh, IndexValue(None, b"passing"))
                self._remove(tx, new, name, fresh)

        self._commit(chance, change)

    # reading

    @rule()
    def reload(self) -> None:
        """Go on with a cache that remembers nothing."""
        self.rows = self.home.without_cache(budget_bytes=1 << 22)
        for name in NAMES:
            assert_same(self._index(self.rows, name), self.now[name])

    @rule()
    def pin(self) -> None:
        newest = read_head(self.rows, "main", fresh=True)
        if newest is not None:
            self.pinned.append(Pinned(newest.id, {name: dict(self.now[name]) for name in NAMES}))

    @rule(seed=seeds)
    def read_an_old_commit(self, seed: int) -> None:
        chance = Random(seed)
        if self.pinned:
            old = chance.choice(self.pinned)
            self._check_old(old, self.rows if chance.random() < 0.5 else self.home.without_cache(), chance)

    @rule(seed=seeds, limit=st.integers(1, 9))
    def begin_a_walk(self, seed: int, limit: int) -> None:
        """Read the first page of a listing. Whatever is committed later, the pages to come show this state."""
        chance = Random(seed)
        newest = read_head(self.rows, "main", fresh=True)
        if newest is None:
            return
        name, reverse = chance.choice(NAMES), chance.random() < 0.5
        keys = sorted(self.now[name])
        if chance.random() < 0.5:
            prefix = near_key(chance, keys)[: chance.randint(0, 3)]
            listing = IndexListing.of_prefix(name, prefix, reverse=reverse)
            found = [key for key in keys if key.startswith(prefix)]
        else:
            start, end = (near_key(chance, keys) if chance.random() < 0.5 else None for _ in range(2))
            listing = IndexListing(index=name, start=start, end=end, reverse=reverse)
            found = [key for key in keys if (start is None or key >= start) and (end is None or key < end)]
        expected = [(key, self.now[name][key]) for key in (found[::-1] if reverse else found)]
        self._check_page(read_page(newest, listing, limit=limit), expected, limit)

    @rule(seed=seeds, limit=st.one_of(st.none(), st.integers(1, 9)))
    def walk_on(self, seed: int, limit: int | None) -> None:
        chance = Random(seed)
        if not self.walks:
            return
        walk = self.walks.pop(chance.randrange(len(self.walks)))
        is_cold = chance.random() < 0.5
        rows = self.home.without_cache() if is_cold else self.rows
        try:
            page = read_next_page(rows, walk.token, limit=limit)
        except ExpiredError:
            assert walk.commit_id in self.gone
            return
        assert walk.commit_id not in self.gone or not is_cold, "a page of a commit that was collected"
        assert page.commit_id == walk.commit_id
        self._check_page(page, walk.rest, limit)

    @rule(seed=seeds)
    def stack_editors(self, seed: int) -> None:
        """An editor on an editor on the head, as a member of a group has it: the lower one changes when it absorbs the upper."""
        chance = Random(seed)
        name = chance.choice(NAMES)
        base = self._index(self.rows, name)
        below, upper_truth = IndexEditor(base), dict(self.now[name])
        for _ in range(chance.randint(1, 3)):
            self._edit_plain(below, upper_truth, chance)
            lower_truth = dict(upper_truth)
            above = IndexEditor(below)
            self._edit_plain(above, upper_truth, chance)
            assert_answers_alike(above, upper_truth, chance, questions=3)
            assert_answers_alike(below, lower_truth, chance, questions=3)
            assert above.changes() == _difference(lower_truth, upper_truth)
            below.absorb(above)
            assert_answers_alike(below, upper_truth, chance, questions=3)
        assert below.changes() == _difference(self.now[name], upper_truth)
        assert_answers_alike(base, self.now[name], chance, questions=3)

    # collecting

    @rule(seed=seeds)
    def collect(self, seed: int) -> None:
        """Delete all that neither the head nor some of the old commits lead to."""
        chance = Random(seed)
        newest = read_head(self.rows, "main", fresh=True)
        if newest is None:
            return
        kept = [old for old in self.pinned if chance.random() < 0.5 or old.commit_id == newest.id]
        ids = {newest.id, *(old.commit_id for old in kept)}
        ids |= {walk.commit_id for walk in self.walks if chance.random() < 0.3} - set(self.gone)
        self.gone += [one.commit_id for one in (*self.pinned, *self.walks) if one.commit_id not in ids]
        self.pinned = [old for old in self.pinned if old.commit_id in ids]
        collect_all_but(self.home, ids)
        for gone in self.gone[-3:]:
            with pytest.raises(ExpiredError):
                read_commit(self.home.without_cache(), gone)

    def teardown(self) -> None:
        while self.walks:
            self.walk_on(len(self.walks), None)
        cold = self.home.without_cache()
        for name in NAMES:
            assert_same(self._index(cold, name), self.now[name])
        for old in self.pinned:
            self._check_old(old, cold, Random(1))

    # helpers

    def _commit(self, chance: Random, edit: Edit) -> None:
        new: Contents = {}

        def change(tx: Transaction) -> str:
            new.clear()
            self.added = False
            new.update({name: dict(self.now[name]) for name in NAMES})
            edit(tx, new)
            return "result"

        before = read_head(self.rows, "main", fresh=True)
        done = commit_change(self.rows, "main", change)
        operations = [operation for name in sorted(NAMES) for operation in _operations(name, self.now[name], new[name])]
        assert done.result == "result"
        assert done.changed == bool(operations or self.added)
        if done.changed:
            assert list(read_commit(self.rows, done.commit_id).commit.operations) == operations  # type: ignore[arg-type]
        else:
            assert done.commit_id == (before.id if before else None)
        self.now = new
        self._check(chance)

    def _check(self, chance: Random) -> None:
        newest = read_head(self.rows, "main", fresh=True)
        for name in NAMES:
            assert_answers_alike(self._index(self.rows, name), self.now[name], chance, questions=5)
            if newest is not None and name in newest.commit.indexes:
                container = newest.commit.indexes[name]
                self.met.add(container.levels)
                assert len(container.embedded) <= self.rows.settings.index_embedded_bytes, name

    def _check_old(self, old: Pinned, rows: RealmStore, chance: Random) -> None:
        found = read_commit(rows, old.commit_id)
        for name in NAMES:
            assert_same(found.index(name), old.contents[name])
            assert_answers_alike(found.index(name), old.contents[name], chance, questions=3)

    def _check_page(self, page: IndexPage, expected: list[tuple[bytes, IndexValue]], limit: int | None) -> None:
        assert list(page.entries) == expected[:limit]
        rest = expected[len(page.entries) :]
        assert (page.next_token is None) == (not rest)
        if page.next_token is not None:
            self.walks.append(Walk(page.commit_id, page.next_token, rest))

    def _index(self, rows: RealmStore, name: str) -> Index:
        newest = read_head(rows, "main", fresh=True)
        return Index() if newest is None else newest.index(name)

    def _edit_some(self, tx: Transaction, new: Contents, chance: Random, count: int) -> None:
        there = {name: list(new[name]) for name in NAMES}
        for _ in range(count):
            name = chance.choice(NAMES)
            keys = there[name]
            what = chance.random()
            if what < 0.25 and keys:
                self._remove(tx, new, name, chance.choice(keys))
            elif what < 0.3:
                self._remove(tx, new, name, near_key(chance, keys))
            elif what < 0.6 and keys:
                self._put(tx, new, name, chance.choice(keys), self._value(tx, chance))
            else:
                key = near_key(chance, keys) if what < 0.85 else new_key(chance)
                self._put(tx, new, name, key[:500] or b"k", self._value(tx, chance))
        for name in NAMES:
            assert_answers_alike(tx.index(name), new[name], chance, questions=2)

    def _value(self, tx: Transaction, chance: Random) -> IndexValue:
        data = new_data(chance, largest=self.largest)
        if chance.random() < 0.8:
            return IndexValue(None, data)
        self.added = True
        return IndexValue(tx.add_object(Leaf(number=chance.randrange(1 << 20))), data)

    def _put(self, tx: Transaction, new: Contents, name: str, key: bytes, value: IndexValue) -> None:
        assert tx.index(name).put(key, value) == (key not in new[name]), key
        new[name][key] = value

    def _remove(self, tx: Transaction, new: Contents, name: str, key: bytes) -> None:
        assert tx.index(name).remove(key) == (key in new[name]), key
        new[name].pop(key, None)

    def _edit_plain(self, editor: IndexEditor, truth: dict[bytes, IndexValue], chance: Random) -> None:
        for _ in range(chance.randint(1, 8)):
            key = near_key(chance, list(truth)) or b"k"
            if chance.random() < 0.4:
                assert editor.remove(key) == (truth.pop(key, None) is not None)
            elif len(key) <= 500:
                value = IndexValue(None, new_data(chance, largest=100))
                assert editor.put(key, value) == (key not in truth)
                truth[key] = value


def _operations(name: str, before: dict[bytes, IndexValue], after: dict[bytes, IndexValue]) -> list[Operation]:
    return [
        Operation(name, key, removed=True)
        if value is None
        else Operation(name, key, object_id=value.object_id, data=value.data)
        for key, value in _difference(before, after)
    ]


def _difference(before: dict[bytes, IndexValue], after: dict[bytes, IndexValue]) -> list[tuple[bytes, IndexValue | None]]:
    return [(key, after.get(key)) for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
