"""Executes a plan, one step after the other. Each step is a swap of the observed state, and returns a sentence on what it did."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from headwater.catalogs import CatalogDefinition, CatalogFields, Catalogs
from headwater.clock import as_text
from headwater.errors import ConflictError, NotFoundError, RefusedError, SwapConflictError
from headwater.jobs import PURGE
from headwater.realms import (
    Credentials,
    CredentialsHash,
    Realm,
    RealmFields,
    RealmRegistry,
    RealmState,
    bootstrap,
    find_root,
    hash_credentials,
    new_credentials,
    reset_root,
    verify_secret,
)
from headwater.reconcile.actions import (
    AdoptRealm,
    BootstrapRealm,
    CancelTask,
    CompleteCatalog,
    CreateCatalog,
    CreateRealm,
    DeleteCatalog,
    DetachRealm,
    Effect,
    MoveRealm,
    RecordHandled,
    RecordImported,
    RemoveRealm,
    RotateCredentials,
    RunTaskNow,
    SubmitTask,
    UpdateCatalog,
    UpdateRealm,
    catalog_changes,
    names_in_manifest,
)
from headwater.reconcile.credentials_sink import CredentialsSink
from headwater.reconcile.manifests import ROTATE_CREDENTIALS
from headwater.reconcile.observed_state import ObservedCatalog, ObservedRealm
from headwater.reconcile.ownership import manager_text, with_manager, without_manager
from headwater.reconcile.realm_plan import APPLIED
from headwater.store import ObjectId, RealmId, Store, id_text
from headwater.tasks import Task, TaskQueue

BOOTSTRAPPED = "headwater.dev/bootstrapped-client"
"""The property with the client id of the credentials that replaced those of an interrupted bootstrap."""


class RealmExecutor:
    """Acts on one realm. Every change is a swap of the definition that the plan is based on, or that the previous step wrote.

    If another process was faster, a step raises SwapConflictError; then observe and plan again.
    """

    def __init__(self, store: Store, realm_id: RealmId, observed: ObservedRealm, *, credentials: CredentialsSink) -> None:
        self._store = store
        self._realms = RealmRegistry(store)
        self._id = realm_id
        self._seen = observed.realm
        self._credentials = credentials

    def execute(self, action: Effect) -> str | None:
        """Carry the action out and return a description; None when nothing was left to do."""
        match action:
            case CreateRealm(fields):
                self._seen = self._realms.create_realm(self._id, **fields)
                return f"created realm {self._id}"
            case BootstrapRealm():
                return self._bootstrap()
            case RotateCredentials(token):
                return self._rotate(token)
            case MoveRealm(to):
                return self._move(to)
            case UpdateRealm(changes, digest):
                acted = {**self._realm.acted, APPLIED: digest}
                self._update(RealmFields(**changes, acted=acted))
                return (
                    f"updated realm {self._id}: {names_in_manifest(changes)}"
                    if changes
                    else f"saved retention and schedule of realm {self._id}"
                )
            case AdoptRealm(manager, annotation, value):
                former = manager_text(self._realm.manager)
                self._update(with_manager(self._realm, manager, record=annotation, value=value))
                verb = "took back" if annotation is None else "adopted"
                return f"{verb} realm {self._id}, which was managed by {former}"
            case DetachRealm():
                self._update(without_manager(self._realm))
                return f"detached realm {self._id}, which stays {self._realm.state}"
            case RecordHandled(annotation, value):
                return self._record(annotation, value)
            case RemoveRealm():
                return self._remove()
        return _act_on_task(self._store, self._realm, action)

    @property
    def _realm(self) -> Realm:
        if self._seen is None:
            raise RefusedError(f"there is no realm {self._id!r}")
        return self._seen

    def _bootstrap(self) -> str:
        """Store the credentials, then their hash: wherever this is interrupted, the realm ends with the one stored set.

        The realm belongs to this manager and has served nobody yet: credentials of its root from an earlier manager or a deleted
        Secret are
        unused, and are replaced.
        """
        kept = self._credentials.write_credentials(self._id, new_credentials())
        hashed = hash_credentials(kept)
        foreign = self._foreign_root(kept, hashed)
        if foreign is not None:
            # a concurrent bootstrap with those credentials fails from here on, and cannot bring them into an ACTIVE realm
            self._update(RealmFields(acted={**self._realm.acted, BOOTSTRAPPED: kept.client_id}))
        seen = self._realm
        self._seen = bootstrap(self._realms, self._id, hashed, seen=seen, replaces=foreign)
        if self._seen.manager != seen.manager:
            raise SwapConflictError(f"realm {self._id!r} was changed meanwhile: read it again")
        if self._foreign_root(kept, hashed) is not None:
            raise ConflictError(
                f"realm {self._id!r} was bootstrapped with other credentials than those in {self._credentials.place(self._id)}, by "
                f"somebody else at the same time: annotate {ROTATE_CREDENTIALS}: 1 (or any other word) to have new ones made"
            )
        return f"bootstrapped realm {self._id}; the credentials of its root are in {self._credentials.place(self._id)}"

    def _foreign_root(self, kept: Credentials, hashed: CredentialsHash) -> str | None:
        """The client id of the root's credentials, if they differ from the stored ones."""
        root = find_root(self._realms, self._id)
        if root is None or root.credentials == hashed or verify_secret(root.credentials, kept):
            return None
        return root.credentials.client_id

    def _rotate(self, token: str) -> str | None:
        """Store new credentials under the token, then their hash: wherever this is interrupted, it ends with the one stored set.

        A token that was used before creates none, and reports none.
        """
        made = new_credentials()
        kept = self._credentials.rotate_credentials(self._id, made, token)
        root = find_root(self._realms, self._id)
        if root is None or not verify_secret(root.credentials, kept):
            reset_root(self._realms, self._id, hash_credentials(kept))
        elif kept != made:
            return None
        return f"rotated the credentials of the root of realm {self._id}; they are in {self._credentials.place(self._id)}"

    def _remove(self) -> str | None:
        if not self._realms.is_realm_empty(self._realm):  # a late writer left rows: purge once more
            return _act_on_task(self._store, self._realm, SubmitTask(PURGE, self._store.clock.now()))
        # credentials first: they are all that a later realm of this id could mistake for its own
        self._credentials.remove_credentials(self._id, self._check_unchanged)
        self._realms.remove_realm(self._realm)
        return f"deleted realm {self._id}"

    def _check_unchanged(self) -> None:
        """Check that the realm is still the planned one. Another process may have removed and recreated it since:

        this one     plans the removal of the PURGED realm ........................ removes the credentials: of which realm?
        the other    ..................................... removes it, makes it anew
        """
        if self._realms.find_realm(self._id) != self._realm:
            raise SwapConflictError(f"realm {self._id!r} was changed meanwhile: read it again")

    def _move(self, to: RealmState) -> str:
        before = self._realm.state
        self._seen = self._realms.move_realm(self._realm, to)
        return f"moved realm {self._id} from {before} to {to}"

    def _update(self, changes: RealmFields) -> None:
        self._seen = self._realms.update_realm(self._realm, **changes)

    def _record(self, annotation: str, value: str | None) -> str:
        acted = {name: text for name, text in self._realm.acted.items() if name != annotation}
        self._update(RealmFields(acted=acted if value is None else {**acted, annotation: value}))
        name = annotation.split(" ")[0]
        return f"noted that {name} is gone" if value is None else f"noted that {name}: {value} was acted on"


