"""A branch, a tag or a commit of a catalog: what it holds, what it held, and how branches are changed and joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import msgspec

from headwater.api.api_values import read_time, several, told_id
from headwater.api.catalog_policies import EffectivePoliciesInfo
from headwater.api.catalog_values import (
    CommitInfo,
    ContentInfo,
    DifferenceInfo,
    EntryInfo,
    Key,
    KeyHistoryInfo,
    MergeInfo,
    RefInfo,
    TableHomeInfo,
    content_key,
)
from headwater.api.conflict_sides import sides_of
from headwater.api.kept_objects import KeptObjectInfo
from headwater.api.log_iterator import LogIterator, iter_pages, told_history, told_log
from headwater.api.merges import commit_meta, merge_effect, merge_options, parse_content_type, told_merge
from headwater.api.store_session import StoreSession
from headwater.catalogs import Catalog, DiffExpression, EntryExpression, LogExpression, LogFilter, RefKind
from headwater.errors import NotFoundError, RefusedError
from headwater.fsck.explanation import explain
from headwater.iceberg.metadata_json import snapshots_with_refs
from headwater.iceberg_catalog import IcebergCatalog, TableHome, adopt_guests, list_table_homes
from headwater.policies import read_table_policies
from headwater.store import ObjectId, id_of, id_text

if TYPE_CHECKING:
    from headwater.clients.pyiceberg import HeadwaterCatalog

_PAGE = 1000


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

    def explain(self) -> KeptObjectInfo:
        """Why the commit that it points to is kept, or when it goes; raises NotFoundError where it has none yet."""
        head = self._opened().resolve(self.name)
        if head is None:
            raise NotFoundError(f"{self.name!r} of catalog {self.catalog!r} of realm {self.realm!r} has no commit yet")
        return KeptObjectInfo.of(explain(self._session.store, self.realm, head.id))

    def entries(
        self,
        *,
        under: Key | None = None,
        start: Key | None = None,
        end: Key | None = None,
        reverse: bool = False,
        where: str | None = None,
    ) -> Iterator[EntryInfo]:
        """Its tables, views, namespaces and functions, by key: all of one moment, read a page at a time.

        under         only what stands below this namespace
        start, end    only this key and those after it; only keys before this one
        reverse       begin with the last key
        where         a condition in CEL, see docs/reference/filters.md
        """
        prefix, first, last = (None if key is None else content_key(key) for key in (under, start, end))
        expression = None if where is None else EntryExpression.parse(where)
        catalog = self._opened()

        def read_page(token: str | None) -> tuple[Iterable[EntryInfo], str | None]:
            page = catalog.entries(
                self.name,
                prefix=prefix,
                start=first,
                end=last,
                reverse=reverse,
                where=expression,
                limit=_PAGE,
                page_token=token,
            )
            return map(EntryInfo.of, page.entries), page.next_token

        return iter_pages(read_page)

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
        """The metadata document of an Iceberg table or view, with equal values; None: it is stored only where it lies.

        raises        NotFoundError; RefusedError for what is neither
        """
        self._check_type(key, "table or view", "ICEBERG_TABLE", "ICEBERG_VIEW")
        text = self._opened().metadata(self.name, content_key(key))
        return None if text is None else msgspec.json.decode(text)

    def snapshots(self, key: Key) -> list[Mapping[str, Any]]:
        """The snapshots of a table, oldest first, as its metadata has them; each with the table's branches and tags on it, as ``refs``.

        raises        NotFoundError; RefusedError for what is no Iceberg table, and where the metadata is not stored in the catalog
        """
        self._check_type(key, "table", "ICEBERG_TABLE")
        document = self.metadata(key)
        if document is None:
            raise RefusedError(
                f"the metadata of {content_key(key)} is not stored in catalog {self.catalog!r}, only in its file"
            )
        return list(snapshots_with_refs(document))

    def find(self, *content_ids: str) -> list[EntryInfo]:
        """Where contents stand now, by their ids, which survive renames; what is not there is left out.

        raises        RefusedError for a text that is not a content id
        """
        found = self._opened().find_by_id(self.name, list(map(_content_id, content_ids)))
        return list(map(EntryInfo.of, found.values()))

    def log(
        self,
        *,
        key: Key | None = None,
        under: Key | None = None,
        action: Literal["PUT", "DELETE"] | None = None,
        content_type: str | None = None,
        author: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        message: str | None = None,
        where: str | None = None,
        oldest: str | None = None,
        oldest_first: bool = False,
        limit: int | None = None,
        within: int | None = None,
    ) -> LogIterator[CommitInfo]:
        """Its commits, newest first, down to where history begins or was collected; in the end the iterator says which, as ``end``.

        key, under    only commits that changed it, or something below this namespace
        action, content_type  what they did to a key, and the type of what they put or deleted, such as ICEBERG_TABLE: of several of these
                      conditions one and the same change has to meet all
        message       a regular expression that matches it somewhere
        where         a condition in CEL, see docs/reference/filters.md
        oldest        the last commit to look at
        within        look at so many commits at most, whether they pass or not
        """
        chosen = LogFilter(
            author=author,
            since=None if since is None else read_time(since),
            until=None if until is None else read_time(until),
            message=message,
            key=None if key is None else content_key(key),
            prefix=None if under is None else content_key(under),
            action=action,
            content_type=None if content_type is None else parse_content_type(content_type),
            expression=None if where is None else LogExpression.parse(where),
        )
        last = None if oldest is None else id_of(oldest)
        log = self._opened().log(self.name, where=chosen, limit=limit, within=within, oldest=last, oldest_first=oldest_first)
        return told_log(log, CommitInfo.of)

    def history(self, key: Key, *, within: int | None = None) -> LogIterator[KeyHistoryInfo]:
        """What happened to one table, view, namespace or function, newest first, through renames, drops and restores to its creation.

        within        look at so many commits at most
        """
        return told_history(self._opened().history(content_key(key), self.name, within=within), KeyHistoryInfo.of)

    def diff(
        self,
        after: str,
        *,
        under: Key | None = None,
        start: Key | None = None,
        end: Key | None = None,
        where: str | None = None,
        with_sides: bool = False,
    ) -> Iterator[DifferenceInfo]:
        """What another branch, tag or commit has otherwise than this one: all of one moment, by key.

        under         only what stands below this namespace
        start, end    only this key and those after it; only keys before this one
        where         a condition in CEL, see docs/reference/filters.md
        with_sides    also report what both sides did to each key since their common ancestor, and what a merge would do: it reads their
                      commits
        """
        prefix, first, last = (None if key is None else content_key(key) for key in (under, start, end))
        expression = None if where is None else DiffExpression.parse(where)
        catalog = self._opened()
        preview = cache(catalog.preview_merge)  # all pages compare the same two commits

        def read_page(token: str | None) -> tuple[Iterable[DifferenceInfo], str | None]:
            page = catalog.diff(
                self.name,
                after,
                prefix=prefix,
                start=first,
                end=last,
                where=expression,
                limit=_PAGE if not with_sides else _PAGE // 10,
                page_token=token,
            )
            pair = [named if at is None else id_text(at) for named, at in ((self.name, page.before), (after, page.after))]
            keys = [change.key for change in page.changes] if with_sides else []
            sides = sides_of(catalog.compare_keys(pair[0], pair[1], keys)) if keys else {}
            effects = preview(pair[1], pair[0]) if keys else None
            return [
                DifferenceInfo.of(change, sides.get(change.key), merge=merge_effect(effects, change.key))
                for change in page.changes
            ], page.next_token

        return iter_pages(read_page)

    def guests(self, *, under: Key | None = None, with_homes: bool = False) -> list[TableHomeInfo]:
        """The tables and views that the catalog neither created nor adopted: it lets go no snapshot and no file of theirs.

        with_homes    also those that are at home
        """
        homes = list_table_homes(self._lake(), under=None if under is None else content_key(under))
        return [TableHomeInfo.of(each) for each in homes if with_homes or not each.is_home]

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

    def _check_type(self, key: Key, what: str, *types: str) -> None:
        held = self.content(key)
        if held.type not in types:
            raise RefusedError(
                f"{held.key} in catalog {self.catalog!r} of realm {self.realm!r} at {self.name} is no Iceberg {what}, but of type"
                f" {held.type}"
            )

    def _opened(self) -> Catalog:
        return self._session.catalog(self.realm, self.catalog)

    def _lake(self) -> IcebergCatalog:
        return IcebergCatalog.open(self._session.store, self.realm, self.catalog, self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.realm}/{self.catalog}@{self.name})"


def _content_id(text: str) -> UUID:
    try:
        return UUID(text)
    except (ValueError, AttributeError, TypeError):
        raise RefusedError(f"{str(text)[:200]!r} is not a content id: give a UUID, such as EntryInfo.content_id") from None


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
        author: str | Sequence[str] | None = None,
        signed_off_by: str | Sequence[str] = (),
        properties: Mapping[str, str | Sequence[str]] | None = None,
        mode: str = "NORMAL",
        keys: Mapping[Key, str] | None = None,
        base: str | None = None,
        expected: str | None = None,
        dry_run: bool = False,
    ) -> MergeInfo:
        """Merge the changes of a branch, a tag or a commit into this branch, as one commit.

        author        one or several; None: the connection's
        properties    of the commit: each name with a value, or several
        mode          NORMAL: a key that changed on both sides is a conflict. FORCE: take the source's. DROP: leave the branch's
        keys          other modes for some keys
        base          count the source's changes from this commit; None: the nearest common ancestor
        expected      a commit that has to be in the history of this branch
        raises        MergeRefusedError with all conflicts: then nothing was written
        """
        options = merge_options(mode, keys, dry_run=dry_run, base=base)
        meta = commit_meta(message, author or self._session.author, signed_off_by, properties)
        seen = None if expected is None else id_of(expected)
        catalog = self._opened()
        return told_merge(catalog, lambda: catalog.merge(source, self.name, expected=seen, meta=meta, options=options))

    def transplant(
        self,
        source: str,
        commits: str | Sequence[str],
        *,
        message: str = "",
        author: str | Sequence[str] = (),
        signed_off_by: str | Sequence[str] = (),
        properties: Mapping[str, str | Sequence[str]] | None = None,
        mode: str = "NORMAL",
        keys: Mapping[Key, str] | None = None,
        expected: str | None = None,
        dry_run: bool = False,
    ) -> MergeInfo:
        """Cherry-pick commits of a source onto this branch, oldest first and without gaps: all of them or none.

        message, author, signed_off_by, properties  instead of the commit's own, of one commit alone; each of several keeps its own
        raises        MergeRefusedError with all conflicts: then nothing was written
        """
        options, seen = merge_options(mode, keys, dry_run=dry_run), None if expected is None else id_of(expected)
        is_told = bool(message or author or signed_off_by or properties)
        meta = commit_meta(message, author, signed_off_by, properties) if is_told else None
        ids = [id_of(commit) for commit in several(commits)]
        catalog = self._opened()
        return told_merge(
            catalog, lambda: catalog.transplant(source, ids, self.name, expected=seen, meta=meta, options=options)
        )

    def effective_policies(self, key: Key | None = None) -> EffectivePoliciesInfo:
        """What holds for a table, also for its own branches and tags, and where each value comes from.

        key           None: what holds for a table that says nothing itself
        """
        rows, wanted = self._session.open_rows(self.realm), None if key is None else content_key(key)
        return EffectivePoliciesInfo.of(read_table_policies(rows, self._opened(), wanted, branch=self.name))

    def adopt(self, *keys: Key) -> list[TableHomeInfo]:
        """Make guests at home in their catalog: its policies hold for them from then on. Adopt what nobody else writes any more.

        raises        RefusedError where one of them stays a guest, with the reason; the others are adopted
        """
        return self._adopt(list_table_homes(self._lake(), keys=[content_key(key) for key in keys]) if keys else [])

    def adopt_all(self, *, under: Key | None = None) -> list[TableHomeInfo]:
        """Make all guests at home, as ``adopt`` does some: see ``guests`` first.

        under         only what stands below this namespace
        """
        return self._adopt(list_table_homes(self._lake(), under=None if under is None else content_key(under)))

    def _adopt(self, homes: Iterable[TableHome]) -> list[TableHomeInfo]:
        guests = [each for each in homes if not each.is_home]
        adoption = adopt_guests(self._lake(), guests)
        if adoption.refused:
            why = "; ".join(f"{key} stays a guest: {reason}" for key, reason in adoption.refused.items())
            raise RefusedError(f"{len(adoption.refused)} of {len(guests)} guests were not adopted: {why}")
        adopted = set(adoption.adopted)
        return [TableHomeInfo.of(TableHome(each.entry, True)) for each in guests if each.key in adopted]
