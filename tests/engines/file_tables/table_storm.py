"""A storm on one file table: processes that are killed at random moments, a database that is killed, and the end of it all."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from role_processes import RoleProcess, TableRole, notes_in
from table_roles import collect, commit, compact, ingest, split
from table_stage import TableStage, make_orders
from table_verdict import faults_afterwards
from table_watchers import audit, read, read_slowly

from forked_children import run_forked
from headwater.store import open_store

__all__ = ["SEED", "SOAK_SECONDS", "STORM_SECONDS", "storm"]

SEED = int(os.environ.get("HEADWATER_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
SOAK_SECONDS = float(os.environ.get("HEADWATER_TORTURE_SECONDS", "600")) if os.environ.get("HEADWATER_SOAK") == "1" else 0.0
STORM_SECONDS, SHORT_SECONDS = 10.0, 7.0
EXTRA_SECONDS = 60.0
"""A storm on a busy machine lasts longer, until enough has happened."""
END_SECONDS = 60.0
ENOUGH: Mapping[str, int] = {"done": 10, "read": 5, "audited": 20, "deleted": 5, "applied": 3, "points": 2}

KILLED: Mapping[str, TableRole] = {
    "ingest-a": ingest,
    "ingest-behind": ingest,
    "ingest-ahead": ingest,
    "compact-a": compact,
    "compact-b": compact,
    "split": split,
    "collect-a": collect,
    "collect-b": collect,
    "commit": commit,
}
SPARED: Mapping[str, TableRole] = {"read": read, "read-slowly": read_slowly, "audit": audit}


def storm(
    stage: TableStage, *, is_short: bool = False, strike_database: Callable[[], None] | None = None
) -> tuple[list[str], Counter[str]]:
    """Everything that was wrong, during the storm and after it, and how much happened.

    is_short      lasts as long as it lasts, however little happens
    """
    print(f"HEADWATER_SEED={stage.seed}")  # noqa: T201 - shown with a failure
    run_forked(1, lambda _: _prepare(stage))  # the process of the tests opens no store: it is going to fork
    killed = [RoleProcess(stage, role, name) for name, role in KILLED.items()]
    spared = [RoleProcess(stage, role, name) for name, role in SPARED.items()]
    try:
        for each in (*killed, *spared):
            each.start()
        _rage(stage, killed, strike_database, is_short=is_short)
        faults = _end([*spared, *(each for each in killed if each.name != "commit")])
        [left] = run_forked(1, lambda _: faults_afterwards(stage))  # the committers end the queue meanwhile
        faults += [f"{fault.promise}: {fault}" for fault in left] + _end([each for each in killed if each.name == "commit"])
    finally:
        for each in (*killed, *spared):
            each.kill()
    notes = notes_in(stage.folder)
    faults += [f"{note.get('promise', 'bug')}: {note}" for note in notes if note["what"] in ("bug", "damage")]
    return faults, _happened(stage.folder)


def _prepare(stage: TableStage) -> None:
    with open_store(stage.url, settings=stage.settings) as store:
        make_orders(store, stage.location)


def _rage(
    stage: TableStage, processes: list[RoleProcess], strike_database: Callable[[], None] | None, *, is_short: bool
) -> None:
    """Kill one and let another come, every fraction of a second."""
    chance = random.Random(stage.seed)
    until = time.monotonic() + (SHORT_SECONDS if is_short else STORM_SECONDS)
    strike, latest = time.monotonic() + 3.0, until + (0.0 if is_short else EXTRA_SECONDS)
    while (now := time.monotonic()) < until or (now < latest and not _is_enough(stage.folder)):
        time.sleep(chance.uniform(0.05, 0.6))
        victim = chance.choice(processes)
        victim.kill()
        victim.start()
        if strike_database is not None and now > strike:
            strike_database()
            strike = time.monotonic() + chance.uniform(2.0, 5.0)


def _is_enough(folder: Path) -> bool:
    happened = _happened(folder)
    return all(happened[what] >= count for what, count in ENOUGH.items())


def _happened(folder: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for note in notes_in(folder):
        counts[note["what"]] += 1
        counts.update({name: note[name] for name in ("deleted", "strays", "applied", "points") if name in note})
        if note["what"] == "refused":
            counts[f"refused {note['step']}: {note['kind']}"] += 1
    counts["lives"] = len(list(folder.glob("*.log")))
    return counts


def _end(processes: list[RoleProcess]) -> list[str]:
    for each in processes:
        each.ask_to_end()
    until = time.monotonic() + END_SECONDS
    return [fault for each in processes if (fault := each.end(until=until))]
