"""A large merge copies contents in batches that are written before its swap, and holds no more of them than that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from sketched_branches import Branching, key, table

from fake_clock import FakeClock
from headwater.catalogs import CATALOGS, CLAIMS, Catalog, Catalogs, ContentKey, MergeConflictError, MergeMode, Put
from headwater.catalogs.content import with_id
from headwater.errors import CommitTimeoutError, UnavailableError
from headwater.iceberg.metadata_json import MetadataParts, split_metadata
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store
from watched_writes import WatchedWrites

BATCH, TABLES = 4, 30
KEYS = [ContentKey.of(f"t{number:02}") for number in range(TABLES)]


@pytest.fixture
def settings() -> Settings:
    return Settings(copy_batch=BATCH)


@pytest.fixture
def writes() -> WatchedWrites:
    return WatchedWrites()


@pytest.fixture
def rows(writes: WatchedWrites, settings: Settings, clock: FakeClock) -> Iterator[RealmStore]:
    with Store(writes, url="memory://", settings=settings, clock=clock) as store:
        yield store.rows(RealmId("acme"), RealmKey(store.new_id()))
        writes.heal()


def document(number: int, version: int) -> MetadataParts:
    """A large piece that stays, and one for each version."""
    pieces = [{"id": one, "s": f"{number} {one} " + "x" * 3000} for one in range(version)]
    return split_metadata(json.dumps({"format-version": 2, "snapshots": pieces}).encode())


def put_all(catalog: Catalog, branch: str, version: int) -> None:
    there = catalog.get_contents(branch, KEYS)
    contents = [table(str(version)) if at not in there else with_id(table(str(version)), there[at].id) for at in KEYS]  # type: ignore[arg-type]  # stored ones have ids
    parts = [document(number, version) for number in range(TABLES)]
    catalog.commit(branch, [Put(at, content, metadata=one) for at, content, one in zip(KEYS, contents, parts, strict=True)])


@pytest.fixture
def parted(rows: RealmStore, writes: WatchedWrites) -> Branching:
    """``dev`` has a second version of every table of ``main``, each with its document."""
    for name in (CATALOGS, CLAIMS):
        rows.ensure_reference(name)
    Catalogs(rows).create_catalog("lake", base_location="s3://lake/")
    catalog = Catalogs(rows).open_catalog("lake")
    put_all(catalog, "main", 2)
    catalog.create_branch("dev")
    put_all(catalog, "dev", 3)
    writes.forget()
    return Branching(catalog)


def versions(lake: Branching, branch: str = "main") -> set[tuple[str, int]]:
    stored = {at: lake.catalog.metadata(branch, at) for at in KEYS}
    words = lake.words(branch)
    assert len(words) == TABLES
    return {
        (word.partition("=")[2], len(json.loads(stored[key(word.partition("=")[0])] or b"")["snapshots"])) for word in words
    }


def test_large_merge_writes_in_batches(parted: Branching, writes: WatchedWrites) -> None:
    parted.merge()

    parted.check("main")
    assert versions(parted) == {("3", 3)}
    # of each: the content, its document, and the one piece that the target does not have
    assert max(map(len, writes.staged)) == 3 * BATCH
    assert sum(map(len, writes.staged)) == 3 * TABLES
    [last] = writes.swapped
    assert {row.type for row in last} <= {"commit", "stripe", "stripes"}


def test_few_contents_are_written_with_the_commit(parted: Branching, writes: WatchedWrites) -> None:
    parted.catalog.create_branch("few", "main")
    parted.put("few", "t00=4")
    writes.forget()
    parted.merge("few", mode=MergeMode.FORCE)

    assert writes.staged == []
    assert len(writes.swapped) == 1


def test_documents_fill_a_batch_by_their_bytes(parted: Branching, writes: WatchedWrites, clock: FakeClock) -> None:
    settings = Settings(commit_group_bytes=20_000)
    with Store(writes, url="memory://", settings=settings, clock=clock) as store:
        one = store.rows(RealmId("acme"), parted.catalog.resolve("main").rows.key)  # type: ignore[union-attr]  # it has commits
        Catalogs(one).open_catalog("lake").merge("dev")

    assert len(writes.staged) > 10
    assert max(sum(len(row.value) for row in rows) for rows in writes.staged) < 20_000


def test_merge_is_not_seen_before_its_swap(parted: Branching, writes: WatchedWrites) -> None:
    head = parted.head("main")
    heads = []
    for call in (1, 4):
        writes.intervene("write_objects", lambda: heads.append(parted.head("main")), at=call)
    writes.intervene("write_and_swap", lambda: heads.append(parted.head("main")))
    parted.merge()

    assert heads == [head, head, head]
    assert parted.head("main") != head


def test_beaten_merge_uses_its_copies_again(parted: Branching, writes: WatchedWrites) -> None:
    writes.intervene("write_and_swap", lambda: parted.put("main", "other"))
    parted.merge()

    assert sum(map(len, writes.staged)) == 3 * TABLES
    assert len(writes.swapped) == 3
    assert parted.words("main") >= {"other", "t00=3"}
    parted.check("main")


def test_copy_over_another_version_of_the_target_is_made_anew(parted: Branching, writes: WatchedWrites) -> None:
    """The staged one shares pieces with a version that the target holds no more."""

    def move_on() -> None:
        content = parted.catalog.get_content("main", KEYS[0])
        assert content is not None
        parted.commit("main", [Put(KEYS[0], with_id(table("9"), content.id), metadata=document(77, 1))], "faster")  # type: ignore[arg-type]  # it has one

    writes.intervene("write_and_swap", move_on)
    parted.merge(mode=MergeMode.FORCE)

    assert versions(parted) == {("3", 3)}
    assert "iceberg-metadata" in {row.type for row in writes.swapped[-1]}
    parted.check("main")


def test_copies_that_are_too_old_are_added_with_the_commit(parted: Branching, writes: WatchedWrites, clock: FakeClock) -> None:
    writes.intervene("write_objects", lambda: clock.advance(3 * 3600), at=8)
    parted.merge()

    assert {"iceberg-metadata", "iceberg-table"} <= {row.type for row in writes.swapped[-1]}
    assert versions(parted) == {("3", 3)}


def test_lost_batch_is_written_once_more(parted: Branching, writes: WatchedWrites) -> None:
    writes.fail("write_objects", at=2)
    writes.fail("write_objects", at=4, before=False)
    parted.merge()

    assert versions(parted) == {("3", 3)}


def test_merge_without_a_database_says_that_nothing_changed(parted: Branching, writes: WatchedWrites) -> None:
    head = parted.head("main")
    writes.fail("write_objects", at=3, times=100_000)
    with pytest.raises(UnavailableError, match="nothing was changed") as fault:
        parted.merge()
    writes.heal()

    assert not isinstance(fault.value, CommitTimeoutError)
    assert parted.head("main") == head


def test_large_transplant_writes_in_batches(parted: Branching, writes: WatchedWrites) -> None:
    put_all(parted.catalog, "dev", 4)
    commits = [entry.id for entry in parted.catalog.log("dev")][1::-1]
    writes.forget()
    parted.catalog.transplant("dev", commits, "main")

    assert versions(parted) == {("4", 4)}
    assert max(map(len, writes.staged)) <= 4 * BATCH
    parted.check("main")


def test_message_of_many_conflicts_is_bounded(parted: Branching) -> None:
    many = [f"n{number}" for number in range(200)]
    for branch, version in (("main", 1), ("dev", 2)):
        parted.put(branch, *(f"{name}={version}" for name in many))
    with pytest.raises(MergeConflictError, match=r"^.*: 200 conflicts: .*; and 150 more$") as refused:
        parted.merge()

    assert len(refused.value.details) == 200
    assert len(str(refused.value)) < 10_000
