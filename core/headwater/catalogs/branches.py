"""The branches and tags of one catalog: listed in its reference ``refs``, each a reference of its own.

A name is listed before its row is made, and leaves the list only when the collector has removed the row's tombstone; see
``name_reservation``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from headwater.catalogs.content.operations import Conflict, ConflictKind
from headwater.catalogs.definitions import CatalogDefinition, CatalogState
from headwater.catalogs.history.log import is_in_history
from headwater.catalogs.history.references import DEFAULT, ReferenceText, Way, check_exact, parse_reference_text
from headwater.catalogs.history.resolving import follow
from headwater.catalogs.known_metadata import note_forgotten
from headwater.catalogs.listing import find_definition
from headwater.catalogs.name_reservation import NameReservation
from headwater.catalogs.names import (
    CATALOGS,
    NAMES,
    NameKind,
    OwnPart,
    checked_name,
    content_reference,
    listed_names,
    own_reference,
    parse_reference,
)
from headwater.clock import Micros
from headwater.commits import Head, assign_reference, load_head, read_commit, read_head
from headwater.errors import BeatenError, ConflictError, ExpiredError, FencedError, MissingError, RefusedError, UnavailableError
from headwater.store import ObjectId, RealmStore, Reference, id_text

__all__ = ["Branches", "NamedReference"]

_TRIES = 20


@dataclass(frozen=True, slots=True)
class NamedReference:
    """A branch or tag. ``head`` None: nothing was committed yet."""

    kind: NameKind
    name: str
    head: ObjectId | None
    created: Micros

    @property
    def hash(self) -> str | None:
        return None if self.head is None else id_text(self.head)


class Branches:
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

    def reference(self, kind: NameKind, name: str) -> str:
        return content_reference(self.definition.id, kind, name)

    def living(self, kind: NameKind) -> list[NamedReference]:
        """Those that are alive, by name."""
        names = read_head(self._rows, own_reference(self.definition.id, OwnPart.REFS), fresh=True)
        listed = [] if names is None else [entry.name for entry in listed_names(names.index(NAMES), kind)]
        rows = self._rows.find_rows([self.reference(kind, name) for name in listed])
        return [
            _named(kind, name, row) for name, row in zip(listed, rows, strict=True) if row is not None and row.deleted is None
        ]

    def find(self, kind: NameKind, name: str) -> NamedReference | None:
        row = self._find_row(kind, name)
        return None if row is None else _named(kind, name, row)

    def read(self, kind: NameKind, name: str) -> NamedReference:
        found = self.find(kind, name)
        if found is None:
            raise MissingError(f"{self._place} has no {kind} {name!r}")
        return found

    def create(self, kind: NameKind, name: str, *, source: str | None = None, at: ObjectId | None = None) -> NamedReference:
        """Make a branch or tag at a commit.

        source        branch or tag to start from, or a commit such as ``main@hash~2``; the default branch if neither is given
        at            a commit: of the history of ``source``, or of any branch or tag
        raises        RefusedError for a bad name, or a commit that is in no such history or not kept any more; ConflictError when
                      the name is taken; MissingError for an unknown source; ExpiredError for a collected commit
        """
        checked_name(kind, name)
        target, among = self._start(source, at)
        self._check_free(kind, name)
        self._note_forgotten(kind, self._rows.find_row(self.reference(kind, name)), target)

        try:
            return _named(kind, name, self.reserve(kind, name).make(target, among))
        except BeatenError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._place} was not created: {fault}") from fault

    def ensure(self, name: str) -> None:
        """Make an empty branch unless it is there.

        raises        ConflictError when the name was taken for a tag
        """
        kind = NameKind.BRANCH
        if self._find_row(kind, name) is not None:
            return
        try:
            self.reserve(kind, checked_name(kind, name)).make(None, [])
        except BeatenError as fault:
            if self._find_row(kind, name) is None:  # otherwise another one made it, which is as good
                raise ConflictError(f"{kind} {name!r} of {self._place} was not created: {fault}") from fault

    def assign(self, kind: NameKind, name: str, target: ObjectId, *, expected: ObjectId | None = None) -> NamedReference:
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
        except BeatenError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._place} was moved by another just now") from fault
        return _named(kind, name, moved)

    def delete(
        self, kind: NameKind, name: str, *, expected: ObjectId | None = None, fence: Callable[[], None] = lambda: None
    ) -> NamedReference:
        """Delete a branch or tag; its tombstone keeps what it pointed to readable for the grace.

        expected      the head that the caller saw
        fence         called after it was read: whoever makes it anew after that is left alone
        raises        RefusedError for the default branch; ConflictError when the head is another; MissingError
        """
        if kind is NameKind.BRANCH and name == self.check_active().default_branch:
            raise RefusedError(f"branch {name!r} is the default branch of {self._place}: it goes with the catalog")
        for _ in range(_TRIES):
            row = self._read_row(kind, name)
            self._check_expected(kind, name, row, expected)
            fence()
            try:
                self._rows.delete_reference(row)
            except BeatenError:
                continue
            return _named(kind, name, row)
        raise UnavailableError(f"{kind} {name!r} of {self._place} moved {_TRIES} times while it was to be deleted")

    def undelete(self, kind: NameKind, name: str, *, fence: Callable[[], None] = lambda: None) -> NamedReference:
        """Bring a deleted branch or tag back to the commit that it was at, as long as its tombstone stands: for the grace at least.

        fence         called once it is listed: who sleeps before that wakes to it, and who sleeps after it is too late to make the row
        raises        MissingError when there is no tombstone (any more) · ConflictError when the name is taken · RefusedError
                      while a collection sweeps, or when its commit is garbage already
        """
        self.check_active()
        self._check_free(kind, name, "undelete")
        row = self._rows.find_row(self.reference(kind, name))
        if row is None:
            raise MissingError(f"{self._place} has no deleted {kind} {name!r}: it never was, or was collected after its grace")
        self._note_forgotten(kind, row, row.pointer)
        try:
            return _named(kind, name, self.reserve(kind, name).make(row.pointer, [row.name], fence=fence))
        except FencedError:
            raise
        except BeatenError as fault:
            raise ConflictError(f"{kind} {name!r} of {self._place} was not undeleted: {fault}") from fault

    def deleted(self, kind: NameKind) -> list[tuple[NamedReference, Micros]]:
        """Those that were deleted and can come back, by name, each with the time of its deletion."""
        names = read_head(self._rows, own_reference(self.definition.id, OwnPart.REFS), fresh=True)
        listed = [] if names is None else [entry.name for entry in listed_names(names.index(NAMES), kind)]
        rows = self._rows.find_rows([self.reference(kind, name) for name in listed])
        return [
            (_named(kind, name, row), row.deleted)
            for name, row in zip(listed, rows, strict=True)
            if row is not None and row.deleted is not None
        ]

    def resolve(self, text: str | None, *, exact: bool = False) -> Head | None:
        """The commit that a text means now, in the grammar of ``history.references``. None or an empty text: the default branch.

        A branch goes before a tag of its name. ``name@hash`` is a commit in the history of that branch or tag.

        exact         for a write: refuse what counts back from wherever a branch is by then, such as ``main~1``
        returns       None for a branch or tag without a commit
        raises        RefusedError for what is no reference; MissingError; ExpiredError for a commit that was collected, or a
                      history that was cut before the answer was found
        """
        told = parse_reference_text(text or DEFAULT)
        if exact:
            check_exact(told)
        row = None if told.name is None else self._read_named(told.name)
        start = self._commit_of(told, row)
        named = row if told.commit is None else None
        is_moment = named is not None and bool(told.steps) and told.steps[0].way is Way.TIME
        if start is None and told.steps and not is_moment:
            raise MissingError(f"{told.text!r} is no commit: nothing was committed to {told.name!r} of {self._place} yet")
        return follow(self._rows, start, told, row=named, what=None if named is None else lambda: self._words(named))

    def _words(self, row: Reference) -> str:
        """A branch or tag of this catalog as people know it."""
        part = parse_reference(row.name)
        return f"{repr(row.name) if part is None else f'{part.part} {part.name}'} of catalog {self.definition.name}"

    def _commit_of(self, told: ReferenceText, row: Reference | None) -> Head | None:
        """The commit that stands before the steps."""
        if told.commit is None:
            return None if row is None else load_head(self._rows, row)
        found = self.read_commit(told.commit)
        if row is None:
            return found
        there = load_head(self._rows, row)
        if there is None or not is_in_history(self._rows, there.id, there.commit, found):
            raise MissingError(
                f"commit {id_text(found.id)} is not in the history of {told.name!r} of {self._place}:"
                f" @{id_text(found.id)} alone means it wherever it is"
            )
        return found

    def read_commit(self, commit_id: ObjectId) -> Head:
        """A commit of this catalog.

        raises        MissingError when it is another's; ExpiredError when it was collected
        """
        return self.checked(read_commit(self._rows, commit_id))

    def checked(self, found: Head) -> Head:
        """The commit, if it is one of this catalog; MissingError when it is another's."""
        if found.commit.properties.get("catalog") != self.definition.id:
            raise MissingError(f"commit {id_text(found.id)} is not one of {self._place}")
        return found

    def _start(self, source: str | None, at: ObjectId | None) -> tuple[ObjectId | None, list[str]]:
        """The commit that a new name starts from, and the references in whose history it may be."""
        if at is not None and source is None:
            return self.read_commit(at).id, self._all_references()
        told = parse_reference_text(source or DEFAULT)
        check_exact(told)
        if at is not None:
            if told.commit is not None:
                raise RefusedError(
                    f"the source {told.text!r} says already at which commit to start: give no other one beside it"
                )
            try:
                self.resolve(f"{told.name or DEFAULT}@{id_text(at)}")
            except MissingError as fault:
                if isinstance(fault, ExpiredError):
                    raise
                raise RefusedError(str(fault)) from fault
            return at, [self._read_named(told.name or DEFAULT).name]
        if told.commit is None:
            row = self._read_named(told.name or DEFAULT)
            return row.pointer, [row.name]
        found = self.resolve(told.text)
        among = self._all_references() if told.name is None else [self._read_named(told.name).name]
        return None if found is None else found.id, among

    def _read_named(self, name: str) -> Reference:
        name = self.default_branch() if name == DEFAULT else name
        for kind in NameKind:
            row = self._find_row(kind, name)
            if row is not None:
                return row
        raise MissingError(f"{self._place} has no branch, tag or commit {name!r}")

    def _all_references(self) -> list[str]:
        """Every listed name, those under a tombstone too: what they hold is kept for the grace."""
        names = read_head(self._rows, own_reference(self.definition.id, OwnPart.REFS), fresh=True)
        return [] if names is None else [entry.reference(self.definition.id) for entry in listed_names(names.index(NAMES))]

    def _check_free(self, kind: NameKind, name: str, verb: str = "create") -> None:
        """A name is a branch or a tag. Where a release before this one made both, the branch is read."""
        for taken in NameKind:
            if self._find_row(taken, name) is not None:
                raise ConflictError(f"cannot {verb} {kind} {name!r}: {self._place} has a {taken} of this name")

    def _note_forgotten(self, kind: NameKind, row: Reference | None, target: ObjectId | None) -> None:
        """What a branch leaves is recorded in its row, and what it left long ago is forgotten there: that alone may be news by then."""
        if kind is NameKind.BRANCH and row is not None:
            note_forgotten(self._rows, self.definition, row, target)

    def reserve(self, kind: NameKind, name: str) -> NameReservation:
        """A wish for a name, which is not known yet to be free."""
        return NameReservation(self._rows, self.definition.id, kind, name, self._place, self.check_active)

    def check_active(self) -> CatalogDefinition:
        """The definition as it is now, which this handle believes in from here on; MissingError when the catalog was deleted."""
        now = find_definition(self._rows, catalog_id=self.definition.id)
        if now is None or now.state is not CatalogState.ACTIVE:
            raise MissingError(f"{self._place} was deleted")
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
        with suppress(MissingError):
            self.check_alive()
        return self.definition.default_branch

    def _check_expected(self, kind: NameKind, name: str, row: Reference, expected: ObjectId | None) -> None:
        if expected is not None and row.pointer != expected:
            raise self._unexpected(kind, name, expected, row.pointer)

    def _unexpected(self, kind: NameKind, name: str, expected: ObjectId | None, found: ObjectId | None) -> ConflictError:
        wanted, there = ("no commit" if one is None else id_text(one) for one in (expected, found))
        text = f"{kind} {name!r} of {self._place} is at {there}, expected {wanted}: look again"
        return ConflictError(text, details=(Conflict(ConflictKind.UNEXPECTED_HASH, None, text),))

    def _find_row(self, kind: NameKind, name: str) -> Reference | None:
        return self._rows.find_reference(self.reference(kind, name), fresh=True)

    def _read_row(self, kind: NameKind, name: str) -> Reference:
        row = self._find_row(kind, name)
        if row is None:
            raise MissingError(f"{self._place} has no {kind} {name!r}")
        return row


def _named(kind: NameKind, name: str, row: Reference) -> NamedReference:
    return NamedReference(kind, name, row.pointer, row.created)
