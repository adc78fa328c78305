"""What any report about a lake must and must not say, judged by our own books and the disk. One verdict follows one engine through a lake.

    live            is never marked, nor is what a careless reader would take for it
    dead            is told of in the first run that can know it, and by the second it is a candidate, unless no run ever saw it live
    never named     is only reported; so is what no writer of Iceberg writes
    blocked         places yield nothing and say why, and no other place is blocked
    due             not before grace and delay after the first run in a row that told of it

Knows nothing of Headwater.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lake_oracle.lake_model import LakeModel
from lake_oracle.live_files import KeptVersion, ReferrerFault, careless_path

DAY = 86_400
GRACE_SECONDS, DELAY_SECONDS = 7 * DAY, DAY
CANDIDATES = frozenset({"InGrace", "Marked", "Due"})
GUEST, SHARED, ELSEWHERE = "GuestTable", "PlaceShared", "WrittenElsewhere"
NOT_LISTED, MARKER = "LiveNotListed", "MarkerDiffers"
CODE_OF_FAULT = {
    ReferrerFault.UNREADABLE: "ReferrerUnreadable",
    ReferrerFault.ENCRYPTED: "ReferrerEncrypted",
    ReferrerFault.TOO_NEW: "ReferrerTooNew",
    ReferrerFault.GC_DISABLED: "GcDisabled",
}
OWN_FOLDER, OWN_MARKER = "_headwater", "_headwater-place-"
_KNOWN_KIND = re.compile(r"[^._].*\.(parquet|avro|puffin|stats)|.+\.metadata\.json(\.gz)?|version-hint\.text")


@dataclass(slots=True)
class LakeView:
    """A lake at one moment, for whoever judges it or works on it.

    realm, catalog  whose files are reported
    now           seconds
    torn          places in which somebody left what tells of other writers, with the codes that say so
    given         places that are the catalog's besides those of its tables
    perhaps       codes that any place may be blocked for
    """

    folder: Path
    model: LakeModel
    realm: str
    catalog: str
    now: float
    torn: Mapping[str, set[str]]
    given: tuple[str, ...] = ()
    perhaps: Collection[str] = ()

    def files(self) -> dict[str, os.stat_result]:
        """All files that are there, but for what a report writes for itself."""
        found = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name != OWN_FOLDER]
            for name in names:
                if not name.startswith(OWN_MARKER):
                    path = f"{folder}/{name}"
                    found[path] = Path(path).stat()
        return found


@dataclass(slots=True)
class RunOutcome:
    """What a run of an engine said, with real paths: the code of each file that it marked, and the codes of places that yield nothing."""

    marks: dict[str, str]
    blocked: dict[str, str]


@dataclass(slots=True)
class PlaceBlocks:
    """Why places yield nothing: for certain, or perhaps."""

    certain: dict[str, set[str]]
    perhaps: dict[str, set[str]]

    def add(self, places: Iterable[str], code: str, *, is_certain: bool) -> None:
        for place in places:
            (self.certain if is_certain else self.perhaps).setdefault(place, set()).add(code)


@dataclass(slots=True)
class _Memory:
    """What the runs before have shown; it is rolled back with the database.

    seen_live     files that were live for certain in a run: held
    since         of each candidate, when the first run in a row told of it
    whole         tables that some run has read wholly, with what they named
    candidates_in places that had candidates in some run
    found_in      in whose place a candidate lies: with another owner its mark begins anew
    begun_anew    candidates whose marks may have begun anew since
    doubtful      files that another table took up, so that their grace may have begun anew, or not
    """

    seen_live: set[str] = field(default_factory=set)
    since: dict[str, float] = field(default_factory=dict)
    whole: dict[str, set[str]] = field(default_factory=dict)
    candidates_in: dict[str, int] = field(default_factory=dict)
    found_in: dict[str, str] = field(default_factory=dict)
    begun_anew: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    runs: int = 0

    def copy(self) -> _Memory:
        return copy.deepcopy(self)


class LakeVerdict:
    """Judges the runs of one engine over one lake, in their order."""

    def __init__(self) -> None:
        self._memory = _Memory()
        self._copies: _Memory | None = None
        self._lost_markers: set[str] = set()
        self._is_rolled_back = False
        self.checked: dict[str, int] = {}

    def save(self) -> None:
        """The database was copied."""
        self._copies = self._memory.copy()

    def roll_back(self) -> None:
        """The copy was put back."""
        assert self._copies is not None
        lost, self._memory = self._memory, self._copies.copy()
        if lost.runs > self._memory.runs:
            self._lost_markers |= {
                place for place, run in lost.candidates_in.items() if self._memory.candidates_in.get(place) != run
            }
            self._is_rolled_back = True
            self._memory.seen_live.clear()
            self._memory.since.clear()

    def took(self, paths: Iterable[str], places: Collection[str]) -> None:
        """A commit has named these files. Whether anybody notices that of files in another table's place, nobody has promised."""
        for path in paths:
            if any(path.startswith(f"{place}/") for place in places):
                self._memory.since.pop(path, None)
            else:
                self._memory.doubtful.add(path)

    def check(self, view: LakeView, outcome: RunOutcome) -> list[str]:
        """Judge a run; returns what was wrong with it."""
        self._memory.runs += 1
        model, there = view.model, view.files()
        live, perhaps = model.live(), model.possibly_live()
        homes, guests, maybe = places_of(view)
        blocks = self._blocks(view, homes, guests, there.keys())
        faults = list(self._of_blocks(homes, guests, blocks, outcome))
        faults += self._of_live(live, there, outcome)
        places = {*homes, *guests, *maybe}
        for path, facts in sorted(there.items()):
            place = innermost(path, places)
            if place is None or place in guests or place in outcome.blocked or place in blocks.certain:
                if path in outcome.marks:
                    faults.append(f"{path} is {outcome.marks[path]}, and its place ({place}) may yield nothing")
            elif place in homes and path not in perhaps:
                faults += self._of_dead(path, place, facts, live, perhaps, view, outcome)
        faults += [f"{path} is {code}, and is not there" for path, code in outcome.marks.items() if path not in there]
        self._remember(view, live, homes, guests, outcome)
        return faults

    def check_disturbed(self, view: LakeView, later: LakeModel, outcome: RunOutcome) -> list[str]:
        """Judge a run during which others acted: what was live before it, and still is after it, is no candidate.

        view          before the run
        later         the books after it
        """
        self._memory.runs += 1
        live = view.model.live() & later.live()
        faults = [f"{path} is live, and is {code}" for path, code in outcome.marks.items() if path in live]
        homes, guests, _ = places_of(view)
        self._remember(view, live, homes, guests, outcome)
        return faults

    def note_broken_run(self) -> None:
        """A run broke off: then marks may begin anew."""
        self._memory.begun_anew |= self._memory.since.keys()

    def _count(self, what: str) -> None:
        self.checked[what] = self.checked.get(what, 0) + 1

    def _of_live(self, live: frozenset[str], there: Iterable[str], outcome: RunOutcome) -> Iterator[str]:
        careless = {careless_path(path) for path in live}
        for path, code in outcome.marks.items():
            if path in live:
                yield f"{path} is live, and is {code}"
            elif careless_path(path) in careless:
                yield f"{path} is {code}, and a careless reader takes it for a live file"
        self.checked["live"] = self.checked.get("live", 0) + len(live.intersection(there))

    def _of_dead(
        self,
        path: str,
        place: str,
        facts: os.stat_result,
        live: frozenset[str],
        perhaps: frozenset[str],
        view: LakeView,
        outcome: RunOutcome,
    ) -> Iterator[str]:
        """A file that is dead for certain, in a place that yields what it has."""
        memory, code = self._memory, outcome.marks.get(path)
        careless = careless_path(path)
        if careless in {careless_path(other) for other in perhaps}:
            self._count("loosely live")
            return
        if code is None:
            yield f"{path} is dead, and no run tells of it"
            return
        if not is_known_kind(path, place):
            self._count("unknown kind")
            if code != "UnknownKind":
                yield f"{path} is {code}, and nothing of Iceberg writes it"
            return
        if facts.st_mtime <= 0:
            self._count("unknown time")
            if code in CANDIDATES:
                yield f"{path} is {code}, and its time is unknown"
            return
        if path not in view.model.named and not _is_checksum(path):
            self._count("never named")
            if code != "NeverHeld":
                yield f"{path} is {code}, and nobody ever named it"
        elif path in memory.seen_live:
            self._count("dead")
            if code not in CANDIDATES:
                yield f"{path} is {code}, and a run has seen it live"
        if code in CANDIDATES and path not in memory.doubtful:
            if memory.found_in.get(path, place) != place:
                memory.since.pop(path, None)
            yield from self._of_time(path, code, facts, view)

    def _of_time(self, path: str, code: str, facts: os.stat_result, view: LakeView) -> Iterator[str]:
        since = self._memory.since.get(path)
        waited = -1.0 if since is None else view.now - since
        wait = GRACE_SECONDS + DELAY_SECONDS
        if code == "Due":
            self._count("due")
            if waited < wait:
                yield f"{path} is due after {waited / DAY:.1f} days"
        elif since is not None and waited > wait and facts.st_mtime <= since and path not in self._memory.begun_anew:
            yield f"{path} is {code}, though it is dead for {waited / DAY:.1f} days"

    def _of_blocks(
        self, homes: Mapping[str, str], guests: Mapping[str, str], blocks: PlaceBlocks, outcome: RunOutcome
    ) -> Iterator[str]:
        for place, codes in blocks.certain.items():
            if place in homes or place in guests:
                said = outcome.blocked.get(place)
                self._count("blocked")
                if said is None:
                    yield f"{place} is not blocked, and should be for {sorted(codes)}"
                elif said not in codes | blocks.perhaps.get(place, set()):
                    yield f"{place} is blocked for {said} instead of {sorted(codes)}"
        for place in homes:
            said = outcome.blocked.get(place)
            if said is not None and place not in blocks.certain and said not in blocks.perhaps.get(place, ()):
                yield f"{place} is blocked for {said}, and nothing is wrong with it"
            if said is None:
                self._count("open")

    def _blocks(
        self, view: LakeView, homes: Mapping[str, str], guests: Mapping[str, str], there: Collection[str]
    ) -> PlaceBlocks:
        model, blocks = view.model, PlaceBlocks({}, {})
        everywhere = [*homes, *guests]
        blocks.add(guests, GUEST, is_certain=True)
        for code in view.perhaps:
            blocks.add(everywhere, code, is_certain=False)
        for place, codes in view.torn.items():
            for code in codes:
                blocks.add(_concerned(everywhere, [place]), code, is_certain=True)
        for versions, is_certain in ((model.stored, True), (model.unsure, False)):
            for version, reached in model.reached(versions):
                for fault in reached.faults:
                    code = CODE_OF_FAULT[fault]
                    named = _named(version, model)
                    if fault is ReferrerFault.GC_DISABLED:
                        blocks.add(_concerned(everywhere, named), code, is_certain=is_certain)
                        blocks.add(_concerned(everywhere, self._all_named(version.owner, model)), code, is_certain=False)
                        continue
                    blocks.add(everywhere, code, is_certain=False)
                    whole = self._memory.whole.get(version.owner)
                    if is_certain and whole is None and not self._is_rolled_back:
                        blocks.add(everywhere, code, is_certain=True)
                    elif is_certain:
                        blocks.add(_concerned(everywhere, {*(whole or ()), *named}), code, is_certain=True)
                lacking = reached.must.difference(there)
                blocks.add(_concerned(everywhere, lacking), NOT_LISTED, is_certain=is_certain)
        # what only the log of an imported version named, while no run looked, is as good as somebody else's
        logged = model.named - model.committed - self._memory.seen_live
        unknown = {path for path in logged if path.endswith(".metadata.json") and path in there}
        blocks.add(_concerned(everywhere, unknown), ELSEWHERE, is_certain=False)
        blocks.add(self._lost_markers.intersection(everywhere), MARKER, is_certain=True)
        if self._is_rolled_back:
            blocks.add(everywhere, MARKER, is_certain=False)
        return blocks

    def _all_named(self, owner: str, model: LakeModel) -> set[str]:
        versions = [version for version in model.stored | model.unsure if version.owner == owner]
        return set().union(*(_named(version, model) for version in versions))

    def _remember(
        self,
        view: LakeView,
        live: frozenset[str],
        homes: Mapping[str, str],
        guests: Collection[str],
        outcome: RunOutcome,
    ) -> None:
        memory, model = self._memory, view.model
        # outside of home tables' places nothing is listed, so nobody need remember what has died there
        places = {*homes, *guests}
        memory.seen_live -= {path for path in memory.seen_live - live if innermost(path, places) not in homes}
        memory.seen_live |= live
        candidates = {path for path, code in outcome.marks.items() if code in CANDIDATES}
        memory.since = {path: memory.since.get(path, view.now) for path in candidates}
        memory.found_in = {path: str(innermost(path, homes)) for path in candidates}
        memory.begun_anew &= candidates
        for place in {innermost(path, homes) for path in candidates} - {None}:
            memory.candidates_in[str(place)] = memory.runs
        broken = {
            version.owner
            for version, reached in model.reached(model.stored | model.unsure)
            if reached.faults - {ReferrerFault.GC_DISABLED}
        }
        for version in model.stored:
            if version.owner not in broken:
                memory.whole.setdefault(version.owner, set())
        for owner in memory.whole.keys() - broken:
            memory.whole[owner] = set().union(*(_named(version, model) for version in model.stored if version.owner == owner))


