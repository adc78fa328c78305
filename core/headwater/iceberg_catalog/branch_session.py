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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    ContentType,
    ContentValue,
    TableClaim,
    TableClaims,
    find_content_key,
    stored_metadata_of,
)
from headwater.catalogs.stored_metadata import read_metadata
from headwater.commits import Head
from headwater.errors import ConflictError, HeadwaterError, NotFoundError, RefusedError, UnavailableError, UnknownOutcomeError
from headwater.iceberg.metadata_json import join_metadata
from headwater.index import after_prefix
from headwater.store import RealmStore, id_text


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

    def type_of(self, key: ContentKey) -> ContentType | int | None:
        """The content type at a key; reads no content."""
        value = None if self.head is None else self.head.index(CONTENT).get(key.to_index())
        return None if value is None else ContentValue.from_value(value).type

    def is_namespace(self, key: ContentKey) -> bool:
        return self.type_of(key) is ContentType.NAMESPACE

    def find_metadata(self, content_id: UUID) -> bytes | None:
        """The stored metadata document of a table or view as JSON text; None if the catalog does not store it."""
        stored = None if self.head is None else stored_metadata_of(self.head.index(IDS), content_id)
        return None if stored is None else join_metadata(read_metadata(self.rows, stored))

    def key_of(self, content_id: UUID) -> ContentKey | None:
        return None if self.head is None else find_content_key(self.head.index(IDS), content_id)

    def child_namespaces(self, parent: ContentKey | None) -> Iterator[tuple[ContentKey, ContentType | int]]:
        """The keys directly below a namespace, or at the top, with their types. Deeper keys are skipped without reading them."""
        if self.head is None:
            return
        index = self.head.index(CONTENT)
        start = b"" if parent is None else parent.child_prefix()
        end = None if parent is None else after_prefix(start)
        is_over = False
        while not is_over:
            is_over = True
            for index_key, value in index.range(start, end):
                kind = ContentValue.from_value(value).type
                yield ContentKey.from_index(index_key), kind
                if kind is ContentType.NAMESPACE:
                    start, is_over = index_key + b"\x01", False  # beyond all that begins with this key and 0x00
                    break


_FIRST_WAIT, _LONGEST_WAIT = 0.005, 0.25


def _nothing() -> None:
    """The undo of a change that wrote nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchChange:
    """A change to commit, decided from one state.

    ids           content ids of the keys that are created
    claim         of the table or view, if it is new or has moved
    take_back     removes the files that were written for the change
    """

    operations: Sequence[ContentOperation]
    message: str
    ids: Mapping[ContentKey, UUID] = field(default_factory=dict)
    claim: TableClaim | None = None
    take_back: Callable[[], None] = _nothing


Plan = Callable[[BranchState], BranchChange | None]


class BranchSession:
    """A branch that is read and written; other references are only read. ``reference`` None: the catalog's default branch."""

    def __init__(
        self, catalog: Catalog, claims: TableClaims, rows: RealmStore, reference: str | None, *, author: str = ""
    ) -> None:
        self.catalog = catalog
        self.claims = claims
        self.rows = rows
        self._reference = reference
        self._author = author
        self._is_writable = reference is None

    @property
    def id(self) -> str:
        """The id of the catalog."""
        return self.catalog.definition.id

    @property
    def name(self) -> str:
        """The name of the catalog."""
        return self._reference or self.catalog.definition.default_branch

    def state(self) -> BranchState:
        """Read the branch's present state.

        raises        RefusedError while the realm is not ACTIVE: a client is a user, and what it may not write it may not read
        """
        self.rows.check_write()
        return BranchState(self.catalog, self.rows, self.catalog.resolve(self._reference))

    def commit(self, plan: Plan, *, key: ContentKey) -> None:
        """Decide and commit; decide anew from the newer state while others change the same key, for as long as a commit may take.

        plan          returns None where there is nothing to do; what it raises goes to the caller
        key           what it is about: changes of one key by threads of this process wait for each other, which spares them files
                      written in vain
        raises        ConflictError when others were always faster; RefusedError when this is no branch; what ``Catalog.commit`` raises
        """
        self._check_writable()
        clock, limit = self.rows.clock, self.rows.settings.commit_timeout_seconds
        until, wait = clock.monotonic() + limit, _FIRST_WAIT
        turn = _turns.of((self.rows.realm, self.id, self.name, key))
        has_turn = turn.acquire(timeout=limit)
        try:
            while not self._attempt(plan, is_last=clock.monotonic() >= until):
                clock.sleep(random.uniform(0, wait))
                wait = min(2 * wait, _LONGEST_WAIT)
        finally:
            if has_turn:
                turn.release()

    def _attempt(self, plan: Plan, *, is_last: bool) -> bool:
        """Make one attempt; False if another commit was faster."""
        state = self.state()
        change = plan(state)
        if change is None:
            return True
        try:
            self._apply(state, change)
        except UnknownOutcomeError:
            raise
        except HeadwaterError as fault:
            change.take_back()
            if is_last or not self._is_beaten(fault, state):
                raise
            return False
        return True

    def _apply(self, state: BranchState, change: BranchChange) -> None:
        taken = self.claims.claim_time()
        if change.claim is not None:
            self._take(change.claim, change.message)

        def fence() -> None:
            if change.claim is not None:
                self.claims.check_held(taken)  # a process that slept in between has to claim again

        self.catalog.commit(
            self._reference,
            change.operations,
            expected=None if state.head is None else state.head.id,
            meta=CommitMeta(message=change.message, authors=(self._author,) if self._author else ()),
            content_ids=change.ids,
            fence=fence,
        )

    def check_free(self, claim: TableClaim, what: str) -> None:
        """Check that a claim could be taken now; raises the RefusedError that taking it would raise."""
        _check_no_conflict(self.claims.find_conflicts([claim]), what)

    def _take(self, claim: TableClaim, what: str) -> None:
        try:
            conflicts = self.claims.take_claims([claim])
        except UnknownOutcomeError as fault:  # whether it was taken or not, nothing was committed, and it can be taken again
            raise UnavailableError(f"{what} did not happen, for its claim may not have been taken: {fault}") from fault
        _check_no_conflict(conflicts, what)

    def _is_beaten(self, fault: HeadwaterError, state: BranchState) -> bool:
        """True if a newer state may give another answer."""
        if isinstance(fault, ConflictError):
            return True
        if isinstance(fault, NotFoundError):  # the branch was put elsewhere, where the expected commit never was
            now = self.state().head
            return state.head is not None and (None if now is None else now.id) != state.head.id
        # an empty branch has no commit to expect, so a competing first commit shows as an unsound request
        return isinstance(fault, RefusedError) and state.head is None and self.state().head is not None

    def _check_writable(self) -> None:
        if self._is_writable or self._reference is None:
            return
        try:
            self.catalog.branch(self._reference)
        except NotFoundError as fault:
            raise RefusedError(f"{self._reference!r} is not a branch of {self.catalog.label}: it can only be read") from fault
        self._is_writable = True


def _check_no_conflict(conflicts: Sequence[ClaimConflict], what: str) -> None:
    if conflicts:
        raise RefusedError(
            f"{what}: {conflicts[0]}; two tables in one place would delete each other's files."
            " What was dropped, or never came to be, is free again once no kept commit holds it, after a collection"
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
