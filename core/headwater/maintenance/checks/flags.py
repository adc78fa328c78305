"""What work in progress leaves on a realm for others to see: the flag of a sweep, and pins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headwater.clock import as_text
from headwater.commits import CollectionRecord, read_collection, read_pins
from headwater.errors import HeadwaterError, MissingError
from headwater.maintenance.checks.findings import Code, Finding
from headwater.maintenance.checks.sight import Sight
from headwater.maintenance.work.kinds import COLLECT
from headwater.store import ObjectId, Store, Versioned, id_of, id_text
from headwater.tasks import Tasks

__all__ = ["abandoned_sweep", "check_flags"]

_OWNER = re.compile(r"task ([0-9a-f]{16}), attempt (\d+)")


def check_flags(sight: Sight) -> Iterator[Finding]:
    """A sweep that nobody goes on with, and pins whose task has ended."""
    yield from _check_sweep(sight)
    yield from _check_pins(sight)


def abandoned_sweep(store: Store, realm: str, record: Versioned[CollectionRecord] | None) -> bool:
    """Whether the flag of a sweep is on that no active task owns. A sweep that no task has made is taken for alive."""
    if record is None or not record.value.sweeping:
        return False
    owner = _OWNER.fullmatch(record.value.owner)
    if owner is None:
        return False
    tasks = Tasks(store)
    if tasks.active(COLLECT, realm) is not None:
        return False  # that one goes on where the sweep was, or marks anew
    try:
        return not tasks.read(id_of(owner[1])).value.is_active
    except MissingError:
        return True


def _check_sweep(sight: Sight) -> Iterator[Finding]:
    record = read_collection(sight.rows)
    if record is not None and abandoned_sweep(sight.store, sight.rows.realm, record):
        yield sight.finding(
            Code.SWEEP_ABANDONED,
            sight.rows.realm,
            f"a collection ({record.value.owner}) published its sweep and did not end it: only heads can be pointed at until then",
            "the next collection goes on or marks anew; `headwater fsck --repair` withdraws the flag now",
        )


def _check_pins(sight: Sight) -> Iterator[Finding]:
    if sight.scope.is_system:
        return
    try:
        found = read_pins(sight.rows)
    except HeadwaterError:
        return  # the reference cannot be read: that has been told
    tasks, is_active = Tasks(sight.store), dict[ObjectId, bool]()
    for pin in found:
        if pin.owner not in is_active:
            is_active[pin.owner] = _is_active(tasks, pin.owner)
        if not is_active[pin.owner]:
            yield sight.finding(
                Code.PIN_STALE,
                id_text(pin.commit),
                f"the commit is pinned since {as_text(pin.time)} by task {id_text(pin.owner)}, which has ended",
                "the next collection takes the pin away",
            )


def _is_active(tasks: Tasks, task_id: ObjectId) -> bool:
    try:
        return tasks.read(task_id).value.is_active
    except MissingError:
        return False
