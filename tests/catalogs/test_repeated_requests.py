"""Requests with a key: however often and by whomever they are sent, they are applied once."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from fake_clock import FakeClock
from faulty_backend import FaultyBackend
from headwater import Settings, Store
from headwater.catalogs import (
    CATALOGS,
    CLAIMS,
    REQUESTS,
    Catalog,
    Catalogs,
    ContentKey,
    Delete,
    IcebergTable,
    Put,
    RequestKey,
    RequestKeyReusedError,
)
from headwater.commits import CommitResult, read_commit
from headwater.errors import ConflictError, RefusedError, UnknownCommitError
from headwater.store import RealmId, RealmKey
from headwater.store.backends.memory import MemoryBackend
from request_keys import make_request

KEY, OTHER = ContentKey.of("t"), ContentKey.of("u")


@pytest.fixture
def store_url() -> str:
    return "memory://"


def table(version: int) -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/x/v{version}.json")


def noted(catalog: Catalog, ref: str = "main") -> int:
    head = catalog.resolve(ref)
    return 0 if head is None else len(head.index(REQUESTS))


def test_repeated_request_makes_no_second_commit(catalog: Catalog) -> None:
    first = catalog.commit("main", [Put(KEY, table(1))], request=make_request())
    other = catalog.commit("main", [Put(OTHER, table(2))])

    repeat = catalog.commit("main", [Put(KEY, table(1))], request=make_request())

    assert (repeat.is_replay, repeat.changed, repeat.commit_id, repeat.result) == (True, False, first.commit_id, {})
    assert not first.is_replay and first.changed
    assert catalog.branch("main").head == other.commit_id


def test_earlier_commit_is_the_one_that_applied_the_request(catalog: Catalog) -> None:
    first = catalog.commit("main", [Put(KEY, table(1))], request=make_request())
    head = catalog.resolve("main")
    assert head is not None and first.commit_id is not None

    applied = catalog.find_request("main", head, make_request())

    assert applied is not None and (applied.commit_id, applied.status) == (first.commit_id, 200)
    assert applied.time == read_commit(head.rows, first.commit_id).commit.time
    assert catalog.find_request(None, head, make_request(2)) is None
    assert catalog.find_request(None, None, make_request()) is None


def test_repeat_is_answered_though_its_expected_commit_is_long_past(catalog: Catalog) -> None:
    before = catalog.commit("main", [Put(KEY, table(1))]).commit_id
    gone = catalog.commit("main", [Delete(KEY)], expected=before, request=make_request())
    catalog.commit("main", [Put(KEY, table(2))])

    assert catalog.commit("main", [Delete(KEY)], expected=before, request=make_request()).commit_id == gone.commit_id
    assert catalog.get_content("main", KEY) is not None


def test_request_with_the_key_of_another_is_refused(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))], request=make_request())

    with pytest.raises(RequestKeyReusedError, match="used for another request"):
        catalog.commit("main", [Put(KEY, table(2))], request=make_request(digest=b"else"))


def test_keys_of_two_scopes_are_two_requests(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))], request=make_request())

    assert catalog.commit("main", [Put(OTHER, table(1))], request=make_request(scope=b"eve")).changed


@pytest.mark.parametrize("other", [uuid4(), UUID(int=0), UUID("0190163d-8694-739b-0000-b5b1a2b3c4d5")])
def test_key_of_another_version_is_refused(other: UUID) -> None:
    with pytest.raises(RefusedError, match="UUID of version 7"):
        RequestKey(other, b"", b"")


def test_refused_request_may_be_repeated(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))])
    with pytest.raises(ConflictError):
        catalog.commit("main", [Put(KEY, table(2))], request=make_request())
    catalog.commit("main", [Delete(KEY)])

    again = catalog.commit("main", [Put(KEY, table(2))], request=make_request())

    assert again.changed and not again.is_replay


def test_request_that_changes_nothing_is_not_noted(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))])
    stored = catalog.get_content("main", KEY)
    assert stored is not None

    same = catalog.commit("main", [Put(KEY, stored)], expected=catalog.branch("main").head, request=make_request())

    assert noted(catalog) == 0
    assert not same.changed and not same.is_replay


def test_key_on_another_branch_is_another_request(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))], request=make_request())
    catalog.create_branch("dev")

    there = catalog.commit("dev", [Put(OTHER, table(1))], request=make_request())

    assert there.changed and not there.is_replay
    assert catalog.commit("dev", [Put(OTHER, table(1))], request=make_request()).commit_id == there.commit_id


def test_merge_and_transplant_bring_no_requests(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))])
    catalog.create_branch("dev")
    catalog.create_branch("other")
    made = catalog.commit("dev", [Put(OTHER, table(1))], request=make_request())
    assert made.commit_id is not None

    catalog.merge("dev", "main")
    catalog.transplant("dev", [made.commit_id], "other")

    assert noted(catalog, "dev") == 1
    assert noted(catalog, "main") == noted(catalog, "other") == 0


def test_requests_are_no_difference_and_no_operation_in_the_log(catalog: Catalog) -> None:
    catalog.commit("main", [Put(KEY, table(1))])
    catalog.create_branch("dev")
    catalog.commit("main", [Put(OTHER, table(1))], request=make_request())

    [change] = catalog.diff("dev", "main").changes
    [operation] = next(iter(catalog.log("main"))).operations

    assert change.key == operation.key == OTHER


def test_branch_that_was_put_back_applies_the_request_again(catalog: Catalog) -> None:
    before = catalog.commit("main", [Put(KEY, table(1))]).commit_id
    catalog.commit("main", [Put(OTHER, table(1))], request=make_request())
    assert before is not None
    catalog.assign_branch("main", before)

    again = catalog.commit("main", [Put(OTHER, table(1))], request=make_request())

    assert again.changed and catalog.get_content("main", OTHER) is not None


# their end


def requested(catalog: Catalog, clock: FakeClock, *numbers: int, behind_seconds: float = 0.0) -> None:
    for number in numbers:
        at = clock.now() - round(behind_seconds * 1_000_000)
        catalog.commit("main", [Put(ContentKey.of(f"n{number}"), table(1))], request=make_request(number, at=at))


def test_commit_drops_the_expired_requests(catalog: Catalog, clock: FakeClock, settings: Settings) -> None:
    requested(catalog, clock, *range(120))
    clock.advance(settings.requests_kept_seconds + 1)
    requested(catalog, clock, 500)
    assert noted(catalog) == 120 - 100 + 1

    catalog.commit("main", [Put(KEY, table(1))])

    assert noted(catalog) == 1


def test_request_is_known_until_its_lifetime_is_over(catalog: Catalog, clock: FakeClock, settings: Settings) -> None:
    at = clock.now()
    requested(catalog, clock, 1)
    clock.advance(settings.requests_kept_seconds - 1)
    catalog.commit("main", [Put(KEY, table(1))])

    assert catalog.commit("main", [], request=make_request(1, at=at)).is_replay


def test_client_with_a_slow_clock_keeps_its_young_requests(catalog: Catalog, clock: FakeClock) -> None:
    at = clock.now() - 3_600_000_000
    requested(catalog, clock, 1, behind_seconds=3600)
    catalog.commit("main", [Put(KEY, table(1))])

    assert catalog.commit("main", [], request=make_request(1, at=at)).is_replay


def test_slow_clock_keeps_no_old_request_of_others(catalog: Catalog, clock: FakeClock, settings: Settings) -> None:
    requested(catalog, clock, 1)
    clock.advance(settings.requests_kept_seconds + 1)
    requested(catalog, clock, 2, behind_seconds=3600)
    catalog.commit("main", [Put(KEY, table(1))])

    assert noted(catalog) == 1


# several at once


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def faults(backend: MemoryBackend) -> FaultyBackend:
    return FaultyBackend(backend)


@pytest.fixture
def pair(
    backend: MemoryBackend, faults: FaultyBackend, settings: Settings, clock: FakeClock
) -> Iterator[tuple[Catalog, Catalog]]:
    """One catalog in two processes; the first one's calls can be made to fail."""
    patient = dataclasses.replace(settings, commit_timeout_seconds=600)  # by a clock that each thread's waits move on
    stores = [Store(one, url="memory://", settings=patient, clock=clock) for one in (faults, backend)]  # type: ignore[arg-type]  # faulty is any backend
    key = RealmKey(stores[1].new_id())
    rows = [store.rows(RealmId("acme"), key) for store in stores]
    for name in (CATALOGS, CLAIMS):
        rows[1].ensure_reference(name)
    Catalogs(rows[1]).create_catalog("lake", base_location="s3://lake/")
    yield Catalogs(rows[0]).open_catalog("lake"), Catalogs(rows[1]).open_catalog("lake")
    faults.heal()
    for store in stores:
        store.close()


