"""The tasks that write a realm to an archive and make a realm of one: what the Python API and the command line do alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headwater.api.realm_tasks import check_same
from headwater.backup import check_exportable, check_loadable, is_sweeping, readable_from
from headwater.clock import Micros, as_text
from headwater.errors import RefusedError
from headwater.jobs import EXPORT, LOAD, file_arguments
from headwater.realms import Realm, RealmRegistry
from headwater.store import ObjectId, Store
from headwater.tasks import TaskQueue

_SWEEP_SECONDS = 600


def submit_realm_export(
    store: Store,
    realm_id: str,
    file: Path,
    *,
    warn: Callable[[str], None],
    as_of: Micros | None = None,
    wait: bool = False,
    hold_seconds: float | None = None,
    detach: bool = False,
) -> ObjectId:
    """The task of an export, once it can be run.

    warn          takes what the user should know while it waits
    as_of         the moment that is wanted; None: now, or the newest that can be read at once
    wait          wait until the moment can be read; of None, until now can be
    hold_seconds  how long what the archive names is kept, in the store and in the lake
    detach        a worker runs it, later if need be, and on its own machine
    raises        RefusedError where there is such a file, or the moment cannot be read yet
    """
    realm = RealmRegistry(store).read_realm(realm_id)
    time = store.clock.now() if wait and as_of is None else as_of
    due = _wait_until_readable(store, warn, time, detach=detach) if wait and time is not None else None
    if due is None:
        check_exportable(store, realm_id, time)
    if file.exists() and not detach:
        raise RefusedError(f"there is a file {str(file)!r} already: nothing is overwritten, name another one")
    if not detach:
        _await_sweep(store, warn, realm, time)
    arguments = file_arguments(file, is_here=not detach) | ({} if time is None else {"asOf": time})
    if hold_seconds is not None:
        arguments["holdSeconds"] = hold_seconds
    submitted = TaskQueue(store).submit_task(
        EXPORT, realm=realm.id, realm_key=realm.key, subject=arguments["file"], arguments=arguments, due=due
    )
    check_same(store, submitted, arguments)
    return submitted.id


def submit_realm_load(store: Store, file: Path, realm_id: str, *, is_active: bool, detach: bool = False) -> ObjectId:
    """The task that makes a realm of an archive.

    is_active     whether the realm serves users once it is loaded
    detach        a worker runs it, and reads the file on its own machine
    """
    arguments = file_arguments(file, is_here=not detach) | {"inactive": not is_active}
    if not any(task.value.is_active for task in TaskQueue(store).list_tasks(kind=LOAD, realm=realm_id)):
        check_loadable(RealmRegistry(store).find_realm(realm_id))  # an import under way may be further than that
    submitted = TaskQueue(store).submit_task(LOAD, realm=realm_id, arguments=arguments)
    check_same(store, submitted, arguments)
    return submitted.id


def _wait_until_readable(store: Store, warn: Callable[[str], None], time: Micros, *, detach: bool) -> Micros | None:
    """Wait until a moment can be read; with ``detach``, return the time at which the worker may start."""
    ready = readable_from(time, store.settings)
    if detach:
        return ready
    if store.clock.now() < ready:
        warn(f"waiting until {as_text(ready + 999_999)}, when {as_text(time)} can be read")
    while (left := ready - store.clock.now()) >= 0:
        store.clock.sleep(left / 1_000_000 + 0.001)
    return None


def _await_sweep(store: Store, warn: Callable[[str], None], realm: Realm, time: Micros | None) -> None:
    """Wait while a collection sweeps, because nothing can be pinned: 10 minutes at most, and only while the moment stays readable."""
    rows = store.rows(realm.id, realm.key)
    if not is_sweeping(rows):
        return
    warn(
        f"realm {realm.id!r} is being swept, and nothing can be pinned: waiting for its end, 10 minutes at most"
        f" (if it was interrupted, `headwater gc run {realm.id}` ends it)"
    )
    until = store.clock.now() + _SWEEP_SECONDS * 1_000_000
    if time is not None:
        until = min(until, time + round((store.settings.reader_grace_seconds - 1) * 1_000_000))
    while store.clock.now() < until and is_sweeping(rows):
        store.clock.sleep(1)
