"""Markers: a file in every place that says which run of which store looked at it last. The store remembers the same.

Where the two differ, another store works with these files: a copy of the database, the database as it was earlier, or a second store
on the same bucket. Its live files are not ours, so the place yields nothing until somebody has said who is right
(``accept_markers``).

A marker is told by its name, so a listing is all that a check needs; what is in it is for people::

    _headwater-place-000007-1b0c6b1f0f0e9a55.json      the number of the run, and 16 hex digits that nobody else makes

The realm's reference ``file-places`` has the record of a place in the index ``places``: key 16 bytes of the catalog's id and 16 bytes
BLAKE2b of the location, value JSON with ``current``, the marker that has to be there; ``coming``, one that may be; and ``former``, some
that may be there still. Every run moves a place on in this order, so that whatever breaks it off leaves a state that the next one accepts::

    1  the record gets a ``coming``          current=a, coming=b        there: a, and what is left of ``former``
    2  the file b is written                 current=a, coming=b        there: a, b
    3  the record moves on                   current=b, former=a        there: a, b
    4  the file a is deleted                 current=b, former=a        there: b

So what is there has to be ``current``, and nothing but ``current``, ``coming`` and ``former``. Of a place that never had a marker there may
be ``coming`` alone. A ``coming`` is never replaced: a run that finds one writes that one. Where *no* marker is there although one should
be, somebody deleted it: the place yields nothing in this run, which writes a new one.

Who meets a marker of another leaves one of its own beside it, and moves nothing on. So the other one yields nothing either, although it may
have been the first to move on: of two copies of a database, nobody can say which is the right one. When both move at the same time, both
markers are there, since their names differ, and each finds that of the other with its next run.

Only places that have candidates are moved on: of the others there is nothing that could go wrong.

The reference outlives a collection of garbage as ``pins`` does. An exported realm has none of it, and a loaded one begins anew.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum, auto
from itertools import islice
from typing import TypeVar

import msgspec

from headwater.catalogs.file_marks import FILE_PLACES
from headwater.clock import Micros, as_text
from headwater.commits import Transaction, commit_change, read_head
from headwater.errors import ConflictError, CorruptionError, HeadwaterError, NotFoundError, RefusedError
from headwater.iceberg.table_storage import TableStorage
from headwater.index import IndexValue
from headwater.lake_files.file_kinds import is_marker
from headwater.lake_files.work_folder import WorkFile
from headwater.store import RealmReader, RealmStore
from headwater.typed_values import decode_json

_PLACES, _RUNS = "places", "runs"
_AT_ONCE = 1000
_WRITERS = 16

T = TypeVar("T")


class PlaceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the store remembers of a place: names of markers, empty for none."""

    location: str
    current: str = ""
    coming: str = ""
    former: tuple[str, ...] = ()


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last run over a catalog.

    number        1 for the first
    files         how many files it met, about
    held          the file with what was held
    inputs        what the run was computed from, as a digest; empty: its result is good for this run alone
    result        the file with its result
    """

    number: int = 0
    files: int = 0
    time: Micros = Micros(0)
    held: WorkFile | None = None
    inputs: str = ""
    result: WorkFile | None = None


class MarkerState(StrEnum):
    """What the markers in a place say."""

    SOUND = auto()
    MISSING = auto()
    """Ours was deleted: nothing in this run, and a new one is written."""
    FOREIGN = auto()


class PlaceMarkers:
    """The markers of a catalog's places. Reads the records when created.

    identity      of the store, for people
    """

    def __init__(self, rows: RealmStore, catalog_id: str, storage: TableStorage) -> None:
        self.identity = ""
        self._rows = rows
        self._catalog_id = catalog_id
        self._storage = storage
        self.records = _read_records(rows, catalog_id)

    def judge(self, location: str, found: Collection[str]) -> tuple[MarkerState, str]:
        """Judge the names of the markers that a listing of a place has. Returns what they say, and a sentence where that is not sound."""
        record = self.records.get(location) or PlaceRecord(location=location)
        strangers = sorted(set(found) - {record.current, record.coming, *record.former})
        if strangers:
            return MarkerState.FOREIGN, f"{location}/{strangers[0]} is not a marker that this store wrote, or wrote last"
        if not record.current or record.current in found:
            return MarkerState.SOUND, ""
        if not found:
            return MarkerState.MISSING, f"{location}/{record.current} was deleted: the next run finds a new one"
        return MarkerState.FOREIGN, f"{location}/{record.current} is not there, and {sorted(found)[0]} is, which is older"

    def advance(self, found: Mapping[str, Collection[str]], run: int, *, fence: Callable[[], None]) -> dict[str, str]:
        """Move places on to a run.

        found         by location, the markers that are there; only places whose markers are sound or missing
        returns       by location, why a marker could not be written: such a place must yield nothing
        raises        UnavailableError, and what ``commit_change`` raises: the next run goes on from there
        """
        failed: dict[str, str] = {}
        rest = iter(sorted(found))
        while some := list(islice(rest, _AT_ONCE)):
            fence()
            coming = self._announce(some, run, fence)
            with ThreadPoolExecutor(_WRITERS, thread_name_prefix="marker") as pool:
                faults = list(pool.map(self._write, some, [coming[place] for place in some], [run] * len(some)))
                failed |= {place: fault for place, fault in zip(some, faults, strict=True) if fault}
                written = [place for place, fault in zip(some, faults, strict=True) if not fault]
                self._confirm({place: [*found[place]] for place in written}, fence)
                left = [f"{place}/{name}" for place in written for name in found[place] if name != coming[place]]
                for _ in pool.map(self._delete, left):
                    continue
        return failed

    def object_to(self, places: Iterable[str], run: int, *, fence: Callable[[], None]) -> None:
        """Leave a marker beside that of another, once."""
        rest = iter(sorted(places))
        while some := list(islice(rest, _AT_ONCE)):
            fence()
            coming = self._announce(some, run, fence)
            with ThreadPoolExecutor(_WRITERS, thread_name_prefix="marker") as pool:
                for _ in pool.map(self._write, some, [coming[place] for place in some], [run] * len(some)):
                    continue

    def _announce(self, places: Sequence[str], run: int, fence: Callable[[], None]) -> dict[str, str]:
        """Step 1: every place gets a coming marker, unless it has one. Returns them."""
        made = {place: f"_headwater-place-{run:06d}-{secrets.token_hex(8)}.json" for place in places}

        def announced(record: PlaceRecord) -> PlaceRecord:
            return record if record.coming else msgspec.structs.replace(record, coming=made[record.location])

        return {record.location: record.coming for record in self._change(places, announced, "announce markers", fence)}

    def _confirm(self, found: Mapping[str, Sequence[str]], fence: Callable[[], None]) -> None:
        """Step 3."""

        def confirmed(record: PlaceRecord) -> PlaceRecord:
            former = tuple(sorted({*found[record.location], record.current} - {record.coming, ""}))
            return PlaceRecord(location=record.location, current=record.coming, former=former)

        self._change(list(found), confirmed, "confirm markers", fence)

    def _change(
        self, places: Sequence[str], edit: Callable[[PlaceRecord], PlaceRecord], what: str, fence: Callable[[], None]
    ) -> list[PlaceRecord]:
        if not places:
            return []

        def change(tx: Transaction) -> list[PlaceRecord]:
            index = tx.index(_PLACES)
            keys = {place: _key(self._catalog_id, place) for place in places}
            held = index.get_many(keys.values())
            edited = []
            for place, key in keys.items():
                record = _decoded(held[key]) if key in held else PlaceRecord(location=place)
                edited.append(edit(record))
                if edited[-1] != record:
                    index.put(key, IndexValue(None, msgspec.json.encode(edited[-1])))
            return edited

        self._rows.ensure_reference(FILE_PLACES)
        message = f"{what} of {len(places)} places of catalog {self._catalog_id}"
        records = commit_change(self._rows, FILE_PLACES, change, message=message, fence=fence).result
        self.records |= {record.location: record for record in records}
        return records

    def _write(self, place: str, name: str, run: int) -> str:
        """Step 2. Returns why the storage refuses it, for good."""
        text = json.dumps(
            {
                "store": self.identity,
                "realm": self._rows.realm,
                "realm-key": f"{self._rows.key:x}",
                "catalog": self._catalog_id,
                "run": run,
                "note": "Headwater found out here which files nobody refers to. Leave this file where it is.",
            },
            indent=1,
        )
        try:
            self._storage.write_new(f"{place}/{name}", text.encode())
        except ConflictError:
            return ""  # an earlier attempt wrote it, in another run
        except RefusedError as fault:
            return str(fault)
        return ""

    def _delete(self, location: str) -> None:
        """Step 4. A marker that stays is one of ``former``, and is deleted with the next run."""
        try:
            self._storage.delete(location)
        except HeadwaterError:
            return


def accept_markers(
    rows: RealmStore, catalog_id: str, found: Mapping[str, Collection[str]], *, fence: Callable[[], None] = lambda: None
) -> int:
    """Accept what is there: for a person who knows that no other store works with these places. Returns how many records changed.

    found         by location of a place, the names of the markers in it
    """

    def change(tx: Transaction) -> int:
        index, changed = tx.index(_PLACES), 0
        for place, names in found.items():
            key = _key(catalog_id, place)
            value = index.get(key)
            record = PlaceRecord(location=place, former=tuple(sorted(filter(is_marker, names))))
            if value is None or _decoded(value) != record:
                index.put(key, IndexValue(None, msgspec.json.encode(record)))
                changed += 1
        return changed

    rows.ensure_reference(FILE_PLACES)
    return commit_change(rows, FILE_PLACES, change, message=f"accept markers of catalog {catalog_id}", fence=fence).result


def read_run(rows: RealmReader, catalog_id: str) -> RunRecord:
    """The last run over a catalog; number 0 before the first."""
    value = None
    try:
        head = read_head(rows, FILE_PLACES, fresh=True)
    except NotFoundError:
        head = None
    if head is not None:
        value = head.index(_RUNS).get(catalog_id.encode())
    return RunRecord() if value is None else _decode(value, RunRecord)


def write_run(rows: RealmStore, catalog_id: str, seen: RunRecord, new: RunRecord, *, fence: Callable[[], None]) -> None:
    """Record a run.

    raises        ConflictError when another one was recorded since ``seen`` was read
    """

    def change(tx: Transaction) -> None:
        value = tx.index(_RUNS).get(catalog_id.encode())
        if (RunRecord() if value is None else _decode(value, RunRecord)) != seen:
            raise ConflictError(
                f"another file report of catalog {catalog_id} of realm {rows.realm!r} ended meanwhile: run it again"
            )
        tx.index(_RUNS).put(catalog_id.encode(), IndexValue(None, msgspec.json.encode(new)))

    rows.ensure_reference(FILE_PLACES)
    message = f"run {new.number} over the files of catalog {catalog_id}, at {as_text(new.time)}"
    commit_change(rows, FILE_PLACES, change, message=message, fence=fence)


def _read_records(rows: RealmReader, catalog_id: str) -> dict[str, PlaceRecord]:
    try:
        head = read_head(rows, FILE_PLACES, fresh=True)
    except NotFoundError:
        return {}
    if head is None:
        return {}
    records = (_decoded(value) for _, value in head.index(_PLACES).prefix(catalog_id.encode()))
    return {record.location: record for record in records}


def _key(catalog_id: str, location: str) -> bytes:
    return catalog_id.encode() + hashlib.blake2b(location.encode(errors="surrogatepass"), digest_size=16).digest()


def _decoded(value: IndexValue) -> PlaceRecord:
    return _decode(value, PlaceRecord)


def _decode(value: IndexValue, cls: type[T]) -> T:
    try:
        return decode_json(bytes(value.data), cls)
    except msgspec.MsgspecError as fault:
        raise CorruptionError(f"an entry of the reference {FILE_PLACES!r} is no {cls.__name__}: {fault}") from fault
