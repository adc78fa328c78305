"""A catalog, and its branches and tags: what they hold, what they held, and how they are changed and joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import msgspec

from headwater.api.access_client import AccessInfo, RoleClient, create_role, list_role_infos, tell_access
from headwater.api.api_values import RoleInfo, StopInfo, read_time, told_id
from headwater.api.catalog_imports import BY_HAND, SurveyInProcess, load_spark_survey, submit_import
from headwater.api.catalog_policies import CatalogPolicies
from headwater.api.catalog_values import (
    CatalogInfo,
    CommitInfo,
    ContentInfo,
    DifferenceInfo,
    EntryInfo,
    Key,
    KeyHistoryInfo,
    MergeInfo,
    RefInfo,
    TableHomeInfo,
    UnreferencedFileInfo,
    content_key,
)
from headwater.api.conflict_sides import sides_of
from headwater.api.locations import folder_location
from headwater.api.plain_counts import plain_counts
from headwater.api.role_owners import RoleScope
from headwater.api.store_session import StoreSession
from headwater.api.task_client import Observe, run_here
from headwater.catalogs import (
    Catalog,
    CommitMeta,
    EntryExpression,
    ImportSpec,
    KeyMerge,
    LogExpression,
    LogFilter,
    MergeConflictError,
    MergeMode,
    MergeOptions,
    MergeResult,
    RefKind,
)
from headwater.errors import ConflictError, NotFoundError, RefusedError
from headwater.expiry import dry_expiry, read_expiry_request, run_expiry, submit_expiry
from headwater.iceberg_catalog import IcebergCatalog, adopt_guests, list_table_homes
from headwater.jobs import REPORT_FILES, dry_file_report, dry_import, run_file_report, run_import, submit_catalog_task
from headwater.lake_files import read_last_report
from headwater.policies import read_scope, read_table_policies, resume_maintenance, stop_maintenance
from headwater.store import ObjectId, id_of

if TYPE_CHECKING:
    from headwater.clients.pyiceberg import HeadwaterCatalog

_PAGE = 1000
_SHOWN_CONFLICTS = 100


class MergeRefusedError(ConflictError):
    """A merge or transplant has conflicts, and nothing was written. ``merge`` has what would have become of every key."""

    def __init__(self, message: str, merge: MergeInfo, details: tuple[object, ...]) -> None:
        super().__init__(message, details=details)
        self.merge = merge


class RefClient:
    """A branch, a tag or a commit of a catalog, to be read. Nothing is read before a method is called.

    name          a branch, a tag, a commit's hash, or a way back such as ``main~2`` or ``main*2026-05-28T20:26:40Z``
    """

    def __init__(self, session: StoreSession, realm: str, catalog: str, name: str) -> None:
        self._session = session
        self.realm = realm
        self.catalog = catalog
        self.name = name

    def hash(self) -> str | None:
        """The commit that it points to now; None: it has none yet. Raises NotFoundError where it is not there."""
        head = self._opened().resolve(self.name)
        return None if head is None else told_id(head.id)

    def entries(self, *, under: Key | None = None, where: str | None = None) -> Iterator[EntryInfo]:
        """Its tables, views, namespaces and functions, by key: all of one moment, read a page at a time.

        under         only what stands below this namespace
        where         a condition in CEL, see docs/reference/filters.md
        """
        prefix = None if under is None else content_key(under)
        expression = None if where is None else EntryExpression.parse(where)
        catalog, token = self._opened(), None
        while True:
            page = catalog.entries(self.name, prefix=prefix, where=expression, limit=_PAGE, page_token=token)
            yield from map(EntryInfo.of, page.entries)
            token = page.next_token
            if token is None:
                return

    def count(self) -> int:
        """How many keys it has, of all types; reads no entries."""
        return self._opened().count(self.name)

    def content(self, key: Key) -> ContentInfo:
        """All that is stored of one table, view, namespace or function; raises NotFoundError."""
        wanted = content_key(key)
        found = self._opened().get_content(self.name, wanted)
        if found is None:
            raise NotFoundError(f"there is no {wanted} in catalog {self.catalog!r} of realm {self.realm!r} at {self.name}")
        return ContentInfo.of(wanted, found)

    def metadata(self, key: Key) -> Mapping[str, Any] | None:
        """The metadata document of an Iceberg table or view, with equal values; None: it is stored only where it lies."""
        text = self._opened().metadata(self.name, content_key(key))
        return None if text is None else msgspec.json.decode(text)

    def snapshots(self, key: Key) -> list[Mapping[str, Any]]:
        """The snapshots of a table, oldest first, as its metadata has them.

        raises        NotFoundError; RefusedError where the metadata is not stored in the catalog
        """
        self.content(key)
        document = self.metadata(key)
        if document is None:
            raise RefusedError(
                f"the metadata of {content_key(key)} is not stored in catalog {self.catalog!r}, only in its file"
            )
        return list(document.get("snapshots") or ())

    def find(self, *content_ids: str) -> list[EntryInfo]:
        """Where contents stand now, by their ids, which survive renames; what is not there is left out."""
        found = self._opened().find_by_id(self.name, [UUID(content_id) for content_id in content_ids])
        return list(map(EntryInfo.of, found.values()))

    def log(
        self,
        *,
        key: Key | None = None,
        under: Key | None = None,
        action: Literal["PUT", "DELETE"] | None = None,
        author: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        message: str | None = None,
        where: str | None = None,
        oldest: str | None = None,
        oldest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[CommitInfo]:
        """Its commits, newest first, down to where history begins or was collected.

        key, under    only commits that changed it, or something below this namespace
        action        what they did to a key
        message       a regular expression that matches it somewhere
        where         a condition in CEL, see docs/reference/filters.md
        oldest        the last commit to look at
        """
        chosen = LogFilter(
            author=author,
            since=None if since is None else read_time(since),
            until=None if until is None else read_time(until),
            message=message,
            key=None if key is None else content_key(key),
            prefix=None if under is None else content_key(under),
            action=action,
            expression=None if where is None else LogExpression.parse(where),
        )
        last = None if oldest is None else id_of(oldest)
        log = self._opened().log(self.name, where=chosen, limit=limit, oldest=last, oldest_first=oldest_first)
        return map(CommitInfo.of, log)

    def history(self, key: Key) -> Iterator[KeyHistoryInfo]:
        """What happened to one table, view, namespace or function, newest first, through its renames back to its creation."""
        return map(KeyHistoryInfo.of, self._opened().history(content_key(key), self.name))

    def diff(self, after: str, *, under: Key | None = None) -> Iterator[DifferenceInfo]:
        """What another branch, tag or commit has otherwise than this one."""
        prefix = None if under is None else content_key(under)
        catalog, token = self._opened(), None
        while True:
            page = catalog.diff(self.name, after, prefix=prefix, limit=_PAGE, page_token=token)
            yield from map(DifferenceInfo.of, page.changes)
            token = page.next_token
            if token is None:
                return

    def guests(self, *, under: Key | None = None) -> list[TableHomeInfo]:
        """The tables and views that the catalog neither created nor adopted: it lets go no snapshot and no file of theirs."""
        homes = list_table_homes(self._lake(), under=None if under is None else content_key(under))
        return [TableHomeInfo.of(each) for each in homes if not each.is_home]

    def effective_policies(self, key: Key | None = None) -> list[Mapping[str, str | None]]:
        """What holds for a table, or for one that says nothing itself, and where each value comes from."""
        rows = self._session.open_rows(self.realm)
        held = read_table_policies(rows, self._opened(), None if key is None else content_key(key), branch=self.name)
        return [
            {"kind": str(each.kind), "ref": each.ref, "name": each.name, "value": each.value, "source": each.source}
            for each in held.values
        ]

    def pyiceberg(self, **properties: str) -> HeadwaterCatalog:
        """The catalog for pyiceberg, on this connection. Needs ``pip install 'headwater[pyiceberg]'``.

        properties    pyiceberg's own, such as those that say how files are reached
        """
        try:
            from headwater.clients.pyiceberg import HeadwaterCatalog
        except ModuleNotFoundError as absent:
            raise RefusedError("pyiceberg is not installed: pip install 'headwater[pyiceberg]'") from absent
        place = {"realm": self.realm, "catalog": self.catalog, "branch": self.name, "author": self._session.author}
        return HeadwaterCatalog.on(self._session.store, self.catalog, **{**place, **properties})

    def _opened(self) -> Catalog:
        return self._session.catalog(self.realm, self.catalog)

    def _lake(self) -> IcebergCatalog:
        return IcebergCatalog.open(self._session.store, self.realm, self.catalog, self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.realm}/{self.catalog}@{self.name})"


class _NamedClient(RefClient):
    """A branch or tag, which can be moved and deleted."""

    _kind: RefKind

    def info(self) -> RefInfo:
        """Read it; raises NotFoundError."""
        return RefInfo.of(self._opened().refs.read_ref(self._kind, self.name))

    def assign(self, target: str, *, expected: str | None = None) -> RefInfo:
        """Move it to another commit; what it leaves stays readable for the grace.

        target        a branch, a tag or a commit
        expected      the commit where it was seen; None: where it is now. Raises ConflictError where it is elsewhere
        """
        catalog = self._opened()
        head = catalog.resolve(target, exact=True)
        if head is None:
            raise RefusedError(f"{target!r} of catalog {self.catalog!r} of realm {self.realm!r} has no commit yet")
        return RefInfo.of(catalog.refs.assign_ref(self._kind, self.name, head.id, expected=self._seen(catalog, expected)))

    def delete(self, *, expected: str | None = None) -> RefInfo:
        """Delete it; what it pointed to stays readable for the grace, and so long it can be undeleted."""
        catalog = self._opened()
        return RefInfo.of(catalog.refs.delete_ref(self._kind, self.name, expected=self._seen(catalog, expected)))

    def undelete(self) -> RefInfo:
        """Bring it back, at the commit where it was."""
        return RefInfo.of(self._opened().refs.undelete_ref(self._kind, self.name))

    def _seen(self, catalog: Catalog, expected: str | None) -> ObjectId | None:
        return catalog.refs.read_ref(self._kind, self.name).head if expected is None else id_of(expected)


class TagClient(_NamedClient):
    """A tag of a catalog."""

    _kind = RefKind.TAG


class BranchClient(_NamedClient):
    """A branch of a catalog: it can be read, and others can be merged into it."""

    _kind = RefKind.BRANCH

    def merge(
        self,
        source: str,
        *,
        message: str = "",
        author: str | None = None,
        signed_off_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        mode: str = "NORMAL",
        keys: Mapping[str, str] | None = None,
        base: str | None = None,
        expected: str | None = None,
        dry_run: bool = False,
    ) -> MergeInfo:
        """Merge the changes of a branch, a tag or a commit into this branch, as one commit.

        author        None: the connection's
        mode          NORMAL: a key that changed on both sides is a conflict. FORCE: take the source's. DROP: leave the branch's
        keys          other modes for some keys
        base          count the source's changes from this commit; None: the nearest common ancestor
        expected      a commit that has to be in the history of this branch
        raises        MergeRefusedError with all conflicts: then nothing was written
        """
        options = _merge_options(mode, keys, dry_run=dry_run, base=base)
        meta = CommitMeta(
            message=message,
            authors=(author or self._session.author,),
            signed_off_by=tuple(signed_off_by),
            properties={name: (value,) for name, value in (properties or {}).items()},
        )
        seen = None if expected is None else id_of(expected)
        catalog = self._opened()
        return _told_merge(catalog, lambda: catalog.merge(source, self.name, expected=seen, meta=meta, options=options))

    def transplant(
        self,
        source: str,
        commits: Sequence[str],
        *,
        mode: str = "NORMAL",
        keys: Mapping[str, str] | None = None,
        expected: str | None = None,
        dry_run: bool = False,
    ) -> MergeInfo:
        """Cherry-pick commits of a source onto this branch, oldest first and without gaps: all of them or none.

        raises        MergeRefusedError with all conflicts: then nothing was written
        """
        options, seen = _merge_options(mode, keys, dry_run=dry_run), None if expected is None else id_of(expected)
        ids = [id_of(commit) for commit in commits]
        catalog = self._opened()
        return _told_merge(catalog, lambda: catalog.transplant(source, ids, self.name, expected=seen, options=options))

    def adopt(self, *keys: Key) -> list[TableHomeInfo]:
        """Make guests at home in their catalog: its policies hold for them from then on. Adopt what nobody else writes any more.

        raises        RefusedError where one of them stays a guest, with the reason; the others are adopted
        """
        lake = self._lake()
        guests = [each for each in list_table_homes(lake, keys=[content_key(key) for key in keys]) if not each.is_home]
        adoption = adopt_guests(lake, guests)
        if adoption.refused:
            why = "; ".join(f"{key} stays a guest: {reason}" for key, reason in adoption.refused.items())
            raise RefusedError(f"{len(adoption.refused)} of {len(guests)} guests were not adopted: {why}")
        adopted = set(adoption.adopted)
        return [TableHomeInfo.of(each) for each in guests if each.key in adopted]


class CatalogClient(CatalogPolicies):
    """A catalog of a realm. Nothing is read before a method is called."""

    def __init__(self, session: StoreSession, realm: str, name: str) -> None:
        self._session = session
        self.realm = realm
        self.name = name

    def info(self) -> CatalogInfo:
        """Read its definition; raises NotFoundError."""
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).read_catalog(self.name))

    def branch(self, name: str | None = None) -> BranchClient:
        """A branch by its name; None: the default branch, which is looked up now."""
        chosen = self.info().default_branch if name is None else name
        return BranchClient(self._session, self.realm, self.name, chosen)

    def tag(self, name: str) -> TagClient:
        """A tag by its name."""
        return TagClient(self._session, self.realm, self.name, name)

    def ref(self, name: str) -> RefClient:
        """A branch, a tag, a commit's hash, or a way back such as ``main~2``, to be read."""
        return RefClient(self._session, self.realm, self.name, name)

    def branches(self) -> list[RefInfo]:
        """Its branches, by name."""
        return list(map(RefInfo.of, self._opened().branches()))

    def tags(self) -> list[RefInfo]:
        """Its tags, by name."""
        return list(map(RefInfo.of, self._opened().tags()))

    def deleted_branches(self) -> list[RefInfo]:
        """Deleted branches that can still be undeleted, by name."""
        return [RefInfo.of(named) for named, _ in self._opened().refs.list_deleted(RefKind.BRANCH)]

    def deleted_tags(self) -> list[RefInfo]:
        """Deleted tags that can still be undeleted, by name."""
        return [RefInfo.of(named) for named, _ in self._opened().refs.list_deleted(RefKind.TAG)]

    def create_branch(self, name: str, *, source: str | None = None, at: str | None = None) -> BranchClient:
        """Create a branch where a branch, a tag or a commit is; None: at the default branch.

        at            a commit of the source's history; None: its head
        raises        ConflictError where the name is taken
        """
        self._opened().refs.create_ref(RefKind.BRANCH, name, source=source, at=None if at is None else id_of(at))
        return self.branch(name)

    def create_tag(self, name: str, *, source: str | None = None, at: str | None = None) -> TagClient:
        """Create a tag, as ``create_branch`` does a branch."""
        self._opened().refs.create_ref(RefKind.TAG, name, source=source, at=None if at is None else id_of(at))
        return self.tag(name)

    def release(self) -> CatalogInfo:
        """Clear the owner of the catalog, so that any resource of its realm may adopt it."""
        catalogs = self._session.catalogs(self.realm)
        return CatalogInfo.of(self.realm, catalogs.update_catalog(catalogs.read_catalog(self.name), manager=None, former=None))

    def delete(self, *, confirm: str) -> CatalogInfo:
        """Delete it with all its branches and tags; until its hold is over it can be undeleted. No file of a table is touched.

        confirm       REALM/CATALOG, repeated; raises RefusedError for anything else
        """
        self._check_confirmed(confirm, "deleted")
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).delete_catalog(self.name))

    def undelete(self, *, new_name: str | None = None) -> CatalogInfo:
        """Bring the catalog of this name back that was deleted last."""
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).undelete_catalog(self.name, new_name=new_name))

    def purge(self, *, confirm: str) -> CatalogInfo:
        """End the hold of a deleted catalog now. There is no way back; collections remove what it held."""
        self._check_confirmed(confirm, "purged")
        return CatalogInfo.of(self.realm, self._session.catalogs(self.realm).purge_catalog(self.name))

    def import_tables(
        self,
        *locations: str,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        mode: Literal["once", "sync"] = "once",
        path: str | None = None,
        namespace: Key | None = None,
        inventory: str | None = None,
        verify: Literal["metadata", "manifests", "files"] = "metadata",
        tolerate: Sequence[str] = (),
        gone: Literal["report", "drop"] = "report",
        dry_run: bool = False,
        on_spark: bool = False,
        detach: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Find the Iceberg tables and views below each location, and put the sound ones on the default branch.

        locations     URLs or folders
        include, exclude  patterns of keys
        mode          ``sync`` also follows tables that were imported before
        path          how a path below a location gives a key, such as ``{namespace}.db/{table}``; None: every folder is a name
        namespace     put in front of every key
        inventory     URL of a list of files, which is read instead of listing the locations
        verify        how deep a table is checked
        tolerate      codes of faults with which a table is imported all the same
        gone          of ``sync``: whether tables whose metadata is gone are reported, or dropped
        detach        leave it to a worker: the result has the task's id alone, as ``task``
        returns       counts as `headwater import -o json` prints them: surveyed, imported, quarantined and so on
        """
        spec = ImportSpec(
            name=BY_HAND,
            locations=tuple(map(folder_location, locations)),
            include=tuple(include),
            exclude=tuple(exclude),
            mode=mode,
            namespace=() if namespace is None else content_key(namespace).elements,
            path=path,
            inventory=inventory,
            verify=verify,
            tolerate=tuple(tolerate),
            gone=gone,
        )
        session = self._session
        if dry_run:
            return dry_import(session.store, self.realm, self.name, spec).outcome()
        survey = load_spark_survey(session.store.settings) if on_spark and not detach else SurveyInProcess()
        task = submit_import(session.store, self.realm, self.name, spec, author=session.author, on_spark=on_spark)
        if detach:
            return {"task": told_id(task)}
        return run_here(session, task, partial(run_import, survey=survey), progress=progress)

    def expire_snapshots(
        self,
        *,
        branches: str = "*",
        tables: Sequence[Key] = (),
        older_than: datetime | None = None,
        retain_last: int | None = None,
        dry_run: bool = False,
        progress: Observe | None = None,
    ) -> Mapping[str, Any]:
        """Commit metadata without the snapshots of tables that policies let go. No file is deleted; guests are left alone.

        branches      a pattern of branch names
        tables        only these; none: all
        returns       counts as `headwater snapshots expire -o json` prints them
        """
        request = read_expiry_request(
            self._session.store,
            self.realm,
            self.name,
            branches=branches,
            keys=tuple(content_key(key).elements for key in tables),
            older_than=None if older_than is None else read_time(older_than),
            keep=retain_last,
            author=self._session.author,
        )
        if dry_run:
            return plain_counts(dry_expiry(self._session.store, self.realm, request))
        return run_here(
            self._session, submit_expiry(self._session.store, self.realm, request).id, run_expiry, progress=progress
        )

    def report_files(self, *, dry_run: bool = False, progress: Observe | None = None) -> Mapping[str, Any]:
        """Find out which files of the catalog's lake nobody refers to. No file of the lake is deleted or changed.

        returns       counts by code, as the task's outcome has them
        """
        store = self._session.store
        if dry_run:
            return dry_file_report(store, self.realm, self.name).task_outcome()
        task = submit_catalog_task(store, REPORT_FILES, self.realm, self.name)
        return run_here(self._session, task.id, run_file_report, progress=progress)

    def last_file_report(self) -> Mapping[str, Any]:
        """What the last report found; raises NotFoundError where there was none yet."""
        return read_last_report(self._session.store, self.realm, self.name).task_outcome()

    def unreferenced_files(self) -> Iterator[UnreferencedFileInfo]:
        """The files that nobody refers to, by the last report, in the order of places and paths."""
        return map(UnreferencedFileInfo.of, read_last_report(self._session.store, self.realm, self.name).marks())

    def roles(self) -> list[RoleInfo]:
        """The roles of the catalog."""
        return list_role_infos(self._session, self._scope)

    def role(self, name: str) -> RoleClient:
        """A role of the catalog by its name."""
        return RoleClient(self._session, self._scope, name)

    def create_role(self, name: str, *holders: str) -> RoleClient:
        """Create a role of the catalog, and assign it to principal roles; one that is there stays."""
        return create_role(self._session, self._scope, name, holders)

    def explain_access(
        self, principal: str, privilege: str, *, on: str | None = None, ref: str | None = None, roles: Sequence[str] = ()
    ) -> AccessInfo:
        """Whether a principal may do something in the catalog through a server, by which grant, or what comes near it.

        on            as for ``RoleClient.grant``; None: the catalog
        ref           through which branch, tag or commit; None: the default branch
        roles         as if it had these principal roles, too
        """
        return tell_access(self._session, self._scope, principal, privilege, on=on, ref=ref, roles=roles)

    def stop_maintenance(self, *, why: str = "") -> StopInfo:
        """Stop expiry of snapshots and reports of files in this catalog."""
        store = self._session.store
        scope = read_scope(store, self.realm, self.name)
        return StopInfo.of(stop_maintenance(store, scope, by=self._session.author, why=why))

    def resume_maintenance(self) -> bool:
        """End the stop of this catalog; whether there was one."""
        store = self._session.store
        return resume_maintenance(store, read_scope(store, self.realm, self.name)) is not None

    @property
    def _scope(self) -> RoleScope:
        return RoleScope(self.realm, self.name)

    def _opened(self) -> Catalog:
        return self._session.catalog(self.realm, self.name)

    def _check_confirmed(self, confirm: str, done: str) -> None:
        wanted = f"{self.realm}/{self.name}"
        if confirm != wanted:
            raise RefusedError(f"nothing was {done}: confirm={confirm[:200]!r} does not repeat {wanted!r}")

    def __repr__(self) -> str:
        return f"CatalogClient({self.realm}/{self.name})"


def _merge_options(mode: str, keys: Mapping[str, str] | None, *, dry_run: bool, base: str | None = None) -> MergeOptions:
    modes = {content_key(key): KeyMerge(mode=_mode(each)) for key, each in (keys or {}).items()}
    return MergeOptions(mode=_mode(mode), keys=modes, base=None if base is None else id_of(base), dry_run=dry_run)


def _mode(text: str) -> MergeMode:
    try:
        return MergeMode(text.upper())
    except ValueError:
        raise RefusedError(f"{text!r} is no mode of a merge: it is one of {', '.join(MergeMode)}") from None


def _told_merge(catalog: Catalog, act: Callable[[], MergeResult]) -> MergeInfo:
    try:
        result = act()
    except MergeConflictError as refused:
        merge = _with_sides(catalog, refused.result)
        raise MergeRefusedError(str(refused), merge, refused.details) from refused
    return _with_sides(catalog, result) if result.conflicts else MergeInfo.of(result)


def _with_sides(catalog: Catalog, result: MergeResult) -> MergeInfo:
    keys = list(dict.fromkeys(conflict.key for conflict in result.conflicts if conflict.key is not None))
    return MergeInfo.of(result, sides_of(catalog.compare_merge(result, keys[:_SHOWN_CONFLICTS])))
