"""``headwater gc`` and ``headwater fsck``: what is kept, what went, and what is wrong."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import msgspec
import pytest
from commandline import CommandLine

from headwater import Settings, Store, open_store
from headwater.catalogs import Catalogs, ContentKey, IcebergTable, Put
from headwater.clock import Micros
from headwater.commits import pin_commits
from headwater.jobs.task_runs import Run, record_run
from headwater.realms import RealmRegistry
from headwater.store import ObjectRow, fixed_id, id_of, id_text
from headwater.store.clock_check import ClockConfirmation
from headwater.tasks import LeaseWatch, TaskQueue


@pytest.fixture
def heads(store: Store, catalog: str) -> list[str]:
    """The hashes of the commits of a table that changed twice."""
    opened = Catalogs(RealmRegistry(store).open_realm("acme")).open_catalog("lake")
    hashes = []
    for version in range(3):
        there = opened.get_content(None, ContentKey.of("orders"))
        table = IcebergTable(id=there.id if there else None, metadata_location=f"s3://lake/orders/{version}.json")
        hashes.append(id_text(opened.commit(None, [Put(ContentKey.of("orders"), table)]).commit_id))
    return hashes


def test_dry_run_deletes_nothing_and_makes_no_task(headwater: CommandLine, store: Store, heads: list[str]) -> None:
    shown = headwater.data("gc", "run", "acme", "--dry-run")

    assert (shown["dryRun"], shown["deleted"]) == (True, 0)
    assert TaskQueue(store).list_tasks() == []


def test_clock_is_confirmed_for_a_realm_that_is_there(headwater: CommandLine, store: Store, realm: str) -> None:
    def is_confirmed() -> bool:
        return store.system.find_versioned(fixed_id(5), ClockConfirmation) is not None

    assert headwater("gc", "run", "nobody", "--clock-is-right").exit_code == 3
    assert not is_confirmed()
    headwater.ok("gc", "run", realm, "--clock-is-right")
    assert is_confirmed()


def test_run_is_a_task_that_this_process_does(headwater: CommandLine, heads: list[str]) -> None:
    shown = headwater.data("gc", "run", "acme")

    tasks = headwater.data("task", "list")
    assert [(task["kind"], task["state"], task["attempt"]) for task in tasks] == [("gc", "SUCCEEDED", 1)]
    assert tasks[0]["outcome"]["scanned"] == shown["scanned"] > 0


def test_run_stands_in_the_log(headwater: CommandLine, heads: list[str]) -> None:
    headwater.ok("gc", "run", "acme")

    (run,) = headwater.data("gc", "log", "--realm", "acme")
    assert (run["kind"], run["error"]) == ("gc", "")
    assert run["counts"]["scanned"] > 0


def test_system_realm_is_collected(headwater: CommandLine, realm: str) -> None:
    assert headwater.data("gc", "run", "::system::")["realm"] == "::system::"


def test_detached_run_waits_for_a_worker(headwater: CommandLine, store: Store, realm: str) -> None:
    headwater.ok("gc", "run", realm, "--detach")

    assert TaskQueue(store).active_tasks("gc", realm).state == "WAITING"


def test_run_that_a_schedule_has_put_off_is_done_now(headwater: CommandLine, store: Store, realm: str) -> None:
    later = store.clock.now() + 3_600_000_000
    waiting = TaskQueue(store).submit_task("gc", realm=realm, realm_key=RealmRegistry(store).read_realm(realm).key, due=later)

    headwater.ok("gc", "run", realm)

    assert TaskQueue(store).read_task(waiting.id).value.state == "SUCCEEDED"


def test_task_that_a_silent_worker_holds_is_taken_over(url: str, store: Store, realm: str) -> None:
    tasks = TaskQueue(store)
    submitted = tasks.submit_task("gc", realm=realm, realm_key=RealmRegistry(store).read_realm(realm).key)
    tasks.claim_task(submitted.id, "dead worker", LeaseWatch(store.clock, 60))

    hurried = CommandLine(url, {"HEADWATER_TASK_LEASE": "1s", "HEADWATER_TASK_HEARTBEAT": "100ms"})
    result = hurried("gc", "run", realm)

    assert result.exit_code == 0
    assert "is being done by dead worker" in result.stderr
    assert [end.outcome for end in tasks.read_task(submitted.id).value.attempts] == ["LOST", "SUCCEEDED"]


def test_head_is_explained(headwater: CommandLine, heads: list[str]) -> None:
    shown = headwater.data("gc", "explain", "acme", heads[-1])

    assert (shown["kept"], shown["type"]) == (True, "commit")
    assert "head of" in shown["reason"]


def test_head_is_explained_by_its_reference(headwater: CommandLine, heads: list[str]) -> None:
    assert headwater.data("gc", "explain", "acme/lake@main")["id"] == heads[-1]
    assert headwater.data("gc", "explain", "acme/lake@main~1")["id"] == heads[-2]


def test_object_that_is_not_there_is_not_found(headwater: CommandLine, realm: str) -> None:
    assert headwater("gc", "explain", realm, "0123456789abcdef").exit_code == 3


def test_sound_store_has_no_findings(headwater: CommandLine, heads: list[str]) -> None:
    assert headwater.ok("fsck") == ""


def test_lost_object_is_a_finding_with_code_8(headwater: CommandLine, url: str, heads: list[str]) -> None:
    with open_store(url, settings=Settings()) as store:
        rows = RealmRegistry(store).open_realm("acme")
        lost = [key for batch in rows.scan_objects() for key in batch if id_text(key.id) == heads[-1]]
        rows.delete_unchanged(lost)

    result = headwater("fsck")

    assert result.exit_code == 8
    first, what, mend = result.stdout.splitlines()
    assert first.startswith("DAMAGE HEAD_UNREADABLE: cat/")
    assert (what[:9], mend[:9]) == ("   what: ", "   mend: ")


def lose_head(url: str, heads: list[str]) -> None:
    """Main's commits but the first are gone."""
    with open_store(url, settings=Settings()) as store:
        rows = RealmRegistry(store).open_realm("acme")
        lost = [key for batch in rows.scan_objects() for key in batch if id_text(key.id) in heads[1:]]
        rows.delete_unchanged(lost)


