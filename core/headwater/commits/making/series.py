"""Several commits of one caller to one reference, one on top of the other, published together or not at all.

They are a group without strangers, made outside of the queue: others may be faster, and then all of it is made again on their head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from headwater.commits.making.calls import Call, Committed, inside
from headwater.commits.making.groups import Group, GroupIsFullError
from headwater.commits.making.outcomes import publish
from headwater.commits.making.pacing import Pace
from headwater.commits.making.transaction import Transaction
from headwater.commits.objects import Head
from headwater.errors import BeatenError, HeadwaterError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.store import RealmStore

__all__ = ["Part", "commit_series"]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Part(Generic[R]):
    """One commit of a series; see ``commit`` for its parts. A change that edits and adds nothing makes no commit."""

    change: Callable[[Transaction], R]
    message: str = ""
    properties: dict[str, Any] = field(default_factory=dict)


def commit_series(
    rows: RealmStore,
    reference: str,
    parts: Callable[[Head | None], Sequence[Part[R]]],
    *,
    fence: Callable[[], None] | None = None,
) -> list[Committed[R]]:
    """Make all of these commits, in order, or none. The answers are in the order of the parts.

    parts         told the head that they will stand on; asked anew for each attempt. What it raises is passed on, like what a
                  change raises, and nothing is written
    fence         called before every change
    raises        as ``commit`` does · RefusedError too when they take more bytes than may be published together
    """
    lead: Call[None] = Call(rows, reference, lambda tx: None, "", {}, fence)
    lead.refuse_nesting()
    was_committing, inside.is_committing = inside.is_committing, True
    try:
        return _commit(lead, parts, fence)
    finally:
        inside.is_committing = was_committing


def _commit(
    lead: Call[None], parts: Callable[[Head | None], Sequence[Part[R]]], fence: Callable[[], None] | None
) -> list[Committed[R]]:
    clock = lead.rows.clock
    pace = Pace(lead.rows.settings, clock)
    lost = 0
    fault: HeadwaterError | None = None
    while not lead.is_over:
        lead.attempts += 1
        began = clock.monotonic()
        try:
            group = Group.look(lead.rows, lead.reference)
        except UnavailableError as away:
            fault = away
        else:
            calls = _made(lead, group, parts(group.head), fence)
            fault = _published(lead, group, calls) if group else None
            if fault is None:
                return [call.answer() for call in calls]
        lost += 1
        pace.pause(lost, attempt_seconds=clock.monotonic() - began if isinstance(fault, BeatenError) else 0.0)
    return lead.give_up(fault)


def _made(lead: Call[None], group: Group, parts: Sequence[Part[R]], fence: Callable[[], None] | None) -> list[Call[R]]:
    """Every part run on what those before it leave, and taken in."""
    calls: list[Call[R]] = []
    for number, part in enumerate(parts, 1):
        is_last = number == len(parts)
        call = Call(lead.rows, lead.reference, part.change, part.message, part.properties, fence)
        call.attempts = lead.attempts
        call.run(group, lambda is_last=is_last: not is_last)  # type: ignore[misc]  # bound now, for each part
        if call.made is None:
            call.answer()  # raises what the change has raised
        else:
            _take_in(lead, group, call)
        calls.append(call)
    return calls


def _take_in(lead: Call[None], group: Group, call: Call[R]) -> None:
    assert call.made is not None
    try:
        group.take_in(lead.rows, call.made)
    except GroupIsFullError:
        raise RefusedError(
            f"these commits to reference {lead.reference!r} of realm {lead.rows.realm!r} take more than the"
            f" {lead.rows.settings.commit_group_bytes} bytes that are published together: make fewer at a time"
        ) from None


def _published(lead: Call[None], group: Group, calls: Sequence[Call[R]]) -> HeadwaterError | None:
    """Why it did not happen; None: it did."""
    pace = Pace(lead.rows.settings, lead.rows.clock)
    try:
        is_applied = publish(lead.rows, group, until=lead.until, pause=pace.pause)
    except UnavailableError as fault:
        return fault
    except UnknownOutcomeError as unclear:
        last = next(call for call in reversed(calls) if call.made is not None)
        last.say_unknown(unclear)
    return None if is_applied else BeatenError("others were faster")
