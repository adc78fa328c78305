"""Our own books of a lake: which versions of tables somebody committed, where they are named, and which of them are stored for certain.

Knows nothing of Headwater, and asks it nothing. Between what is stored for certain and what is gone for certain lies what a collection of
garbage may have deleted or not; of that the books say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lake_oracle.live_files import KeptVersion, LiveReader, ReachedFiles, real_path

State = dict[str, KeptVersion]
"""What a commit holds: versions by key."""


class RefKey(NamedTuple):
    """A branch or tag of a catalog of a realm."""

    realm: str
    catalog: str
    name: str


@dataclass(slots=True)
class RefLine:
    """A branch or tag: its states, newest last.

    is_deleted    but it may be undeleted yet
    is_moved      it was put on a commit of another line: of its history before that, more may be cut than its retention says
    """

    states: list[State]
    is_tag: bool = False
    is_deleted: bool = False
    is_moved: bool = False

    def copy(self) -> RefLine:
        return RefLine([*self.states], self.is_tag, self.is_deleted, self.is_moved)


@dataclass(slots=True)
class TableNote:
    """A table: in which catalogs it is at home or a guest, and which places it has ever had.

    A place stays a table's as long as any commit that is kept has the table.
    """

    homes: set[tuple[str, str]] = field(default_factory=set)
    guests: set[tuple[str, str]] = field(default_factory=set)
    places: set[str] = field(default_factory=set)


@dataclass(slots=True)
class LakeModel:
    """The books.

    keeps         how many commits of a branch stay readable
    pinned        what an archive that is still held names
    named         every path that a version ever named
    committed     every metadata file that somebody ever committed
    """

    keeps: int = 1
    lines: dict[RefKey, RefLine] = field(default_factory=dict)
    stored: set[KeptVersion] = field(default_factory=set)
    unsure: set[KeptVersion] = field(default_factory=set)
    pinned: set[KeptVersion] = field(default_factory=set)
    tables: dict[str, TableNote] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    reader: LiveReader = field(default_factory=LiveReader)

    def copy(self) -> LakeModel:
        """The books as a copy of the database has them. What was ever named stays so."""
        return LakeModel(
            keeps=self.keeps,
            lines={key: line.copy() for key, line in self.lines.items()},
            stored=set(self.stored),
            unsure=set(self.unsure),
            pinned=set(self.pinned),
            tables={
                owner: TableNote(set(note.homes), set(note.guests), set(note.places)) for owner, note in self.tables.items()
            },
            named=self.named,
            committed=self.committed,
            reader=self.reader,
        )

    def state(self, ref: RefKey) -> State:
        return self.lines[ref].states[-1]

    def commit(self, ref: RefKey, changes: Mapping[str, KeptVersion | None]) -> list[ReachedFiles]:
        """Note a commit; returns what its versions reach."""
        line = self.lines.setdefault(ref, RefLine([{}]))
        state = dict(line.states[-1])
        taken: list[ReachedFiles] = []
        for key, version in changes.items():
            if version is None:
                state.pop(key, None)
            else:
                state[key] = version
                self.stored.add(version)
                self.unsure.discard(version)
                self.committed.add(real_path(version.metadata_location))
                taken.append(self.reader.read(version))
                if version.owner in self.tables:
                    self.tables[version.owner].places.update(taken[-1].places)
                self.named |= taken[-1].all
        line.states.append(state)
        return taken

    def create(self, ref: RefKey, source: RefKey, *, is_tag: bool = False, is_moved: bool = False) -> None:
        line = self.lines[source]
        self.lines[ref] = RefLine([*line.states], is_tag, is_moved=is_moved or line.is_moved)

    def note_table(self, owner: str, realm: str, catalog: str, *, is_home: bool) -> None:
        note = self.tables.setdefault(owner, TableNote())
        if is_home:
            note.guests.discard((realm, catalog))
            note.homes.add((realm, catalog))
        elif (realm, catalog) not in note.homes:
            note.guests.add((realm, catalog))

    def kept(self, *, perhaps: bool = False) -> set[KeptVersion]:
        """What branches, tags and archives keep from any collection, for certain or perhaps."""
        versions = set(self.pinned)
        for line in self.lines.values():
            if not line.is_deleted:
                for state in line.states[-1 if line.is_moved and not perhaps else -self.keeps :]:
                    versions.update(state.values())
        return versions

    def collected(self) -> None:
        """Note a collection of all realms, after all graces. What nothing keeps is gone for certain with the second."""
        kept, perhaps = self.kept(), self.kept(perhaps=True)
        fresh, unsure = self.stored - kept, self.unsure & perhaps
        self.stored &= kept
        self.unsure = fresh | unsure
        for key, line in list(self.lines.items()):
            if line.is_deleted:
                del self.lines[key]
            else:
                del line.states[: -self.keeps]

    def live(self) -> frozenset[str]:
        """Real paths of files that are live for certain."""
        return self.reader.read_many(self.stored)

    def possibly_live(self) -> frozenset[str]:
        return self.reader.read_many(self.stored | self.unsure)

    def heads(self, realm: str, catalog: str) -> Iterable[KeptVersion]:
        """The versions at the heads of a catalog's branches and tags."""
        for key, line in self.lines.items():
            if (key.realm, key.catalog) == (realm, catalog) and not line.is_deleted:
                yield from line.states[-1].values()

    def reached(self, versions: Iterable[KeptVersion]) -> Iterable[tuple[KeptVersion, ReachedFiles]]:
        return ((version, self.reader.read(version)) for version in versions)