def test_plan_is_shown_and_changes_nothing(headwater: CommandLine, url: str, heads: list[str]) -> None:
    lose_head(url, heads)

    result = headwater("-o", "json", "fsck", "--plan")
    [step] = json.loads(result.stdout)
    assert (result.exit_code, step["action"], step["target"], step["result"]) == (8, "GO_BACK", heads[0], None)
    assert headwater("fsck").exit_code == 8


def test_plan_for_people_is_a_numbered_list(headwater: CommandLine, url: str, heads: list[str]) -> None:
    lose_head(url, heads)

    first, does, loses = headwater("fsck", "--plan").stdout.splitlines()
    assert first.startswith("1. GO_BACK (safe): cat/") and first.endswith("heads/main of acme")
    assert (does.startswith("   does: point it back"), loses.startswith("   loses: what the commits")) == (True, True)


def test_repair_without_its_confirmation_shows_the_plan_and_is_refused(
    headwater: CommandLine, url: str, heads: list[str]
) -> None:
    lose_head(url, heads)

    result = headwater("fsck", "--realm", "acme", "--repair")
    assert (result.exit_code, "GO_BACK" in result.stdout) == (5, True)
    assert "--confirm acme" in result.stderr


def test_confirmed_repair_does_the_safe_steps(headwater: CommandLine, url: str, heads: list[str]) -> None:
    lose_head(url, heads)

    result = headwater("-o", "json", "fsck", "--repair", "--confirm", "acme")
    assert heads[0] in json.loads(result.stdout)[0]["result"]
    assert headwater.data("catalog", "log", "acme/lake")[0]["hash"] == heads[0]


def test_repair_with_nothing_to_do_is_done(headwater: CommandLine, realm: str) -> None:
    result = headwater("fsck", "--realm", realm, "--repair")

    assert (result.exit_code, result.stdout) == (0, "")


def test_repair_of_a_realm_that_was_not_named_is_refused(headwater: CommandLine, heads: list[str]) -> None:
    assert headwater("fsck", "--realm", "acme", "--repair", "--confirm", "other").exit_code == 5


def test_row_that_is_set_aside_is_kept_for_its_owner(headwater: CommandLine, store: Store, realm: str, tmp_path: Path) -> None:
    task = TaskQueue(store).submit_task("gc", realm=realm).id
    [row] = store.backend.read_objects(store.system.key, [(task, 0)])
    assert isinstance(row, ObjectRow)
    store.backend.write_objects([msgspec.structs.replace(row, value=row.value[:-3])])
    headwater("fsck", "--repair", "--confirm", "::system::", "--aside", tmp_path / "kept" / "rows")

    [file] = (tmp_path / "kept" / "rows").iterdir()
    assert file.name == f"tasks-{id_text(task)}.json"
    assert json.loads(file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_left_overs_alone_do_not_end_with_code_8(headwater: CommandLine, store: Store, heads: list[str]) -> None:
    ended = TaskQueue(store).submit_task("export", realm="acme")
    TaskQueue(store).cancel_task(ended.id)
    rows = RealmRegistry(store).open_realm("acme")
    pin_commits(rows, ended.id, {id_of(heads[0]): [row.name for row in rows.scan_references()]})

    assert "PIN_STALE" in headwater.ok("fsck")


@pytest.fixture
def brief(url: str, heads: list[str]) -> CommandLine:
    """The same store, with graces that are over at once."""
    short = {"HEADWATER_WRITER_GRACE": "2ms", "HEADWATER_READER_GRACE": "2ms"}
    return CommandLine(url, {"HEADWATER_UNSAFE_SHORT_GRACES": "true", **short})


def test_types_of_a_collection_are_shown_beside_an_export(headwater: CommandLine, store: Store, heads: list[str]) -> None:
    headwater.ok("gc", "run", "acme")
    record_run(store, Run(kind="export", realm="acme", started=Micros(1), finished=Micros(2), counts={"types": {"commit": 5}}))

    assert {shown["type"] for shown in headwater.data("gc", "log", "--types")} >= {"commit", "catalog"}


def test_way_to_an_object_is_a_line_for_each_step(headwater: CommandLine, heads: list[str]) -> None:
    shown = headwater.ok("gc", "explain", "acme", heads[-1])

    assert "path:\n  branch main of catalog lake\n  commit " in shown


def test_tables_of_garbage_by_type_are_headed_by_type(brief: CommandLine) -> None:
    brief.ok("gc", "run", "acme")  # what it wrote down for its own resumption is garbage for the next one

    assert "garbageTypes:\n  TYPE " in brief.ok("gc", "run", "acme", "--dry-run")


def test_confirmation_without_a_repair_is_a_usage_error(headwater: CommandLine, realm: str) -> None:
    result = headwater("fsck", "--confirm", realm)

    assert (result.exit_code, "--repair" in result.stderr) == (2, True)


def test_realm_that_cannot_be_collected_gets_no_task(headwater: CommandLine, store: Store) -> None:
    RealmRegistry(store).create_realm("young")

    assert headwater("gc", "run", "young").exit_code == 5
    assert TaskQueue(store).list_tasks() == []
