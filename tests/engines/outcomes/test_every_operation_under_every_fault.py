"""What an operation tells is what is there, whichever call of the store fails in whichever way; and nothing stays broken.

done                  it is there
did not happen        nothing is; done again it works (UnavailableError, RefusedError, ConflictError, SwapConflictError, NotFoundError)
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

from extensions import installed
from headwater import catalogs, commits, fsck, gc, jobs, policies, purge, realms, reconcile, restore, tasks
from headwater.catalogs import Catalog, CatalogRoles, Catalogs, TableClaims
from headwater.errors import UnavailableError
from headwater.realms import RealmRegistry
from headwater.store import RealmStore
from headwater.tasks import TaskLease, TaskQueue
from tiers import Sample

ROOMS = (catalogs, commits, fsck, gc, jobs, policies, purge, realms, reconcile, restore, tasks)
CLASSES = (Catalog, CatalogRoles, Catalogs, TaskLease, TableClaims, RealmRegistry, TaskQueue)
HANDLE = (RealmStore.ensure_reference, RealmStore.ensure_references)
"""Of a handle on a realm, what takes more than one call of the store; its single calls are faulted beneath all others."""
PURE = {
    *("check_not_ahead", "file_arguments", "first_look_after", "lake_arguments"),
    *("changed_kinds", "check_policy", "effective_files", "effective_metadata_files", "effective_snapshots"),
    *("policy_form", "policy_text"),
    *(
        "TaskLease.report_progress",
        "TaskLease.request_stop",
        "TableClaims.check_held",
        "TableClaims.claim_time",
        "RealmRegistry.reference_names",
    ),
    *(
        "check_bootstrap",
        "checked_principal_name",
        "checked_realm_id",
        "hash_credentials",
        "hold_until",
        "new_credentials",
        "verify_secret",
    ),
    *("parse_client_id", "told_client_id", "told_credential", "read_credentials", "waste_login", "committing_as"),
    *(
        "checked_catalog_name",
        "checked_ref_name",
        "content_digest",
        "content_type_of",
        "derive_content_id",
        "find_content_key",
        "find_content_keys",
        "token_behind",
        "stored_metadata_of",
        "normalise_location",
    ),
    *(
        "plan_commit",
        "survey_scope",
        "find_cut_point",
        "is_note_collected",
        "left_line_name",
        "newest_move",
        "decode_token",
        "encode_token",
        "is_bad",
        "TaskLease.listen",
        "in_turn",
        "quarantined_tables",
    ),
    *(
        "no_state_error",
        "check_reference_times",
        "parse_revspec",
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
    *("catalog_of_task", "submit_catalog_task"),
    *("abandon_sweep", "keys_in_use", "keys_with_rows", "open_marker", "open_scope"),
    *(
        "read_metadata",
        "read_contents",
        "recount_types",
        "descends",
        "load_head",
        "mark_reachable",
        "read_next_page",
        "read_page",
    ),
    *(
        "read_pinned",
        "take_page",
        "complete_operation",
        "log_in",
        "read_report",
        "preview_catalog",
        "preview_realm",
        "describe_catalog",
    ),
    *("Catalog.confirm_branch", "Catalog.content_history", "Catalog.preview_merge", "TableClaims.check_own"),
    *("TableClaims.find_around_and_below", "TableClaims.find_catalog"),
    *("TableClaims.announce_release", "TableClaims.find_released", "TableClaims.release_places", "release_unheld"),
    *("TaskQueue.check_claimable", "catalog_extensions"),
    *("confirm_outcome", "conflicts_beside_history", "declared_reference", "extensions_at", "hold_micros"),
    *("listed_extensions", "release_listed", "take_over_history"),
    *("Catalog.compare_keys", "Catalog.compare_merge", "as_deletion", "compare_manifest", "delete_moving_reference"),
    *("describe_realm", "commit_as_of", "pointer_as_of", "state_as_of", "stored_places", "reconcile", "read_restore_target"),
}
"""Steps of what is tried here, or reads that are made of such."""
ELSEWHERE = {
    "import_tables": "tests/catalogs_import/test_interrupted_imports.py",
    "dry_import": "tests/catalogs_import/test_interrupted_imports.py",
    "run_import": "tests/catalogs_import/test_interrupted_imports.py",
    "collect_realms": "tests/gc/test_collections_of_many_realms.py",
    "run_collection": "tests/gc/test_interrupted_collections.py",
    "purge_table": "tests/purge/test_interrupted_purges.py",
    "run_export": "tests/backup/test_interrupted_archives.py",
    "run_fsck": "tests/fsck/test_fsck_task.py",
    "run_load": "tests/backup/test_interrupted_archives.py",
    "run_purge": "tests/purge/realms/test_realm_purges.py",
    "run_purge_table": "tests/purge/test_interrupted_purges.py",
    **dict.fromkeys(
        ("plan_file_collection", "run_file_collection", "schedule_file_collections", "submit_file_collection"),
        "tests/files_collection/test_collection_tasks.py",
    ),
    "run_restore": "tests/restore/test_interrupted_restorations.py",
    **dict.fromkeys(("dry_file_report", "run_file_report"), "tests/lake_files/test_interrupted_reports.py"),
}
"""The work of tasks, which is interrupted anywhere and gone on with by tests of its own."""


@pytest.fixture(scope="module", autouse=True)
def widgets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A package that declares a reference."""
    with installed(tmp_path_factory.mktemp("packages")):
        yield


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
    top = Path(__file__).parents[3]
    assert [name for name, file in ELSEWHERE.items() if not (top / file).is_file()] == []


def public_names() -> Iterator[str]:
    for room in ROOMS:
        yield from functions_of(room)
    for one in CLASSES:
        yield from (f"{one.__name__}.{name}" for name, value in vars(one).items() if is_operation(name, value))
    yield from (f"{RealmStore.__name__}.{operation.__name__}" for operation in HANDLE)


def functions_of(room: ModuleType) -> Iterator[str]:
    return (name for name in room.__all__ if inspect.isfunction(inspect.unwrap(getattr(room, name))))


def is_operation(name: str, value: Any) -> bool:
    return not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, classmethod))
