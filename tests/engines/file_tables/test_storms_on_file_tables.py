"""File tables whose ingests, compactions, splits, collections and committers are killed at any moment, and their database with them.

Each storm has a seed, shown with a failure; HEADWATER_SEED=number repeats what it decides. HEADWATER_SOAK=1 raises one storm after the
other for HEADWATER_TORTURE_SECONDS.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from table_mutants import STORMY, InfectiousPart, ReadsTheTreeFirst
from table_stage import TableStage, settings_of
from table_storm import ENOUGH, SEED, SOAK_SECONDS, storm

from engines.model import MUTANTS
from servers.postgresql import PostgresqlServer
from servers.redis_broker import redis_server

pytestmark = pytest.mark.long

SHIFTS = {"ingest-behind": -40.0, "ingest-ahead": 3.0}


def on_sqlite(folder: Path, seed: int, mutant: type[InfectiousPart] | None = None) -> TableStage:
    """Plain files; one collection has a clock that is behind, which is noticed there by the others."""
    folder.mkdir()
    url = f"sqlite:///{folder}/store.db"
    return TableStage(
        url=url,
        folder=folder,
        location=f"file://{folder}/lake",
        seed=seed,
        settings=settings_of(url, "embedded"),
        broker_folder=None,
        shifts=SHIFTS,
        short_shifts={"collect-b": -12.0},
        mutant=mutant,
    )


def on_postgresql(folder: Path, seed: int, url: str, broker: str, mutant: type[InfectiousPart] | None = None) -> TableStage:
    """A crowded storage; one collection's machine has a clock that is an hour ahead, which the server's clock replaces."""
    folder.mkdir()
    return TableStage(
        url=url,
        folder=folder,
        location=f"crowded://{folder}/lake",
        seed=seed,
        settings=settings_of(url, broker),
        broker_folder=None,
        shifts=SHIFTS | {"collect-b": 3600.0},
        short_shifts={},
        mutant=mutant,
    )


def assert_calm(make_stage: Callable[[int, int], TableStage], strike: Callable[[], None] | None = None) -> None:
    end, number = time.monotonic() + SOAK_SECONDS, 0
    while not number or time.monotonic() < end:
        faults, happened = storm(make_stage(number, SEED + number), strike_database=strike)
        print(dict(happened))  # noqa: T201 - shown with a failure
        assert not faults, "\n".join(faults[:20])
        assert {what: happened[what] for what in ENOUGH if happened[what] < ENOUGH[what]} == {}
        number += 1


@pytest.mark.rare(2)
@pytest.mark.timeout(SOAK_SECONDS * 2 + 400)
def test_stormy_table_on_sqlite_keeps_all_its_rows(tmp_path: Path) -> None:
    assert_calm(lambda number, seed: on_sqlite(tmp_path / str(number), seed))


@pytest.mark.rare(2)
@pytest.mark.timeout(SOAK_SECONDS * 2 + 400)
def test_stormy_table_on_postgresql_keeps_all_its_rows(tmp_path: Path) -> None:
    with PostgresqlServer() as server, redis_server(tmp_path) as broker:

        def strike() -> None:
            server.kill()
            server.start()

        assert_calm(lambda number, seed: on_postgresql(tmp_path / str(number), seed, server.url(f"s{number}"), broker), strike)


@pytest.mark.skipif(not SOAK_SECONDS, reason="takes minutes: HEADWATER_SOAK=1 tries each wrong part")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", STORMY, ids=lambda mutant: mutant.__name__)
def test_storm_finds_the_part_that_is_wrong(tmp_path: Path, mutant: type[InfectiousPart]) -> None:
    is_short = mutant is not ReadsTheTreeFirst  # it shows itself only while a split moves references
    storms = (storm(on_sqlite(tmp_path / str(number), SEED + number, mutant), is_short=is_short) for number in range(5))
    faults = next((faults for faults, _ in storms if faults), [])
    killers = Counter(fault.partition(":")[0] for fault in faults)
    print(killers)  # noqa: T201 - shown with a failure

    assert MUTANTS[mutant.__name__].killed_by in killers
