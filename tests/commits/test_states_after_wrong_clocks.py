"""The state at a moment beside commits of a clock that was ahead, wherever these stand in the tails of what came later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fake_clock import FakeClock
from headwater.clock import Micros
from headwater.commits import Head, Transaction, commit_as_of, commit_change, mend_time, read_head, read_log
from headwater.errors import RefusedError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

MINUTE, DAY = 60_000_000, 86_400_000_000
LATER = 45


class History:
    """Commits a minute apart, each with the time at which it was really made."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        self.store, self.clock, self.made = store, clock, dict[ObjectId, int]()
        self.rows.ensure_reference("main")

    def put(self, rows: RealmStore | None = None) -> ObjectId:
        """Commit as this process, or as another one."""
        self.clock.advance(60)
        done = commit_change(rows or self.rows, "main", lambda tx: put(tx, len(self.made)))
        self.store.cache.clear()
        assert done.commit_id is not None
        self.made[done.commit_id] = self.clock.now()
        return done.commit_id

    def put_ahead(self, micros: int) -> ObjectId:
        settings, clock = self.store.settings, FakeClock(self.clock.now() + micros)
        other = Store(self.store.backend, url="memory://", settings=settings, clock=clock)
        return self.put(other.rows(self.rows.realm, self.rows.key))

    def mend(self) -> ObjectId:
        self.clock.advance(60)
        made = mend_time(self.rows, "main", properties=lambda _: {})
        assert made is not None
        self.made[made] = self.clock.now()
        return made

    def heads(self) -> list[Head]:
        """Every commit, the oldest first."""
        newest = read_head(self.rows, "main", fresh=True)
        assert newest is not None
        return list(read_log(self.rows, newest.id))[::-1]


def put(tx: Transaction, number: int) -> None:
    tx.index("things").put(b"key", IndexValue(None, str(number).encode()))


@pytest.fixture
def history(clock: FakeClock, settings: Settings) -> Iterator[History]:
    with Store(MemoryBackend(), url="memory://", settings=settings, clock=clock) as store:
        yield History(store, clock)


def as_of(at: Head, time: int) -> ObjectId | None:
    found = commit_as_of(at, Micros(time), what=lambda: "main")
    return None if found is None else found.id


@pytest.mark.parametrize("below", range(4))
def test_moments_since_a_mend_are_told(history: History, below: int) -> None:
    for _ in range(below):
        history.put()
    history.put_ahead(5 * 365 * DAY)
    mended = history.mend()
    later = [mended, *(history.put() for _ in range(LATER))]
    heads = history.heads()[below + 1 :]

    assert [at.id for at in heads] == later
    for number, at in enumerate(heads):
        assert [as_of(at, history.made[known] + 1) for known in later[: number + 1]] == later[: number + 1]


@pytest.mark.parametrize("below", range(4))
def test_moments_before_a_mend_are_refused(history: History, below: int) -> None:
    before = [history.put() for _ in range(below)]
    ahead = history.put_ahead(5 * 365 * DAY)
    history.mend()
    for _ in range(LATER):
        history.put()

    for at in history.heads()[below + 1 :]:
        with pytest.raises(RefusedError, match="may have been made before or after that"):
            as_of(at, history.made[ahead] + 1)
        assert [as_of(at, history.made[known] + 1) for known in before[:-1]] == before[:-1]


@pytest.mark.parametrize("carried", [1, 2, 25])
@pytest.mark.parametrize("below", range(4))
def test_moments_of_commits_pushed_ahead_are_refused(history: History, below: int, carried: int) -> None:
    before = [history.put() for _ in range(below)]
    history.put_ahead(10 * DAY)
    history.clock.advance(86400)
    pushed = [history.put() for _ in range(carried)]
    history.clock.advance(20 * 86400)
    later = [history.put() for _ in range(LATER)]

    for at in history.heads()[below + 1 :]:
        for known in pushed:
            if at.id in later or at.id == pushed[-1]:
                with pytest.raises(RefusedError, match="may have been made before or after that"):
                    as_of(at, history.made[known] + 1)
        assert [as_of(at, history.made[known] + 1) for known in before] == before
