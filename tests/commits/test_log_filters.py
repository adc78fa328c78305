"""What a log gives, and why it ends, is what a list of the same commits gives; and walks cost few round trips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.clock import Micros
from headwater.commits import Commit, KeyFilter, LogEnd, LogRange, Operation, read_changes, read_log
from headwater.commits.commit import TAIL
from headwater.errors import CorruptionError, ExpiredError
from headwater.settings import Settings
from headwater.store import ObjectId, RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

KEYS = (b"a", b"ab", b"b")


@pytest.fixture(scope="module")
def realm() -> Iterator[RealmStore]:
    """Rows on which histories are written, each on a reference of its own."""
    with Store(FaultyBackend(MemoryBackend()), url="memory://", settings=Settings(), clock=FakeClock()) as store:  # type: ignore[arg-type]  # faulty is any backend
        yield store.rows(RealmId("acme"), RealmKey(store.new_id()))


def calls(rows: RealmStore) -> list[str]:
    backend = rows.store.backend
    assert isinstance(backend, FaultyBackend)
    return backend.calls


def write_history(rows: RealmStore, touched: Sequence[bytes], *, kept: int | None = None) -> list[ObjectId]:
    """Commits, oldest first, each with a put of one key, of which the newest ``kept`` are there. The reference ``main`` ends there."""
    ids = rows.new_ids(len(touched))
    commits = [
        Commit(seq=n + 1, tail=tuple(ids[max(n - TAIL, 0) : n][::-1]), time=Micros(n), operations=(Operation("things", key),))
        for n, key in enumerate(touched)
    ]
    rows.write_objects(list(zip(ids, commits, strict=True))[0 if kept is None else len(ids) - kept :])
    seen = rows.ensure_reference("main")
    rows.move_reference(seen, ids[-1])
    rows.store.cache.clear()
    calls(rows).clear()
    return ids


@dataclass(frozen=True)
class Asked:
    """What is asked of a history, with commits by their positions."""

    touched: list[bytes]
    kept: int
    start: int
    stretch: LogRange
    until: int | None
    touching: KeyFilter | None
    limit: int | None


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    touched = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=70))
    kept = draw(st.integers(1, len(touched)))
    start = draw(st.integers(len(touched) - kept, len(touched) - 1))
    until = draw(st.none() | st.integers(0, len(touched) - 1))
    stretch = LogRange(
        with_start=draw(st.booleans()), with_until=draw(st.booleans()), within=draw(st.none() | st.integers(1, 75))
    )
    touching = draw(
        st.none()
        | st.builds(KeyFilter, index=st.sampled_from(["things", "others"]), key=st.sampled_from(KEYS))
        | st.builds(KeyFilter, index=st.just("things"), prefix=st.sampled_from([b"", b"a", b"ab", b"c"]))
    )
    return Asked(touched, kept, start, stretch, until, touching, draw(st.none() | st.integers(1, 75)))


def expected(asked: Asked) -> tuple[list[int], LogEnd]:
    """Positions, newest first and unlimited, and why there are no more: the log told by a list."""
    within = asked.stretch.within
    bound = None if within is None else within + (not asked.stretch.with_start)
    looked = list(range(asked.start, len(asked.touched) - asked.kept - 1, -1))[:bound]
    if asked.until in looked:
        looked, end = looked[: looked.index(asked.until) + 1], LogEnd.UNTIL
    elif looked[-1] == 0:
        end = LogEnd.BEGINNING
    else:
        end = LogEnd.BOUND if len(looked) == bound else LogEnd.CUT
    left_out = {asked.start} if not asked.stretch.with_start else set[int | None]()
    left_out |= {asked.until} if not asked.stretch.with_until else set()
    return [n for n in looked if n not in left_out and is_touched(asked, n)], end


def is_touched(asked: Asked, n: int) -> bool:
    wanted, key = asked.touching, asked.touched[n]
    if wanted is None:
        return True
    return wanted.index == "things" and (key == wanted.key if wanted.key is not None else key.startswith(wanted.prefix))


@given(questions())
def test_log_gives_what_a_list_of_the_commits_gives(realm: RealmStore, asked: Asked) -> None:
    ids = write_history(realm, asked.touched, kept=asked.kept)
    until = None if asked.until is None else ids[asked.until]
    stretch = LogRange(
        with_start=asked.stretch.with_start, until=until, with_until=asked.stretch.with_until, within=asked.stretch.within
    )
    wanted, end = expected(asked)
    down = read_log(realm, ids[asked.start], stretch=stretch, touching=asked.touching, limit=asked.limit)
    up = read_log(realm, ids[asked.start], stretch=stretch, touching=asked.touching, limit=asked.limit, oldest_first=True)
    is_limited = asked.limit is not None and asked.limit <= len(wanted)

    assert [found.id for found in down] == [ids[n] for n in wanted[: asked.limit]]
    assert [found.id for found in up] == [ids[n] for n in wanted[::-1][: asked.limit]]
    assert (down.end, up.end) == (LogEnd.LIMIT if is_limited else end, end)


@pytest.mark.parametrize("count", [1, 20, 21, 22, 200, 1001])
def test_walk_reads_twenty_commits_in_a_round_trip(realm: RealmStore, count: int) -> None:
    write_history(realm, [b"k"] * count)
    assert sum(1 for _ in read_log(realm.without_cache(), "main")) == count

    assert calls(realm) == ["read_references", "read_objects"] + ["read_objects"] * ceil((count - 1) / 20)


@pytest.mark.parametrize("count", [1, 100, 1001])
def test_walk_up_costs_little_more(realm: RealmStore, count: int) -> None:
    ids = write_history(realm, [b"k"] * count)
    assert sum(1 for _ in read_log(realm.without_cache(), "main", oldest_first=True)) == count
    assert len(calls(realm)) == 2 + ceil((count - 1) / 20) + ceil(count / 100)
    calls(realm).clear()

    assert sum(1 for _ in read_changes(realm.without_cache(), "main", ids[0])) == count - 1
    assert len(calls(realm)) <= 3 + ceil((count - 1) / 20) + ceil(count / 100)


def test_log_reads_no_more_than_its_limit(realm: RealmStore) -> None:
    ids = write_history(realm, [b"k"] * 30)
    given = read_log(realm, "main", limit=3)
    assert (len(list(given)), given.end) == (3, LogEnd.LIMIT)
    calls(realm).clear()
    realm.read_many(ids[-3:], Commit)
    assert calls(realm) == []
    realm.find_object(ids[-4], Commit)

    assert calls(realm) == ["read_objects"]


def test_log_that_is_not_read_reads_only_its_start(realm: RealmStore) -> None:
    write_history(realm, [b"k"] * 30)
    next(read_log(realm, "main"))

    assert calls(realm) == ["read_references", "read_objects"]


def test_changes_go_on_from_the_last_commit_seen(realm: RealmStore) -> None:
    write_history(realm, KEYS * 9)
    seen, last = [], None
    for _ in range(9):
        for (at, operation), _ in zip(read_changes(realm, "main", last), range(3), strict=False):
            last = at.id
            seen.append(operation.key)

    assert tuple(seen) == KEYS * 9
    assert list(read_changes(realm, "main", last)) == []


def test_changes_collected_while_they_are_read_have_expired(realm: RealmStore) -> None:
    ids = write_history(realm, [b"k"] * 205)
    reading = read_changes(realm.without_cache(), "main")
    for _ in range(100):
        next(reading)
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id in ids[:150]])
    with pytest.raises(ExpiredError, match="read its whole state"):
        list(reading)


def test_changes_across_a_gap_have_expired(realm: RealmStore) -> None:
    ids = write_history(realm, [b"k"] * 60)
    realm.delete_unchanged([key for batch in realm.scan_objects() for key in batch if key.id == ids[30]])
    with pytest.raises(ExpiredError):
        list(read_changes(realm, "main", ids[10]))

    assert len(list(read_changes(realm, "main", ids[31]))) == 28


def test_history_that_goes_round_in_circles_is_an_error(realm: RealmStore) -> None:
    one, other = realm.new_ids(2)
    realm.write_objects(
        [(one, Commit(seq=1, tail=(other,), time=Micros(0))), (other, Commit(seq=2, tail=(one,), time=Micros(0)))]
    )
    with pytest.raises(CorruptionError, match="cannot be an ancestor"):
        list(read_log(realm, other))
