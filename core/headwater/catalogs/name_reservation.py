"""How a name becomes a branch or a tag: it is listed first, and then its row is made. Two who want it at once cannot both have it.

Making a name lists it anew even where it is listed: the entry that stands there may belong to a tombstone under collection, and only
the new time tells the collector that the name is wanted again.

    the collector                          somebody creates the branch
    removes the tombstone of x
                                           lists x (time now), creates its row
    looks at the entry of x: too young, so it stays

Whoever sleeps so long between the two that the entry is old by then may find the name given up, or about to be. The row is taken away
again, and everything begins anew.

A name is a branch or a tag. The list decides which, because it is one row: the later listing has the name, and beats whoever is still
about to make the other's row.

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
from dataclasses import dataclass
from functools import partial

from headwater.catalogs.names import NAMES, ListedName, NameKind, OwnPart, content_reference, name_key, own_reference
from headwater.clock import Micros
from headwater.commits import Transaction, commit_change, complete_operation, create_reference_at, read_head
from headwater.errors import BeatenError, UnavailableError
from headwater.store import ObjectId, RealmStore, Reference

__all__ = ["NameReservation"]

_TRIES = 20


def _free() -> None:
    """Nobody can take this work over."""


@dataclass(frozen=True, slots=True)
class NameReservation:
    """A wish for a name.

    place         whose it is, for messages
    check_active  raises MissingError when the catalog was deleted
    """

    rows: RealmStore
    catalog_id: str
    kind: NameKind
    name: str
    place: str
    check_active: Callable[[], object]

    def list_name(self) -> Micros:
        """Commit the name to the list, with the time that is returned, whether or not it stands there; never while it is alive.

        So who looks at the past knows of a name that was listed later that it was not alive then. A creator that was stopped after it
        found the name free would deny the branch of another one, that was made in between.

        raises        BeatenError: it is alive, as a branch or as a tag
        """

        def change(tx: Transaction) -> tuple[Micros, bool]:
            self.check_active()
            for kind, row in zip(NameKind, tx.reader.find_rows([self._reference(kind) for kind in NameKind]), strict=True):
                if row is not None and row.deleted is None:
                    raise BeatenError(f"{kind} {self.name!r} of {self.place} is there already")
            names, key = tx.index(NAMES), name_key(self._other, self.name)
            other = names.get(key)
            # later than the other, also where a clock that was ahead has listed that
            after = Micros(0) if other is None else Micros(ListedName.decode(key, other).listed + 1)
            entry = ListedName(self.kind, self.name, max(tx.time, after))
            names.put(entry.key, entry.encode())
            return entry.listed, other is not None

        listed, is_contested = commit_change(self.rows, self._list, change, message=f"list {self.kind} {self.name}").result
        if is_contested:
            self._beat_other()
        return listed

    def make(self, target: ObjectId | None, among: Iterable[str], *, fence: Callable[[], None] = _free) -> Reference:
        """List the name and make its row, both within the time in which no collector gives a listed name up.

        To look at the list afterwards would not do: the collector may have seen that there is no row, and remove the name only then.

        target        the commit that it begins at; None: none
        among         names of references in whose history that may be
        fence         called once it is listed
        raises        BeatenError: another was faster · UnknownOutcomeError: it was made too late, and could not be taken back · what
                      ``create_reference_at`` raises
        """
        clock, bound, reference = self.rows.clock, self.rows.settings.clock_bound_seconds, self._reference(self.kind)
        for _ in range(_TRIES):
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
        return own_reference(self.catalog_id, OwnPart.REFS)

    @property
    def _other(self) -> NameKind:
        return NameKind.TAG if self.kind is NameKind.BRANCH else NameKind.BRANCH

    def _reference(self, kind: NameKind) -> str:
        return content_reference(self.catalog_id, kind, self.name)

    def _beat_other(self) -> None:
        """Let whoever has read the other's row fail to make it: they look at the list then, and find this name listed later.

        raises        BeatenError: the other's row is alive by now
        """
        for _ in range(_TRIES):
            row = self.rows.find_row(self._reference(self._other))
            if row is not None and row.deleted is None:
                raise BeatenError(f"{self._other} {self.name!r} of {self.place} is there already")
            try:
                if row is None:
                    self.rows.bury_reference(self._reference(self._other))
                else:
                    self.rows.raise_version(row)
            except BeatenError:
                continue
            return
        raise UnavailableError(f"the name {self.name!r} of {self.place} changes all the time: try again")

    def _check_mine(self, listed: Micros) -> None:
        """Pass if the name was not listed as the other kind since. Asked between the reading of the row and its making."""
        names = read_head(self.rows, self._list, fresh=True)
        key = name_key(self._other, self.name)
        value = None if names is None else names.index(NAMES).get(key)
        if value is not None and ListedName.decode(key, value).listed > listed:
            raise BeatenError(f"{self.name!r} of {self.place} was taken for a {self._other} just now")

    def _take_back(self, made: Reference) -> None:
        """Remove a row without a tombstone: its target may be garbage by now. Where others have moved it already, it is theirs.

        Done again it goes on where it was.
        """
        row = self.rows.find_row(made.name)
        if row is None or row.pointer != made.pointer or row.version > made.version + (row.deleted is not None):
            return
        try:
            self.rows.remove_tombstone(self.rows.delete_reference(row) if row.deleted is None else row)
        except BeatenError:
            return
