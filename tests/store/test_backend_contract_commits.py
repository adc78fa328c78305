"""What every backend promises of objects that are written together with the swap that makes them seen."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator

import pytest

from backend_fixtures import BACKENDS
from faulty_backend import FaultyBackend
from forked_children import run_forked
from headwater.errors import CollisionError, HeadwaterError, SwapConflictError, UnavailableError, UnknownOutcomeError
from headwater.store import BULK_BYTES, ROW_BYTES, Backend, ObjectId, ObjectRow, ReferenceRow
from headwater.store.backends.memory import MemoryBackend
from specimens import (
    OTHER,
    REALM,
    find_reference,
    in_parts,
    key,
    race,
    read_back,
    read_object,
    reference,
    reference_key,
    row,
    scan,
    scan_names,
)

NEW = dataclasses.replace(reference(pointer=100, version=6), recent=(ObjectId(7),))
ALL: dict[str, Callable[[pytest.FixtureRequest], Backend]] = {
    **BACKENDS,
    "faulty in one call": lambda _: FaultyBackend(MemoryBackend(), is_atomic=True),
}


@pytest.fixture(params=ALL)
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """An empty one of each backend; that which fails on demand in both of its forms."""
    made = ALL[request.param](request)
    yield made
    made.close()


@pytest.fixture
def is_atomic(backend: Backend) -> bool:
    return backend.capabilities.atomic_commits


class TestCommits:
    def test_objects_and_the_new_reference_are_read_back_whole(self, backend: Backend) -> None:
        backend.create_reference(reference())
        rows = [row(100), row(3, token="a"), *in_parts(50, b"a", b"b")]
        backend.write_and_swap(rows, reference(), NEW)

        assert (find_reference(backend), read_back(backend, rows)) == (NEW, rows)

    @pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 120])
    def test_any_number_of_objects_is_written(self, backend: Backend, count: int) -> None:
        backend.create_reference(reference())
        rows = [row(number, value=b"%d" % number) for number in range(count, 0, -1)]
        backend.write_and_swap(rows, reference(), NEW)

        assert (find_reference(backend), read_back(backend, rows)) == (NEW, rows)
        assert len(scan(backend)) == count

    def test_without_objects_it_is_a_swap(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.write_and_swap([], reference(), NEW)
        with pytest.raises(SwapConflictError):
            backend.write_and_swap([], reference(), NEW)

        assert find_reference(backend) == NEW

    def test_reference_without_pointer_gets_its_first(self, backend: Backend) -> None:
        backend.create_reference(reference(pointer=None))
        backend.write_and_swap([row(100)], reference(pointer=None), NEW)

        assert (find_reference(backend), read_object(backend, 100)) == (NEW, row(100))

    def test_other_references_and_objects_stay_as_they_are(self, backend: Backend) -> None:
        others = [reference("mai"), reference(realm=OTHER), reference(realm=REALM + 1)]
        backend.create_references([reference(), *others])
        backend.write_objects([row(99), row(100, realm=OTHER)])
        backend.write_and_swap([row(100)], reference(), NEW)

        assert [find_reference(backend, made.name, made.realm) for made in others] == others
        assert len(scan(backend)) == 3

    def test_parts_that_an_earlier_try_left_behind_are_replaced(self, backend: Backend) -> None:
        backend.create_reference(reference())
        backend.write_objects([*in_parts(6, b"a", b"b"), *in_parts(7, *[b"new"] * 4)])
        backend.delete_objects([key(in_parts(7, *[b"new"] * 4)[1])])  # what is behind the hole goes too
        new = [*in_parts(7, b"new"), row(100)]
        backend.write_and_swap(new, reference(), NEW)

        assert sorted(scan(backend)) == [key(made) for made in [*in_parts(6, b"a", b"b"), *new]]

    def test_more_than_fits_one_round_trip_is_written(self, backend: Backend) -> None:
        backend.create_reference(reference())
        rows = much()
        backend.write_and_swap(rows, reference(), NEW)

        assert (find_reference(backend), read_back(backend, rows)) == (NEW, rows)


class TestBeaten:
    @pytest.mark.parametrize(
        "seen",
        [reference(version=4), reference(version=6), reference(pointer=8), reference(pointer=None), reference(realm=OTHER)],
    )
    def test_beaten_commit_leaves_the_reference_alone(self, backend: Backend, seen: ReferenceRow) -> None:
        backend.create_reference(reference())
        with pytest.raises(SwapConflictError):
            backend.write_and_swap([row(100)], seen, dataclasses.replace(NEW, realm=seen.realm))

        assert scan_names(backend) == [reference_key(reference())]

    @pytest.mark.parametrize("count", [1, 6])
    def test_it_writes_no_objects_where_it_is_declared(self, backend: Backend, is_atomic: bool, count: int) -> None:
        backend.create_reference(reference())
        rows = [row(number) for number in range(100, 100 + count)]
        with pytest.raises(SwapConflictError):
            backend.write_and_swap(rows, reference(version=4), NEW)

        assert sorted(scan(backend)) == ([] if is_atomic else [key(made) for made in rows])

    def test_it_leaves_objects_that_were_there_with_all_their_parts(self, backend: Backend, is_atomic: bool) -> None:
        backend.create_reference(reference())
        old = in_parts(7, b"old", b"old", b"old")
        backend.write_objects(old)
        with pytest.raises(SwapConflictError if is_atomic else CollisionError):
            backend.write_and_swap(in_parts(7, b"new"), reference(version=4), NEW)

        assert sorted(scan(backend)) == [key(made) for made in old]

    def test_more_than_fits_one_round_trip_is_not_written_either(self, backend: Backend, is_atomic: bool) -> None:
        backend.create_reference(reference())
        with pytest.raises(SwapConflictError):
            backend.write_and_swap(much(), reference(version=4), NEW)

        assert find_reference(backend) == reference()
        assert bool(scan(backend)) != is_atomic

    def test_commit_to_an_absent_reference_is_beaten(self, backend: Backend) -> None:
        with pytest.raises(SwapConflictError):
            backend.write_and_swap([row(100)], reference(), NEW)

        assert find_reference(backend) is None

    def test_repeated_commit_is_beaten_and_its_objects_stay(self, backend: Backend) -> None:
        backend.create_reference(reference())
        rows = [row(100), *in_parts(50, b"a", b"b")]
        backend.write_and_swap(rows, reference(), NEW)
        with pytest.raises(SwapConflictError):
            backend.write_and_swap(rows, reference(), NEW)

        assert (find_reference(backend), read_back(backend, rows)) == (NEW, rows)


class TestRaces:
    def test_one_of_many_commits_wins_and_its_objects_are_there(self, backend: Backend, is_atomic: bool) -> None:
        backend.create_reference(reference())

        def commit(number: int) -> int:
            new = dataclasses.replace(NEW, pointer=ObjectId(number))
            backend.write_and_swap([row(number), row(number + 50)], reference(), new)
            return number

        [winner] = [number for number in race(8, commit) if number is not SwapConflictError]

        assert find_reference(backend) == dataclasses.replace(NEW, pointer=ObjectId(winner))
        assert len(scan(backend)) == (2 if is_atomic else 16)

    def test_counter_loses_nothing_and_pointers_find_their_objects(self, backend: Backend) -> None:
        backend.create_reference(reference(pointer=None, version=1))

        def count(number: int) -> int:
            done = 0
            for turn in range(10_000):
                seen = find_reference(backend)
                assert seen is not None
                assert seen.pointer is None or read_object(backend, seen.pointer) is not None
                pointer = 1000 * turn + number + 1
                try:
                    backend.write_and_swap([row(pointer)], seen, reference(pointer=pointer, version=seen.version + 1))
                except SwapConflictError:
                    continue
                done += 1
                if done == 5:
                    break
            return done

        assert race(4, count) == [5] * 4
        assert [found.version for found in scan_names(backend)] == [21]

    def test_processes_race_and_one_wins(self, backend: Backend, is_atomic: bool) -> None:
        inner = backend.backend if isinstance(backend, FaultyBackend) else backend
        if isinstance(inner, MemoryBackend):
            pytest.skip("each process has a memory of its own")
        backend.create_reference(reference())
        backend.before_fork()

        def commit(number: int) -> bool:
            backend.after_fork(is_child=True)
            try:
                backend.write_and_swap([row(number)], reference(), dataclasses.replace(NEW, pointer=ObjectId(number)))
            except SwapConflictError:
                return False
            return True

        won = run_forked(5, commit, meanwhile=lambda: backend.after_fork(is_child=False))

        assert sorted(map(bool, won)) == [False] * 4 + [True]
        assert len(scan(backend)) == (1 if is_atomic else 5)


@pytest.mark.parametrize("form", [False, True], ids=["two calls", "one call"])
class TestFaults:
    @pytest.fixture
    def faults(self, form: bool) -> FaultyBackend:
        made = FaultyBackend(MemoryBackend(), is_atomic=form)
        made.create_reference(reference())
        return made

    def test_it_declares_what_it_is(self, faults: FaultyBackend, form: bool) -> None:
        assert faults.capabilities.atomic_commits is form

    def test_lost_answer_follows_the_effect_and_repetition_is_beaten(self, faults: FaultyBackend, form: bool) -> None:
        faults.fail("write_and_swap" if form else "swap_reference", before=False)
        outcomes = [told(faults) for _ in range(2)]

        assert outcomes == [UnknownOutcomeError, SwapConflictError]
        assert (find_reference(faults), read_object(faults, 100)) == (NEW, row(100))

    def test_call_that_did_not_happen_can_be_repeated(self, faults: FaultyBackend, form: bool) -> None:
        faults.fail("write_and_swap" if form else "swap_reference")
        outcomes = [told(faults), len(scan(faults)), told(faults)]

        assert outcomes == [UnavailableError, 0 if form else 1, None]
        assert (find_reference(faults), read_object(faults, 100)) == (NEW, row(100))


def told(backend: Backend) -> type[HeadwaterError] | None:
    """What a commit of one object raises."""
    try:
        backend.write_and_swap([row(100)], reference(), NEW)
    except HeadwaterError as fault:
        return type(fault)
    return None


def much() -> list[ObjectRow]:
    """Rows of more than one round trip."""
    value = random.Random(3).randbytes(ROW_BYTES)
    return [row(number, value=value) for number in range(BULK_BYTES // ROW_BYTES + 3)]
