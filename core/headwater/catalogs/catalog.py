"""The handle on one catalog: commits content to its branches, and reads content from branches, tags and commits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Unpack, cast
from uuid import UUID

import msgspec

from headwater.catalogs.catalog_definition import CatalogDefinition
from headwater.catalogs.catalog_refs import CatalogRefs
from headwater.catalogs.content import (
    Content,
    ContentKey,
    ContentType,
    IcebergTable,
    index_bounds,
)
from headwater.catalogs.content_operations import (
    CONTENT,
    IDS,
    ContentOperation,
    Put,
    apply_operations,
    content_view,
    find_content_keys,
    index_at,
    stored_metadata_of,
)
from headwater.catalogs.content_pages import (
    ChildToken,
    ContentEntry,
    ContentPage,
    TypeCounts,
    child_page,
    child_place,
    content_page,
    count_types,
)
from headwater.catalogs.entry_filter import EntryExpression, filtered_page, listing_name, read_listing_name
from headwater.catalogs.file_marks import NO_TABLE, take_up_tables
from headwater.catalogs.history.catalog_log import (
    EVERY_COMMIT,
    CatalogLog,
    KeyHistory,
    LogFilter,
    follow_content,
    follow_key,
    recent_key_changes,
    search_log,
)
from headwater.catalogs.history.catalog_merge import (
    MergeGuard,
    MergeResult,
    MergeSource,
    MergeTarget,
    merge_commits,
    preview_effects,
)
from headwater.catalogs.history.commit_meta import CommitMeta, check_expected, checked_meta, property_values, text_tuple
from headwater.catalogs.history.content_diff import (
    ChangePage,
    ChangeToken,
    ContentChange,
    DiffExpression,
    changed_keys,
    compare_commits,
)
from headwater.catalogs.history.key_comparison import ComparedSides, ComparisonLimits, KeyComparison, compare_keys, find_sides
from headwater.catalogs.history.recent_pointers import RecentPointers, check_pointers
from headwater.catalogs.history.ref_relation import RefRelation, relate_heads
from headwater.catalogs.history.revspec import DEFAULT_REF, RefResolver, RefTarget
from headwater.catalogs.history.three_way import MergeEffect, MergeOptions
from headwater.catalogs.history.transplant import transplant_commits
from headwater.catalogs.known_metadata import KnownMetadata
from headwater.catalogs.registry import CatalogEntry, NamedRef, RefKind, named_ref, read_definition
from headwater.catalogs.request_log import REQUESTS, AppliedRequest, RequestKey, drop_expired, find_request, note_request
from headwater.catalogs.stored_contents import read_contents
from headwater.catalogs.stored_metadata import read_metadata
from headwater.catalogs.table_claims import stored_places
from headwater.clock import Micros
from headwater.commits import (
    CommitResult,
    Head,
    IndexListing,
    PageToken,
    Transaction,
    commit_change,
    confirm_outcome,
    read_page,
    read_pinned,
)
from headwater.errors import NotFoundError, RefusedError
from headwater.iceberg.metadata_json import join_metadata
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore


class Catalog:
    """A handle on one catalog.

    A ``ref`` argument is a branch, a tag, a commit's hash, or a step back from one of them such as ``main~2`` or
    ``main*2026-01-31T12:00:00Z``; None is the default branch. See ``history.revspec``.
    """

    def __init__(self, rows: RealmStore, definition: CatalogDefinition) -> None:
        self._rows = rows
        self._entry = CatalogEntry(rows, definition)
        self._resolver = RefResolver(self._entry)

    @classmethod
    def open(cls, rows: RealmStore, name: str) -> Catalog:
        """Open a catalog by its name; raises NotFoundError when there is none."""
        return cls(rows, read_definition(rows, name))

    @cached_property
    def refs(self) -> CatalogRefs:
        """The branches and tags of the catalog."""
        return CatalogRefs(self._entry)

    @property
    def definition(self) -> CatalogDefinition:
        """The definition that this handle read last: when it was opened, or at the last commit."""
        return self._entry.definition

    @property
    def label(self) -> str:
        """The catalog and its realm, for messages."""
        return self._entry.label

    def branches(self) -> list[NamedRef]:
        return self.refs.list_alive(RefKind.BRANCH)

    def tags(self) -> list[NamedRef]:
        return self.refs.list_alive(RefKind.TAG)

    def branch(self, name: str) -> NamedRef:
        return self.refs.read_ref(RefKind.BRANCH, name)

    def tag(self, name: str) -> NamedRef:
        return self.refs.read_ref(RefKind.TAG, name)

    def create_branch(self, name: str, source: str | None = None, *, at: ObjectId | None = None) -> NamedRef:
        """Create a branch at the head of ``source``, or at the commit ``at``; see ``CatalogRefs.create_ref``."""
        return self.refs.create_ref(RefKind.BRANCH, name, source=source, at=at)

    def create_tag(self, name: str, source: str | None = None, *, at: ObjectId | None = None) -> NamedRef:
        return self.refs.create_ref(RefKind.TAG, name, source=source, at=at)

    def assign_branch(self, name: str, target: ObjectId, *, expected: ObjectId | None = None) -> NamedRef:
        """Move a branch to another commit of this catalog; see ``CatalogRefs.assign_ref``."""
        return self.refs.assign_ref(RefKind.BRANCH, name, target, expected=expected)

    def assign_tag(self, name: str, target: ObjectId, *, expected: ObjectId | None = None) -> NamedRef:
        return self.refs.assign_ref(RefKind.TAG, name, target, expected=expected)

    def delete_branch(
        self, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None
    ) -> NamedRef:
        """Delete a branch other than the default branch. Its commits stay readable by hash for the grace period."""
        return self.refs.delete_ref(RefKind.BRANCH, name, expected=expected, fence=fence)

    def delete_tag(self, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None) -> NamedRef:
        return self.refs.delete_ref(RefKind.TAG, name, expected=expected, fence=fence)

    def undelete_branch(self, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedRef:
        """Restore a deleted branch within the grace period; see ``CatalogRefs.undelete_ref``."""
        return self.refs.undelete_ref(RefKind.BRANCH, name, fence=fence)

    def undelete_tag(self, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedRef:
        return self.refs.undelete_ref(RefKind.TAG, name, fence=fence)

    @property
    def settings(self) -> Settings:
        return self._rows.settings

    def deleted_branches(self) -> list[tuple[NamedRef, Micros]]:
        """List the deleted branches that can be restored, each with the time of its deletion."""
        return self.refs.list_deleted(RefKind.BRANCH)

    def deleted_tags(self) -> list[tuple[NamedRef, Micros]]:
        return self.refs.list_deleted(RefKind.TAG)

    def commit(
        self,
        branch: str | None,
        operations: Sequence[ContentOperation],
        *,
        expected: ObjectId | None = None,
        message: str = "",
        authors: Sequence[str] = (),
        properties: Mapping[str, str | Sequence[str]] | None = None,
        meta: CommitMeta | None = None,
        content_ids: Mapping[ContentKey, UUID] | None = None,
        request: RequestKey | None = None,
        is_import: bool = False,
        allow_empty: bool = False,
        examined: Collection[UUID] = (),
        fence: Callable[[], None] | None = None,
    ) -> CommitResult[dict[ContentKey, UUID]]:
        """Apply operations to a branch, all or none. The result has the content ids of the keys that were created.

        expected      the commit that the operations were made from; None: the head at the time when they are applied
        meta          replaces message, authors and properties
        content_ids   ids for created keys that the caller has reserved (claims are taken for an id)
        request       applies this once, however often it is asked for: a repeat changes nothing, and its result names the earlier
                      commit and ``is_replay``, without content ids. Operations that change nothing make no commit and are not noted
        is_import     the content was found in a storage; it was not made through this catalog
        allow_empty   operations that change nothing, or none at all, make a commit nevertheless, and its message is kept
        examined      tables whose new files the caller has held against their marks; of the others all marks are taken up
        raises        RefusedError for an unsound request; RequestKeyReusedError when its key was used for another; ConflictError
                      with all conflicts as ``details``; NotFoundError for an unknown branch or an expected commit that is not on
                      it; ExpiredError when that was collected; and what ``headwater.commits.commit_change`` raises
        """
        name = self._checked_branch(branch)
        expected_head = None if expected is None else self._resolver.read_commit(expected)
        checked = checked_meta(meta) or CommitMeta(
            message=message, authors=text_tuple("authors", authors), properties=property_values(properties)
        )
        _check_content_ids(operations, content_ids or {})
        ids = dict(content_ids or {})  # kept over retries, so that a repeated attempt gives the same ids
        if unexamined := _unexamined_tables(operations, ids, examined):
            take_up_tables(self._rows, self.definition.id, unexamined)

        def change(tx: Transaction) -> dict[ContentKey, UUID] | AppliedRequest:
            # First: what has been applied would contradict the head, which it changed itself.
            applied = None if request is None else find_request(tx.index(REQUESTS), tx.reader.key, tx.reference, request)
            return applied or apply(tx)

        def apply(tx: Transaction) -> dict[ContentKey, UUID]:
            if expected_head is not None:
                check_expected(tx.reader, tx.head_id, tx.head, expected_head, f"branch {name!r} of {self.label}")
            is_head = expected_head is not None and expected_head.id == tx.head_id
            expected_content = None if expected_head is None or is_head else expected_head.index(CONTENT)
            created = apply_operations(tx, operations, expected_content, ids, is_head_seen=is_head)
            if allow_empty:
                tx.is_empty_allowed = True
            makes_commit = tx.has_edits  # dropping entries alone makes none
            if makes_commit and len(tx.index(REQUESTS)):
                drop_expired(tx, lifetime_seconds=self.settings.requests_kept_seconds)
            if makes_commit and request is not None:
                note_request(tx, request)
            return created

        commit = commit_change(
            self._rows,
            self._entry.reference(RefKind.BRANCH, name),
            change,
            message=checked.message,
            properties=checked.as_properties(self.definition.id, is_import=is_import),
            fence=fence,
        )
        if isinstance(commit.result, AppliedRequest):
            self.confirm_branch(branch)
            done = replace(commit, result={}, commit_id=commit.result.commit_id, is_replay=True)
            return cast("CommitResult[dict[ContentKey, UUID]]", done)
        return cast("CommitResult[dict[ContentKey, UUID]]", commit)

    def confirm_branch(self, branch: str | None) -> None:
        """Make durable what a branch shows of an earlier request, before that is reported; raises as ``confirm_outcome`` does."""
        confirm_outcome(self._rows, self._entry.reference(RefKind.BRANCH, branch or self.definition.default_branch))

    def find_request(self, branch: str | None, head: Head | None, request: RequestKey) -> AppliedRequest | None:
        """Find what became of a request at a head of a branch. For decisions before a commit, which asks again.

        raises        RequestKeyReusedError when its key was used for another request
        """
        reference = self._entry.reference(RefKind.BRANCH, branch or self.definition.default_branch)
        return find_request(index_at(head, REQUESTS), self._rows.key, reference, request)

    def merge(
        self,
        source: str,
        into: str | None = None,
        *,
        expected: ObjectId | None = None,
        meta: CommitMeta | None = None,
        options: MergeOptions | None = None,
        fence: Callable[[], None] | None = None,
        guard: MergeGuard | None = None,
    ) -> MergeResult:
        """Merge the changes of ``source`` into a branch, in one commit; see ``headwater.catalogs.history.catalog_merge``.

        source        a branch, a tag or a commit
        expected      a commit that has to be in the history of the branch: the caller's view of it
        guard         asked about the changes before anything is decided; it raises what may not be
        """
        wanted = options or MergeOptions()
        if wanted.base is not None:
            self._resolver.read_commit(wanted.base)
        return merge_commits(
            self._target(into, expected, fence, guard), self._source(source), checked_meta(meta) or CommitMeta(), wanted
        )

    def transplant(
        self,
        source: str,
        commits: Sequence[ObjectId],
        into: str | None = None,
        *,
        expected: ObjectId | None = None,
        meta: CommitMeta | None = None,
        options: MergeOptions | None = None,
        fence: Callable[[], None] | None = None,
        guard: MergeGuard | None = None,
    ) -> MergeResult:
        """Cherry-pick commits of ``source`` onto a branch, oldest first, all or none; see ``headwater.catalogs.history.transplant``."""
        target = self._target(into, expected, fence, guard)
        return transplant_commits(target, self._source(source), commits, options or MergeOptions(), checked_meta(meta))

    def get_content(self, ref: str | None, key: ContentKey) -> Content | None:
        return self.get_contents(ref, [key]).get(key)

    def get_contents(self, ref: str | None, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """Read the contents of the keys that exist, each with its content id."""
        view = content_view(index_at(self._resolver.resolve(ref), CONTENT), keys)
        return dict(zip(view, read_contents(self._rows, list(view.items()), catalog=self.definition.name), strict=True))

    def metadata(self, ref: str | None, key: ContentKey) -> bytes | None:
        """Rebuild the metadata document of an Iceberg table or view as JSON with equal values; None where none was stored."""
        head = self._resolver.resolve(ref)
        value = content_view(index_at(head, CONTENT), [key]).get(key)
        if value is None or not value.has_metadata:
            return None
        stored = stored_metadata_of(index_at(head, IDS), value.content_id)
        return None if stored is None else join_metadata(read_metadata(self._rows, stored))

    def locations(self, ref: str | None, keys: Iterable[ContentKey]) -> dict[ContentKey, str]:
        """Read the locations of Iceberg tables and views from their stored metadata: only the fields that are needed, in one bulk read."""
        head = self._resolver.resolve(ref)
        values, ids = content_view(index_at(head, CONTENT), keys), index_at(head, IDS)
        metadata_ids = {key: stored_metadata_of(ids, value.content_id) for key, value in values.items()}
        stored = {key: metadata_id for key, metadata_id in metadata_ids.items() if metadata_id is not None}
        places = stored_places(self._rows, list(stored.values()))
        return {key: place for key, metadata_id in stored.items() if (place := places[metadata_id].location) is not None}

    def known_metadata(self, *, note: bool = False, fence: Callable[[], None] | None = None) -> KnownMetadata:
        """The metadata files that any commit of this catalog has named, on any branch; see ``headwater.catalogs.known_metadata``."""
        return KnownMetadata(self._rows, self.definition, note=note, fence=fence)

    def find_by_id(self, ref: str | None, content_ids: Iterable[UUID]) -> dict[UUID, ContentEntry]:
        """Find the keys of contents by content id, in the order given; ids without a content are left out."""
        head, wanted = self._resolver.resolve(ref), list(content_ids)
        for content_id in wanted:
            _check_content_id(content_id, "the id of a content")
        keys = find_content_keys(index_at(head, IDS), wanted)
        view = content_view(index_at(head, CONTENT), keys.values())
        entries = {value.content_id: ContentEntry(key, value) for key, value in view.items()}
        return {content_id: entries[content_id] for content_id in keys if content_id in entries}

    def entries(
        self,
        ref: str | None = None,
        *,
        prefix: ContentKey | None = None,
        start: ContentKey | None = None,
        end: ContentKey | None = None,
        with_prefix: bool = False,
        with_end: bool = False,
        reverse: bool = False,
        where: EntryExpression | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> ContentPage:
        """List content by key, ascending or descending: below ``prefix``, from ``start`` on and before ``end``, where these are given.

        with_prefix   the content at the prefix itself, too
        with_end      the content at the end itself, too, and nothing below it
        where         which of them; None: all. Then a page may have fewer entries than its limit, or none, and be followed by another
        limit         the most entries of this page; None: all that are left
        page_token    from the page before: continues in the same commit, whatever the branch holds now. It carries the arguments
                      of the first call, which may be left out or repeated
        raises        ExpiredError when the commit of the page token was collected; RefusedError for a malformed token, or one of
                      another listing
        """
        first, last = index_bounds(prefix, start, end, with_prefix=with_prefix, with_end=with_end)
        named = self._named(ref)
        listing = IndexListing(index=CONTENT, start=first, end=last, reverse=reverse, of=listing_name(named, where))
        if page_token is None:
            head = self._resolver.resolve(ref)
            return ContentPage((), None, None) if head is None else _entry_page(head, listing, where, limit)
        token = PageToken.from_text(page_token)
        of, chosen = read_listing_name(token.listing.of)
        is_range_given = (first, last, reverse) != (None, None, False)
        if (
            token.listing.index != CONTENT
            or (ref is not None and of != named)
            or (where is not None and where != chosen)
            or (is_range_given and token.listing != msgspec.structs.replace(listing, of=token.listing.of))
        ):
            raise RefusedError(
                f"the page token belongs to another listing than the one of {named!r} that is asked for: start again without it"
            )
        pinned = self._resolver.check_own(read_pinned(self._rows, token.commit_id))
        return _entry_page(pinned, token.listing, chosen, limit, token.last)

    def find_entries(
        self, ref: str | None, keys: Iterable[ContentKey], *, where: EntryExpression | None = None
    ) -> tuple[ContentEntry, ...]:
        """Find the entries of those keys that exist, in key order; those that a filter chooses, where one is given."""
        view = content_view(index_at(self._resolver.resolve(ref), CONTENT), keys)
        entries = (ContentEntry(key, value) for key, value in sorted(view.items()))
        return tuple(entry for entry in entries if where is None or where.chooses(entry))

    def children(
        self,
        ref: str | None,
        parent: ContentKey | None,
        *,
        content_types: Collection[ContentType] = (),
        token: str | None = None,
        limit: int | None = None,
    ) -> ContentPage:
        """List what stands directly below a namespace, or at the top where ``parent`` is None, in key order.

        Whatever stands deeper is not read. A namespace that does not exist has no children.

        content_types only these types, none: all. Children of other types are read and left out
        token         from the page before: continues in the same commit. Empty, like None: the first page
        limit         the most entries of this page; None: all that are left
        raises        as ``entries`` does
        """
        of = self._named(ref)
        if token:
            place = ChildToken.from_text(token, of=of, parent=parent, types=content_types)
            return child_page(self._resolver.check_own(read_pinned(self._rows, place.commit_id)), place, limit=limit)
        head = self._resolver.resolve(ref)
        if head is None:
            return ContentPage((), None, None)
        return child_page(head, child_place(head.id, of=of, parent=parent, types=content_types), limit=limit)

    def diff(
        self,
        before: str | None,
        after: str | None,
        *,
        prefix: ContentKey | None = None,
        start: ContentKey | None = None,
        end: ContentKey | None = None,
        with_prefix: bool = False,
        with_end: bool = False,
        where: DiffExpression | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> ChangePage:
        """Compare two refs by key; arguments choose keys as in ``entries``. Copies of a content do not differ.

        limit, page_token   as in ``entries``; a page token pins both commits
        raises              as ``entries`` does
        """
        first, last = index_bounds(prefix, start, end, with_prefix=with_prefix, with_end=with_end)
        if page_token is None:
            before_head, after_head = self._resolver.resolve(before), self._resolver.resolve(after)
            pair = (self._named(before), self._named(after))
            place = ChangeToken(
                None if before_head is None else before_head.id,
                None if after_head is None else after_head.id,
                first,
                last,
                of=pair,
                where="" if where is None else where.text,
            )
            return compare_commits(before_head, after_head, place, limit=limit, expression=where)
        place = ChangeToken.from_text(page_token)
        is_of_these = all(ref is None or self._named(ref) == of for ref, of in zip((before, after), place.of, strict=True))
        is_filter_other = where is not None and where.text != place.where
        if not is_of_these or is_filter_other or (first, last) not in ((None, None), (place.start, place.end)):
            raise RefusedError(
                "the page token belongs to another comparison than the one that is asked for: start again without it"
            )
        before_head, after_head = (
            None if pinned is None else self._resolver.read_commit(pinned) for pinned in (place.before, place.after)
        )
        chosen = DiffExpression.parse(place.where) if place.where else None
        return compare_commits(before_head, after_head, place, limit=limit, expression=chosen)

    def find_changes(
        self, before: str | None, after: str | None, keys: Iterable[ContentKey], *, where: DiffExpression | None = None
    ) -> tuple[ContentChange, ...]:
        """Find which of these keys differ between two refs, in key order; renames are not looked up.

        where         which of them; None: all
        """
        heads = self._resolver.resolve(before), self._resolver.resolve(after)
        changes = changed_keys(*heads, sorted({key.to_index() for key in keys}))
        return tuple(change for change in changes if where is None or where.chooses(change))

    def compare_keys(
        self, before: str | None, after: str | None, keys: Sequence[ContentKey], **limits: Unpack[ComparisonLimits]
    ) -> list[KeyComparison]:
        """What two refs did to keys since their nearest common ancestor; see ``headwater.catalogs.history.key_comparison``."""
        sides = find_sides(self._rows, self._resolver.resolve(before), self._resolver.resolve(after))
        return compare_keys(self._rows, sides, keys, **limits)

    def preview_merge(
        self, source: str | None, into: str | None, *, most: int | None = None
    ) -> Mapping[ContentKey, MergeEffect] | None:
        """What a merge of a ref into another would do, by key; see ``headwater.catalogs.history.catalog_merge.preview_effects``."""
        heads = self._resolver.resolve(into), self._resolver.resolve(source)
        return preview_effects(self._rows, self.definition.id, *heads, most=most)

    def compare_merge(
        self, result: MergeResult, keys: Sequence[ContentKey], **limits: Unpack[ComparisonLimits]
    ) -> list[KeyComparison]:
        """What the two sides of a merge or transplant, done or not, had done to keys before it."""
        named = (result.base, result.onto, result.steps[-1].source)
        heads = [None if commit_id is None else self._resolver.read_commit(commit_id) for commit_id in named]
        return compare_keys(self._rows, ComparedSides(*heads), keys, **limits)

    def count(self, ref: str | None = None, *, content_type: ContentType | None = None) -> int:
        """Count the keys of all types, which reads no entries, or of one type, which reads all."""
        head = self._resolver.resolve(ref)
        if head is None:
            return 0
        return len(head.index(CONTENT)) if content_type is None else count_types(head).get(content_type, 0)

    def counts(self, ref: str | None = None) -> TypeCounts:
        """Count the keys of each type. Reads all entries."""
        head = self._resolver.resolve(ref)
        return {} if head is None else count_types(head)

    def log(
        self,
        ref: str | None = None,
        *,
        key: ContentKey | None = None,
        where: LogFilter = EVERY_COMMIT,
        oldest_first: bool = False,
        limit: int | None = None,
        within: int | None = None,
        oldest: ObjectId | None = None,
    ) -> CatalogLog:
        """Read the log of a ref, newest first by default. ``end`` of the log says whether history begins there or was cut.

        key           only commits that changed this key; short for a filter with this key alone
        where         only commits that pass this filter
        within        look at so many commits at most: a search without a match should not read the whole history
        oldest        the last commit to look at
        raises        NotFoundError for an oldest commit that is not in this history; ExpiredError where that is not known any more
        """
        wanted = where if key is None else replace(where, key=key)
        last = None if oldest is None else self._resolver.read_commit(oldest)
        head = self._resolver.resolve(ref)
        return search_log(head, wanted, oldest_first=oldest_first, limit=limit, within=within, oldest=last)

    def history(self, key: ContentKey, ref: str | None = None, *, within: int | None = None) -> KeyHistory:
        """Read the history of a key's content, newest first, through its renames, deletions and restorations back to its creation.

        A key that holds nothing now stands for the content that it held last.

        within        look at so many commits at most
        """
        return follow_key(self._resolver.resolve(ref), key, within=within)

    def content_history(self, content_id: UUID, ref: str | None = None, *, within: int | None = None) -> KeyHistory:
        """Read the history of a content as ``history`` does, also from a commit at which it stands nowhere."""
        return follow_content(self._resolver.resolve(ref), content_id, within=within)

    def recent_changes(self, key: ContentKey, ref: str | None = None, *, since: Micros, within: int) -> KeyHistory:
        """Read what happened to a key since a time, newest first; see ``recent_key_changes``."""
        return recent_key_changes(self._resolver.resolve(ref), key, since=since, within=within)

    def relation(self, ref: str | None, base: str | None = None) -> RefRelation:
        """How the history of a ref stands to that of another one; None: the default branch. See ``history.ref_relation``."""
        return relate_heads(self._resolver.resolve(ref), self._resolver.resolve(base))

    def recent_pointers(self, name: str | None = None, *, scan: int = 0) -> RecentPointers:
        """Check the commits that a branch or tag pointed to last; see ``history.recent_pointers``.

        scan          check so many commits of its log, too, at most 1,000
        raises        NotFoundError; RefusedError for a scan below 0
        """
        row = self._resolver.read_named(name or DEFAULT_REF)
        return check_pointers(self._rows, named_ref(row), row, scan=scan)

    def resolve(self, ref: str | None = None, *, exact: bool = False) -> Head | None:
        """Resolve a ref to its commit; None for a branch or tag without a commit.

        exact         for a write: raises RefusedError for a relative ref, which changes its meaning as the branch moves
        """
        return self._resolver.resolve(ref, exact=exact)

    def read_target(self, ref: str | None = None) -> RefTarget:
        """Resolve a ref as ``resolve`` does, and tell whether it names a branch, a tag or a commit, and whether it can be written."""
        return self._resolver.read_target(ref)

    def _named(self, ref: str | None) -> str:
        """Spell a ref for a page token, with the default branch by its name."""
        return self._entry.default_branch() if ref in (None, "", DEFAULT_REF) else str(ref)

    def _target(
        self,
        branch: str | None,
        expected: ObjectId | None,
        fence: Callable[[], None] | None,
        guard: MergeGuard | None,
    ) -> MergeTarget:
        name = self._checked_branch(branch)
        expected_head = None if expected is None else self._resolver.read_commit(expected)
        reference = self._entry.reference(RefKind.BRANCH, name)
        return MergeTarget(self._rows, self.definition.id, name, reference, expected_head, fence, guard)

    def _source(self, text: str) -> MergeSource:
        head = self._resolver.resolve(text, exact=True)
        if head is None:
            raise RefusedError(f"{text!r} of {self.label} has no commit yet: there is nothing to take from it")
        return MergeSource(text, head)

    def _checked_branch(self, branch: str | None) -> str:
        """Check the branch to commit to; None: the default branch. Raises for a deleted catalog and for a ref that is no branch."""
        self._entry.check_alive()
        name = branch or self.definition.default_branch
        if self._rows.find_reference(self._entry.reference(RefKind.BRANCH, name)) is not None:
            return name
        if self._entry.find_ref_row(RefKind.TAG, name) is not None:
            raise RefusedError(f"{name!r} is a tag of {self.label}: commit to a branch")
        raise NotFoundError(f"{self.label} has no branch {name!r}")


def _entry_page(
    head: Head, listing: IndexListing, chosen: EntryExpression | None, limit: int | None, after: bytes | None = None
) -> ContentPage:
    if chosen is None:
        return content_page(read_page(head, listing, limit=limit, after=after))
    return filtered_page(head, listing, chosen, limit=limit, after=after)


def _check_content_ids(operations: Sequence[ContentOperation], given: Mapping[ContentKey, UUID]) -> None:
    """Check that the content ids of a request are UUIDs; raises RefusedError."""
    for operation in operations:
        content_id = getattr(operation.content, "id", None) if isinstance(operation, Put) else None
        if content_id is not None:
            _check_content_id(content_id, f"the id of the content at {operation.key}")
    for key, content_id in given.items():
        _check_content_id(content_id, f"the id for {key}")


def _check_content_id(content_id: object, what: str) -> None:
    if not isinstance(content_id, UUID):
        raise RefusedError(f"{what} must be a UUID, not {content_id!r}: give a uuid.UUID, or none for new content")


def _unexamined_tables(
    operations: Iterable[ContentOperation], content_ids: Mapping[ContentKey, UUID], examined: Collection[UUID]
) -> set[UUID]:
    """The content ids of the Iceberg tables that operations put and nobody has examined; ``NO_TABLE`` for one without an id yet."""
    puts = [each for each in operations if isinstance(each, Put) and isinstance(each.content, IcebergTable)]
    return {put.content.id or content_ids.get(put.key) or NO_TABLE for put in puts} - set(examined)
