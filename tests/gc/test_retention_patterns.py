"""How much history a reference keeps, by the first pattern that covers its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from backend_fixtures import BACKENDS
from fake_clock import FakeClock
from headwater.commits import Transaction, commit_change, read_log
from headwater.gc import collect_realm
from headwater.index import IndexValue
from headwater.realms import HistoryRetention, KeptHistory, RealmRegistry
from headwater.settings import Settings
from headwater.store import Store
from lakes import HOUR, lake, make_lake, make_realm, open_on, put, rows_of


def keep(store: Store, *patterns: tuple[str, int] | tuple[str, int, float]) -> None:
    realms, kept = RealmRegistry(store), []
    for pattern, commits, *age in patterns:
        kept.append(KeptHistory(pattern=pattern, commits=commits, age_seconds=sum(age)))
    wanted = HistoryRetention(content_commits=2, content_age_seconds=0.0, reference_commits=2, references=tuple(kept))
    realms.update_realm(realms.read_realm("acme"), retention=wanted)


def left_of(store: Store, branches: Sequence[str]) -> list[int]:
    """How many commits the branches have after a collection."""
    collect_realm(store, "acme")
    store.cache.clear()
    return [sum(1 for _ in lake(store).log(branch)) for branch in branches]


BRANCHES = ("main", "release-1", "release-2", "scratch")


@pytest.fixture(params=["memory"])
def store(request: pytest.FixtureRequest, settings: Settings, clock: FakeClock) -> Iterator[Store]:
    """Branches with six old commits of their own each, which retention alone can keep."""
    with open_on(BACKENDS[request.param](request), settings, clock) as opened:
        make_realm(opened)
        made = make_lake(opened)
        for branch in BRANCHES[1:]:
            made.create_branch(branch)
        for version in range(6):
            for branch in BRANCHES:
                put(made, version, branch=branch)
            clock.advance(HOUR)
        yield opened


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgresql", "mongodb"], indirect=True)
def test_pattern_decides_for_the_branches_that_it_covers(store: Store) -> None:
    keep(store, ("lake/release-*", 5), ("*/scratch", 1))

    assert left_of(store, BRANCHES) == [2, 5, 5, 1]


def test_first_pattern_that_covers_a_branch_decides_alone(store: Store) -> None:
    keep(store, ("lake/release-2", 1), ("lake/release-*", 4), ("lake/*", 3))

    assert left_of(store, BRANCHES) == [3, 4, 1, 3]


def test_pattern_keeps_by_age_too(store: Store, clock: FakeClock) -> None:
    keep(store, ("*/main", 1, 3.5 * HOUR))

    assert left_of(store, ["main"]) == [4]


def test_pattern_of_another_catalog_covers_nothing(store: Store) -> None:
    keep(store, ("pond/*", 6), ("LAKE/main", 6))

    assert left_of(store, BRANCHES) == [2, 2, 2, 2]


def test_pattern_without_a_catalog_means_the_realms_own_references(store: Store, clock: FakeClock) -> None:
    rows = rows_of(store)

    def change(tx: Transaction) -> None:
        tx.index("some").put(str(tx.time).encode(), IndexValue(None))

    for _ in range(5):
        for reference in ("grants", "principals"):
            commit_change(rows, reference, change)
        clock.advance(HOUR)
    keep(store, ("grants", 4))
    collect_realm(store, "acme")

    assert [sum(1 for _ in read_log(rows.without_cache(), name)) for name in ("grants", "principals")] == [4, 2]
