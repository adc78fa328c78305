"""The branches and tags of one catalog: listed in its reference ``refs``, each a reference of its own.

A name is listed before its row is made, and leaves the list only when the collector has removed the row's tombstone.
``NameReservation`` creates a name, so that only one of two concurrent creators gets it. It lists the name again even if the
name is listed: the existing entry may belong to a tombstone under collection, and only the new time tells the
collector that the name is wanted again.

    the collector                          another process creates the branch
    removes the tombstone of x
                                           lists x (time now), creates its row
    looks at the entry of x: too young, so it stays

A process that sleeps between the two until the entry is old may find the name released, or about to be. It removes its row
and starts again.

A name is a branch or a tag. The list decides which, because it is one row: the later listing has the name, and defeats a
concurrent creation of the other kind.

    creator of the tag x                       creator of the branch x
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
from dataclasses import dataclass
from functools import partial

from headwater.catalogs.content_operations import Conflict, ConflictKind
from headwater.catalogs.history.ref_relation import ReferenceExpression
from headwater.catalogs.history.revspec import DEFAULT_REF, RefResolver, check_exact, parse_revspec
from headwater.catalogs.known_metadata import note_forgotten
from headwater.catalogs.place_releases import take_back_places
from headwater.catalogs.ref_pages import RefPage, read_ref_page
from headwater.catalogs.registry import (
    REFS_INDEX,
    CatalogEntry,
    ListedRef,
    NamedRef,
    OwnRefKind,
    RefKind,
    checked_ref_name,
    listed_refs,
    own_reference,
    read_ref_names,
    ref_key,
)
from headwater.clock import Micros
from headwater.commits import (
    Transaction,
    assign_reference,
    commit_change,
    complete_operation,
    create_reference_at,
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
from headwater.store import ObjectId, Reference, id_text

_TRIES = 20


class CatalogRefs:
    """Lists, creates, moves and deletes the branches and tags of a catalog."""

    def __init__(self, entry: CatalogEntry) -> None:
        self._entry = entry
        self._rows = entry.rows
        self._resolver = RefResolver(entry)

    def list_alive(self, kind: RefKind) -> list[NamedRef]:
        """List the live branches and tags by name."""
        return [_ref_of_row(kind, name, row) for name, row in self._listed_rows(kind) if row.deleted is None]

    def list_page(
        self,
        *,
        kind: RefKind | None = None,
        where: ReferenceExpression | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> RefPage:
        """List the live branches and tags by name, page by page.

        kind          what to list; None: branches and tags
        where         which of them; None: all. Then a page may have fewer than its limit, or none, and be followed by another
        limit         the most names of this page; None: all that are left
        page_token    from the page before. It carries the kind and the filter, which may be left out or repeated
        raises        RefusedError for a malformed token, or one of another listing
        """
        return read_ref_page(self._entry, kind=kind, where=where, limit=limit, page_token=page_token)

    def find_named(self, name: str) -> NamedRef | None:
        """Find a live branch or tag by its name, or the default branch by ``-``. A branch costs the read of one row.

        A branch takes precedence over a tag of its name, as it does where a ref is resolved.
        """
        wanted = self._entry.default_branch() if name == DEFAULT_REF else name
        for kind in RefKind:
            row = self._entry.find_ref_row(kind, wanted)
            if row is not None:
                return _ref_of_row(kind, wanted, row)
        return None

    def read_ref(self, kind: RefKind, name: str) -> NamedRef:
        return _ref_of_row(kind, name, self._read_row(kind, name))

    def create_ref(self, kind: RefKind, name: str, *, source: str | None = None, at: ObjectId | None = None) -> NamedRef:
        """Create a branch or tag at a commit.

        source        branch or tag to start from, or a commit such as ``main@hash~2``; the default branch if neither is given
        at            a commit in the history of ``source``, or of any branch or tag
        raises        RefusedError for a bad name, or a commit that is in no such history or not kept any more; ConflictError when
                      the name is taken; NotFoundError for an unknown source; ExpiredError for a collected commit
        """
        checked_ref_name(kind, name)
        target, among = self._start(source, at)
        return self._created(kind, name, target, among)

    def create_empty_ref(self, kind: RefKind, name: str) -> NamedRef:
        """Create a branch or tag without a commit, as branches are before their first one; raises as ``create_ref`` does."""
        return self._created(kind, checked_ref_name(kind, name), None, [])

    def _created(self, kind: RefKind, name: str, target: ObjectId | None, among: list[str]) -> NamedRef:
        self._check_free(kind, name)
        if kind is RefKind.BRANCH and target is not None:
            self._take_back_places(target, f"branch {name!r} of {self._entry.label} was not created")
        self._note_forgotten(kind, self._rows.find_row(self._entry.reference(kind, name)), target)
        try:
            return _ref_of_row(kind, name, self.reserve_name(kind, name).make(target, among))
        except SwapConflictError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._entry.label} was not created: {fault}") from fault

    def ensure_branch(self, name: str) -> None:
        """Create an empty branch unless it exists.

        raises        ConflictError when the name was taken for a tag
        """
        kind = RefKind.BRANCH
        if self._entry.find_ref_row(kind, name) is not None:
            return
        try:
            self.reserve_name(kind, checked_ref_name(kind, name)).make(None, [])
        except SwapConflictError as fault:
            if self._entry.find_ref_row(kind, name) is None:  # otherwise another process created it, which is as good
                raise ConflictError(f"{kind} {name!r} of {self._entry.label} was not created: {fault}") from fault

    def assign_ref(self, kind: RefKind, name: str, target: ObjectId | None, *, expected: ObjectId | None = None) -> NamedRef:
        """Move a branch or tag to another commit of this catalog; its old commits stay readable for the grace period.

        target        a commit in the kept history of any branch or tag; None: none, as before its first commit
        expected      the head that the caller saw
        raises        ConflictError when the head is another; ExpiredError when the target was collected; RefusedError when it is
                      in no kept history, or a sweep is running and it is no head
        """
        row = self._read_row(kind, name)
        self._check_expected(kind, name, row, expected)
        if target is not None:
            self._resolver.read_commit(target)
            if kind is RefKind.BRANCH:
                self._take_back_places(target, f"branch {name!r} of {self._entry.label} was not moved to {id_text(target)}")
        self._note_forgotten(kind, row, target)
        try:
            moved = assign_reference(self._rows, row.name, target, expected=row.pointer, among=self._all_references())
        except ConflictError as fault:
            raise self._unexpected(kind, name, row.pointer, self._read_row(kind, name).pointer) from fault
        except SwapConflictError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._entry.label} was moved by another just now") from fault
        return _ref_of_row(kind, name, moved)

    def delete_ref(
        self, kind: RefKind, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None
    ) -> NamedRef:
        """Delete a branch or tag; its tombstone keeps its commits readable for the grace period.

        expected      the head that the caller saw
        fence         called after the row was read: a reference created after that is left alone
        raises        RefusedError for the default branch; ConflictError when the head is another; NotFoundError
        """
        if kind is RefKind.BRANCH and name == self._entry.check_active().default_branch:
            raise RefusedError(f"branch {name!r} is the default branch of {self._entry.label}: it goes with the catalog")
        for _ in range(_TRIES):
            row = self._read_row(kind, name)
            self._check_expected(kind, name, row, expected)
            fence()
            try:
                self._rows.delete_reference(row)
            except SwapConflictError:
                continue
            return _ref_of_row(kind, name, row)
        raise UnavailableError(f"{kind} {name!r} of {self._entry.label} moved {_TRIES} times while it was to be deleted")

    def undelete_ref(self, kind: RefKind, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedRef:
        """Restore a deleted branch or tag at its last commit while its tombstone stands: for the grace period at least.

        fence         called once the name is listed: a process that slept before is stopped here, and after a sleep that begins later
                      it is too late to create the row
        raises        NotFoundError when there is no tombstone (any more) · ConflictError when the name is taken · RefusedError
                      while a collection sweeps, or when its commit is garbage already
        """
        self._entry.check_active()
        self._check_free(kind, name, "undelete")
        row = self._rows.find_row(self._entry.reference(kind, name))
        if row is None:
            raise NotFoundError(
                f"{self._entry.label} has no deleted {kind} {name!r}: it never was, or was collected after its grace"
            )
        self._note_forgotten(kind, row, row.pointer)
        try:
            return _ref_of_row(kind, name, self.reserve_name(kind, name).make(row.pointer, [row.name], fence=fence))
        except FencedError:
            raise
        except SwapConflictError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._entry.label} was not undeleted: {fault}") from fault

    def list_deleted(self, kind: RefKind) -> list[tuple[NamedRef, Micros]]:
        """List the deleted branches and tags that can be restored, by name, each with the time of its deletion."""
        rows = self._listed_rows(kind)
        return [(_ref_of_row(kind, name, row), row.deleted) for name, row in rows if row.deleted is not None]

    def _listed_rows(self, kind: RefKind) -> list[tuple[str, Reference]]:
        """The listed names that have rows, by name."""
        names = [listed.name for listed in listed_refs(read_ref_names(self._rows, self._entry.definition.id), kind)]
        rows = self._rows.find_rows([self._entry.reference(kind, name) for name in names])
        return [(name, row) for name, row in zip(names, rows, strict=True) if row is not None]

    def _start(self, source: str | None, at: ObjectId | None) -> tuple[ObjectId | None, list[str]]:
        """The commit that a new name starts from, and the references whose history may contain it."""
        if at is not None and source is None:
            return self._resolver.read_commit(at).id, self._all_references()
        spec = parse_revspec(source or DEFAULT_REF)
        check_exact(spec)
        if at is not None:
            if spec.commit is not None:
                raise RefusedError(
                    f"the source {spec.text!r} says already at which commit to start: give no other one beside it"
                )
            try:
                self._resolver.resolve(f"{spec.name or DEFAULT_REF}@{id_text(at)}")
            except NotFoundError as fault:
                if isinstance(fault, ExpiredError):
                    raise
                raise RefusedError(str(fault)) from fault
            return at, [self._resolver.read_named(spec.name or DEFAULT_REF).name]
        if spec.commit is None:
            row = self._resolver.read_named(spec.name or DEFAULT_REF)
            return row.pointer, [row.name]
        commit = self._resolver.resolve(spec.text)
        among = self._all_references() if spec.name is None else [self._resolver.read_named(spec.name).name]
        return None if commit is None else commit.id, among

    def _all_references(self) -> list[str]:
        """Every listed name, with tombstones: their commits are kept for the grace period."""
        catalog_id = self._entry.definition.id
        return [listed.reference(catalog_id) for listed in listed_refs(read_ref_names(self._rows, catalog_id))]

    def _check_free(self, kind: RefKind, name: str, verb: str = "create") -> None:
        """Check that the other kind does not have the name. Where an earlier release created both, the branch is read."""
        for taken in RefKind:
            if self._entry.find_ref_row(taken, name) is not None:
                raise ConflictError(f"cannot {verb} {kind} {name!r}: {self._entry.label} has a {taken} of this name")

    def _take_back_places(self, target: ObjectId, what: str) -> None:
        take_back_places(self._rows, self._entry.definition.id, target, what)

    def _note_forgotten(self, kind: RefKind, row: Reference | None, target: ObjectId | None) -> None:
        """Note the metadata files that the row is about to forget.

        A branch's row records the commits that it left, and drops the old ones with a move: their files could then count as news.
        """
        if kind is RefKind.BRANCH and row is not None:
            note_forgotten(self._rows, self._entry.definition, row, target)

    def reserve_name(self, kind: RefKind, name: str) -> NameReservation:
        """Prepare the creation of a name; nobody has checked yet that it is free."""
        return NameReservation(self._entry, kind, name)

    def _check_expected(self, kind: RefKind, name: str, row: Reference, expected: ObjectId | None) -> None:
        if expected is not None and row.pointer != expected:
            raise self._unexpected(kind, name, expected, row.pointer)

    def _unexpected(self, kind: RefKind, name: str, expected: ObjectId | None, actual: ObjectId | None) -> ConflictError:
        wanted, is_at = ("no commit" if commit_id is None else id_text(commit_id) for commit_id in (expected, actual))
        text = f"{kind} {name!r} of {self._entry.label} is at {is_at}, expected {wanted}: look again"
        return ConflictError(text, details=(Conflict(ConflictKind.UNEXPECTED_HASH, None, text),))

    def _read_row(self, kind: RefKind, name: str) -> Reference:
        row = self._entry.find_ref_row(kind, name)
        if row is None:
            raise NotFoundError(f"{self._entry.label} has no {kind} {name!r}")
        return row


def _ref_of_row(kind: RefKind, name: str, row: Reference) -> NamedRef:
    return NamedRef(kind, name, row.pointer, row.created)


_RESERVE_TRIES = 20


@dataclass(frozen=True, slots=True)
class NameReservation:
    """Creates a name that others may be creating, too."""

    entry: CatalogEntry
    kind: RefKind
    name: str

    def list_name(self) -> Micros:
        """List the name with a new time, which is returned, whether or not it is listed already; never while it is alive.

        So a reader of the past knows that a name listed later was not alive then. A creator that stopped after it found the name free
        would otherwise deny a branch that another process created in between.

        raises        SwapConflictError: it is alive, as a branch or as a tag
        """

        def change(tx: Transaction) -> tuple[Micros, bool]:
            self.entry.check_active()
            for kind, row in zip(
                RefKind, tx.reader.find_rows([self.entry.reference(kind, self.name) for kind in RefKind]), strict=True
            ):
                if row is not None and row.deleted is None:
                    raise SwapConflictError(f"{kind} {self.name!r} of {self.entry.label} is there already")
            names, key = tx.index(REFS_INDEX), ref_key(self._other, self.name)
            other = names.get(key)
            # later than the other, also where a clock that was ahead has listed that
            after = Micros(0) if other is None else Micros(ListedRef.from_entry(key, other).listed + 1)
            entry = ListedRef(self.kind, self.name, max(tx.time, after))
            names.put(entry.key, entry.to_value())
            return entry.listed, other is not None

        refs = own_reference(self.entry.definition.id, OwnRefKind.REFS)
        listed, is_contested = commit_change(self.entry.rows, refs, change, message=f"list {self.kind} {self.name}").result
        if is_contested:
            self._beat_other()
        return listed

    def make(self, target: ObjectId | None, among: Iterable[str], *, fence: Callable[[], None] = lambda: None) -> Reference:
        """List the name and create its row, both within the time in which no collector releases a listed name.

        Checking the list afterwards would not be enough: the collector may have seen that there is no row, and remove the name only
        then.

        target        the commit that it starts at; None: none
        among         names of references whose history may contain the target
        fence         called once the name is listed
        raises        SwapConflictError: another was faster · UnknownOutcomeError: it was made too late, and could not be taken back · what
                      ``create_reference_at`` raises
        """
        rows, reference = self.entry.rows, self.entry.reference(self.kind, self.name)
        clock, bound = rows.clock, rows.settings.clock_bound_seconds
        for _ in range(_RESERVE_TRIES):
            started, began = clock.monotonic(), clock.now()
            listed = self.list_name()
            fence()
            made = create_reference_at(rows, reference, target, among=among, check=partial(self._check_mine, listed))
            # made of a tombstone: as long as that stood, the name was not given up, and the swap shows that it stood to the end
            if clock.monotonic() - started <= bound or made.created < began:
                return made
            done = f"{self.kind} {self.name!r} of {self.entry.label} may have been created"
            complete_operation(rows, partial(self._take_back, made), done=done)
        raise UnavailableError(f"{self.kind} {self.name!r} of {self.entry.label} took too long to create: try again")

    @property
    def _other(self) -> RefKind:
        return RefKind.TAG if self.kind is RefKind.BRANCH else RefKind.BRANCH

    def _beat_other(self) -> None:
        """Make a concurrent creation of the other kind fail at its row: it then checks the list, and finds this name listed later.

        raises        SwapConflictError: the other kind's row is alive by now
        """
        for _ in range(_RESERVE_TRIES):
            row = self.entry.rows.find_row(self.entry.reference(self._other, self.name))
            if row is not None and row.deleted is None:
                raise SwapConflictError(f"{self._other} {self.name!r} of {self.entry.label} is there already")
            try:
                if row is None:
                    self.entry.rows.bury_reference(self.entry.reference(self._other, self.name))
                else:
                    self.entry.rows.raise_version(row)
            except SwapConflictError:
                continue
            return
        raise UnavailableError(f"the name {self.name!r} of {self.entry.label} changes all the time: try again")

    def _check_mine(self, listed: Micros) -> None:
        """Pass if the name was not listed as the other kind since. Call it between the reading of the row and its creation."""
        key = ref_key(self._other, self.name)
        value = read_ref_names(self.entry.rows, self.entry.definition.id).get(key)
        if value is not None and ListedRef.from_entry(key, value).listed > listed:
            raise SwapConflictError(f"{self.name!r} of {self.entry.label} was taken for a {self._other} just now")

    def _take_back(self, made: Reference) -> None:
        """Remove the row without a tombstone, because its target may be garbage by now. A row that others have moved is theirs, and stays.

        A repeated call continues where it was interrupted.
        """
        row = self.entry.rows.find_row(made.name)
        if row is None or row.pointer != made.pointer or row.version > made.version + (row.deleted is not None):
            return
        try:
            self.entry.rows.remove_tombstone(
                self.entry.rows.delete_reference(row, is_final=True) if row.deleted is None else row
            )
        except SwapConflictError:
            return
