"""A branch as its callers read and write it: states to read, and changes that are decided again when another commit was faster.

    plan(state) -> change      from the branch's present state; writes the metadata file that the change points to
    claim                      if the table is new, or has moved
    commit                     expected: the commit of that state
    beaten on this key         the file is removed, and it begins again; beaten on another key: nothing to do, both hold

A file that was written to storage is removed only when the commit certainly did not happen.
"""

from __future__ import annotations

import os
import random
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import partial
from uuid import UUID

from headwater.catalogs import (
    CONTENT,
    IDS,
    Catalog,
    ClaimConflict,
    CommitMeta,
    Content,
    ContentKey,
    ContentOperation,
    ContentPage,
    ContentType,
    ContentValue,
    IcebergTable,
    Put,
    RequestKey,
    TableClaim,
    TableClaims,
    Unmodified,
    conflicts_beside_history,
    find_content_key,
    find_content_keys,
    stored_metadata_of,
    take_over_history,
)
from headwater.catalogs.stored_metadata import read_metadata
from headwater.clock import Micros
from headwater.commits import CommitResult, Head
from headwater.errors import (
    ConflictError,
    ExpiredError,
    HeadwaterError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnknownOutcomeError,
)
from headwater.iceberg.metadata_json import join_metadata
from headwater.iceberg_catalog.lake_errors import ReadOnlyReferenceError
from headwater.store import ObjectId, RealmStore, id_text


@dataclass(frozen=True, slots=True)
class BranchState:
    """One commit of a catalog as it is read; ``head`` is None before the first commit."""

    catalog: Catalog
    rows: RealmStore
    head: Head | None

    def find_content(self, key: ContentKey) -> Content | None:
        return None if self.head is None else self.catalog.get_content(id_text(self.head.id), key)

    def find_many(self, keys: list[ContentKey]) -> dict[ContentKey, Content]:
        return {} if self.head is None else self.catalog.get_contents(id_text(self.head.id), keys)

    def find_value(self, key: ContentKey) -> ContentValue | None:
        """What the index has at a key; reads no content."""
        value = None if self.head is None else self.head.index(CONTENT).get(key.to_index())
        return None if value is None else ContentValue.from_value(value)

    def type_of(self, key: ContentKey) -> ContentType | int | None:
        """The content type at a key; reads no content."""
        value = self.find_value(key)
        return None if value is None else value.type

    def is_namespace(self, key: ContentKey) -> bool:
        return self.type_of(key) is ContentType.NAMESPACE

    def find_metadata(self, content_id: UUID) -> bytes | None:
        """The stored metadata document of a table or view as JSON text; None if the catalog does not store it."""
        stored = self.find_metadata_id(content_id)
        return None if stored is None else join_metadata(read_metadata(self.rows, stored))

    def find_metadata_id(self, content_id: UUID) -> ObjectId | None:
        """The object that holds the metadata document; None if the catalog does not store it. Reads no document."""
        return None if self.head is None else stored_metadata_of(self.head.index(IDS), content_id)

    def key_of(self, content_id: UUID) -> ContentKey | None:
        return None if self.head is None else find_content_key(self.head.index(IDS), content_id)

    def keys_of(self, content_ids: Iterable[UUID]) -> Mapping[UUID, ContentKey]:
        """The keys of those contents that are there."""
        return {} if self.head is None else find_content_keys(self.head.index(IDS), content_ids)

    def first_child(self, key: ContentKey) -> ContentKey | None:
        """The first key directly below a namespace."""
        page = None if self.head is None else self.catalog.children(id_text(self.head.id), key, limit=1)
        return page.entries[0].key if page is not None and page.entries else None


_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.25


