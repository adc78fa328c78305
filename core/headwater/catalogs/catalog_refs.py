"""The branches and tags of one catalog: listed in its reference ``refs``, each a reference of its own.

A name is listed before its row is made, and leaves the list only when the collector has removed the row's tombstone.
``NameReservation`` makes a name, so that of two who want it at once only one gets it. It lists the name anew even where the
name is listed: the entry that stands there may belong to a tombstone under collection, and only the new time tells the
collector that the name is wanted again.

    the collector                          somebody creates the branch
    removes the tombstone of x
                                           lists x (time now), creates its row
    looks at the entry of x: too young, so it stays

A process that sleeps between the two until the entry is old may find the name given up, or about to be. It takes the row away
again, and begins anew.

A name is a branch or a tag. The list decides which, because it is one row: the later listing has the name, and beats whoever is
still about to make the other's row.

    who wants the tag x                        who wants the branch x
    lists the tag
    reads the tag's row: none
    looks at the list: no later branch
                                               lists the branch; the tag is listed, too
                                               puts a tombstone where the tag's row would be
    creates the row as it was read: beaten
    looks at the list: a later branch, lost    looks at the list, creates the branch's row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from headwater.catalogs.catalog_definition import CatalogDefinition, CatalogState
from headwater.catalogs.content.content_operations import Conflict, ConflictKind
from headwater.catalogs.history.commit_meta import is_in_history
from headwater.catalogs.history.revspec import DEFAULT_REF, RevSpec, StepSign, check_exact, follow_steps, parse_revspec
from headwater.catalogs.known_metadata import note_forgotten
from headwater.catalogs.registry import (
    CATALOGS,
    REFS_INDEX,
    ListedRef,
    OwnRefKind,
    RefKind,
    checked_ref_name,
    content_reference,
    find_definition,
    listed_refs,
    own_reference,
    parse_reference,
    ref_key,
)
from headwater.clock import Micros
from headwater.commits import (
    Head,
    Transaction,
    assign_reference,
    commit_change,
    complete_operation,
    create_reference_at,
    load_head,
    read_commit,
    read_head,
)
from headwater.errors import (
    ConflictError,
    ExpiredError,
    FencedError,
    NotFoundError,
    RefusedError,
    SwapConflictError,
    UnavailableError,
)
from headwater.store import ObjectId, RealmStore, Reference, id_text

_TRIES = 20


@dataclass(frozen=True, slots=True)
class NamedRef:
    """A branch or tag. ``head`` None: nothing was committed yet."""

    kind: RefKind
    name: str
    head: ObjectId | None
    created: Micros

    @property
    def hash(self) -> str | None:
        return None if self.head is None else id_text(self.head)


class CatalogRefs:
    """Lists, makes, moves and removes the branches and tags of a catalog.

    definition    of the catalog, as it was seen last
    """

    def __init__(self, rows: RealmStore, definition: CatalogDefinition) -> None:
        self._rows = rows
        self.definition = definition
        self._known: tuple[ObjectId | None, float] = (None, 0.0)

    @property
    def _place(self) -> str:
        """For messages: whose branches and tags these are."""
        return f"catalog {self.definition.name!r} of realm {self._rows.realm!r}"

    def reference(self, kind: RefKind, name: str) -> str:
        return content_reference(self.definition.id, kind, name)

    def list_alive(self, kind: RefKind) -> list[NamedRef]:
        """Those that are alive, by name."""
        names = read_head(self._rows, own_reference(self.definition.id, OwnRefKind.REFS), fresh=True)
        listed = [] if names is None else [entry.name for entry in listed_refs(names.index(REFS_INDEX), kind)]
        rows = self._rows.find_rows([self.reference(kind, name) for name in listed])
        return [
            _ref_of_row(kind, name, row)
            for name, row in zip(listed, rows, strict=True)
            if row is not None and row.deleted is None
        ]

    def find_ref(self, kind: RefKind, name: str) -> NamedRef | None:
        row = self._find_row(kind, name)
        return None if row is None else _ref_of_row(kind, name, row)

    def read_ref(self, kind: RefKind, name: str) -> NamedRef:
        found = self.find_ref(kind, name)
        if found is None:
            raise NotFoundError(f"{self._place} has no {kind} {name!r}")
        return found

    def create_ref(self, kind: RefKind, name: str, *, source: str | None = None, at: ObjectId | None = None) -> NamedRef:
        """Make a branch or tag at a commit.

        source        branch or tag to start from, or a commit such as ``main@hash~2``; the default branch if neither is given
        at            a commit: of the history of ``source``, or of any branch or tag
        raises        RefusedError for a bad name, or a commit that is in no such history or not kept any more; ConflictError when
                      the name is taken; NotFoundError for an unknown source; ExpiredError for a collected commit
        """
        checked_ref_name(kind, name)
        target, among = self._start(source, at)
        self._check_free(kind, name)
        self._note_forgotten(kind, self._rows.find_row(self.reference(kind, name)), target)

        try:
            return _ref_of_row(kind, name, self.reserve_name(kind, name).make(target, among))
        except SwapConflictError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._place} was not created: {fault}") from fault

    def ensure_branch(self, name: str) -> None:
        """Make an empty branch unless it is there.

        raises        ConflictError when the name was taken for a tag
        """
        kind = RefKind.BRANCH
        if self._find_row(kind, name) is not None:
            return
        try:
            self.reserve_name(kind, checked_ref_name(kind, name)).make(None, [])
        except SwapConflictError as fault:
            if self._find_row(kind, name) is None:  # otherwise another one made it, which is as good
                raise ConflictError(f"{kind} {name!r} of {self._place} was not created: {fault}") from fault

    def assign_ref(self, kind: RefKind, name: str, target: ObjectId, *, expected: ObjectId | None = None) -> NamedRef:
        """Put a branch or tag on another commit of this catalog; what it leaves stays readable for the grace.

        target        a commit in the kept history of any branch or tag
        expected      the head that the caller saw
        raises        ConflictError when the head is another; ExpiredError when the target was collected; RefusedError when it is
                      in no kept history, or a sweep is on and it is no head
        """
        row = self._read_row(kind, name)
        self._check_expected(kind, name, row, expected)
        self.read_commit(target)
        self._note_forgotten(kind, row, target)
        try:
            moved = assign_reference(self._rows, row.name, target, expected=row.pointer, among=self._all_references())
        except ConflictError as fault:
            raise self._unexpected(kind, name, row.pointer, self._read_row(kind, name).pointer) from fault
        except SwapConflictError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._place} was moved by another just now") from fault
        return _ref_of_row(kind, name, moved)

    def delete_ref(
        self, kind: RefKind, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None
    ) -> NamedRef:
        """Delete a branch or tag; its tombstone keeps what it pointed to readable for the grace.

        expected      the head that the caller saw
        fence         called after it was read: whoever makes it anew after that is left alone
        raises        RefusedError for the default branch; ConflictError when the head is another; NotFoundError
        """
        if kind is RefKind.BRANCH and name == self.check_active().default_branch:
            raise RefusedError(f"branch {name!r} is the default branch of {self._place}: it goes with the catalog")
        for _ in range(_TRIES):
            row = self._read_row(kind, name)
            self._check_expected(kind, name, row, expected)
            fence()
            try:
                self._rows.delete_reference(row)
            except SwapConflictError:
                continue
            return _ref_of_row(kind, name, row)
        raise UnavailableError(f"{kind} {name!r} of {self._place} moved {_TRIES} times while it was to be deleted")

    def undelete_ref(self, kind: RefKind, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedRef:
        """Bring a deleted branch or tag back to the commit that it was at, as long as its tombstone stands: for the grace at least.

        fence         called once it is listed: who sleeps before that wakes to it, and who sleeps after it is too late to make the row
        raises        NotFoundError when there is no tombstone (any more) · ConflictError when the name is taken · RefusedError
                      while a collection sweeps, or when its commit is garbage already
        """
        self.check_active()
        self._check_free(kind, name, "undelete")
        row = self._rows.find_row(self.reference(kind, name))
        if row is None:
            raise NotFoundError(f"{self._place} has no deleted {kind} {name!r}: it never was, or was collected after its grace")
        self._note_forgotten(kind, row, row.pointer)
        try:
            return _ref_of_row(kind, name, self.reserve_name(kind, name).make(row.pointer, [row.name], fence=fence))
        except FencedError:
            raise
        except SwapConflictError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._place} was not undeleted: {fault}") from fault

    def list_deleted(self, kind: RefKind) -> list[tuple[NamedRef, Micros]]:
        """Those that were deleted and can come back, by name, each with the time of its deletion."""
        names = read_head(self._rows, own_reference(self.definition.id, OwnRefKind.REFS), fresh=True)
        listed = [] if names is None else [entry.name for entry in listed_refs(names.index(REFS_INDEX), kind)]
        rows = self._rows.find_rows([self.reference(kind, name) for name in listed])
        return [
            (_ref_of_row(kind, name, row), row.deleted)
            for name, row in zip(listed, rows, strict=True)
            if row is not None and row.deleted is not None
        ]

    def resolve(self, text: str | None, *, exact: bool = False) -> Head | None:
        """The commit that a text means now, in the grammar of ``history.revspec``. None or an empty text: the default branch.

        A branch goes before a tag of its name. ``name@hash`` is a commit in the history of that branch or tag.

        exact         for a write: refuse what counts back from wherever a branch is by then, such as ``main~1``
        returns       None for a branch or tag without a commit
        raises        RefusedError for what is no reference; NotFoundError; ExpiredError for a commit that was collected, or a
                      history that was cut before the answer was found
        """
        told = parse_revspec(text or DEFAULT_REF)
        if exact:
            check_exact(told)
        row = None if told.name is None else self._read_named(told.name)
        start = self._commit_of(told, row)
        named = row if told.commit is None else None
        is_moment = named is not None and bool(told.steps) and told.steps[0].way is StepSign.TIME
        if start is None and told.steps and not is_moment:
            raise NotFoundError(f"{told.text!r} is no commit: nothing was committed to {told.name!r} of {self._place} yet")
        return follow_steps(self._rows, start, told, row=named, what=None if named is None else lambda: self._words(named))

    def _words(self, row: Reference) -> str:
        """A branch or tag of this catalog as people know it."""
        part = parse_reference(row.name)
        return f"{repr(row.name) if part is None else f'{part.part} {part.name}'} of catalog {self.definition.name}"

    def _commit_of(self, told: RevSpec, row: Reference | None) -> Head | None:
        """The commit that stands before the steps."""
        if told.commit is None:
            return None if row is None else load_head(self._rows, row)
        found = self.read_commit(told.commit)
        if row is None:
            return found
        there = load_head(self._rows, row)
        if there is None or not is_in_history(self._rows, there.id, there.commit, found):
            raise NotFoundError(
                f"commit {id_text(found.id)} is not in the history of {told.name!r} of {self._place}:"
                f" @{id_text(found.id)} alone means it wherever it is"
            )
        return found

    def read_commit(self, commit_id: ObjectId) -> Head:
        """A commit of this catalog.

        raises        NotFoundError when it is another's; ExpiredError when it was collected
        """
        return self.check_own(read_commit(self._rows, commit_id))

    def check_own(self, found: Head) -> Head:
        """The commit, if it is one of this catalog; NotFoundError when it is another's."""
        if found.commit.properties.get("catalog") != self.definition.id:
            raise NotFoundError(f"commit {id_text(found.id)} is not one of {self._place}")
        return found

    def _start(self, source: str | None, at: ObjectId | None) -> tuple[ObjectId | None, list[str]]:
        """The commit that a new name starts from, and the references in whose history it may be."""
        if at is not None and source is None:
            return self.read_commit(at).id, self._all_references()
        told = parse_revspec(source or DEFAULT_REF)
        check_exact(told)
        if at is not None:
            if told.commit is not None:
                raise RefusedError(
                    f"the source {told.text!r} says already at which commit to start: give no other one beside it"
                )
            try:
                self.resolve(f"{told.name or DEFAULT_REF}@{id_text(at)}")
            except NotFoundError as fault:
                if isinstance(fault, ExpiredError):
                    raise
                raise RefusedError(str(fault)) from fault
            return at, [self._read_named(told.name or DEFAULT_REF).name]
        if told.commit is None:
            row = self._read_named(told.name or DEFAULT_REF)
            return row.pointer, [row.name]
        found = self.resolve(told.text)
        among = self._all_references() if told.name is None else [self._read_named(told.name).name]
        return None if found is None else found.id, among

    def _read_named(self, name: str) -> Reference:
        name = self.default_branch() if name == DEFAULT_REF else name
        for kind in RefKind:
            row = self._find_row(kind, name)
            if row is not None:
                return row
        raise NotFoundError(f"{self._place} has no branch, tag or commit {name!r}")

    def _all_references(self) -> list[str]:
        """Every listed name, those under a tombstone too: what they hold is kept for the grace."""
        names = read_head(self._rows, own_reference(self.definition.id, OwnRefKind.REFS), fresh=True)
        return [] if names is None else [entry.reference(self.definition.id) for entry in listed_refs(names.index(REFS_INDEX))]

    def _check_free(self, kind: RefKind, name: str, verb: str = "create") -> None:
        """A name is a branch or a tag. Where a release before this one made both, the branch is read."""
        for taken in RefKind:
            if self._find_row(taken, name) is not None:
                raise ConflictError(f"cannot {verb} {kind} {name!r}: {self._place} has a {taken} of this name")

    def _note_forgotten(self, kind: RefKind, row: Reference | None, target: ObjectId | None) -> None:
        """What a branch leaves is recorded in its row, and what it left long ago is forgotten there: that alone may be news by then."""
        if kind is RefKind.BRANCH and row is not None:
            note_forgotten(self._rows, self.definition, row, target)

    def reserve_name(self, kind: RefKind, name: str) -> NameReservation:
        """A wish for a name, which is not known yet to be free."""
        return NameReservation(self._rows, self.definition.id, kind, name, self._place, self.check_active)

    def check_active(self) -> CatalogDefinition:
        """The definition as it is now, which this handle believes in from here on; NotFoundError when the catalog was deleted."""
        now = find_definition(self._rows, catalog_id=self.definition.id)
        if now is None or now.state is not CatalogState.ACTIVE:
            raise NotFoundError(f"{self._place} was deleted")
        self.definition = now
        return now

    def check_alive(self) -> CatalogDefinition:
        """A handle believes in its catalog for as long as one on a realm believes in the realm: looking every time would cost a round
        trip. What this process itself does to the realm's catalogs is seen at once.

        What is committed to a deleted catalog in that time is there when it is undeleted; its hold is longer.
        """
        clock = self._rows.clock
        catalogs = self._rows.find_reference(CATALOGS)
        pointer = None if catalogs is None else catalogs.pointer
        known, since = self._known
        if pointer is None or pointer != known or clock.monotonic() - since > self._rows.settings.realm_handle_ttl_seconds:
            self.check_active()
            self._known = (pointer, clock.monotonic())
        return self.definition

    def default_branch(self) -> str:
        """Its name, by a definition that is no older than ``check_alive`` lets it be; of a deleted catalog, the last."""
        with suppress(NotFoundError):
            self.check_alive()
        return self.definition.default_branch

    def _check_expected(self, kind: RefKind, name: str, row: Reference, expected: ObjectId | None) -> None:
        if expected is not None and row.pointer != expected:
            raise self._unexpected(kind, name, expected, row.pointer)

    def _unexpected(self, kind: RefKind, name: str, expected: ObjectId | None, found: ObjectId | None) -> ConflictError:
        wanted, there = ("no commit" if one is None else id_text(one) for one in (expected, found))
        text = f"{kind} {name!r} of {self._place} is at {there}, expected {wanted}: look again"
        return ConflictError(text, details=(Conflict(ConflictKind.UNEXPECTED_HASH, None, text),))

    def _find_row(self, kind: RefKind, name: str) -> Reference | None:
        return self._rows.find_reference(self.reference(kind, name), fresh=True)

    def _read_row(self, kind: RefKind, name: str) -> Reference:
        row = self._find_row(kind, name)
        if row is None:
            raise NotFoundError(f"{self._place} has no {kind} {name!r}")
        return row


