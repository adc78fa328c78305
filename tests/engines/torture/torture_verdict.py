"""What must be true after a torture: by the command line a day later, the actors' journals, and a walk that is not the collector's."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Sequence

from click.testing import CliRunner, Result
from torture_actors import Note, Stage, notes_of
from torture_copies import archives_of, faults_of_copy, key_notes_of, keys_of
from torture_keepers import PHOENIX
from torture_storm import FORGETFUL_COMMITS, SETTINGS
from torture_users import COUNTED, FORGETFUL, LAKE, STEADY

from engines.model import (
    Kept,
    faults_of_histories,
    garbage_is_gone,
    heads_can_be_read,
    keys_hold_what_was_told,
    purged_realms_have_no_rows,
    read_journals,
)
from headwater.catalogs import Catalogs, RefKind
from headwater.catalogs.registry import content_reference
from headwater.cli import main
from headwater.jobs import COLLECT
from headwater.realms import RealmRegistry, RealmState
from headwater.settings import Settings
from headwater.store import SYSTEM_REALM, Store, id_text, open_store
from headwater.tasks import LeaseExpiry, LeaseWatch, TaskQueue, TaskState
from headwater_workers.task_executor import execute_task

__all__ = ["faults_of", "report"]

ENVIRONMENT = {"HEADWATER_TASK_LEASE": "1s", "HEADWATER_TASK_HEARTBEAT": "400ms"}
DRAIN_SECONDS = 60.0
BUG = re.compile(r"^\w*(Error|Exception|Warning|Exit|Interrupt): ")
KEPT = {STEADY: Kept(commits=1_000_000), FORGETFUL: Kept(commits=max(FORGETFUL_COMMITS, SETTINGS.reference_commits))}


def faults_of(stage: Stage) -> list[str]:
    """Everything that is wrong. Collects each realm once more, as somebody would a day later."""
    notes = notes_of(stage.folder)
    faults = [f"{note['what']}: {note}" for note in notes if note["what"] in ("bug", "damage", "lost")]
    faults += _end_the_tasks(stage) + _end_the_purge(stage) + _end_the_catalog(stage)
    faults += [fault for realm in (STEADY, FORGETFUL, SYSTEM_REALM) for fault in _collect_twice(stage, realm)]
    faults += _faults_by_fsck(stage)
    faults += _copies(stage, notes)
    with open_store(stage.url, settings=Settings.from_environment(ENVIRONMENT)) as store:
        faults += _keys(store, notes) + _tasks(store) + _operations(store)
        faults += heads_can_be_read(store) + purged_realms_have_no_rows(store)
        faults += [fault for realm in (STEADY, FORGETFUL) for fault in garbage_is_gone(store, realm, KEPT[realm])]
        events = read_journals(sorted(stage.folder.glob("*.events")))
        faults += faults_of_histories(store, events, lasting={COUNTED: 0}, whole={(STEADY, _main_of(store, STEADY))})
    return faults


def report(stage: Stage) -> dict[str, int]:
    """How much happened: a torture in which nothing did proves nothing."""
    notes = notes_of(stage.folder)
    counts = Counter(note["what"] for note in notes)
    counts["lives"] = len(list(stage.folder.glob("*.log")))
    counts["collections"] = sum(
        note["what"] == "task" and note["kind"] == "gc" and note["state"] == "SUCCEEDED" for note in notes
    )
    outcomes = [note["outcome"] or {} for note in notes if note["what"] == "task"]
    counts["archives"] = len(archives_of(stage.folder))
    counts["loaded"] = sum(note["what"] == "task" and note["kind"] == "load" and note["state"] == "SUCCEEDED" for note in notes)
    counts["restored"] = sum(
        note["what"] == "task" and note["kind"] == "restore" and note["state"] == "SUCCEEDED" for note in notes
    )
    counts["deleted"] = sum(outcome.get("deleted", 0) for outcome in outcomes)
    counts["purged rows"] = sum(outcome.get("rowsDeleted", 0) for outcome in outcomes)
    return dict(counts)


def _end_the_tasks(stage: Stage) -> list[str]:
    """All that is due is done by a worker that nobody disturbs."""
    with open_store(stage.url, settings=Settings.from_environment(ENVIRONMENT)) as store:
        tasks, until = TaskQueue(store), time.monotonic() + DRAIN_SECONDS
        watch = LeaseWatch(store.clock, store.settings.task_lease_seconds)
        while due := [seen for seen in tasks.list_tasks() if seen.value.is_active and seen.value.due <= store.clock.now()]:
            for one in tasks.find_claimable(watch):
                execute_task(store, one.id, LeaseExpiry(one.token), owner="the last worker", is_stopping=lambda: False)
            if time.monotonic() > until:
                return [f"task {id_text(seen.id)} does not end: {seen.value}" for seen in due]
            time.sleep(0.05)
    return []


def _copies(stage: Stage, notes: Sequence[Note]) -> list[str]:
    """The newest archive of each realm makes a realm in another store, which holds what it has to, and nothing that is wrong."""
    url, faults = f"sqlite:///{stage.folder}/copies.db", list[str]()
    newest = {path.name.split("-")[0]: path for path in archives_of(stage.folder)}
    for realm, archive in newest.items():
        faults += _command(stage, "realm", "import", str(archive), realm, url=url)
        if not faults:
            with open_store(url) as store:
                faults += faults_of_copy(
                    stage, archive, Catalogs(RealmRegistry(store).open_realm(realm)).open_catalog(LAKE), notes
                )
    return faults + (_command(stage, "fsck", url=url) if newest else [])


def _end_the_purge(stage: Stage) -> list[str]:
    """The realm that comes and goes: a purge that is under way is brought to its end, and its entry goes."""
    with open_store(stage.url) as store:
        realm = RealmRegistry(store).find_realm(PHOENIX)
    if realm is None or realm.state not in (RealmState.PURGING, RealmState.PURGED):
        return []
    faults = _command(stage, "realm", "purge", PHOENIX, "--confirm", PHOENIX) if realm.state is RealmState.PURGING else []
    return faults + _command(stage, "realm", "delete", PHOENIX, "--confirm", PHOENIX)


def _end_the_catalog(stage: Stage) -> list[str]:
    """The realm that comes and goes: a catalog whose making was interrupted is made, as applying its manifest again would."""
    with open_store(stage.url) as store:
        realms = RealmRegistry(store)
        realm = realms.find_realm(PHOENIX)
        if realm is None or realm.state not in (RealmState.ACTIVE, RealmState.INACTIVE):
            return []
        if realm.state is RealmState.INACTIVE:
            realms.move_realm(realm, RealmState.ACTIVE)
        catalogs = Catalogs(realms.open_realm(PHOENIX))
        for catalog in catalogs.list_catalogs():
            catalogs.create_catalog(catalog.name, base_location=catalog.base_location)
    return []


def _collect_twice(stage: Stage, realm: str) -> list[str]:
    """Twice, because the first takes names away, and the commits that do so make garbage of some that it has marked already.

    One that goes on with an interrupted sweep does not count: by the cut-offs of that one, all names are too young to go.
    """
    collected = 0
    while collected < 2:
        ended = _run(stage.url, "gc", "run", realm, "--output", "json")
        if ended.exit_code:
            return _faults_of_command(ended, "gc", "run", realm)
        collected += not json.loads(ended.stdout)["resumed"]
    return []


def _main_of(store: Store, realm: str) -> str:
    """The reference of the branch that all writers commit to."""
    lake = Catalogs(RealmRegistry(store).open_realm(realm)).open_catalog(LAKE)
    return content_reference(lake.definition.id, RefKind.BRANCH, "main")


def _keys(store: Store, notes: Sequence[Note]) -> list[str]:
    """What stands under the keys of each realm, by what their writers were told."""
    faults = []
    for realm in (STEADY, FORGETFUL):
        catalog = Catalogs(RealmRegistry(store).open_realm(realm)).open_catalog(LAKE)
        faults += keys_hold_what_was_told(key_notes_of(notes, realm), keys_of(catalog), realm)
    return faults


def _operations(store: Store) -> list[str]:
    """Where all history is kept, each key is put once by its only writer, and deleted once."""
    log = Catalogs(RealmRegistry(store).open_realm(STEADY)).open_catalog(LAKE).log("main")
    puts = Counter(f"{operation.key} {operation.action}" for entry in log for operation in entry.operations)
    return [f"{STEADY}: {n} commits did the same: {key}" for key, n in puts.items() if n > 1]


def _tasks(store: Store) -> list[str]:
    """None died of a bug, and no collection was given up but of what is gone."""
    faults = []
    for seen in TaskQueue(store).list_tasks():
        errors = {attempt.error for attempt in seen.value.attempts if attempt.error}
        faults += [f"task {seen.value} died of {error}" for error in errors if BUG.match(error)]
        if seen.value.state is TaskState.FAILED and seen.value.kind == COLLECT and seen.value.realm != PHOENIX:
            faults.append(f"task {seen.value} was given up: {seen.value.error}")
    return faults


def _faults_by_fsck(stage: Stage) -> list[str]:
    """What fsck finds, with the tasks that were given up, which may be why."""
    faults = _command(stage, "fsck")
    if faults:
        with open_store(stage.url, settings=Settings.from_environment(ENVIRONMENT)) as store:
            given_up = [seen.value for seen in TaskQueue(store).list_tasks() if seen.value.state is TaskState.FAILED]
        faults += [f"task {task} was given up: {task.error}" for task in given_up]
    return faults


def _command(stage: Stage, *arguments: str, url: str = "") -> list[str]:
    return _faults_of_command(_run(url or stage.url, *arguments), *arguments)


def _run(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--store", url, *arguments], env=ENVIRONMENT, prog_name="headwater")


def _faults_of_command(ended: Result, *arguments: str) -> list[str]:
    return [] if ended.exit_code == 0 else [f"headwater {' '.join(arguments)}: exit code {ended.exit_code}: {ended.output}"]