def test_replica_that_is_beaten_by_its_twin_answers_with_its_commit(
    pair: tuple[Catalog, Catalog], faults: FaultyBackend
) -> None:
    mine, other = pair
    made: list[CommitResult[dict[ContentKey, UUID]]] = []
    faults.intervene("swap_reference", lambda: made.append(other.commit("main", [Put(KEY, table(2))], request=make_request())))

    answer = mine.commit("main", [Put(KEY, table(1))], request=make_request())

    assert answer.is_replay and answer.commit_id == made[0].commit_id
    assert [entry.id for entry in other.log("main")] == [made[0].commit_id]
    assert other.get_content("main", KEY) == mine.get_content("main", KEY)


def test_replica_repeats_what_another_one_was_told_nothing_of(pair: tuple[Catalog, Catalog], faults: FaultyBackend) -> None:
    mine, other = pair
    mine.commit("main", [Put(OTHER, table(1))])
    reads = faults.calls.count("read_references")
    mine.commit("main", [Put(ContentKey.of("v"), table(1))])
    faults.fail("swap_reference", before=False)
    faults.fail("read_references", at=faults.calls.count("read_references") - reads + 1, times=10**9)
    with pytest.raises(UnknownCommitError) as unknown:
        mine.commit("main", [Put(KEY, table(1))], request=make_request())

    answer = other.commit("main", [Put(KEY, table(2))], request=make_request())

    assert answer.is_replay and answer.commit_id == unknown.value.commit_id
    assert len(list(other.log("main"))) == 3


def test_replicas_that_race_for_many_keys_apply_each_once(pair: tuple[Catalog, Catalog]) -> None:
    keys = 12

    def send(catalog: Catalog) -> list[CommitResult[dict[ContentKey, UUID]]]:
        return [
            catalog.commit("main", [Put(ContentKey.of(uuid4().hex), table(1))], request=make_request(number))
            for number in random.sample(range(keys), keys)
        ]

    with ThreadPoolExecutor(6) as pool:
        answers = [answer for sent in pool.map(send, [*pair] * 3) for answer in sent]

    log = [entry.id for entry in pair[1].log("main")]
    assert sorted(log) == sorted(answer.commit_id for answer in answers if not answer.is_replay)
    assert len(log) == keys == pair[1].count("main")


def test_threads_with_one_key_make_one_commit(catalog: Catalog) -> None:
    begin = threading.Barrier(8)

    def send(number: int) -> CommitResult[dict[ContentKey, UUID]]:
        begin.wait()
        return catalog.commit("main", [Put(ContentKey.of(f"n{number}"), table(1))], request=make_request())

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))

    assert len({answer.commit_id for answer in answers}) == 1
    assert sum(answer.is_replay for answer in answers) == 7
    assert catalog.count("main") == 1
