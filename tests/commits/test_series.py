"""Commits that one caller publishes together: all of them or none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater.commits import CommitResult, Head, SeriesPart, Transaction, commit_change, commit_series, read_head, read_log
from headwater.errors import FencedError, RefusedError, StoreFullError
from headwater.index import IndexValue
from headwater.settings import Settings
from headwater.store import RealmId, RealmKey, RealmStore, Store
from headwater.store.backends.memory import MemoryBackend

Put = Callable[..., CommitResult[None]]


def put_part(key: bytes, data: bytes = b"1") -> SeriesPart[int]:
    def change(tx: Transaction) -> int:
        tx.index("things").put(key, IndexValue(None, data))
        return len(tx.index("things"))

    return SeriesPart(change, message=key.decode(), properties={"key": key.decode()})


def series(rows: RealmStore, *parts: SeriesPart[int]) -> list[CommitResult[int]]:
    return commit_series(rows, "main", lambda _: parts)


def messages(rows: RealmStore) -> list[str]:
    return [found.commit.message for found in read_log(rows, "main")]


def test_each_sees_what_those_before_it_did(rows: RealmStore) -> None:
    done = series(rows, put_part(b"a"), put_part(b"b"), put_part(b"c"))

    assert [one.result for one in done] == [1, 2, 3]
    assert messages(rows) == ["c", "b", "a"]


def test_series_is_one_move_of_the_reference(rows: RealmStore) -> None:
    before = rows.read_reference("main", fresh=True).version
    done = series(rows, put_part(b"a"), put_part(b"b"))
    after = rows.read_reference("main", fresh=True)

    assert (after.version, after.pointer) == (before + 1, done[-1].commit_id)


def test_one_that_changes_nothing_makes_no_commit(rows: RealmStore) -> None:
    done = series(rows, put_part(b"a"), put_part(b"a"), put_part(b"b"))

    assert [one.changed for one in done] == [True, False, True]
    assert messages(rows) == ["b", "a"]


def test_series_that_changes_nothing_moves_nothing(rows: RealmStore, put: Put) -> None:
    put(rows, b"a", b"1")
    version = rows.read_reference("main", fresh=True).version

    assert [one.changed for one in series(rows, put_part(b"a"))] == [False]
    assert series(rows) == []
    assert rows.read_reference("main", fresh=True).version == version


def test_one_that_raises_takes_all_back(rows: RealmStore) -> None:
    def change(tx: Transaction) -> int:
        raise RefusedError("no")

    with pytest.raises(RefusedError, match="no"):
        series(rows, put_part(b"a"), SeriesPart(change))
    assert read_head(rows, "main", fresh=True) is None


def test_fence_takes_all_back(rows: RealmStore) -> None:
    runs = []

    def fence() -> None:
        runs.append(1)
        if len(runs) == 2:
            raise FencedError("taken over")

    with pytest.raises(FencedError):
        commit_series(rows, "main", lambda _: [put_part(b"a"), put_part(b"b")], fence=fence)
    assert read_head(rows, "main", fresh=True) is None


def test_beaten_change_is_made_again_on_the_new_head(rows: RealmStore, put: Put) -> None:
    heads: list[Head | None] = []

    def parts(now: Head | None) -> list[SeriesPart[int]]:
        if not heads:
            put(rows, b"other")
        heads.append(now)
        return [put_part(b"a"), put_part(b"b")]

    done = commit_series(rows, "main", parts)

    assert [one.result for one in done] == [2, 3]
    assert (len(heads), done[-1].attempts) == (2, 2)


def test_more_than_can_be_published_together_is_refused(clock: FakeClock) -> None:
    with Store(MemoryBackend(), url="memory://", settings=Settings(commit_group_bytes=20_000), clock=clock) as store:
        rows = store.rows(RealmId("acme"), RealmKey(store.new_id()))
        rows.create_reference("main")

        with pytest.raises(RefusedError, match="more than the 20000 bytes that are published together"):
            series(rows, *(put_part(b"%d" % number, bytes(1000)) for number in range(40)))
        assert read_head(rows, "main", fresh=True) is None


def test_series_is_not_begun_inside_a_change(rows: RealmStore) -> None:
    with pytest.raises(RefusedError, match="begun inside a change"):
        commit_change(rows, "main", lambda tx: series(rows, put_part(b"a")))


def test_lost_answer_is_found_out(faults: FaultyBackend, faulty: RealmStore) -> None:
    faults.fail("swap_reference", before=False)
    done = series(faulty, put_part(b"a"), put_part(b"b"))

    assert [one.changed for one in done] == [True, True]
    assert messages(faulty) == ["b", "a"]


def test_series_on_a_full_disk_fails_at_once(faulty: RealmStore, faults: FaultyBackend, elsewhere: RealmStore) -> None:
    faults.fail("swap_reference", fault=StoreFullError("the disk is full"))
    with pytest.raises(StoreFullError, match="the disk is full"):
        series(faulty, put_part(b"a"), put_part(b"b"))

    assert messages(elsewhere) == []
