"""Differences and histories of a catalog that lives at random, against what its states say when they are read whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from headwater import Settings
from headwater.catalogs import Catalog, ContentKey, ContentOperation, ContentValue, Delete, IcebergTable, KeyAction, Put
from headwater.catalogs.content_operations import apply_operations
from headwater.commits import Transaction, read_commit
from headwater.store import ObjectId, RealmStore
from stored_groups import commit_together

COMMITS = 45
State = dict[ContentKey, tuple[UUID, bytes]]


@pytest.fixture
def store_url() -> str:
    return "memory://"


@pytest.fixture
def settings() -> Settings:
    """Indexes that spill after some ten keys."""
    return Settings(unsafe_short_graces=True, index_embedded_bytes=1024, index_stripe_bytes=1024)


@pytest.fixture(params=range(3))
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


@pytest.fixture
def lived(catalog: Catalog, realm: RealmStore, chance: random.Random) -> list[tuple[ObjectId, State]]:
    """Every commit of main, oldest first, with what it held. Every fifth time three are committed together, as a group."""
    names = [ContentKey.of(f"t{number:02}") for number in range(40)]
    catalog.commit(None, [Put(name, table(chance)) for name in names[:25]])
    reference = f"cat/{catalog.definition.id}/heads/main"
    for turn in range(COMMITS // 5):
        for _ in range(4):
            catalog.commit(None, lively(catalog, names, chance))
        changes = [changing([Put(ContentKey.of(f"g{turn}-{number}"), table(chance))]) for number in range(3)]
        commit_together(realm, reference, changes, properties={"catalog": catalog.definition.id})
    commits = [entry.id for entry in catalog.log(oldest_first=True)]
    heads = [read_commit(realm, commit).commit for commit in commits]
    assert any(one.depth for one in heads) and any(one.indexes["content"].levels for one in heads if one.indexes)
    return [(commit, state(catalog, commit)) for commit in commits]


def table(chance: random.Random, content_id: UUID | None = None) -> IcebergTable:
    return IcebergTable(id=content_id, metadata_location=f"s3://lake/{chance.getrandbits(40)}.json")


def changing(operations: list[ContentOperation]) -> Callable[[Transaction], object]:
    ids = {one.key: uuid4() for one in operations}
    return lambda tx: apply_operations(tx, operations, None, ids)


def lively(catalog: Catalog, names: list[ContentKey], chance: random.Random) -> list[ContentOperation]:
    """Two renames, two new versions, a drop and a new table, as far as there is what they need."""
    there = catalog.get_contents(None, names)
    old = chance.sample(sorted(there), min(5, len(there)))
    free = chance.sample([name for name in names if name not in there], 3)
    moved: list[ContentOperation] = [Delete(key) for key in old[:2]] + [
        Put(new, there[key]) for key, new in zip(old[:2], free, strict=False)
    ]
    changed: list[ContentOperation] = [Put(key, table(chance, there[key].id)) for key in old[2:4]]
    return [*moved, *changed, *map(Delete, old[4:]), Put(free[2], table(chance))]


def state(catalog: Catalog, commit: ObjectId) -> State:
    page = catalog.entries(f"{commit:016x}")
    return {entry.key: (entry.content_id, entry.value.digest) for entry in page.entries}


def stands(there: State, content_id: UUID) -> ContentKey | None:
    return next((key for key, (found, _) in there.items() if found == content_id), None)


def test_difference_of_any_two_commits_is_that_of_their_states(
    catalog: Catalog, lived: list[tuple[ObjectId, State]], chance: random.Random
) -> None:
    for _ in range(40):
        (one, before), (other, after) = chance.sample(lived, 2)
        expected = {key for key in {*before, *after} if before.get(key) != after.get(key)}

        found = catalog.diff(f"{one:016x}", f"{other:016x}").changes

        assert [change.key for change in found] == sorted(expected)
        for change in found:
            assert change.renamed_to == elsewhere(after, change.before, change.key)
            assert change.renamed_from == elsewhere(before, change.after, change.key)


def elsewhere(there: State, value: ContentValue | None, key: ContentKey) -> ContentKey | None:
    found = None if value is None else stands(there, value.content_id)
    return None if found == key else found


def test_history_of_each_key_is_what_its_content_went_through(catalog: Catalog, lived: list[tuple[ObjectId, State]]) -> None:
    for key, (content_id, _) in lived[-1][1].items():
        expected = []
        before: State = {}
        for commit, after in lived:
            was, now = stands(before, content_id), stands(after, content_id)
            if now is not None and (was != now or before[was] != after[now]):
                action = KeyAction.CREATED if was is None else KeyAction.CHANGED if was == now else KeyAction.RENAMED
                expected.append((commit, action, now))
            before = after

        assert [(one.entry.id, one.action, one.key) for one in catalog.history(key)] == expected[::-1]


def test_commit_is_found_by_counting_back_and_by_time(catalog: Catalog, lived: list[tuple[ObjectId, State]]) -> None:
    for back, entry in enumerate(catalog.log()):
        found = catalog.resolve(f"main~{back}") if back else catalog.resolve("main")

        assert found is not None and found.id == entry.id == lived[-1 - back][0]
