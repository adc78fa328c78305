"""Nobody starves on one reference, and nobody waits for what happens on another."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from callers import Caller, at_once, in_line
from counters import ADD, Answer, assert_exact, counted, tell
from grounds import LENGTH, REALM, Ground, Witness
from groups import groups_in

from backend_fixtures import STORES
from headwater.clock import SystemClock
from headwater.commits import Transaction
from headwater.errors import RefusedError
from headwater.settings import Settings
from headwater.store import ObjectRow, RealmId, RealmKey, RealmStore, ReferenceRow, Store, open_store
from headwater.store.backends.memory import MemoryBackend

COMMITS = 50 * LENGTH
STEADY = Settings(commit_timeout_seconds=60, commit_member_seconds=20)
"""Nobody is left out for being slow, which on a busy machine everybody may be."""
Make = Callable[[Settings], Ground]


class Remote(Witness):
    """A database in memory that answers a moment later, as those on a network do: the processor is free for others meanwhile."""

    def write_and_swap(self, rows: Sequence[ObjectRow], seen: ReferenceRow, new: ReferenceRow) -> None:
        time.sleep(0.0003)
        self.backend.write_and_swap(rows, seen, new)


def remote(request: pytest.FixtureRequest) -> Store:
    backend: Any = Remote(MemoryBackend())
    return Store(backend, url="memory://", settings=STEADY, clock=SystemClock())


def embedded(request: pytest.FixtureRequest) -> Store:
    return open_store(STORES["sqlite"](request), settings=STEADY)


@pytest.fixture(params=[remote, embedded])
def rows(request: pytest.FixtureRequest) -> Iterator[RealmStore]:
    with request.param(request) as store:
        made = store.rows(RealmId("acme"), REALM)
        made.ensure_reference("main")
        yield made


def a_long_storm(rows: RealmStore, threads: int) -> list[Answer]:
    """Each adds many, one after the other; all stand in line before the first is through."""

    def work(client: int) -> Callable[[], list[Answer]]:
        return lambda: [tell(rows, client) for _ in range(COMMITS)]

    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        leader = held.lead(lambda: tell(rows, "leader", ADD, first))
        for client in range(threads):
            held.call(work(client))
    callers = [caller for caller in held.callers if caller is not leader]
    return [leader.result(), *(answer for caller in callers for answer in caller.result())]


def largest_lead(journal: Iterable[Answer]) -> int:
    """How many commits one caller was at most ahead of another that was not done yet."""
    done: Counter[object] = Counter()
    lead = 0
    ordered = sorted((answer for answer in journal if answer.client != "leader"), key=lambda answer: answer.number or 0)
    clients = {answer.client for answer in ordered}
    for answer in ordered:
        done[answer.client] += 1
        waiting = [done[client] for client in clients if done[client] < COMMITS]
        lead = max(lead, done[answer.client] - min(waiting, default=COMMITS))
    return lead


def test_sixteen_threads_take_turns(rows: RealmStore) -> None:
    journal = a_long_storm(rows, 16)

    assert assert_exact(rows, journal) == 16 * COMMITS + 1
    assert largest_lead(journal) <= 0.8 * COMMITS
    assert sum(answer.attempts for answer in journal) <= 1.1 * len(journal)
    assert len(groups_in(rows)) <= len(journal) / 4


def test_stores_on_one_database_all_get_through() -> None:
    ground = Ground(settings=Settings(commit_timeout_seconds=60))
    stores = [ground.rows, *(ground.open() for _ in range(3))]
    works = [lambda client=client: [tell(stores[client % 4], client) for _ in range(12)] for client in range(8)]  # type: ignore[misc]
    journal = [answer for answers in at_once(works) for answer in answers]

    assert assert_exact(ground.rows, journal, deleted=ground.witness.deleted) == 96
    ground.close()


def test_hanging_swap_on_one_reference_stops_no_other(ground: Ground) -> None:
    other_realm = ground.rows.store.rows(RealmId("other"), RealmKey(6))  # type: ignore[attr-defined]
    other_realm.ensure_reference("main")
    ground.rows.ensure_reference("side")
    hang = ground.faults.hang(ground.swap)
    hung = Caller(lambda: tell(ground.rows, 0))
    hang.reached()
    behind = Caller(lambda: tell(ground.rows, 1))
    side = [tell(ground.rows, 2, name="side") for _ in range(5)]
    far = [tell(other_realm, 3) for _ in range(5)]
    assert (hung.is_alive(), behind.is_alive()) == (True, True)
    hang.release()

    assert [answer.number for answer in (hung.result(), behind.result())] == [1, 2]
    assert [(answer.number, answer.attempts) for answer in (*side, *far)] == [(n, 1) for n in range(1, 6)] * 2


def test_hanging_change_on_one_reference_stops_no_other(ground: Ground) -> None:
    ground.rows.ensure_reference("side")
    with in_line() as held:

        def first(tx: Transaction) -> int:
            held.hold(tx)
            return counted(ADD)(tx)

        held.lead(lambda: tell(ground.rows, 0, ADD, first))
        held.call(lambda: tell(ground.rows, 1))

        assert [tell(ground.rows, 2, name="side").number for _ in range(5)] == [1, 2, 3, 4, 5]


def test_commits_inside_each_others_changes_are_refused_and_hang_nobody(ground: Ground) -> None:
    ground.rows.ensure_reference("side")

    def crossing(name: str) -> Callable[[Transaction], int]:
        def change(tx: Transaction) -> int:
            tell(ground.rows, f"inside {tx.reference}", name=name)
            return counted(ADD)(tx)

        return change

    def attempt(name: str, inner: str) -> None:
        with pytest.raises(RefusedError, match="inside a change"):
            tell(ground.rows, name, ADD, crossing(inner), name=name)

    at_once([lambda: attempt("main", "side"), lambda: attempt("side", "main")])

    assert tell(ground.rows, 9).kind == tell(ground.rows, 9, name="side").kind == "told"


def test_storm_on_one_reference_beats_no_commit_to_another(ground: Ground) -> None:
    ground.rows.ensure_reference("side")
    works: list[Callable[[], list[Answer]]] = [lambda: [tell(ground.rows, "side", name="side") for _ in range(40)]]
    works += [lambda client=client: [tell(ground.rows, client) for _ in range(20)] for client in range(6)]  # type: ignore[misc]
    side, *storm = at_once(works)

    assert {answer.attempts for answer in side} == {1}
    assert len({frozenset([one.id for one in group]) for group in groups_in(ground.rows, "side")}) == 40
    assert sum(len(answers) for answers in storm) == 120