def _ref_of_row(kind: RefKind, name: str, row: Reference) -> NamedRef:
    return NamedRef(kind, name, row.pointer, row.created)


_RESERVE_TRIES = 20


def _no_fence() -> None:
    """Nobody can take this work over."""


@dataclass(frozen=True, slots=True)
class NameReservation:
    """A wish for a name.

    place         whose it is, for messages
    check_active  raises NotFoundError when the catalog was deleted
    """

    rows: RealmStore
    catalog_id: str
    kind: RefKind
    name: str
    place: str
    check_active: Callable[[], object]

    def list_name(self) -> Micros:
        """Commit the name to the list, with the time that is returned, whether or not it stands there; never while it is alive.

        So who looks at the past knows of a name that was listed later that it was not alive then. A creator that was stopped after it
        found the name free would deny the branch of another one, that was made in between.

        raises        SwapConflictError: it is alive, as a branch or as a tag
        """

        def change(tx: Transaction) -> tuple[Micros, bool]:
            self.check_active()
            for kind, row in zip(RefKind, tx.reader.find_rows([self._reference(kind) for kind in RefKind]), strict=True):
                if row is not None and row.deleted is None:
                    raise SwapConflictError(f"{kind} {self.name!r} of {self.place} is there already")
            names, key = tx.index(REFS_INDEX), ref_key(self._other, self.name)
            other = names.get(key)
            # later than the other, also where a clock that was ahead has listed that
            after = Micros(0) if other is None else Micros(ListedRef.from_entry(key, other).listed + 1)
            entry = ListedRef(self.kind, self.name, max(tx.time, after))
            names.put(entry.key, entry.to_value())
            return entry.listed, other is not None

        listed, is_contested = commit_change(self.rows, self._list, change, message=f"list {self.kind} {self.name}").result
        if is_contested:
            self._beat_other()
        return listed

    def make(self, target: ObjectId | None, among: Iterable[str], *, fence: Callable[[], None] = _no_fence) -> Reference:
        """List the name and make its row, both within the time in which no collector gives a listed name up.

        To look at the list afterwards would not do: the collector may have seen that there is no row, and remove the name only then.

        target        the commit that it begins at; None: none
        among         names of references in whose history that may be
        fence         called once it is listed
        raises        SwapConflictError: another was faster · UnknownOutcomeError: it was made too late, and could not be taken back · what
                      ``create_reference_at`` raises
        """
        clock, bound, reference = self.rows.clock, self.rows.settings.clock_bound_seconds, self._reference(self.kind)
        for _ in range(_RESERVE_TRIES):
            started, began = clock.monotonic(), clock.now()
            listed = self.list_name()
            fence()
            made = create_reference_at(self.rows, reference, target, among=among, check=partial(self._check_mine, listed))
            # made of a tombstone: as long as that stood, the name was not given up, and the swap shows that it stood to the end
            if clock.monotonic() - started <= bound or made.created < began:
                return made
            done = f"{self.kind} {self.name!r} of {self.place} may have been created"
            complete_operation(self.rows, partial(self._take_back, made), done=done)
        raise UnavailableError(f"{self.kind} {self.name!r} of {self.place} took too long to create: try again")

    # inside

    @property
    def _list(self) -> str:
        return own_reference(self.catalog_id, OwnRefKind.REFS)

    @property
    def _other(self) -> RefKind:
        return RefKind.TAG if self.kind is RefKind.BRANCH else RefKind.BRANCH

    def _reference(self, kind: RefKind) -> str:
        return content_reference(self.catalog_id, kind, self.name)

    def _beat_other(self) -> None:
        """Let whoever has read the other's row fail to make it: they look at the list then, and find this name listed later.

        raises        SwapConflictError: the other's row is alive by now
        """
        for _ in range(_RESERVE_TRIES):
            row = self.rows.find_row(self._reference(self._other))
            if row is not None and row.deleted is None:
                raise SwapConflictError(f"{self._other} {self.name!r} of {self.place} is there already")
            try:
                if row is None:
                    self.rows.bury_reference(self._reference(self._other))
                else:
                    self.rows.raise_version(row)
            except SwapConflictError:
                continue
            return
        raise UnavailableError(f"the name {self.name!r} of {self.place} changes all the time: try again")

    def _check_mine(self, listed: Micros) -> None:
        """Pass if the name was not listed as the other kind since. Asked between the reading of the row and its making."""
        names = read_head(self.rows, self._list, fresh=True)
        key = ref_key(self._other, self.name)
        value = None if names is None else names.index(REFS_INDEX).get(key)
        if value is not None and ListedRef.from_entry(key, value).listed > listed:
            raise SwapConflictError(f"{self.name!r} of {self.place} was taken for a {self._other} just now")

    def _take_back(self, made: Reference) -> None:
        """Remove a row without a tombstone: its target may be garbage by now. Where others have moved it already, it is theirs.

        Done again it goes on where it was.
        """
        row = self.rows.find_row(made.name)
        if row is None or row.pointer != made.pointer or row.version > made.version + (row.deleted is not None):
            return
        try:
            self.rows.remove_tombstone(self.rows.delete_reference(row) if row.deleted is None else row)
        except SwapConflictError:
            return
