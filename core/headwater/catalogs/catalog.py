"""One catalog: content committed to its branches, and read from branches, tags and commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from headwater.catalogs.branches import Branches, NamedReference
from headwater.catalogs.content.applying import apply, view_of
from headwater.catalogs.content.counting import TypeCounts, count_types
from headwater.catalogs.content.indexes import CONTENT
from headwater.catalogs.content.keys import ContentKey
from headwater.catalogs.content.operations import Operation
from headwater.catalogs.content.pages import Page, page_of
from headwater.catalogs.content.types import Content, ContentType, ContentValue, content_type_of, type_text, with_id
from headwater.catalogs.definitions import CatalogDefinition
from headwater.catalogs.history.log import LogEntry, is_in_history, log_entry
from headwater.catalogs.history.meta import CommitMeta, many
from headwater.catalogs.names import CATALOGS, NameKind
from headwater.clock import Micros
from headwater.commits import (
    Committed,
    Head,
    Listing,
    PageToken,
    Touching,
    Transaction,
    commit,
    log,
    read_page,
    read_pinned,
)
from headwater.errors import MissingError, RefusedError, UnreadableError
from headwater.settings import Settings
from headwater.store import ObjectId, RealmStore, StoredObject, id_text

__all__ = ["Catalog"]


class Catalog:
    """A handle on one catalog.

    Where a ``ref`` is taken it is a branch, a tag, a commit's hash, or a way back from one of them such as ``main~2`` or
    ``main*2026-01-31T12:00:00Z``; None: the default branch. See ``history.references``.
    """

    def __init__(self, rows: RealmStore, definition: CatalogDefinition) -> None:
        self.definition = definition
        self._rows = rows
        self._branches = Branches(rows, definition)
        self._known: tuple[ObjectId | None, float] = (None, 0.0)

    # branches and tags

    def branches(self) -> list[NamedReference]:
        return self._branches.living(NameKind.BRANCH)

    def tags(self) -> list[NamedReference]:
        return self._branches.living(NameKind.TAG)

    def branch(self, name: str) -> NamedReference:
        return self._branches.read(NameKind.BRANCH, name)

    def tag(self, name: str) -> NamedReference:
        return self._branches.read(NameKind.TAG, name)

    def create_branch(self, name: str, source: str | None = None, *, at: ObjectId | None = None) -> NamedReference:
        """Make a branch at the head of ``source``, or at the commit ``at``; see ``Branches.create``."""
        return self._branches.create(NameKind.BRANCH, name, source=source, at=at)

    def create_tag(self, name: str, source: str | None = None, *, at: ObjectId | None = None) -> NamedReference:
        return self._branches.create(NameKind.TAG, name, source=source, at=at)

    def assign_branch(self, name: str, target: ObjectId, *, expected: ObjectId | None = None) -> NamedReference:
        """Put a branch on another commit of this catalog; see ``Branches.assign``."""
        return self._branches.assign(NameKind.BRANCH, name, target, expected=expected)

    def assign_tag(self, name: str, target: ObjectId, *, expected: ObjectId | None = None) -> NamedReference:
        return self._branches.assign(NameKind.TAG, name, target, expected=expected)

    def delete_branch(
        self, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None
    ) -> NamedReference:
        """Delete a branch, unless it is the default branch; what it pointed to stays readable by hash for the grace."""
        return self._branches.delete(NameKind.BRANCH, name, expected=expected, fence=fence)

    def delete_tag(
        self, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None
    ) -> NamedReference:
        return self._branches.delete(NameKind.TAG, name, expected=expected, fence=fence)

    def undelete_branch(self, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedReference:
        """Bring a deleted branch back, within the grace; see ``Branches.undelete``."""
        return self._branches.undelete(NameKind.BRANCH, name, fence=fence)

    def undelete_tag(self, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedReference:
        return self._branches.undelete(NameKind.TAG, name, fence=fence)

    @property
    def settings(self) -> Settings:
        return self._rows.settings

    def deleted_branches(self) -> list[tuple[NamedReference, Micros]]:
        """Those that can come back, each with the time of its deletion."""
        return self._branches.deleted(NameKind.BRANCH)

    def deleted_tags(self) -> list[tuple[NamedReference, Micros]]:
        return self._branches.deleted(NameKind.TAG)

    # writing

    def commit(
        self,
        branch: str | None,
        operations: Sequence[Operation],
        *,
        expected: ObjectId | None = None,
        message: str = "",
        authors: Sequence[str] = (),
        properties: Mapping[str, str | Sequence[str]] | None = None,
        meta: CommitMeta | None = None,
        content_ids: Mapping[ContentKey, UUID] | None = None,
        fence: Callable[[], None] | None = None,
    ) -> Committed[dict[ContentKey, UUID]]:
        """Apply operations to a branch, all or none. The result has the content ids of the keys that were created.

        expected      the commit that the operations were made from; None: whatever is the head when they are applied
        meta          instead of message, authors and properties
        content_ids   ids for keys that are created, where the caller has reserved them (claims are taken for an id)
        raises        RefusedError for an unsound request; ConflictError with all conflicts as ``details``; MissingError for an
                      unknown branch or an expected commit that is not on it; ExpiredError when that was collected; and what
                      ``headwater.commits.commit`` raises
        """
        name = branch or self.definition.default_branch
        self._check_alive()
        self._check_branch(name)
        seen = None if expected is None else self._branches.read_commit(expected)
        told = meta or CommitMeta(message=message, authors=tuple(authors), properties=many(properties))
        ids = dict(content_ids or {})  # kept over retries, so that a repeated attempt gives the same ids

        def change(tx: Transaction) -> dict[ContentKey, UUID]:
            if seen is not None:
                self._check_on_branch(tx, name, seen)
            return apply(tx, operations, None if seen is None or seen.id == tx.head_id else seen.index(CONTENT), ids)

        return commit(
            self._rows,
            self._branches.reference(NameKind.BRANCH, name),
            change,
            message=told.message,
            properties=told.as_properties(self.definition.id),
            fence=fence,
        )

    # reading

    def get(self, ref: str | None, key: ContentKey) -> Content | None:
        return self.get_many(ref, [key]).get(key)

    def get_many(self, ref: str | None, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """The contents of those keys that are there, each with its content id."""
        head = self._branches.resolve(ref)
        view = {} if head is None else view_of(head.index(CONTENT), keys)
        objects = self._rows.read_many([value.object_id for value in view.values()], StoredObject)
        return {key: self._content(key, value, found) for (key, value), found in zip(view.items(), objects, strict=True)}

    def entries(
        self,
        ref: str | None = None,
        *,
        prefix: ContentKey | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> Page:
        """What is there, by key; of everything below ``prefix``, if that is given.

        limit         entries of this page; None: all that are left
        page_token    from the page before: goes on in the same commit, whatever the branch holds now
        raises        ExpiredError when the commit of the page token was collected; RefusedError for a token that is none, or of
                      another prefix
        """
        listing = Listing.of_prefix(CONTENT, b"" if prefix is None else prefix.below())
        if page_token is None:
            head = self._branches.resolve(ref)
            return Page((), None, None) if head is None else page_of(read_page(head, listing, limit=limit))
        token = PageToken.decode(page_token)
        if token.listing.index != CONTENT or (prefix is not None and token.listing != listing):
            raise RefusedError(f"the page token belongs to another listing than that of {prefix}: start again without it")
        pinned = self._branches.checked(read_pinned(self._rows, token))
        return page_of(read_page(pinned, token.listing, limit=limit, after=token.last))

    def count(self, ref: str | None = None, *, content_type: ContentType | None = None) -> int:
        """How many keys there are: of all types, which reads no entries, or of one, which reads all."""
        head = self._branches.resolve(ref)
        if head is None:
            return 0
        return len(head.index(CONTENT)) if content_type is None else count_types(head).get(content_type, 0)

    def counts(self, ref: str | None = None) -> TypeCounts:
        """How many keys there are of each type. Reads all entries."""
        head = self._branches.resolve(ref)
        return {} if head is None else count_types(head)

    def log(
        self, ref: str | None = None, *, key: ContentKey | None = None, oldest_first: bool = False, limit: int | None = None
    ) -> Iterator[LogEntry]:
        """The commits that led here, newest first unless asked; ends where history begins or was cut.

        key           only those that changed what stands under this key
        """
        head = self._branches.resolve(ref)
        if head is None:
            return iter(())
        touching = None if key is None else Touching(index=CONTENT, key=key.to_index())
        return map(log_entry, log(self._rows, head.id, oldest_first=oldest_first, limit=limit, touching=touching))

    def resolve(self, ref: str | None = None, *, exact: bool = False) -> Head | None:
        """The commit that a ref means; None for a branch or tag without a commit.

        exact         for a write: RefusedError for a ref that counts back from wherever a branch is by then
        """
        return self._branches.resolve(ref, exact=exact)

    # inside

    def _check_alive(self) -> None:
        """A handle believes in its catalog for as long as one on a realm believes in the realm: looking every time would cost a round
        trip. What this process itself does to the realm's catalogs is seen at once.

        What is committed to a deleted catalog in that time is there when it is undeleted; its hold is longer.
        """
        clock = self._rows.clock
        catalogs = self._rows.find_reference(CATALOGS)
        pointer = None if catalogs is None else catalogs.pointer
        known, since = self._known
        if pointer is None or pointer != known or clock.monotonic() - since > self._rows.settings.realm_handle_ttl_seconds:
            self._branches.check_active()
            self._known = (pointer, clock.monotonic())

    def _check_branch(self, name: str) -> None:
        if self._rows.find_reference(self._branches.reference(NameKind.BRANCH, name)) is not None:
            return
        if self._branches.find(NameKind.TAG, name) is not None:
            raise RefusedError(f"{name!r} is a tag of catalog {self.definition.name!r}: commit to a branch")
        raise MissingError(f"catalog {self.definition.name!r} has no branch {name!r}")

    def _check_on_branch(self, tx: Transaction, name: str, expected: Head) -> None:
        if tx.head is None or tx.head_id is None or not is_in_history(tx.rows, tx.head_id, tx.head, expected):
            raise MissingError(f"expected commit {id_text(expected.id)} is not in the history of branch {name!r}")

    def _content(self, key: ContentKey, value: ContentValue, found: StoredObject | None) -> Content:
        where = f"content {key} of catalog {self.definition.name!r} in realm {self._rows.realm!r}"
        if found is None:
            raise UnreadableError(f"{where}: object {id_text(value.object_id)} is not there")
        if not isinstance(found, Content) or content_type_of(found) != value.type:
            raise UnreadableError(f"{where}: {type_text(value.type)} in the index, {type(found).__name__} stored")
        return with_id(found, value.content_id)