class CatalogExecutor:
    """Acts on one catalog, like ``RealmExecutor`` on a realm."""

    def __init__(self, store: Store, name: str, observed: ObservedCatalog) -> None:
        if observed.realm is None:
            raise RefusedError(f"catalog {name!r} has no realm")
        self._store = store
        self._realm = observed.realm
        self._catalogs = Catalogs(RealmRegistry(store).open_realm(observed.realm.id))
        self._name = name
        self._seen = observed.catalog

    def execute(self, action: Effect) -> str | None:
        """Carry the action out and return a description; None when nothing was left to do."""
        match action:
            case CreateCatalog(fields):
                return self._create(fields)
            case CompleteCatalog():
                return self._complete(self._catalog)
            case UpdateCatalog(changes):
                self._seen = self._catalogs.update_catalog(self._catalog, **changes)
                return catalog_changes(changes, f"catalog {self._name} of realm {self._realm.id}").past
            case RecordImported(name, digest):
                imported = {**self._catalog.imported, name: digest}
                self._seen = self._catalogs.update_catalog(self._catalog, imported=imported)
                return f"recorded that import {name} of catalog {self._name} is done"
            case DeleteCatalog():
                deleted = self._catalogs.delete_catalog(self._name, seen=self._catalog)
                until = as_text((deleted.held_until or 0) + 999_999)
                return f"deleted catalog {self._name} of realm {self._realm.id}; it can be undeleted until {until}"
        return _act_on_task(self._store, self._realm, action)

    def _create(self, fields: CatalogFields) -> str:
        try:
            self._seen = self._catalogs.create_catalog(self._name, **fields)
        except ConflictError as beaten:
            # a resource or a person created it meanwhile: observe again to see whose it is
            raise SwapConflictError(str(beaten)) from beaten
        return f"created catalog {self._name} of realm {self._realm.id}"

    def _complete(self, seen: CatalogDefinition) -> str | None:
        completed = self._catalogs.complete_catalog(seen)
        if completed != msgspec.structs.replace(seen, unfinished=False):
            raise SwapConflictError(f"catalog {self._name!r} of realm {self._realm.id!r} was changed by another: read it again")
        self._seen = completed
        return f"completed catalog {self._name} of realm {self._realm.id}" if seen.unfinished else None

    @property
    def _catalog(self) -> CatalogDefinition:
        if self._seen is None:
            raise RefusedError(f"there is no catalog {self._name!r} in realm {self._realm.id!r}")
        return self._seen


def _act_on_task(store: Store, realm: Realm, action: Effect) -> str | None:
    tasks = TaskQueue(store)
    match action:
        case SubmitTask(kind, due, subject, arguments):
            submitted = tasks.submit_task(
                kind, realm=realm.id, realm_key=realm.key, subject=subject, arguments=arguments, due=due
            )
            what = f"{kind} {subject}".strip()
            when = f"due {as_text(due)}" if due > store.clock.now() else "due now"
            return f"asked for {what} of realm {realm.id}, {when} (task {id_text(submitted.id)})" if submitted.created else None
        case RunTaskNow(task, kind):
            _steer(tasks.run_now, task)
            return f"let {kind} of realm {realm.id} run now (task {id_text(task)})"
        case CancelTask(task, kind, subject):
            _steer(tasks.cancel_task, task)
            return f"cancelled {f'{kind} {subject}'.strip()} of realm {realm.id} (task {id_text(task)})"
    raise TypeError(f"{type(action).__name__} cannot be done here")


def _steer(step: Callable[[ObjectId], Task], task: ObjectId) -> None:
    """Act on a task that was active when it was observed. If it has ended since, observe again."""
    try:
        step(task)
    except (RefusedError, NotFoundError) as ended:
        raise SwapConflictError(str(ended)) from ended