def places_of(view: LakeView) -> tuple[dict[str, str], dict[str, str], set[str]]:
    """The places of home tables and of guests, with their owners; and those that may be places still, of tables that are gone."""
    homes: dict[str, str] = dict.fromkeys(view.given, "")
    guests: dict[str, str] = {}
    here = (view.realm, view.catalog)
    for version in view.model.heads(view.realm, view.catalog):
        note = view.model.tables.get(version.owner)
        if note is not None:
            into = homes if here in note.homes else guests if here in note.guests else {}
            into |= dict.fromkeys(note.places, version.owner)
    others = {
        place
        for version in view.model.stored | view.model.unsure
        if (note := view.model.tables.get(version.owner)) is not None and here in note.homes | note.guests
        for place in note.places
    }
    return homes, guests, others - homes.keys() - guests.keys()


def innermost(path: str, places: Iterable[str]) -> str | None:
    around = [place for place in places if path.startswith(f"{place}/")]
    return max(around, key=len, default=None)


def is_known_kind(path: str, place: str) -> bool:
    """Whether writers of Iceberg make files of such a name, in such a folder of a table."""
    *folders, name = path[len(place) + 1 :].split("/")
    if any(folder.startswith(("_", ".")) and "=" not in folder for folder in folders):
        return False
    name = name[1:-4] if _is_checksum(path) else name
    return _KNOWN_KIND.fullmatch(name) is not None


def _is_checksum(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith(".") and name.endswith(".crc")


def _named(version: KeptVersion, model: LakeModel) -> set[str]:
    """The folders that a version names: its places, and those of its files."""
    reached = model.reader.read(version)
    return {*reached.places, *(path.rpartition("/")[0] for path in reached.must)}


def _concerned(places: Iterable[str], named: Iterable[str]) -> set[str]:
    """The places in which one of these paths lies, or that lie within it."""
    return {place for place in places for path in named if f"{path}/".startswith(f"{place}/") or place.startswith(f"{path}/")}
