"""All files that a table's metadata reaches: for callers that delete them all, and must not miss a file that leads to others.

    turn 0                     data, delete and statistics files
    turn 1                     manifests
    turn 2                     manifest lists
    later turns                earlier metadata files; those that lead to others come after these
    last turn (LAST_TURN)      the metadata file itself

The files of a turn are found through files of later turns. So a deletion turn by turn can be stopped anywhere, and finds the
rest again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import structlog

from headwater.errors import RefusedError
from headwater.iceberg.avro_projection import read_avro_fields
from headwater.iceberg.filesystem import STORAGE, LakeStorage
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.location import canonical_location, is_same_place, is_within
from headwater.iceberg.metadata_json import decode_metadata, logged_files, statistics_files
from headwater.iceberg.spec import Document, FaultError, check_table, is_maintainable, is_view
from headwater.iceberg.survey_outcomes import QuarantineCode, RejectedTable

FIRST_TURNS = CONTENT, MANIFESTS, LISTS = 0, 1, 2
LAST_TURN = 1 << 40
_SHOWN = 5
_READERS = 16
_AT_ONCE = 4 * _READERS
_logger = structlog.get_logger()

T = TypeVar("T")


class ReachedFile(NamedTuple):
    """A file as the metadata names it, and the turn in which it may be deleted."""

    location: str
    turn: int


def purgeable_document(data: bytes, *, path: str) -> dict[str, Any]:
    """Read the metadata in a file, if all files of its table can be determined.

    raises        RefusedError that says why not
    """
    try:
        document = decode_metadata(data, path=path)
    except RejectedTable as unfit:
        raise RefusedError(str(unfit)) from unfit
    check_purgeable(document, path=path)
    return document


def check_purgeable(document: Document, *, path: str) -> None:
    """Check that all files of a table can be determined, and may be deleted.

    raises        RefusedError that says why not
    """
    if is_view(document):
        raise RefusedError(f"{path} is the metadata of a view: it has no files to purge")
    if reason := is_maintainable(document):
        raise RefusedError(f"the table of {path} cannot be purged: {reason}")
    try:
        check_table(document)
    except FaultError as fault:
        raise RefusedError(f"the table of {path} cannot be purged, for its metadata is not sound: it {fault}") from fault
    properties = document.get("properties") or {}
    if str(properties.get("gc.enabled", "true")).lower() == "false":
        raise RefusedError(f"the table of {path} has the property gc.enabled=false: its files may be in use elsewhere")


def reachable_files(
    document: Document,
    root: str,
    *,
    within: str,
    allowed: Sequence[str] = (),
    was_begun: bool = False,
    missed: list[str] | None = None,
    storage: LakeStorage = STORAGE,
) -> Iterator[ReachedFile]:
    """Every file that a table's metadata reaches, some more than once: all snapshots, and all that earlier versions in the same log had.

    document      as ``purgeable_document`` returns it
    root          the metadata file that contains it
    within        the table's location; only metadata files below it are followed further back
    allowed       other locations of manifests and lists; one elsewhere is reported as a fault without a look at the storage
    was_begun     missing manifests and lists were deleted by an earlier run; otherwise they are faults
    missed        filled with the faults of manifests and lists that are missing or cannot be read, which are then passed over
    raises        RefusedError, naming such manifests and lists, where ``missed`` is None; UnavailableError
    """
    walk = _ManifestWalk(storage, was_begun, (within, *allowed))
    yield from (ReachedFile(location, CONTENT) for location in statistics_files(document))
    lists, manifests = _named_by(document)
    yield from (ReachedFile(location, LISTS) for location in lists)
    for paths in walk.each(walk.manifests_of, lists):
        manifests.update(dict.fromkeys(paths))
    yield from (ReachedFile(location, MANIFESTS) for location in manifests)
    for files in walk.each(walk.files_of, manifests):
        yield from (ReachedFile(location, CONTENT) for location in files)
    if missed is None:
        walk.check_faults(root)
    else:
        missed.extend(walk.faults)
    yield from _earlier(document, root, within, storage)
    yield ReachedFile(root, LAST_TURN)


class _ManifestWalk:
    """Reads lists and manifests, several at a time, and collects the faults: all are reported at once."""

    def __init__(self, storage: LakeStorage, was_begun: bool, readable: Sequence[str]) -> None:
        self._storage = storage
        self._was_begun = was_begun
        self._readable = readable
        self._faults: list[str] = []

    def each(self, read: Callable[[str], T], locations: Iterable[str]) -> Iterator[T]:
        with ThreadPoolExecutor(_READERS, thread_name_prefix="reach") as pool:
            rest = iter(locations)
            while some := list(islice(rest, _AT_ONCE)):
                yield from pool.map(read, some)

    def manifests_of(self, location: str) -> list[str]:
        return self._paths(location, "manifest_path")

    def files_of(self, location: str) -> list[str]:
        """The files of a manifest, with those that a snapshot has deleted, because earlier snapshots had them."""
        return self._paths(location, "data_file.file_path")

    @property
    def faults(self) -> list[str]:
        return sorted(self._faults)

    def check_faults(self, root: str) -> None:
        if self._faults:
            examples = "; ".join(sorted(self._faults)[:_SHOWN])
            raise RefusedError(
                f"{len(self._faults)} manifests or lists of {root} cannot be read ({examples}). Restore them and retry, or purge only what"
                " can be reached (--reachable-only); files that only these name are then never deleted"
            )

    def _paths(self, location: str, name: str) -> list[str]:
        if not any(is_within(location, place) for place in self._readable):
            self._faults.append(f"{location} lies outside of what the catalog allows")
            return []
        try:
            data = self._storage.read_file(FileInfo(canonical_location(location), 0))
            paths = [path for (block,) in read_avro_fields(data, (name,)) for path in block]
            if not all(isinstance(path, str) for path in paths):
                raise ValueError("a record without a path")
        except RejectedTable as unfit:
            is_gone = unfit.code is QuarantineCode.VANISHED
            if not (is_gone and self._was_begun):
                self._faults.append(f"{location} is not there" if is_gone else str(unfit))
            return []
        except RefusedError as fault:  # the location is malformed or not allowed
            self._faults.append(str(fault))
            return []
        except ValueError as fault:  # its message may quote the file, whose content is untrusted
            _logger.info("not an Avro manifest", location=location, fault=repr(fault.__cause__ or fault))
            self._faults.append(f"{location} is not an Avro manifest or manifest list")
            return []
        return [str(path) for path in paths]


def _named_by(document: Document) -> tuple[dict[str, None], dict[str, None]]:
    """The manifest lists of a document, and the manifests that version 1 may name inline."""
    lists, manifests = dict[str, None](), dict[str, None]()
    for snapshot in document.get("snapshots") or ():
        if isinstance(snapshot.get("manifest-list"), str):
            lists[snapshot["manifest-list"]] = None
        else:
            manifests.update(dict.fromkeys(snapshot.get("manifests") or ()))
    return lists, manifests


def _earlier(document: Document, root: str, within: str, storage: LakeStorage) -> Iterator[ReachedFile]:
    """The metadata files of the log, and those of the log of its oldest existing file, and so on. Files that lead on get a later turn."""
    passed, turn = {root}, LAST_TURN - 1
    while True:
        log = [location for location in logged_files(document) if location not in passed]
        passed.update(log)
        yield from (ReachedFile(location, turn) for location in log)
        turn -= 1
        oldest = next((older for location in log if (older := _read(location, within, storage)) is not None), None)
        if oldest is None:
            return
        document = oldest


def _read(location: str, within: str, storage: LakeStorage) -> dict[str, Any] | None:
    """Read an earlier version if it belongs to this table. Engines expire old files, so a missing one is normal."""
    if not is_within(location, within):
        return None
    try:
        document = decode_metadata(storage.read_file(FileInfo(canonical_location(location), 0)), path=location)
    except (RejectedTable, RefusedError):
        return None
    place = document.get("location")
    return document if isinstance(place, str) and is_same_place(place, within) else None
