"""What every backend promises of its own life: threads, forks, and being closed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from faulty_backend import FaultyBackend
from forked_children import run_forked
from headwater.errors import RefusedError, SwapConflictError
from headwater.store import Backend, ScanSplit, open_backend
from headwater.store.backends.memory import MemoryBackend
from headwater.store.urls import parse_url
from specimens import LARGEST, REALM, find_reference, key, race, read_object, reference, row, scan

CALLS: dict[str, Callable[[Backend], object]] = {
    "create_reference": lambda backend: backend.create_reference(reference()),
    "create_references": lambda backend: backend.create_references([reference()]),
    "read_references": lambda backend: backend.read_references(REALM, ["main"]),
    "swap_reference": lambda backend: backend.swap_reference(reference(), reference(version=6)),
    "write_and_swap": lambda backend: backend.write_and_swap([row(1)], reference(), reference(version=6)),
    "remove_reference": lambda backend: backend.remove_reference(reference()),
    "read_objects": lambda backend: read_object(backend, 1),
    "write_objects": lambda backend: backend.write_objects([row(1)]),
    "insert_object": lambda backend: backend.insert_object(row(1, token="a")),
    "update_object": lambda backend: backend.update_object(row(1, token="b"), "a"),
    "delete_objects": lambda backend: backend.delete_objects([key(row(1))]),
    "scan_references": lambda backend: backend.scan_references(ScanSplit(), None, 1),
    "scan_objects": lambda backend: backend.scan_objects(ScanSplit(), None, 1),
    "split_references": lambda backend: backend.split_references(None, 2),
    "split_objects": lambda backend: backend.split_objects(None, 2),
    "delete_realm": lambda backend: backend.delete_realm(REALM, 1),
}


def is_in_memory(backend: Backend) -> bool:
    return isinstance(backend.backend if isinstance(backend, FaultyBackend) else backend, MemoryBackend)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_call_after_the_end_is_refused_and_says_so(backend: Backend, call: Callable[[Backend], object]) -> None:
    backend.create_reference(reference())
    backend.close()

    with pytest.raises(RefusedError, match=r"closed|deletes no realm|no order of realms"):
        call(backend)


def test_closing_twice_is_closing_once(backend: Backend) -> None:
    backend.write_objects([row(1)])
    backend.close()
    backend.close()


def test_backend_that_was_never_used_can_be_closed(backend: Backend) -> None:
    backend.close()


def test_process_can_fork_after_the_end(backend: Backend) -> None:
    backend.close()

    assert fork(backend, lambda _: "alive") == ["alive"]


def test_rows_are_there_when_the_store_is_opened_again(store_url: str) -> None:
    first = open_backend(parse_url(store_url))
    first.write_objects([row(1)])
    first.create_reference(reference())
    first.close()
    again = open_backend(parse_url(store_url))
    found = (read_object(again, 1), find_reference(again))
    again.close()

    assert found == ((None, None) if store_url == "memory://" else (row(1), reference()))


def test_threads_that_mix_all_calls_do_not_disturb_each_other(backend: Backend) -> None:
    def work(number: int) -> None:
        mine = [row(number * 1000 + place, value=b"%d" % number) for place in range(20)]
        for turn in range(5):
            backend.write_objects(mine)
            backend.create_reference(reference(f"{number}/{turn}"))
            backend.insert_object(row(number * 1000 + 500 + turn, token="a"))
            assert [read_object(backend, made.id) for made in mine] == mine
            assert backend.delete_objects([key(made) for made in mine[turn:]]) == 20 - turn
            scan(backend, limit=30)
            backend.remove_reference(reference(f"{number}/{turn}"))

    race(6, work)

    assert len(scan(backend)) == 6 * (4 + 5)


def fork(backend: Backend, work: Callable[[int], object], *, children: int = 1) -> list[object]:
    """Fork as a store does: the child may use the backend at once, and so may the parent."""
    backend.before_fork()

    def child(number: int) -> object:
        backend.after_fork(is_child=True)
        return work(number)

    return run_forked(children, child, meanwhile=lambda: backend.after_fork(is_child=False))


def test_parent_and_child_go_on_after_a_fork(backend: Backend) -> None:
    backend.write_objects([row(1)])

    def work(_: int) -> object:
        seen = read_object(backend, 1)
        backend.write_objects([row(2)])
        backend.close()
        return seen

    assert fork(backend, work) == [row(1)]
    backend.write_objects([row(3)])
    assert read_object(backend, 2) == (None if is_in_memory(backend) else row(2))
    assert read_object(backend, 3) == row(3)


def test_second_announcement_of_a_fork_changes_nothing(backend: Backend) -> None:
    backend.write_objects([row(1)])
    backend.before_fork()

    assert fork(backend, lambda _: read_object(backend, 1)) == [row(1)]
    assert read_object(backend, 1) == row(1)


def test_fork_hits_no_call_of_another_thread_in_the_middle(backend: Backend) -> None:
    backend.create_reference(reference(version=0))

    def work(number: int) -> None:
        if number == 0:
            for _ in range(3):
                assert fork(backend, lambda _: count(backend, 3)) == [None]
        else:
            count(backend, 20)

    race(3, work)
    found = find_reference(backend)

    assert found is not None
    assert found.version == 40 + (0 if is_in_memory(backend) else 9)


def count(backend: Backend, times: int) -> None:
    done = 0
    for _ in range(100_000):
        seen = find_reference(backend)
        assert seen is not None
        try:
            backend.swap_reference(seen, reference(version=seen.version + 1))
            done += 1
        except SwapConflictError:
            continue
        if done == times:
            return
    raise AssertionError("always beaten")


def test_children_race_with_their_parent_and_one_wins(backend: Backend) -> None:
    if is_in_memory(backend):
        pytest.skip("each process has a memory of its own")
    backend.create_reference(reference())

    def swap(number: int) -> bool:
        try:
            backend.swap_reference(reference(), reference(pointer=number, version=6))
        except SwapConflictError:
            return False
        return True

    assert sum(bool(won) for won in fork(backend, swap, children=5)) == 1


def test_numbers_of_any_size_survive_many_rewrites(backend: Backend) -> None:
    chosen = random.Random(4)
    rows = {number: row(number, realm=number) for number in [0, LARGEST, *(chosen.randrange(LARGEST) for _ in range(30))]}
    for turn in range(3):
        for number in rows:
            rows[number] = row(number, realm=number, value=chosen.randbytes(turn * 100))
        backend.write_objects(list(rows.values()))

    assert {number: read_object(backend, number, realm=number) for number in rows} == rows
