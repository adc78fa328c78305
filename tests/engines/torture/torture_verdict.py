"""What must be true after a torture: by the command line a day later, the actors' journals, and a walk that is not the collector's."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence

from click.testing import CliRunner
from torture_actors import Note, Stage, notes_of
from torture_copies import archives_of, faults_of_copy, keys_of
from torture_keepers import PHOENIX
from torture_storm import FORGETFUL_COMMITS, SETTINGS
from torture_users import COUNTED, FORGETFUL, LAKE, STEADY

from engines.histories.checking import Kept, check_garbage, check_history, check_purged, check_readable
from engines.histories.journal import read_journals
from headwater.catalogs import Catalogs
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
    faults += _end_the_tasks(stage) + _end_the_purge(stage)
    served = [STEADY, FORGETFUL, SYSTEM_REALM]
    for _ in range(2):  # the first may make garbage of its own: it takes names away
        faults += [fault for realm in served for fault in _command(stage, "gc", "run", realm)]
    faults += _command(stage, "fsck")
    faults += _copies(stage, notes)
    with open_store(stage.url, settings=Settings.from_environment(ENVIRONMENT)) as store:
        faults += _kept_promises(store, notes) + _tasks(store) + _history(store)
        faults += check_readable(store) + check_purged(store)
        faults += [fault for realm in (STEADY, FORGETFUL) for fault in check_garbage(store, realm, KEPT[realm])]
        events = read_journals(sorted(stage.folder.glob("*.events")))
        faults += check_history(store, events, lasting={COUNTED: 0})
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


def _kept_promises(store: Store, notes: Sequence[Note]) -> list[str]:
    """Under each key is what its only writer was told last; where it was told nothing, either."""
    faults = []
    for realm in (STEADY, FORGETFUL):
        catalog = Catalogs(RealmRegistry(store).open_realm(realm)).open_catalog(LAKE)
        there = keys_of(catalog)
        must, may = _promised(notes, realm)
        faults += [f"{realm}: {key} was acknowledged, and is lost" for key in sorted(must - there)]
        faults += [f"{realm}: {key} is there, and its writer was told that it is not" for key in sorted(there - must - may)]
    return faults


def _promised(notes: Sequence[Note], realm: str) -> tuple[set[str], set[str]]:
    """The keys that must be there, and those of which nobody was told. Each has one writer, whose notes are in order."""
    must: set[str] = set()
    may: set[str] = set()
    for note in notes:
        if note.get("realm") != realm or note["what"] not in ("call", "done", "not", "open"):
            continue
        key, is_put = note["key"], note["step"] == "put"
        match note["what"]:
            case "call" | "open":  # until there is an answer
                must.discard(key)
                may.add(key)
            case "done":
                may.discard(key)
                (must.add if is_put else must.discard)(key)
            case "not":
                may.discard(key)
                (must.discard if is_put else must.add)(key)
    return must, may


def _history(store: Store) -> list[str]:
    """Where all of it is kept: each commit one later than the one before, and each key put once by its only writer."""
    faults, puts, above = [], Counter[str](), None
    for entry in Catalogs(RealmRegistry(store).open_realm(STEADY)).open_catalog(LAKE).log("main"):
        puts.update(f"{operation.key} {operation.action}" for operation in entry.operations)
        if above is not None and (above.seq != entry.seq + 1 or above.time < entry.time):
            faults.append(f"{STEADY}: {above} follows {entry}")
        above = entry
    if above is not None and above.seq != 1:
        faults.append(f"{STEADY}: the history ends at {above}")
    return faults + [f"{STEADY}: {n} commits did the same: {key}" for key, n in puts.items() if n > 1]


def _tasks(store: Store) -> list[str]:
    """None died of a bug, and no collection was given up but of what is gone."""
    faults = []
    for seen in TaskQueue(store).list_tasks():
        errors = {attempt.error for attempt in seen.value.attempts if attempt.error}
        faults += [f"task {seen.value} died of {error}" for error in errors if BUG.match(error)]
        if seen.value.state is TaskState.FAILED and seen.value.kind == COLLECT and seen.value.realm != PHOENIX:
            faults.append(f"task {seen.value} was given up: {seen.value.error}")
    return faults


def _command(stage: Stage, *arguments: str, url: str = "") -> list[str]:
    result = CliRunner().invoke(main, ["--store", url or stage.url, *arguments], env=ENVIRONMENT, prog_name="headwater")
    return [] if result.exit_code == 0 else [f"headwater {' '.join(arguments)}: exit code {result.exit_code}: {result.output}"]
