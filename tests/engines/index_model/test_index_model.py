"""An index, as commits hold it, is a sorted dictionary: whatever is put, removed, committed, reloaded and collected, in whatever order.

Limits are so tiny that a few keys spill, split and merge. Runs are the same each time; HEADWATER_SOAK=1 makes them a hundred times as
long and new each time. A failure prints its steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest
from committed_index import CommittedIndex
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from questions import assert_same

from backend_fixtures import STORES
from fake_clock import FakeClock
from headwater.commits import commit_change, read_head
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, Store, open_store
from tiers import long_but_for

IS_SOAK = os.environ.get("HEADWATER_SOAK") == "1"
LIMITS = [
    (256, 256),
    pytest.param(256, 1024, marks=pytest.mark.long),
    pytest.param(1024, 256, marks=pytest.mark.long),
    (1024, 1024),
]
EXAMPLES = {"sqlite": (3, 15), "postgresql": (3, 15), "mongodb": (1, 6)}
pytestmark = pytest.mark.timeout(0 if IS_SOAK else 120)


def run_of(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples * (100 if IS_SOAK else 1),
        stateful_step_count=steps * (2 if IS_SOAK else 1),
        database=None,
        derandomize=not IS_SOAK,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def opened(url: str, embedded: int, stripe: int) -> Store:
    limits = Settings(index_embedded_bytes=embedded, index_stripe_bytes=stripe)
    return open_store(url, settings=limits, clock=FakeClock())


@pytest.fixture(params=long_but_for({"sqlite"}, EXAMPLES))
def database(request: pytest.FixtureRequest) -> Iterator[tuple[str, Store]]:
    with opened(STORES[request.param](request), 256, 1024) as store:
        yield request.param, store


@pytest.mark.parametrize(("embedded", "stripe"), LIMITS)
def test_index_is_a_sorted_dictionary(embedded: int, stripe: int) -> None:
    met: set[int] = set()
    with opened("memory://", embedded, stripe) as store:
        run_state_machine_as_test(lambda: CommittedIndex(store, met), settings=run_of(8, 25))

    assert met == {0, 1, 2}, "so many levels must have been met for this to say anything"


def test_index_is_a_sorted_dictionary_on_every_database(database: tuple[str, Store]) -> None:
    name, store = database

    run_state_machine_as_test(lambda: CommittedIndex(store, set()), settings=run_of(*EXAMPLES[name]))


@pytest.mark.parametrize("seed", long_but_for({0}, range(40 if IS_SOAK else 2)))
def test_index_of_many_lists_stays_a_sorted_dictionary(seed: int) -> None:
    """Fewer kinds of steps than above, and larger ones: lists divide and merge while they hold changes."""
    chance, met = Random(seed), set[int]()
    with opened("memory://", 256, 256) as store:
        index = CommittedIndex(store, met)
        index.begin(seed, 2500)
        for step in range(60):
            act = chance.choice((index.edit, index.edit, index.edit, index.load, index.clear))
            amount = {"edit": (12, 200), "load": (60, 400), "clear": (0.1, 0.5, 0.9)}[act.__name__]
            act(chance.randrange(1 << 32), chance.choice(amount))
            if step % 20 == 0:
                index.reload()
        index.teardown()

    assert 2 in met


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_value_larger_than_a_row_lies_beside_small_ones(place: str) -> None:
    keys = [b"%03d" % number for number in range(100)]
    large = {"first": b"", "middle": b"050\x00", "last": b"999"}[place] or b"\x00"
    truth = {key: IndexValue(None, key * 4) for key in keys} | {large: IndexValue(None, Random(1).randbytes(400_000))}
    with opened("memory://", 256, 256) as store:
        rows = store.rows(RealmId("acme"), RealmKey(7))
        rows.ensure_reference("main")
        commit_change(rows, "main", lambda tx: [tx.index("things").put(key, value) for key, value in truth.items()])
        commit_change(rows, "main", lambda tx: tx.index("things").put(b"050", IndexValue(None, b"new")))
        truth[b"050"] = IndexValue(None, b"new")
        newest = read_head(rows.without_cache(), "main", fresh=True)

        assert newest is not None
        assert_same(newest.index("things"), truth)
        commit_change(rows, "main", lambda tx: tx.index("things").remove(large))
        del truth[large]
        newest = read_head(rows.without_cache(), "main", fresh=True)
        assert newest is not None
        assert_same(newest.index("things"), truth)
