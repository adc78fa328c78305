"""Archives under torture: they are asked for all the time, some are loaded at once, and each tells what its realm held at its moment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torture_actors import Actor, Note, Stage
from torture_users import FORGETFUL, LAKE, SIDE_BRANCHES, STEADY

from engines.model import KeyNote, Step, Told, archive_has_the_keys_of_its_moment
from headwater.backup import check_archive, newest_readable
from headwater.catalogs import Catalog
from headwater.jobs import EXPORT, LOAD, RESTORE
from headwater.realms import RealmRegistry
from headwater.restore import RestoreRequest, RestoreTarget
from headwater.tasks import TaskQueue

__all__ = ["archives_of", "ask_for_copies", "faults_of_copy", "key_notes_of", "keys_of"]

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
            # a moment by the times of commits: how the present was, the writers' clocks, which differ, cannot tell
            moment = newest_readable(actor.clock.now(), actor.store.settings)
            arguments = {"file": file, "asOf": moment}
            tasks.submit_task(EXPORT, realm=realm.id, realm_key=realm.key, subject=file, arguments=arguments)
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
    """What a copy has, or lacks, that its realm cannot have held at the archive's moment, going by what the writers were told."""
    manifest = check_archive(archive).manifest
    bound = round(stage.settings.clock_bound_seconds * 1_000_000)
    return archive_has_the_keys_of_its_moment(
        archive.name, manifest.as_of, bound, key_notes_of(notes, manifest.realm), keys_of(copy)
    )


def key_notes_of(notes: Sequence[Note], realm: str) -> list[KeyNote]:
    """What the writers of a realm wrote down, each key's in order."""
    return [
        KeyNote(note["key"], Step(note["step"]), Told(note["what"]), note["time"])
        for note in notes
        if note.get("realm") == realm and note["what"] in list(Told)
    ]


def keys_of(catalog: Catalog) -> set[str]:
    """The names of all tables on main."""
    page = catalog.entries("main", limit=1000)
    names = {entry.key.name for entry in page.entries}
    while page.next_token is not None:
        page = catalog.entries(page_token=page.next_token, limit=1000)
        names |= {entry.key.name for entry in page.entries}
    return names
