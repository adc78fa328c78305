"""What the suites of commits and indexes measure with works. How fast anything is, no test asks."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headwater.commits import read_head
from headwater.index import IndexValue
from headwater.store import RealmId, RealmKey, RealmStore, Store, open_store

ROOT = Path(__file__).parents[2]
ONE_KIND = ["--backends=memory"]


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.commits
    import benchmarks.counting
    import benchmarks.index
    import benchmarks.plain

    return benchmarks


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory://") as store:
        yield store


@pytest.fixture
def rows(store: Store) -> RealmStore:
    return store.rows(RealmId("bench"), RealmKey(1002))


def test_tables_have_the_same_sorted_keys_in_each_run(suites: Any) -> None:
    keys = suites.tables.table_keys(1000)

    assert keys == sorted(set(keys)) == suites.tables.table_keys(1000)
    assert len(keys) == 1000


def test_built_catalog_holds_every_table_once_after_it_was_churned(suites: Any, rows: RealmStore) -> None:
    keys = suites.tables.table_keys(100)
    suites.tables.plant(rows, "main", suites.tables.make(keys))
    suites.tables.churn(rows, "main", keys, 200, at_once=50)

    assert [key for key, _ in read_head(rows, "main").index("content").range()] == keys  # type: ignore[union-attr]


def test_plain_loop_loses_no_commit(suites: Any, rows: RealmStore) -> None:
    rows.create_reference("main")

    def increment(index: Any, _: Any) -> None:
        seen = index.get(b"counter")
        index.put(b"counter", IndexValue(None, bytes([1 + (seen.data[0] if seen else 0)])))

    def run() -> None:
        for _ in range(5):
            suites.plain.plain_commit(rows, "main", "counters", increment)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert read_head(rows, "main").index("counters").get(b"counter") == IndexValue(None, bytes([20]))  # type: ignore[union-attr]


def test_writes_of_a_commit_are_counted_beside_the_store(suites: Any, store: Store, rows: RealmStore) -> None:
    keys = suites.tables.table_keys(10)
    suites.tables.plant(rows, "main", suites.tables.make(keys))
    counting, backend = suites.counting.counting_store(store)
    with counting:
        suites.tables.commit_one(suites.commits.rows_of(counting), "main", keys[3], random.Random(1))
    written = backend.take_written()

    assert sum(one.rows for one in written) == 2
    assert len(rows.read_reference("main", fresh=True).recent) == 1


def test_storm_counts_what_fails_by_its_name(suites: Any) -> None:
    def act(chance: random.Random) -> None:
        if chance.random() < 0.5:
            raise KeyError("no")

    storm = suites.storms.storm(suites.storms.writers(2, act), 0.02)

    assert set(storm.failures) == {"KeyError"}
    assert storm.done + storm.failures["KeyError"] == pytest.approx(len(storm.waits), abs=2)


def test_storm_tells_how_its_unluckiest_writer_fared(suites: Any) -> None:
    writers = [lambda: lambda _: time.sleep(0.05), lambda: lambda _: time.sleep(0.001)]

    assert suites.storms.storm(writers, 0.02).unluckiest == [0]


def test_writer_in_the_background_that_fails_ends_the_run(suites: Any) -> None:
    def act(_: random.Random) -> None:
        raise KeyError("no")

    with pytest.raises(KeyError), suites.storms.background(suites.storms.writers(1, act)):
        pass


def test_parts_of_the_commits_suite_give_rows_and_curves(suites: Any, store: Store) -> None:
    scale = suites.commits.Scale(
        small=20,
        large=40,
        churned=40,
        commits=2,
        rounds=1,
        threads=2,
        processes=2,
        turns=1,
        seconds=0.04,
        crowd_turns=1,
        crowd_seconds=0.04,
    )
    small, large = (suites.tables.make(suites.tables.table_keys(size)) for size in (20, 40))
    bench = suites.commits.Bench(suites.places.MemoryPlace(), scale, store, small, large)
    found = [row.plain("commits") for row in suites.commits.measure(bench, suites.options.read_options(ONE_KIND, ()))]

    assert {row["case"].split(",")[0] for row in found} == {"one writer", "2 threads", "commit to a reference of its own"}
    assert all(row["value"] > 0 or row["unit"] in ("failures", "commits/s") for row in found)
    assert [curve.name for curve in bench.curves] == ["waits-memory-threads"]


def test_parts_of_the_indexes_suite_give_rows_and_curves(suites: Any) -> None:
    index, curves = suites.index, []
    scale = index.Scale(
        sizes=(20, 40),
        commits=4,
        rounds=2,
        tried=40,
        tries=5,
        embedded=(4, 8),
        stripes=(4,),
        cold=2,
        lookups=20,
        at_once=5,
        listed=9,
    )
    found = [*index.one_key_commits(scale, curves), *index.limits(scale, curves), *index.sizes(scale, curves)]
    found += index.reads(suites.places.MemoryPlace(), scale, suites.tables.make(suites.tables.table_keys(40)))

    assert all(row.plain("index")["value"] > 0 for row in found if row.unit != "objects")
    assert [curve.name for curve in curves] == ["index-bytes", "index-time", "limits-bytes", "limits-time"]
