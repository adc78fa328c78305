"""The collector's record, which others read: whether a sweep is on, and where history was last cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headwater.clock import Micros
from headwater.store import ObjectId, ObjectPosition, RealmReader, StoredObject, Versioned, fixed_id, object_type

COLLECTION_ID = fixed_id(2)
"""Every realm keeps its collection record under this id."""


class SweptSplit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far one split of a realm was swept: all garbage up to ``after`` is deleted; if ``is_done``, up to the split's end."""

    after: ObjectPosition | None = None
    until: ObjectPosition | None = None
    is_done: bool = False


class SweepState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that another process needs to resume a sweep: the marks, the splits, and the counts so far.

    started       when the run began that marked
    marks         the chunks of its marks, in their order
    counts        of that run and of those that went on with it, as plain data
    """

    started: Micros
    marks: tuple[ObjectId, ...]
    splits: tuple[SweptSplit, ...]
    counts: dict[str, Any] = {}


@object_type("marks", compressed=False, cached_seconds=0)
class MarkChunk(StoredObject, frozen=True, kw_only=True):
    """Some of the marks of a sweep that is on; garbage when it is over."""

    data: bytes = b""


@object_type("collection", updateable=True)
class CollectionRecord(StoredObject, frozen=True, kw_only=True):
    """The last collection of a realm, while it runs and after.

    sweeping      rows may be deleted now: only a live HEAD may be pointed at
    owner         the task attempt that runs it, as text
    reader_cutoff what was HEAD after this moment was kept
    kept_since    what was HEAD by its recorded times at this moment or later was kept: a little before ``reader_cutoff``, as a commit
                  may take effect later than its time says; 0 in records of releases that did not write it down
    cuts          the Cuts object: how far each reference's history was kept; None when nothing was ever collected
    sweep         while ``sweeping``, once everything is marked: where it stands. None: who finds it marks anew
    marked        objects that the last run marked; the next one is sized by it
    scanned       rows that the last run scanned
    """

    sweeping: bool = False
    owner: str = ""
    reader_cutoff: Micros = Micros(0)
    kept_since: Micros = Micros(0)
    writer_cutoff: Micros = Micros(0)
    cuts: ObjectId | None = None
    sweep: SweepState | None = None
    marked: int = 0
    scanned: int = 0

    @property
    def gone_before(self) -> Micros:
        """What was no HEAD any more at this moment may be gone, whatever a later run would keep by other settings."""
        return self.kept_since or self.reader_cutoff


class HistoryCut(msgspec.Struct, frozen=True):
    """How far one line of history was kept: commits from ``time`` on, seen from the head that it had.

    seq           the head's
    newest        the head's own time: no commit of this line is later
    moved         when the reference had been moved last: a later move may have brought it over history that others cut
    oldest        the seq of the oldest commit that was kept; 0 in records of releases that did not write it down
    """

    time: Micros
    head: ObjectId
    seq: int
    moved: Micros = Micros(0)
    newest: Micros = Micros(0)
    oldest: int = 0


@object_type("cuts")
class HistoryCuts(StoredObject, frozen=True, kw_only=True):
    """Where the history of each reference was cut, by its name. Older commits are garbage, and stay garbage.

    A pointer that was kept only because a reference left it lately has an entry of its own, ``<name>@<commit>``.
    """

    lines: dict[str, HistoryCut] = {}


def read_collection(rows: RealmReader) -> Versioned[CollectionRecord] | None:
    """The realm's record, never from the cache; None when it was never collected."""
    return rows.find_versioned(COLLECTION_ID, CollectionRecord)


@dataclass(frozen=True, slots=True)
class CutLines:
    """The cuts of a collection, with what callers ask of all of them.

    latest        the latest of them all
    newest        the time of the newest head that any of them began at
    """

    lines: Mapping[str, HistoryCut]
    latest: Micros
    newest: Micros
    _kin: dict[tuple[str, bool], Micros] = field(default_factory=dict)
    # Invariant: every line, the earliest cut first; and so of each home. Made once: thousands of references ask for them.
    _homes: dict[str, list[tuple[str, HistoryCut]]] = field(default_factory=dict)
    _all: list[tuple[str, HistoryCut]] = field(default_factory=list)
    found: dict[tuple[str, ObjectId, Micros], tuple[Micros, int]] = field(default_factory=dict)
    """What was found for new references of a home on a commit with that time: a time and a seq. Branches are made on few commits."""

    def __post_init__(self) -> None:
        self._all.extend(sorted(self.lines.items(), key=lambda entry: entry[1].time))
        for name, cut in self._all:
            home = home_of(name)
            self._homes.setdefault(home, []).append((name, cut))
            key = (home, is_deep(name))
            self._kin[key] = max(self._kin.get(key, Micros(0)), cut.newest)

    def newest_of_kin(self, name: str) -> Micros:
        """The time of the newest head among the lines that may have the commits of a reference; among all lines if none may."""
        # A later commit is on no line. The own references of a catalog get a note in each collection, so their heads are newer than
        # all others: by their time, a commit made right after a collection, by a slow clock, would be sought on lines without it.
        return self._kin.get((home_of(name), is_deep(name)), self.newest)

    def nearest(self, name: str) -> Iterator[HistoryCut]:
        """Every line: the reference's own first, then those of its home, then the others, the earliest cut of each first."""
        home = home_of(name)
        own = self.lines.get(name)
        if own is not None:
            yield own
        yield from (cut for line, cut in self._homes.get(home, ()) if line != name)
        yield from (cut for line, cut in self._all if home_of(line) != home)


def home_of(name: str) -> str:
    """The home of a reference, such as its catalog: references of one home share history as a rule."""
    return "/".join(name.split("/", 2)[:2])


def is_deep(name: str) -> bool:
    """Whether a reference is one of many of its kind within its home."""
    return name.count("/") > 2


def read_cuts(rows: RealmReader, collection: CollectionRecord | None) -> CutLines:
    cuts = None if collection is None else collection.cuts
    lines = {} if cuts is None else rows.read_object(cuts, HistoryCuts).lines
    return CutLines(
        lines,
        latest=max((cut.time for cut in lines.values()), default=Micros(0)),
        newest=max((cut.newest for cut in lines.values()), default=Micros(0)),
    )
