"""What a client is told is what is there, whichever call of the database fails in whichever way; and its repeat has no second effect.

200, 204      it is there
503           nothing is; with ``Retry-After``
500           nobody knows: one of both
4xx           never: after these, clients delete files, or roll back
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import structlog
from outcome_worlds import FAULTS, FOR_GOOD, LakeBase, OutcomeWorld, key_or_none, make_base
from rest_actions import ACTIONS, RestAction

from asgi_client import AsgiAnswer
from tiers import Sample

READ_CALLS = ("read_references", "read_objects", "scan_references", "scan_objects", "split_references", "split_objects")


class Case(NamedTuple):
    """``call`` counts from 1; ``method`` is what is called there."""

    call: int
    method: str
    fault: str
    is_keyed: bool


@pytest.fixture(autouse=True)
def _silence(logging_as_before: None) -> None:
    """What thousands of requests log would hide what is wrong."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> LakeBase:
    return make_base((tmp_path_factory.mktemp("outcomes") / "warehouse").as_uri())


def cases(base: LakeBase, action: RestAction) -> Iterator[Case]:
    with base.opened(is_atomic=True) as world:
        before = len(world.faults.calls)
        assert world.send(action).status in (200, 204)
        calls = world.faults.calls[before:]
    for call, method in enumerate(calls, 1):
        for number, fault in enumerate(FAULTS):
            if method not in READ_CALLS or fault.startswith("away"):
                yield Case(call, method, fault, is_keyed=(call + number) % 2 == 0)


def wanted_end(base: LakeBase, action: RestAction) -> tuple[dict[str, Any], int]:
    """What is there, and how many commits there are more, where nothing fails."""
    with base.opened() as world:
        before = world.commits
        world.send(action)
        return world.told(), world.commits - before


def faults_of(base: LakeBase, action: RestAction, case: Case, end: tuple[dict[str, Any], int]) -> list[str]:
    wanted, step = end
    with base.opened(is_atomic=True) as world:
        key, before, then = key_or_none(case.is_keyed), world.commits, world.told()
        _break(world, case)
        first = world.send(action, key=key)
        world.faults.heal()
        made = world.commits - before
        wrong = _untrue(first, made, step, world.told() == then, case)
        answer, tries = first, 0
        while answer.status not in (200, 204) and tries < 3:
            answer, tries = world.send(action, key=key), tries + 1
            if made and key is None and answer.status in action.already:
                break
        if answer.status not in (200, 204) and not (made and key is None and answer.status in action.already):
            wrong.append(f"the repeat is told {answer.status} {answer.content!r}")
        elif world.send(action, key=key).status not in {200, 204, *(action.already if key is None else ())}:
            wrong.append("another repeat is told something else")
        if world.commits - before != step or world.told() != wanted:
            wrong.append(f"it ends with {world.commits - before} commits and {world.told()}, not {wanted}")
        wrong += [] if world.tasks == action.tasks else [f"{world.tasks} tasks wait"]
        wrong += [f"{file} is named, and lost" for file in world.lost_files()]
        return [f"{case}, told {first.status} {first.content[:200]!r}: {fault}" for fault in wrong]


def _break(world: OutcomeWorld, case: Case) -> None:
    first, later = FAULTS[case.fault]
    world.faults.fail(at=case.call, **first)
    if later is not None:
        world.faults.fail(at=case.call + 1, times=FOR_GOOD, **later)


def _untrue(answer: AsgiAnswer, made: int, step: int, is_untouched: bool, case: Case) -> list[str]:
    match answer.status:
        case 200 | 204:
            return [] if made == step else [f"it was told as done, and made {made} commits"]
        case 503:
            wrong = [] if made == 0 and is_untouched else ["it was told as certainly not done"]
            return wrong + ([] if answer.headers.get("retry-after") == "1" else ["503 without Retry-After"])
        case 500:
            wrong = [] if answer.error == (500, "CommitStateUnknownException") else [f"told {answer.error}"]
            return wrong + (["told as unclear, and is clear"] if made == 0 and case.fault.startswith("away") else [])
    return ["no fault of the database is the client's"]


@pytest.mark.parametrize("name", ACTIONS)
def test_action_is_told_as_it_is(base: LakeBase, name: str, sample: Sample) -> None:
    action, end = ACTIONS[name], wanted_end(base, ACTIONS[name])

    assert [fault for case in sample.one_in(67, cases(base, action)) for fault in faults_of(base, action, case, end)] == []