def _nothing() -> None:
    """The undo of a change that wrote nothing, and the fence of one that claimed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchChange:
    """A change to commit, decided from one state.

    ids           content ids of the keys that are created
    claims        of the tables or views that are new or have moved
    take_back     removes the files that were written for the change
    is_new        it creates what nobody had before: its uuids were drawn here, and no caller named them
    same_data     the tables that keep the files that they have, and the place: only other metadata of them changes
    """

    operations: Sequence[ContentOperation]
    message: str
    ids: Mapping[ContentKey, UUID] = field(default_factory=dict)
    claims: Sequence[TableClaim] = ()
    take_back: Callable[[], None] = _nothing
    is_new: bool = False
    same_data: frozenset[ContentKey] = frozenset()


Plan = Callable[[BranchState], BranchChange | None]
BranchGuard = Callable[[BranchState, BranchChange], None]
"""Asked about each change, with the very state that it is applied to; raises what the caller is told when it may not be made."""


TakeUp = Callable[[Mapping[UUID, Put], Callable[[], BranchState]], None]
"""Takes up the marked files that puts of tables, by content id, name again; given a way to read the state that they change."""


def allow_all(state: BranchState, change: BranchChange) -> None:
    """The guard of whoever opens the store: there is nobody to ask."""


class _Attempt(Enum):
    """How an attempt ended that decided anything itself."""

    DONE = auto()
    BEATEN = auto()


class BranchSession:
    """A branch that is read and written; other references are only read.

    reference     None: the catalog's default branch
    guard         asked about every change, before anything is claimed; a change that it refuses leaves no file behind
    """

    def __init__(
        self,
        catalog: Catalog,
        claims: TableClaims,
        rows: RealmStore,
        reference: str | None,
        *,
        author: str = "",
        committer: str = "",
        guard: BranchGuard = allow_all,
    ) -> None:
        self.catalog = catalog
        self.claims = claims
        self.rows = rows
        self._reference = reference
        self.author = author
        self._committer = committer
        self._guard = guard
        self._is_writable = reference is None
        self._take_up: TakeUp | None = None

    def watch_takes(self, take_up: TakeUp) -> None:
        """Have every change examined, just before its commit, for marked files that its tables name again."""
        self._take_up = take_up

    @property
    def id(self) -> str:
        """The id of the catalog."""
        return self.catalog.definition.id

    @property
    def name_of_catalog(self) -> str:
        return self.catalog.definition.name

    @property
    def name(self) -> str:
        """The name of the reference."""
        return self._reference or self.catalog.definition.default_branch

    @property
    def now_ms(self) -> int:
        """The present time, as Iceberg's documents have it."""
        return self.rows.clock.now() // 1000

    def state(self) -> BranchState:
        """Read the branch's present state.

        raises        RefusedError while the realm is not ACTIVE: a client is a user, and what it may not write it may not read
        """
        self.rows.check_write()
        return BranchState(self.catalog, self.rows, self.catalog.resolve(self._reference))

    def children(
        self, parent: ContentKey | None, content_type: ContentType, *, token: str | None, limit: int | None
    ) -> ContentPage:
        """List the contents of one type directly below a namespace, or at the top; see ``Catalog.children``."""
        return self.catalog.children(self._reference, parent, content_types=[content_type], token=token, limit=limit)

    def state_of(self, commit_id: ObjectId) -> BranchState:
        """What a commit of the branch holds, for the repeat of a request; raises UnknownOutcomeError when it was collected."""
        try:
            return BranchState(self.catalog, self.rows, self.catalog.resolve(id_text(commit_id)))
        except ExpiredError as fault:  # "not found" would tell the author of the request that it failed
            raise UnknownOutcomeError(f"the request was applied, too long ago to say what came of it: {fault}") from fault

    def state_before(self, commit_id: ObjectId) -> BranchState:
        """What the branch held before a commit of it; raises as ``state_of`` does."""
        commit = self.state_of(commit_id).head
        return (
            self.state_of(commit.commit.tail[0])
            if commit and commit.commit.tail
            else BranchState(self.catalog, self.rows, None)
        )

    def confirm_state(self) -> None:
        """Make durable what the branch shows, before it is reported as the outcome of an earlier request; raises UnknownOutcomeError."""
        self.catalog.confirm_branch(self._reference)

    def was_applied(self, request: RequestKey) -> bool:
        """True if an earlier commit of the branch has applied a request."""
        return self.catalog.find_request(self._reference, self.state().head, request) is not None

    def may_show(self, state: BranchState, *keys: ContentKey) -> bool:
        """Whether the guard lets what stands at some keys be shown, where an answer would tell of more than its caller asked about."""
        try:
            self._guard(state, BranchChange(operations=[Unmodified(key) for key in keys], message="show"))
        except (NotFoundError, RefusedError):
            return False
        return True

    def was_deleted(self) -> bool:
        """True if the reference is a branch that was deleted, and can be restored."""
        return any(branch.name == self.name for branch, _ in self.catalog.deleted_branches())

    def carry_out(self, plan: Plan, *, keys: Sequence[ContentKey], request: RequestKey | None = None) -> ObjectId | None:
        """Decide and commit; decide anew from the newer state while others change the same keys, for as long as a commit may take.

        plan          returns None where there is nothing to do; what it raises goes to the caller
        keys          what it is about: changes of one key by threads of this process wait for each other, which spares them files
                      written in vain
        request       if an earlier commit has applied it, nothing is decided
        returns       the earlier commit that has applied the request; None if this call has
        raises        ConflictError when others were always faster; RefusedError when this is no branch; what ``Catalog.commit`` raises
        """
        self.check_writable()
        clock, limit = self.rows.clock, self.rows.settings.commit_timeout_seconds
        until, wait = clock.monotonic() + limit, _FIRST_WAIT
        with self._turns_of(keys, until):
            while (attempt := self._attempt(plan, request, is_last=clock.monotonic() >= until)) is _Attempt.BEATEN:
                clock.sleep(random.uniform(0, wait))
                wait = min(2 * wait, _LONGEST_WAIT)
        return None if attempt is _Attempt.DONE else attempt

    @contextmanager
    def _turns_of(self, keys: Sequence[ContentKey], until: float) -> Iterator[None]:
        """Have the turns of these keys, or go on without those that were not free in time.

        All threads take them in the order of keys: none waits for one that waits for it.
        """
        held = []
        try:
            for key in sorted(set(keys)):
                turn = _turns.of((self.rows.realm, self.id, self.name, key))
                if turn.acquire(timeout=max(until - self.rows.clock.monotonic(), 0)):
                    held.append(turn)
            yield
        finally:
            for turn in reversed(held):
                turn.release()

    def _attempt(self, plan: Plan, request: RequestKey | None, *, is_last: bool) -> _Attempt | ObjectId:
        """Decide and commit once; returns the earlier commit if one has applied the request."""
        state = self.state()
        # before it is decided: what the request has done itself would contradict it
        applied = None if request is None else self.catalog.find_request(self._reference, state.head, request)
        if applied is not None:
            self.confirm_state()
            return applied.commit_id
        change = plan(state)
        if change is None:
            return _Attempt.DONE
        try:
            self._guard(state, change)
            earlier = self._apply(state, change, request)
        except UnknownOutcomeError:
            raise
        except HeadwaterError as fault:
            change.take_back()
            if is_last or not self.is_beaten(fault, state):
                raise
            return _Attempt.BEATEN
        if earlier is None:
            return _Attempt.DONE
        change.take_back()
        return earlier

    def _apply(self, state: BranchState, change: BranchChange, request: RequestKey | None) -> ObjectId | None:
        """Claim and commit. Returns the earlier commit if one has applied the request: then this one did not happen."""
        done = self.apply_change(
            change,
            expected=None if state.head is None else state.head.id,
            meta=CommitMeta(message=change.message, authors=(self.author,) if self.author else ()),
            request=request,
        )
        return done.commit_id if done.is_replay else None

    def apply_change(
        self,
        change: BranchChange,
        *,
        expected: ObjectId | None,
        meta: CommitMeta,
        request: RequestKey | None = None,
        allow_empty: bool = False,
    ) -> CommitResult[dict[ContentKey, UUID]]:
        """Claim and commit once; nobody is asked, and nothing is taken back.

        meta          its committer is left out: that is the session's
        raises        RefusedError for a place that is taken; UnavailableError where a claim may not have been taken; what
                      ``Catalog.commit`` raises
        """
        fence = self.hold_claims(change.claims, change.message)
        return self.catalog.commit(
            self._reference,
            change.operations,
            expected=expected,
            meta=replace(meta, committer=self._committer),
            content_ids=change.ids,
            request=request,
            allow_empty=allow_empty,
            examined=self._examined(change, expected),
            fence=fence,
        )

    def _examined(self, change: BranchChange, expected: ObjectId | None) -> Collection[UUID]:
        """The tables whose new files were held against their marks."""
        if self._take_up is None:
            return ()
        puts = _put_tables(change.operations, change.ids)
        if puts:
            self._take_up(puts, self.state if expected is None else partial(self.state_of, expected))
        return puts.keys()

    def hold_claims(self, claims: Sequence[TableClaim], what: str) -> Callable[[], None]:
        """Take claims, if there are any, for a commit that follows at once.

        what          the commit, for messages
        returns       the fence of that commit: a process that slept in between has to claim again
        raises        RefusedError for a place that is taken; UnavailableError where it may not have been taken
        """
        taken = self.claims.claim_time()
        if not claims:
            return _nothing
        self._take(claims, what)
        return partial(self._check_held, claims, taken)

    def _check_held(self, claims: Sequence[TableClaim], taken: Micros) -> None:
        self.claims.check_held(taken)
        self.claims.check_own(claims)

    def check_rights(self, state: BranchState, change: BranchChange) -> None:
        """Ask the guard about a change of a state; raises what the caller is told when it may not be made."""
        self._guard(state, change)

    def may_list(self, state: BranchState, key: ContentKey) -> bool:
        """Whether the caller may know what stands at a key, or that nothing does."""
        try:
            self._guard(state, BranchChange(operations=[Unmodified(key)], message="list"))
        except NotFoundError:
            return False
        except RefusedError:  # forbidden, which is told of what may be listed
            return True
        return True

    def check_writable(self) -> None:
        """Check that the reference is a branch; raises NotFoundError where nothing has its name, ReadOnlyReferenceError otherwise."""
        if self._is_writable or self._reference is None:
            return
        try:
            self.catalog.branch(self._reference)
        except NotFoundError as fault:
            self.catalog.resolve(self._reference)
            said = f"{self._reference!r} is not a branch of {self.catalog.label}: it can only be read"
            raise ReadOnlyReferenceError(said) from fault
        self._is_writable = True

    def check_free(self, claims: Sequence[TableClaim], what: str) -> None:
        """Check that claims could be taken now; raises the RefusedError that taking them would raise."""
        _check_no_conflict(conflicts_beside_history(self.claims, claims), what)

    def _take(self, claims: Sequence[TableClaim], what: str) -> None:
        try:
            conflicts = take_over_history(self.claims, claims)
        except UnknownOutcomeError as fault:  # whether it was taken or not, nothing was committed, and it can be taken again
            raise UnavailableError(f"{what} did not happen, for its claim may not have been taken: {fault}") from fault
        _check_no_conflict(conflicts, what)

    def is_beaten(self, fault: HeadwaterError, state: BranchState) -> bool:
        """True if a change that failed on a state may be possible on a newer one."""
        if isinstance(fault, ConflictError):
            return True
        if isinstance(fault, NotFoundError):  # the branch was put elsewhere, where the expected commit never was
            now = self.state().head
            return state.head is not None and (None if now is None else now.id) != state.head.id
        # an empty branch has no commit to expect, so a competing first commit shows as an unsound request
        return isinstance(fault, RefusedError) and state.head is None and self.state().head is not None


