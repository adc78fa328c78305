"""Archives under torture: they are asked for all the time, some are loaded at once, and each tells what its realm held at its moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torture_actors import Actor, Note, Stage
from torture_users import FORGETFUL, LAKE, SIDE_BRANCHES, STEADY

from headwater.backup import check_archive
from headwater.catalogs import Catalog
from headwater.jobs import EXPORT, LOAD, RESTORE
from headwater.realms import RealmRegistry
from headwater.restore import RestoreRequest, RestoreTarget
from headwater.tasks import TaskQueue

__all__ = ["archives_of", "ask_for_copies", "faults_of_copy", "keys_of"]

COPIES = 3
"""Realms that are made of archives while the torture lasts, at most."""


def ask_for_copies(actor: Actor) -> None:
    """Tasks that export a realm, load what was exported under another name, and take a branch back to what it was."""
    tasks, number = TaskQueue(actor.store), 0
    while actor.goes_on(pause_seconds=1.2):
        with actor.trying("ask for copies"):
            number += 1
            realm = RealmRegistry(actor.store).read_realm(actor.chance.choice((STEADY, STEADY, FORGETFUL)))
            file = str(actor.stage.folder / f"{realm.id}-{actor.name}-{number}.archive")
            tasks.submit_task(EXPORT, realm=realm.id, realm_key=realm.key, subject=file, arguments={"file": file})
            request = RestoreRequest(
                reference=f"{LAKE}/{actor.chance.choice(SIDE_BRANCHES)}", aim=RestoreTarget.from_text("10m", actor.clock.now())
            )
            tasks.submit_task(
                RESTORE, realm=realm.id, realm_key=realm.key, subject=request.reference, arguments=request.arguments()
            )
            copies = [found for found in RealmRegistry(actor.store).list_realms() if found.id.startswith("copy-")]
            archives = [path for path in archives_of(actor.stage.folder) if path.name.startswith(STEADY)]
            if len(copies) < COPIES and archives:  # a copy of the other would have its markers twice
                arguments = {"file": str(actor.chance.choice(archives)), "inactive": False}
                tasks.submit_task(LOAD, realm=f"copy-{len(copies)}", arguments=arguments)


def archives_of(folder: Path) -> list[Path]:
    """The newest last."""
    return sorted(folder.glob("*.archive"), key=lambda path: path.stat().st_mtime)


def faults_of_copy(stage: Stage, archive: Path, copy: Catalog, notes: Sequence[Note]) -> list[str]:
    """What a copy has, or lacks, that its realm cannot have held at the archive's moment, going by what the writers were told.

    A commit's time is between its call and its answer on its writer's clock, and later by what others' clocks are ahead of that.
    """
    manifest = check_archive(archive).manifest
    moment, bound = manifest.as_of, round(stage.settings.clock_bound_seconds * 1_000_000)
    there, faults = keys_of(copy), []
    calls = {
        (note["key"], note["step"]): note["time"]
        for note in notes
        if note["what"] == "call" and note["realm"] == manifest.realm
    }
    told = {
        (note["key"], note["step"]): note["time"]
        for note in notes
        if note["what"] == "done" and note["realm"] == manifest.realm
    }
    for key, step in calls:
        if step != "put":
            continue
        is_before = (key, "put") in told and told[key, "put"] + bound < moment
        if is_before and calls.get((key, "delete"), moment + 1) > moment and key not in there:
            faults.append(f"{archive.name} as of {moment} lacks {key}, which was put by {told[key, 'put']}")
        if calls[key, "put"] > moment and key in there:
            faults.append(f"{archive.name} as of {moment} has {key}, which was put after {calls[key, 'put']}")
        if (key, "delete") in told and told[key, "delete"] + bound < moment and key in there:
            faults.append(f"{archive.name} as of {moment} has {key}, which was deleted by {told[key, 'delete']}")
    return faults + [f"{archive.name} has {key}, which nobody put" for key in there if (key, "put") not in calls]


def keys_of(catalog: Catalog) -> set[str]:
    """The names of all tables on main."""
    page = catalog.entries("main", limit=1000)
    names = {entry.key.name for entry in page.entries}
    while page.next_token is not None:
        page = catalog.entries(page_token=page.next_token, limit=1000)
        names |= {entry.key.name for entry in page.entries}
    return names
