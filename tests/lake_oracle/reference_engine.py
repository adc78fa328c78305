"""A small engine that does what a report has to do, straight from our own books; and a list of mistakes that it can be told to make.

A verdict that finds no fault with the engine as it is, and finds each of its mistakes, is one that can be relied on. Knows nothing of
Headwater.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import uuid4

from lake_oracle.lake_verdict import (
    CODE_OF_FAULT,
    DELAY_SECONDS,
    ELSEWHERE,
    GRACE_SECONDS,
    GUEST,
    MARKER,
    NOT_LISTED,
    LakeView,
    RunOutcome,
    innermost,
    is_known_kind,
    places_of,
)
from lake_oracle.live_files import KeptVersion, LiveReader, ReachedFiles, ReferrerFault, careless_path


class EngineMistake(StrEnum):
    """What an engine may get wrong."""

    ONLY_HEADS = "knows the heads of branches alone, and nothing that is stored besides"
    NO_TAGS = "forgets the tags of a catalog"
    NO_GUESTS = "does not ask what guests hold"
    NO_OTHER_REALMS = "does not ask other realms"
    NO_OTHER_CATALOGS = "does not ask other catalogs"
    NO_DELETED_REFS = "forgets branches that can be undeleted"
    NO_ARCHIVES = "forgets archives that are held"
    NO_VIEWS = "forgets the metadata of views"
    NO_UNDOCUMENTED = "forgets content without a stored document"
    NO_EXISTING = "ignores the EXISTING entries of manifests"
    NO_DELETES = "ignores delete files and deletion vectors"
    HOLDS_DELETED = "lets DELETED entries hold a file"
    NO_INLINE = "ignores the manifests that version 1 names itself"
    NO_STATISTICS = "forgets statistics"
    NO_LISTS = "forgets the manifest lists themselves"
    NO_LOG = "forgets the metadata log"
    NO_HINTS = "forgets version hints and checksums"
    CURRENT_ONLY = "reads the current snapshot of a table alone"
    RAW_PATHS = "compares paths as they are written"
    STRICT_ONLY = "lets go what a careless reader takes for a live file"
    LOOSE_PLACES = "finds what has an odd name in no listing"
    YIELDS_UNREADABLE = "goes on where a referrer cannot be read"
    YIELDS_GC_DISABLED = "does not mind gc.enabled=false"
    YIELDS_GUESTS = "lets files of guests go"
    YIELDS_TORN = "does not see that others write in a place"
    YIELDS_MISSING = "does not mind that a live file is not there"
    YIELDS_ROLLED_BACK = "does not look at markers"
    BLOCKS_ALL = "blocks everything for one bad table that it knows"
    FINDS_NEVER_NAMED = "takes files that nobody ever named for candidates"
    FINDS_UNKNOWN_KINDS = "takes files of unknown kinds for candidates"
    FINDS_UNKNOWN_TIMES = "takes files of unknown times for candidates"
    TRUSTS_TIMES = "counts the grace from a file's own time"
    FORGETS_TAKES = "does not notice that a commit took a file up"
    FORGETS_HELD = "never remembers what was held"
    MISSES_METADATA = "does not look at metadata files"


_M = EngineMistake


@dataclass(slots=True)
class _EngineState:
    """What the engine keeps in the database."""

    held: set[str] = field(default_factory=set)
    since: dict[str, float] = field(default_factory=dict)
    found_in: dict[str, str] = field(default_factory=dict)
    whole: dict[str, set[str]] = field(default_factory=dict)
    markers: dict[str, str] = field(default_factory=dict)

    def copy(self) -> _EngineState:
        return copy.deepcopy(self)


class ReferenceEngine:
    """The engine, with one mistake or none. ``disk`` has its markers, which no rollback of the database touches."""

    def __init__(self, mistake: EngineMistake | None = None) -> None:
        self.mistake = mistake
        self._state = _EngineState()
        self._saved: _EngineState | None = None
        self._disk: dict[str, str] = {}

    def save(self) -> None:
        self._saved = self._state.copy()

    def roll_back(self) -> None:
        assert self._saved is not None
        if self._saved.markers != self._state.markers:
            self._saved.held.clear()
        self._state = self._saved.copy()

    def took(self, paths: Iterable[str], places: Collection[str]) -> None:
        if self.mistake is not _M.FORGETS_TAKES:
            for path in paths:
                self._state.since.pop(path, None)

    def run(self, view: LakeView) -> RunOutcome:
        versions = self._versions(view)
        reached = {version: self._reached(version, view) for version in versions}
        live = frozenset[str]().union(*(each.all for each in reached.values()))
        homes, guests, maybe = places_of(view)
        there = view.files()
        blocked = self._blocked(view, reached, {**homes, **guests}, guests, there)
        careless = set() if self.mistake is _M.STRICT_ONLY else {careless_path(path) for path in live}
        marks: dict[str, str] = {}
        places = {*homes, *guests, *maybe}
        for path, facts in there.items():
            place = innermost(path, places)
            if place not in homes or place in blocked or path in live or careless_path(path) in careless:
                continue
            if self.mistake is _M.LOOSE_PLACES and (not path.isascii() or "%" in path or " " in path):
                continue
            if self.mistake is _M.MISSES_METADATA and path.endswith(".json"):
                continue
            if self._state.found_in.get(path, place) != place:
                self._state.since.pop(path, None)
            marks[path] = self._code(path, place, facts, view)
        self._remember(reached, live, marks, homes, view)
        return RunOutcome(marks, blocked)

    def _code(self, path: str, place: str, facts: os.stat_result, view: LakeView) -> str:
        name = path.rpartition("/")[2]
        checked = f"{path.rpartition('/')[0]}/{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else path
        if not is_known_kind(path, place) and self.mistake is not _M.FINDS_UNKNOWN_KINDS:
            return "UnknownKind"
        if not {path, checked} & self._state.held and self.mistake is not _M.FINDS_NEVER_NAMED:
            return "NeverHeld"
        if facts.st_mtime <= 0 and self.mistake is not _M.FINDS_UNKNOWN_TIMES:
            return "TimeUnknown"
        since = self._state.since.get(path, view.now)
        if self.mistake is _M.TRUSTS_TIMES:
            since = min(since, facts.st_mtime)
        is_over = view.now - max(since, min(facts.st_mtime, view.now)) >= GRACE_SECONDS + DELAY_SECONDS
        return "Due" if is_over and (path in self._state.since or self.mistake is _M.TRUSTS_TIMES) else "InGrace"

    def _remember(
        self,
        reached: dict[KeptVersion, ReachedFiles],
        live: frozenset[str],
        marks: dict[str, str],
        homes: dict[str, str],
        view: LakeView,
    ) -> None:
        state = self._state
        if self.mistake is not _M.FORGETS_HELD:
            state.held |= live
        found = {path for path, code in marks.items() if code in ("InGrace", "Due")}
        state.since = {path: state.since.get(path, view.now) for path in found}
        state.found_in = {path: str(innermost(path, homes)) for path in found}
        for place in {innermost(path, homes) for path in found} - {None}:
            state.markers[str(place)] = self._disk[str(place)] = uuid4().hex
        broken = {version.owner for version, each in reached.items() if each.faults - {ReferrerFault.GC_DISABLED}}
        named: dict[str, set[str]] = {}
        for version, each in reached.items():
            if version.owner not in broken:
                named.setdefault(version.owner, set()).update(_named(each))
        state.whole |= named

    def _versions(self, view: LakeView) -> set[KeptVersion]:
        model = view.model
        versions = set(model.stored)
        if self.mistake is _M.ONLY_HEADS:
            versions = {version for key in model.lines for version in model.state(key).values()}
        left_out: set[KeptVersion] = set()
        for key, line in model.lines.items():
            is_forgotten = (
                (self.mistake is _M.NO_TAGS and line.is_tag)
                or (self.mistake is _M.NO_DELETED_REFS and line.is_deleted)
                or (self.mistake is _M.NO_OTHER_REALMS and key.realm != view.realm)
                or (self.mistake is _M.NO_OTHER_CATALOGS and (key.realm, key.catalog) != (view.realm, view.catalog))
            )
            if is_forgotten:
                left_out.update(version for state in line.states for version in state.values())
        if left_out or self.mistake is _M.NO_ARCHIVES:
            kept = {
                version
                for key, line in model.lines.items()
                for state in line.states
                for version in state.values()
                if version not in left_out
            }
            versions = (versions - left_out) | kept if left_out else versions - (model.pinned - kept)
        if self.mistake is _M.NO_GUESTS:
            here = (view.realm, view.catalog)
            guests = {owner for owner, note in model.tables.items() if here in note.guests and here not in note.homes}
            versions = {version for version in versions if version.owner not in guests}
        if self.mistake is _M.NO_UNDOCUMENTED:
            versions = {version for version in versions if version.owner in model.tables}
        if self.mistake is _M.NO_VIEWS:
            versions = {version for version in versions if b'"view-uuid"' not in version.text}
        return versions

    def _reached(self, version: KeptVersion, view: LakeView) -> ReachedFiles:
        model, mistake = view.model, self.mistake
        reached = model.reader.read(version)
        document_mistakes = (
            _M.NO_EXISTING,
            _M.NO_DELETES,
            _M.HOLDS_DELETED,
            _M.NO_INLINE,
            _M.CURRENT_ONLY,
            _M.RAW_PATHS,
            _M.NO_LISTS,
        )
        if mistake in document_mistakes:
            return _misread(version, mistake, reached)
        if mistake is _M.NO_STATISTICS:
            named = {entry["statistics-path"] for entry in version.document.get("statistics") or ()}
            return replace(reached, must=reached.must - {path.removeprefix("file://") for path in named})
        if mistake is _M.NO_LOG:
            own = version.metadata_location.rpartition("/")[2]
            kept = {path for path in reached.may if not path.endswith(".metadata.json") or path.endswith(f"/{own}")}
            return replace(reached, may=frozenset(kept))
        if mistake is _M.NO_HINTS:
            return replace(reached, may=frozenset(path for path in reached.may if not path.endswith((".text", ".crc"))))
        return reached

    def _blocked(
        self,
        view: LakeView,
        reached: dict[KeptVersion, ReachedFiles],
        places: dict[str, str],
        guests: dict[str, str],
        there: Iterable[str],
    ) -> dict[str, str]:
        blocked: dict[str, str] = {}

        def block(named: Iterable[str], code: str) -> None:
            for place in places:
                if place not in blocked and any(_overlaps(place, path) for path in named):
                    blocked[place] = code

        if self.mistake is not _M.YIELDS_GUESTS:
            blocked |= dict.fromkeys(guests, GUEST)
        if self.mistake is not _M.YIELDS_TORN:
            for place, codes in view.torn.items():
                block([place], min(codes))
        for version, each in reached.items():
            for fault in each.faults:
                code, named = CODE_OF_FAULT[fault], _named(each)
                if self.mistake is _M.BLOCKS_ALL:
                    named = {"/"}
                elif fault is ReferrerFault.GC_DISABLED:
                    named = set() if self.mistake is _M.YIELDS_GC_DISABLED else named
                elif self.mistake is _M.YIELDS_UNREADABLE:
                    continue
                elif version.owner in self._state.whole:
                    named |= self._state.whole[version.owner]
                else:
                    named = {"/"}
                block(named, code)
            if self.mistake is not _M.YIELDS_MISSING:
                block(each.must.difference(there), NOT_LISTED)
        if self.mistake is not _M.YIELDS_ROLLED_BACK:
            block([place for place in places if self._disk.get(place) != self._state.markers.get(place)], MARKER)
        return blocked


def _misread(version: KeptVersion, mistake: EngineMistake, reached: ReachedFiles) -> ReachedFiles:
    """What a reader with a mistake of its own finds in a version."""
    reader = MistakenReader(mistake)
    try:
        found = reader.read(version)
    except (OSError, ValueError):
        return reached
    if mistake is _M.RAW_PATHS:
        raw = frozenset(path.removeprefix("file://") for path in reached.spelled)
        return replace(reached, may=reached.all & raw, must=frozenset())
    must = found.must
    if mistake is _M.NO_LISTS:
        lists = {str(each.get("manifest-list", "")).removeprefix("file://") for each in version.document.get("snapshots") or ()}
        must = must - lists
    return replace(reached, must=must)


class MistakenReader(LiveReader):
    """Reads versions with a mistake."""

    def __init__(self, mistake: EngineMistake) -> None:
        super().__init__()
        self.mistake = mistake

    def _of_table(self, document, faults):  # type: ignore[no-untyped-def]
        if self.mistake is _M.CURRENT_ONLY:
            current = document.get("current-snapshot-id")
            kept = [each for each in document.get("snapshots") or () if each["snapshot-id"] == current]
            document = document | {"snapshots": kept}
        if self.mistake is _M.NO_INLINE:
            document = document | {"snapshots": [each for each in document.get("snapshots") or () if "manifests" not in each]}
        return super()._of_table(document, faults)

    def _is_held(self, entry):  # type: ignore[no-untyped-def]
        if self.mistake is _M.HOLDS_DELETED:
            return True
        if self.mistake is _M.NO_EXISTING and entry["status"] == 0:
            return False
        if self.mistake is _M.NO_DELETES and entry["data_file"].get("content"):
            return False
        return super()._is_held(entry)


def _named(reached: ReachedFiles) -> set[str]:
    return {*reached.places, *(path.rpartition("/")[0] for path in reached.must)}


def _overlaps(place: str, path: str) -> bool:
    return path == "/" or f"{path}/".startswith(f"{place}/") or place.startswith(f"{path}/")


__all__ = ["ELSEWHERE", "EngineMistake", "ReferenceEngine"]