def _put_tables(operations: Iterable[ContentOperation], content_ids: Mapping[ContentKey, UUID]) -> dict[UUID, Put]:
    """The Iceberg tables that operations put under content ids that are known before the commit.

    content_ids   of the keys that are created
    """
    puts = (each for each in operations if isinstance(each, Put) and isinstance(each.content, IcebergTable))
    identified = ((put.content.id or content_ids.get(put.key), put) for put in puts)
    return {content_id: put for content_id, put in identified if content_id is not None}


def _check_no_conflict(conflicts: Sequence[ClaimConflict], what: str) -> None:
    if conflicts:
        raise RefusedError(
            f"{what}: {conflicts[0]}; two tables in one place would delete each other's files."
            " What was dropped, or never came to be, is free for its own catalog once no branch and no tag holds it, and for others"
            " after a collection once no kept commit does, or by `headwater table release`"
        )


class _Turn:
    """A reentrant lock: its owner never waits for itself."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release


class _Turns:
    """Locks by key, each kept as long as a thread has it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all locks in a forked child: those that other threads of the parent hold would never be released there."""
        self._guard = threading.Lock()
        self._locks: weakref.WeakValueDictionary[object, _Turn] = weakref.WeakValueDictionary()

    def of(self, subject: object) -> _Turn:
        with self._guard:
            return self._locks.setdefault(subject, _Turn())


_turns = _Turns()
os.register_at_fork(after_in_child=_turns.forget)
