"""One operation, one call of the store, one fault: the cases, and what is wrong with how each of them ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from fault_world import World, base, observed, opened, plain, troubles
from public_operations import Act, Operation

from engines.model.outcome_promises import difference, outcome_is_as_told
from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.store import RealmKey
from headwater.store.backends.memory import MemoryBackend

READ_CALLS = ("read_references", "read_objects", "scan_references", "scan_objects", "split_references", "split_objects")
SWAPS = ("swap_reference", "write_and_swap", "update_object", "remove_reference")
FOR_GOOD = 10**9
SLOW_SECONDS = 40.0
"""Longer than the time-out of a commit, and than clocks may differ."""
LOST = UnknownOutcomeError("the request was lost")


class Case(NamedTuple):
    """``call`` counts from 1; ``method`` is what is called there.

    is_atomic     on a database that writes and swaps in one call
    """

    call: int
    method: str
    fault: str
    is_atomic: bool = False


def _away(world: World, call: int) -> None:
    world.faults.fail(at=call)


def _away_for_good(world: World, call: int) -> None:
    world.faults.fail(at=call, times=FOR_GOOD)


def _request_lost(world: World, call: int) -> None:
    world.faults.fail(at=call, fault=LOST)


def _request_lost_for_good(world: World, call: int) -> None:
    world.faults.fail(at=call, fault=LOST)
    world.faults.fail(at=call + 1, times=FOR_GOOD)


def _answer_lost(world: World, call: int) -> None:
    world.faults.fail(at=call, before=False)


def _answer_lost_for_good(world: World, call: int) -> None:
    world.faults.fail(at=call, before=False)
    world.faults.fail(at=call + 1, times=FOR_GOOD)


def _answers_lost(world: World, call: int) -> None:
    world.faults.fail(at=call, times=FOR_GOOD, before=False)


def _slow(world: World, call: int) -> None:
    world.faults.intervene("*", lambda: world.clock.advance(SLOW_SECONDS), at=call)


def _slow_then_away_for_good(world: World, call: int) -> None:
    _slow(world, call)
    world.faults.fail(at=call + 1, times=FOR_GOOD)


def _beaten(world: World, call: int) -> None:
    world.faults.contest(at=call)


FAULTS: Mapping[str, Callable[[World, int], None]] = {
    "away": _away,
    "away for good": _away_for_good,
    "request lost": _request_lost,
    "request lost, then away for good": _request_lost_for_good,
    "answer lost": _answer_lost,
    "answer lost, then away for good": _answer_lost_for_good,
    "all answers lost": _answers_lost,
    "slow": _slow,
    "slow, then away for good": _slow_then_away_for_good,
    "beaten": _beaten,
}
OF_READS = ("away", "away for good")


def cases(operation: Operation) -> Iterator[Case]:
    """Every call that the operation makes where nothing fails, with every fault that it may meet."""
    yield from _cases(operation, is_atomic=False)
    # all other calls are the same there
    yield from (case for case in _cases(operation, is_atomic=True) if case.method == "write_and_swap")


def _cases(operation: Operation, *, is_atomic: bool) -> Iterator[Case]:
    for call, method in enumerate(calls_of(operation.make, is_atomic=is_atomic), 1):
        for fault in OF_READS if method in READ_CALLS else FAULTS:
            if fault != "beaten" or (method in SWAPS and operation.is_contested):
                yield Case(call, method, fault, is_atomic)


def calls_of(make: Callable[[World], Act], *, is_atomic: bool = False) -> list[str]:
    """What an act calls of the store where nothing fails."""
    rows, now = base()
    with opened(rows, now, is_atomic=is_atomic) as world:
        act = make(world)
        before = len(world.faults.calls)
        act()
        return world.faults.calls[before:]


def wanted_end(operation: Operation) -> Any:
    """What can be read, without ids and times, after the operation was done and nothing failed."""
    rows, now = base()
    with opened(rows, now) as world:
        operation.make(world)()
        operation.meet(world)
        return plain(observed(world))


def faults_of(operation: Operation, case: Case, end: Any) -> list[str]:
    """What is wrong with how a case ends: what is told against what is there, what is there after it was done again, what fsck finds."""
    rows, now = base()
    with opened(rows, now, is_atomic=case.is_atomic) as world:
        act = operation.make(world)
        before, stored = observed(world), _stored(world.raw)
        FAULTS[case.fault](world, case.call)
        error = _error_of(act)
        world.faults.heal()
        operation.meet(world)
        after = observed(world)
        wrong = outcome_is_as_told(error, before, after, end, plain=plain, is_resumable=operation.is_resumable)
        if plain(after) != end:
            again = _error_of(act)
            is_allowed = again is None or (_may_have_happened(error) and isinstance(again, operation.already))
            if not is_allowed:
                wrong.append(f"done again it raises {again!r}")
            operation.meet(world)
            if plain(observed(world)) != end:
                wrong.append(f"done again it ends otherwise: {difference(end, plain(observed(world)))}")
        wrong += troubles(world, _changed(stored, _stored(world.raw)))
        return [f"{case.call} {case.method}, {case.fault}; it told {error!r}: {one}" for one in wrong]


def _may_have_happened(error: Exception | None) -> bool:
    return error is None or isinstance(error, UnknownOutcomeError)


def _error_of(act: Act) -> Exception | None:
    try:
        act()
    except HeadwaterError as error:
        return error
    return None


def _stored(rows: MemoryBackend) -> dict[Any, Any]:
    return {**rows._references.rows, **{key: row for key, row in rows._objects.rows.items() if row.type != "node"}}


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> set[RealmKey]:
    """The keys of the realms of which a row is another."""
    return {key[0] for key in {*before, *after} if before.get(key) is not after.get(key)}
