"""A realm: its life, its catalogs, who may log in to it, and the long work on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from headwater.api.access_client import AccessInfo, RoleClient, create_role, list_role_infos, tell_access
from headwater.api.api_values import PrincipalInfo, RealmInfo, RoleInfo, StopInfo, TaskInfo, read_time, seconds_of, several
from headwater.api.catalog_client import CatalogClient
from headwater.api.catalog_values import CatalogInfo
from headwater.api.credentials_files import create_into_file, ready_realm, reset_into_file, rotate_into_file
from headwater.api.file_table_client import FileTableClient
from headwater.api.file_table_creation import make_file_table
from headwater.api.kept_objects import KeptObjectInfo
from headwater.api.plain_counts import plain_counts
from headwater.api.realm_archives import submit_realm_export
from headwater.api.realm_tasks import submit_purge, submit_restoration, switch_realm
from headwater.api.role_owners import RoleScope
from headwater.api.store_session import StoreSession
from headwater.api.task_client import run_or_leave
from headwater.api.work_progress import Observe, WorkProgress
from headwater.catalogs import CatalogFields, CatalogFiles, release_location
from headwater.clock import as_datetime
from headwater.errors import RefusedError
from headwater.files import list_file_tables
from headwater.fsck.explanation import explain
from headwater.gc import check_collectable, collect_realm
from headwater.jobs import COLLECT, run_collection, run_export, run_purge, run_restore
from headwater.policies import find_stops_around, read_scope, resume_maintenance, stop_maintenance
from headwater.realms import (
    ROOT_PRINCIPAL,
    Principal,
    Realm,
    RealmState,
    assign_principal_role,
    checked_principal_name,
    disable_principal,
    drop_principal,
    enable_principal,
    hold_until,
    list_principals,
    read_principal,
    read_principal_role,
    read_realm_grants,
)
from headwater.reconcile import release_realm
from headwater.restore import RestoreRequest, plan_restoration, read_restore_target
from headwater.store import confirm_clock, id_of
from headwater.tasks import TaskQueue


class RealmClient:
    """A realm of the store, by its id. Nothing is read before a method is called."""

    def __init__(self, session: StoreSession, realm_id: str) -> None:
        self._session = session
        self.id = realm_id

    def info(self) -> RealmInfo:
        """Read its definition; raises NotFoundError."""
        return self._told(self._session.realms.read_realm(self.id))

    def activate(self) -> RealmInfo:
        """Let an INACTIVE realm serve its users again."""
        return self._told(switch_realm(self._session.realms, self.id, RealmState.INACTIVE, to=RealmState.ACTIVE))

    def deactivate(self) -> RealmInfo:
        """Stop an ACTIVE realm from serving users; it loses nothing."""
        return self._told(switch_realm(self._session.realms, self.id, RealmState.ACTIVE, to=RealmState.INACTIVE))

    def release(self) -> RealmInfo:
        """Clear the owner of the realm, so that any resource may adopt it."""
        return self._told(release_realm(self._session.store, self.id))

    def release_location(self, location: str) -> Sequence[str]:
        """Release a location that dropped tables still have, so that a table of any catalog may lie there.

        The drop of such a table can then be undone only while the location stays free.

        returns       the places that were released: the location, and those around or below it
        raises        NotFoundError where nobody has it; RefusedError for one of a table that a branch or tag holds
        """
        return release_location(self._session.open_rows(self.id), location)

    def purge(self, *, confirm: str, detach: bool = False, progress: Observe | None = None) -> RealmInfo:
        """Delete everything in a realm that was INACTIVE for its hold. There is no way back.

        confirm       the realm's id, repeated; raises RefusedError for anything else, and before its hold is over
        detach        leave it to a worker: the realm is PURGING from now on
        """
        target = self._session.realms.read_realm(self.id)
        self._check_confirmed(confirm, "purged")
        if target.state is RealmState.ACTIVE:
            raise RefusedError(f"nothing was purged: realm {self.id!r} is ACTIVE and serves users: deactivate it first")
        task = submit_purge(self._session.store, target)
        run_or_leave(self._session, task, run_purge, detach=detach, progress=progress)
        return self.info()

    def delete(self, *, confirm: str) -> None:
        """Delete the entry of a PURGED realm, so that its id can be used again."""
        target = self._session.realms.read_realm(self.id)
        self._check_confirmed(confirm, "deleted")
        if target.state is not RealmState.PURGED:
            raise RefusedError(f"realm {self.id!r} is {target.state}: only a PURGED realm can be deleted; purge it first")
        self._session.realms.remove_realm(target)

    def export(
        self,
        file: str | Path,
        *,
        as_of: datetime | None = None,
        wait: bool = False,
        hold: timedelta | None = None,
        detach: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Write the realm as it is now, or was at a moment, to a new file. Its writers are not stopped.

        wait          until the moment can be read; without ``as_of``, the moment is now
        hold          keep what the archive names, in the store and in the lake, for so long
        detach        leave it to a worker, which writes the file on its own machine: the result has the task's id alone, as ``task``
        returns       what was written, as `headwater realm export -o json` prints it
        raises        RefusedError where there is such a file, or the moment cannot be read yet
        """
        task = submit_realm_export(
            self._session.store,
            self.id,
            Path(file),
            warn=self._session.warn,
            as_of=None if as_of is None else read_time(as_of),
            wait=wait,
            hold_seconds=seconds_of(hold),
            detach=detach,
        )
        return run_or_leave(self._session, task, run_export, detach=detach, progress=progress)

    def plan_restore(self, to: str | datetime, *, reference: str = "", prune: bool = False) -> Sequence[Mapping[str, Any]]:
        """The steps of a restoration, as `headwater realm restore --dry-run -o json` prints them. Writes nothing.

        to            a commit's hash, a time, or an age such as ``90m``; for a branch or tag also ``main~1``, from its head now
        reference     ``lake/main``, a catalog, or a reference such as ``grants``; empty: the whole realm
        prune         delete branches, tags and catalogs that were made later
        """
        plan = plan_restoration(self._session.open_rows(self.id), self._restoration(to, reference, prune=prune))
        return list(map(plain_counts, plan.steps))

    def restore(
        self,
        to: str | datetime,
        *,
        confirm: str,
        reference: str = "",
        prune: bool = False,
        detach: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Restore the realm, or a part of it, to an earlier state, by a new commit on each reference. History is kept.

        to, reference, prune  as for ``plan_restore``
        confirm       the realm's id, repeated; raises RefusedError for anything else
        detach        leave it to a worker: the result has the task's id alone, as ``task``
        returns       steps, notes and conflicts, as the task's outcome has them
        """
        self._check_confirmed(confirm, "restored")
        realm, request = self._session.realms.read_realm(self.id), self._restoration(to, reference, prune=prune)
        if not detach and not plan_restoration(self._session.open_rows(self.id), request).is_needed:
            return {"steps": [], "conflicts": 0, "notes": ["nothing is to be restored"], "stayedAway": []}
        task = submit_restoration(self._session.store, realm, request)
        return run_or_leave(self._session, task, run_restore, detach=detach, progress=progress)

    def collect(
        self,
        *,
        dry_run: bool = False,
        clock_is_right: bool = False,
        detach: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Collect the garbage of the realm; returns counts as `headwater gc run -o json` prints them.

        clock_is_right  confirms that this machine's clock is right, where nobody wrote to the store for weeks
        detach        leave it to a worker: the result has the task's id alone, as ``task``
        """
        store = self._session.store
        if dry_run and (detach or clock_is_right):
            raise RefusedError("a dry run is done here and deletes nothing: leave detach and clock_is_right out")
        if dry_run:
            told = WorkProgress(progress, kind=COLLECT, realm=self.id)
            return plain_counts(collect_realm(store, self.id, dry_run=True, progress=told.callback))
        key = check_collectable(store, self.id)
        if clock_is_right:
            confirm_clock(store)
        submitted = TaskQueue(store).submit_task(COLLECT, realm=self.id, realm_key=key)
        if detach:
            TaskQueue(store).run_now(submitted.id)
        return run_or_leave(self._session, submitted.id, run_collection, detach=detach, progress=progress)

    def explain(self, object_id: str) -> KeptObjectInfo:
        """Why an object of the realm is kept, or when it goes; of a commit, ``RefClient.explain`` tells it. Raises NotFoundError."""
        return KeptObjectInfo.of(explain(self._session.store, self.id, id_of(object_id)))

    def catalogs(self) -> list[CatalogInfo]:
        """Its catalogs, by name; raises CorruptionError where one cannot be read."""
        return [CatalogInfo.of(self.id, each) for each in self._session.catalogs(self.id).list_catalogs().complete()]

    def deleted_catalogs(self) -> list[CatalogInfo]:
        """Its deleted catalogs that can still be undeleted."""
        return [CatalogInfo.of(self.id, each) for each in self._session.catalogs(self.id).list_deleted().complete()]

    def catalog(self, name: str) -> CatalogClient:
        """A catalog of the realm by its name."""
        return CatalogClient(self._session, self.id, name)

    def create_catalog(
        self,
        name: str,
        *,
        base_location: str,
        allowed_locations: str | Sequence[str] = (),
        file_places: str | Sequence[str] = (),
        default_branch: str = "main",
        hold: timedelta | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CatalogClient:
        """Create a catalog. After an interruption, the same call completes it.

        base_location     where its tables are kept, such as ``s3://lake/``
        allowed_locations other places that tables may lie in
        file_places       locations whose files are all its tables'
        hold              how long it can be undeleted after its deletion; None: as the settings say
        """
        fields = CatalogFields(
            base_location=base_location,
            allowed_locations=several(allowed_locations),
            default_branch=default_branch,
            properties=dict(properties or {}),
        )
        if hold is not None:
            fields["hold_seconds"] = hold.total_seconds()
        if file_places:
            fields["files"] = CatalogFiles(places=several(file_places))
        self._session.catalogs(self.id).create_catalog(name, **fields)
        return self.catalog(name)

    def file_tables(self) -> list[str]:
        """The names of its file tables."""
        return [definition.name for definition in list_file_tables(self._session.open_rows(self.id)).complete()]

    def create_file_table(
        self,
        name: str,
        *,
        location: str,
        columns: Mapping[str, str],
        key: str,
        sort: str | Sequence[str] = (),
        split_points: str | Sequence[str] = (),
    ) -> FileTableClient:
        """Create a file table. After an interruption, the same call completes it.

        location      a URL or folder; the table gets a folder of its own in there
        columns       names with types by Spark's names, such as ``{"id": "long", "amount": "double"}``
        key           the column by which rows are found: of type int, long, string or binary
        sort          columns by which rows of equal key are sorted
        split_points  keys as text, binary ones in hex: begin with a partition for each range between them
        """
        rows, pairs = self._session.open_rows(self.id), tuple(columns.items())
        sorts, points = several(sort), several(split_points)
        make_file_table(
            self._session.store, rows, name, location=location, columns=pairs, key=key, sort=sorts, split_points=points
        )
        return self.file_table(name)

    def file_table(self, name: str) -> FileTableClient:
        """A file table of the realm by its name."""
        return FileTableClient(self._session, self.id, name)

    def principals(self) -> list[PrincipalInfo]:
        """Who can log in to the realm."""
        grants = read_realm_grants(self._session.open_rows(self.id))
        return [
            PrincipalInfo.of(self.id, held, tuple(role.name for role in grants.roles_of(held.entity)))
            for held in list_principals(self._session.realms, self.id)
        ]

    def principal(self, name: str) -> PrincipalInfo:
        """One principal; raises NotFoundError."""
        return self._principal(read_principal(self._session.realms, self.id, name))

    def create_principal(self, name: str, *, credentials: str | Path, roles: str | Sequence[str] = ()) -> PrincipalInfo:
        """Create a principal, with its credentials in a new file that only its owner can read. They are told nowhere else.

        After an interruption, the same call goes on.
        """
        checked_principal_name(name)
        realms = self._session.realms
        realm = ready_realm(realms, self.id)
        given = several(roles)
        for role in given:
            read_principal_role(realms, self.id, role)
        made = create_into_file(realms, realm, name, Path(credentials), warn=self._session.warn)
        for role in given:
            assign_principal_role(realms, self.id, role, name)
        return self._principal(made)

    def rotate_credentials(
        self, name: str = ROOT_PRINCIPAL, *, credentials: str | Path, overlap: timedelta | None = None
    ) -> PrincipalInfo:
        """Give a principal other credentials, in a new file; the former ones hold until the next rotation.

        overlap       how long the former ones hold instead
        """
        realms, warn = self._session.realms, self._session.warn
        seconds = seconds_of(overlap)
        return self._principal(rotate_into_file(realms, self.id, name, Path(credentials), overlap_seconds=seconds, warn=warn))

    def reset_credentials(self, name: str = ROOT_PRINCIPAL, *, credentials: str | Path) -> PrincipalInfo:
        """Give a principal other credentials, in a new file, and revoke all former ones at once: they may have leaked."""
        return self._principal(reset_into_file(self._session.realms, self.id, name, Path(credentials), warn=self._session.warn))

    def disable_principal(self, name: str) -> PrincipalInfo:
        """Refuse a principal from now on, and within 5 seconds the tokens that it has."""
        return self._principal(disable_principal(self._session.realms, self.id, name))

    def enable_principal(self, name: str) -> PrincipalInfo:
        """Let a disabled principal log in again, with the credentials and roles that it had."""
        return self._principal(enable_principal(self._session.realms, self.id, name))

    def drop_principal(self, name: str) -> None:
        """Take all roles from a principal, and drop it."""
        read_principal(self._session.realms, self.id, name)
        drop_principal(self._session.realms, self.id, name)

    def roles(self) -> list[RoleInfo]:
        """The principal roles of the realm."""
        return list_role_infos(self._session, RoleScope(self.id))

    def role(self, name: str) -> RoleClient:
        """A principal role of the realm by its name."""
        return RoleClient(self._session, RoleScope(self.id), name)

    def create_role(self, name: str, *holders: str) -> RoleClient:
        """Create a principal role, and assign it to principals; one that is there stays."""
        return create_role(self._session, RoleScope(self.id), name, holders)

    def explain_access(
        self, principal: str, privilege: str, *, on: str | None = None, roles: str | Sequence[str] = ()
    ) -> AccessInfo:
        """Whether a principal may do something to the realm through a server, by which grant, or what comes near it.

        on            as for ``RoleClient.grant``; None: the realm
        roles         as if it had these principal roles, too
        """
        return tell_access(self._session, RoleScope(self.id), principal, privilege, on=on, roles=several(roles))

    def tasks(self) -> list[TaskInfo]:
        """The tasks of the realm: the active ones as they are due, then those that ended."""
        return list(map(TaskInfo.of, self._session.told(TaskQueue(self._session.store).of_realm(self.id))))

    def stop_maintenance(self, *, why: str = "") -> StopInfo:
        """Stop expiry of snapshots and reports of files in the realm."""
        store = self._session.store
        return StopInfo.of(stop_maintenance(store, read_scope(store, self.id, ""), by=self._session.author, why=why))

    def resume_maintenance(self) -> bool:
        """End the stop of the realm; whether there was one."""
        store = self._session.store
        return resume_maintenance(store, read_scope(store, self.id, "")) is not None

    def maintenance_stops(self) -> list[StopInfo]:
        """The stops that hold for all of this realm: its own, and that of the store."""
        store = self._session.store
        return list(map(StopInfo.of, find_stops_around(store, read_scope(store, self.id, ""))))

    def _restoration(self, to: str | datetime, reference: str, *, prune: bool) -> RestoreRequest:
        rows = self._session.open_rows(self.id)
        # To the microsecond: a text without them means the end of its second.
        moment = to if isinstance(to, str) else as_datetime(read_time(to)).isoformat(timespec="microseconds")
        aim = read_restore_target(rows, reference, moment)
        return RestoreRequest(reference=reference, aim=aim, prune=prune, author=self._session.author)

    def _check_confirmed(self, confirm: str, done: str) -> None:
        if confirm != self.id:
            raise RefusedError(f"nothing was {done}: confirm={confirm[:200]!r} does not repeat the id of realm {self.id!r}")

    def _told(self, realm: Realm) -> RealmInfo:
        store = self._session.store
        return RealmInfo.of(realm, hold_until(realm, store.settings, store.clock.now()))

    def _principal(self, principal: Principal) -> PrincipalInfo:
        grants = read_realm_grants(self._session.open_rows(self.id))
        return PrincipalInfo.of(self.id, principal, tuple(role.name for role in grants.roles_of(principal.entity)))

    def __repr__(self) -> str:
        return f"RealmClient({self.id})"
