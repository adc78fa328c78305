"""A request with a key is applied exactly once, whichever call of the store fails in whichever way before it is repeated."""

from __future__ import annotations

from itertools import count

import pytest
from fault_world import World, base, opened
from outcome_cases import FAULTS, Case, cases
from public_operations import Act, Operation

from headwater.catalogs import Catalog, ContentKey, IcebergTable, Put
from headwater.errors import HeadwaterError, UnknownOutcomeError
from headwater.store import ObjectId
from request_keys import make_request
from tiers import Sample

NEW = ContentKey.of("sales", "new")


def _send(world: World) -> Act:
    """What a server does with one request: a file of its own at each attempt, so that a second commit would show."""
    lake, attempts = world.lake, count(1)
    return lambda: lake.commit("main", [Put(NEW, _table(next(attempts)))], request=make_request(), message="by key")


def _table(attempt: int) -> IcebergTable:
    return IcebergTable(metadata_location=f"s3://lake/new/v{attempt}.json")


SENT = Operation("Catalog.commit", _send)


def _made(lake: Catalog) -> list[ObjectId]:
    return [entry.id for entry in lake.log("main") if entry.message == "by key"]


def _faults_of(case: Case) -> list[str]:
    rows, now = base()
    with opened(rows, now, is_atomic=case.is_atomic) as world:
        send = _send(world)
        FAULTS[case.fault](world, case.call)
        first = error = None
        try:
            first = send()
        except HeadwaterError as fault:
            error = fault
        world.faults.heal()
        had_happened = bool(_made(world.lake))
        again = send()
        made = _made(world.lake)
        wrong = []
        if len(made) != 1 or again.commit_id != made[0] or again.is_replay != had_happened:
            wrong.append(f"it made {made}, and the repeat told {again}")
        if first is not None and (first.commit_id != made[0] or first.is_replay):
            wrong.append(f"the first told {first}, and {made} was made")
        if error is not None and had_happened and not isinstance(error, UnknownOutcomeError):
            wrong.append(f"it was told {error!r}, and had happened")
        return [f"{case.call} {case.method}, {case.fault}: {one}" for one in wrong]


def test_request_with_a_key_is_applied_once(sample: Sample) -> None:
    assert [fault for case in sample.one_in(7, cases(SENT)) for fault in _faults_of(case)] == []


@pytest.mark.parametrize("is_atomic", [False, True])
def test_repeat_by_another_process_is_applied_once(is_atomic: bool) -> None:
    """The first one's answer is lost, and another process commits before the repeat."""
    rows, now = base()
    with opened(rows, now, is_atomic=is_atomic) as world:
        world.faults.fail("write_and_swap" if is_atomic else "swap_reference", before=False)
        first = _send(world)()
        elsewhere = world.elsewhere()
        lake = Catalog.open(elsewhere.rows(world.rows.realm, world.rows.key), "lake")
        lake.commit("main", [Put(ContentKey.of("sales", "more"), _table(9))])

        repeat = lake.commit("main", [Put(NEW, _table(2))], request=make_request())

        assert (repeat.is_replay, repeat.commit_id) == (True, first.commit_id)
        assert _made(lake) == [first.commit_id]
