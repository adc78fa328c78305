"""What an operation tells is what is there, whichever call of the store fails in whichever way; and nothing stays broken.

done                  it is there
did not happen        nothing is; done again it works (UnavailableError, RefusedError, ConflictError, BeatenError, MissingError)
outcome unknown       one of both, or a part; done again it comes to its end
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fault_world import base, observed, opened
from outcome_cases import READ_CALLS, calls_of, cases, faults_of, wanted_end
from public_operations import OPERATIONS, Operation
from public_reads import READS, reader_of

from headwater import catalogs, commits, maintenance, realms, reconcile, tasks
from headwater.catalogs import Catalog, Catalogs, Claims
from headwater.errors import UnavailableError
from headwater.maintenance import restoring
from headwater.realms import Realms
from headwater.tasks import Claim, Tasks
from tiers import Sample

ROOMS = (catalogs, commits, maintenance, realms, reconcile, restoring, tasks)
CLASSES = (Catalog, Catalogs, Claim, Claims, Realms, Tasks)
PURE = {
    *("Claim.report", "Claim.stop", "Claims.check_held", "Claims.now", "Realms.reference_names"),
    *("check_bootstrap", "checked_realm_id", "hash_credentials", "hold_until", "new_credentials", "verify"),
    *(
        "checked_catalog_name",
        "checked_name",
        "content_digest",
        "content_type_of",
        "key_of",
        "metadata_of",
        "normalise_location",
    ),
    *("plan_commit", "scope_of", "cut_point", "is_let_go", "left_line", "newest_move", "token_of", "token_text", "is_bad"),
    *(
        "credible_until",
        "no_state",
        "check_row",
        "parse_reference_text",
        "sound_times",
        "plan_repairs",
        "load_manifests",
        "next_time",
        "plan_catalog",
        "plan_realm",
        "read_manifest",
        "weekly_schedule",
    ),
}
"""They ask the database for nothing, or only for what they are handed."""
PARTS = {
    *("put_copy", "read_metadata", "recount_types", "descends", "load_head", "reach", "read_next_page", "read_page"),
    *("read_pinned", "complete", "log_in", "read_report", "plan_of_catalog", "plan_of_realm", "describe_catalog"),
    *("describe_realm", "write_once", "commit_as_of", "pointer_as_of", "state_as_of", "stored_places", "reconcile"),
}
"""Steps of what is tried here, or reads that are made of such."""
ELSEWHERE = {
    "import_tables": "tests/imports/test_interrupted_imports.py",
    "dry_import": "tests/imports/test_interrupted_imports.py",
    "run_import": "tests/imports/test_interrupted_imports.py",
    "collect_together": "tests/maintenance/test_collecting_together.py",
    "run_collection": "tests/maintenance/test_interrupted_collections.py",
    "run_purge": "tests/maintenance/test_purging.py",
    "run_purge_table": "tests/purging_tables/test_interrupted_purges.py",
    "run_restore": "tests/restoring/test_interrupted_restorations.py",
}
"""The work of tasks, which is interrupted anywhere and gone on with by tests of its own."""


def named(operation: Operation) -> str:
    twins = [one for one in OPERATIONS if one.covers == operation.covers]
    return operation.covers if len(twins) == 1 else f"{operation.covers} {twins.index(operation) + 1}"


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_operation_tells_what_became_of_it(operation: Operation, sample: Sample) -> None:
    end = wanted_end(operation)
    assert [fault for case in sample.one_in(7, cases(operation)) for fault in faults_of(operation, case, end)] == []


@pytest.mark.parametrize("name", READS)
def test_read_that_fails_says_so_and_changes_nothing(name: str) -> None:
    made = calls_of(lambda world: partial(READS[name], reader_of(world)))
    assert set(made) <= set(READ_CALLS)
    for call in range(1, len(made) + 1):
        with opened(*base()) as world:
            reader, before = reader_of(world), observed(world)
            world.faults.fail(at=call, times=1_000_000)
            with pytest.raises(UnavailableError):
                READS[name](reader)
            assert observed(world) == before


def test_no_public_operation_is_missing() -> None:
    """A new one gets its line in ``public_operations`` or ``public_reads``, or, where nothing of it can fail, in a list above."""
    tried = {operation.covers for operation in OPERATIONS}
    assert set(public_names()) - tried - READS.keys() - PURE - PARTS - ELSEWHERE.keys() == set()


def test_every_name_that_is_tried_is_public() -> None:
    assert {operation.covers for operation in OPERATIONS} | READS.keys() | PURE | PARTS | ELSEWHERE.keys() <= set(
        public_names()
    )


def test_work_of_tasks_is_interrupted_elsewhere() -> None:
    top = Path(__file__).parents[2]
    assert [name for name, file in ELSEWHERE.items() if not (top / file).is_file()] == []


def public_names() -> Iterator[str]:
    for room in ROOMS:
        yield from functions_of(room)
    for one in CLASSES:
        yield from (f"{one.__name__}.{name}" for name, value in vars(one).items() if is_operation(name, value))


def functions_of(room: ModuleType) -> Iterator[str]:
    return (name for name in room.__all__ if inspect.isfunction(getattr(room, name)))


def is_operation(name: str, value: Any) -> bool:
    return not name.startswith("_") and inspect.isfunction(value)
