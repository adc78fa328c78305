"""Realms that are made, and the long work on them: what the Python API and the command line do alike."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from headwater.api.catalog_imports import other_task_error
from headwater.api.credentials_files import Place, check_place, ensure_credentials
from headwater.errors import RefusedError, SwapConflictError
from headwater.jobs import PURGE, RESTORE
from headwater.realms import (
    Credentials,
    Realm,
    RealmRegistry,
    RealmState,
    bootstrap,
    check_bootstrap,
    find_root,
    hash_credentials,
    verify_secret,
)
from headwater.restore import RestoreRequest
from headwater.store import ObjectId, Store
from headwater.tasks import SubmittedTask, TaskQueue

_FRESH = (RealmState.CREATED, RealmState.INITIALIZING)


def make_realm(
    realms: RealmRegistry, realm_id: str, file: Place, *, properties: Mapping[str, str], purge_hold_seconds: float | None
) -> Realm:
    """Create a realm, with the credentials of its root in a new file, or printed. After an interruption, the same call goes on."""
    fresh = realms.find_realm(realm_id)
    if fresh is None:
        check_place(file)
        fresh = realms.create_realm(realm_id, properties=dict(properties), purge_hold_seconds=purge_hold_seconds)
    check_bootstrap(fresh)
    if fresh.state not in _FRESH or fresh.manager is not None:
        raise SwapConflictError(f"there is a realm {realm_id!r} already; it is {fresh.state}")
    credentials = ensure_credentials(file, fresh).credentials
    active = bootstrap(realms, realm_id, hash_credentials(credentials))
    _check_root(realms, active, credentials)
    return active


def switch_realm(realms: RealmRegistry, realm_id: str, source: RealmState, *, to: RealmState) -> Realm:
    """Move a realm between ACTIVE and INACTIVE; raises RefusedError where it is in neither."""
    target = realms.read_realm(realm_id)
    if target.state not in (source, to):
        raise RefusedError(f"realm {realm_id!r} is {target.state}: only one that is {source} becomes {to}")
    return realms.move_realm(target, to)


def submit_purge(store: Store, target: Realm) -> ObjectId:
    """The task that purges a realm, which is PURGING from now on."""
    realms = RealmRegistry(store)
    if target.state is not RealmState.PURGING:
        target = realms.move_realm(target, RealmState.PURGING)
    _cancel_other_work(store, target)
    return TaskQueue(store).submit_task(PURGE, realm=target.id, realm_key=target.key).id


def submit_restoration(store: Store, realm: Realm, request: RestoreRequest) -> ObjectId:
    """The task of a restoration, also where it is under way; raises RefusedError where that is another one."""
    tasks, arguments = TaskQueue(store), request.arguments()
    submitted = tasks.submit_task(RESTORE, realm=realm.id, realm_key=realm.key, subject=request.reference, arguments=arguments)
    task = tasks.read_task(submitted.id)
    if not request.is_same(task.value.arguments):
        raise other_task_error(task)
    return task.id


def check_same(store: Store, submitted: SubmittedTask, arguments: Mapping[str, Any]) -> None:
    """Refuse when the task that is under way has other arguments than were given now; the host may be another."""
    task = TaskQueue(store).read_task(submitted.id)
    if task.value.arguments | {"host": ""} != {**arguments, "host": ""}:
        raise other_task_error(task)


def _cancel_other_work(store: Store, target: Realm) -> None:
    """Cancel the other tasks of a realm that is deleted: they are useless, and would block equal tasks of a later realm of that id."""
    tasks = TaskQueue(store)
    for task in tasks.list_tasks(realm=target.id):
        if task.value.is_active and task.value.kind != PURGE:
            with suppress(RefusedError):  # it has ended meanwhile
                tasks.cancel_task(task.id)


def _check_root(realms: RealmRegistry, target: Realm, credentials: Credentials) -> None:
    root = find_root(realms, target.id)
    if root is None or not verify_secret(root.credentials, credentials):
        client = root.credentials.client_id if root else "unknown"
        raise RefusedError(
            f"realm {target.id!r} was bootstrapped with other credentials than these: those of client {client}; "
            f"where nobody has those, `headwater realm reset-credentials {target.id} --credentials OTHER_FILE` makes new ones"
        )
