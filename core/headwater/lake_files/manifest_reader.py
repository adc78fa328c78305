"""Reads one file of many that lead to live files: what it holds, or why it was not read, and whether its storage answers at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from threading import Semaphore
from typing import NamedTuple, TypeVar

from headwater.errors import RefusedError, UnavailableError
from headwater.iceberg.file_drivers import NotAFileError
from headwater.iceberg.filesystem import LakeStorage
from headwater.iceberg.layout import FileInfo
from headwater.iceberg.location import canonical_location
from headwater.iceberg.manifest_entries import read_manifest_entries
from headwater.iceberg.survey_outcomes import RejectedTable
from headwater.lake_files.file_columns import live_files_of
from headwater.lake_files.manifest_memory import KnownManifest
from headwater.lake_files.stored_versions import bucket_of

DECODERS = Semaphore(2)
"""Of those who wait for storages, so many decode what came: more would wait for each other, and for Python."""
_ATTEMPTS = 3
"""At a bucket that never answers."""
T = TypeVar("T")


class Unanswered(str):
    """Why a file was not read, where its storage did not answer: it may another time."""

    __slots__ = ()


SILENT = Unanswered("its storage does not answer")


class UnansweredError(Exception):
    """The storage of a list or document did not answer."""


class StorageAnswers:
    """Which buckets answer. One that never did is like a file that cannot be read: a guest may name any storage in the world.

    One that did answer, and does not any more, is out of order: the report ends, and is tried again. Safe for several threads.
    """

    def __init__(self) -> None:
        self._answered: set[str | None] = set()
        self._silent: Counter[str | None] = Counter()

    def note_answer(self, path: str, read: T) -> T:
        """Note what became of an attempt to read.

        raises        UnavailableError for a bucket that answered before
        """
        bucket = bucket_of(path)
        if isinstance(read, KnownManifest | ReadManifest | bytes):
            self._answered.add(bucket)
        elif isinstance(read, Unanswered):
            if bucket in self._answered:
                raise UnavailableError(str(read))
            self._silent[bucket] += 1
        return read

    def is_silent(self, path: str) -> bool:
        """Whether it is in vain to try: each attempt may take minutes."""
        bucket = bucket_of(path)
        return self._silent[bucket] >= _ATTEMPTS and bucket not in self._answered


class ReadManifest(NamedTuple):
    """A manifest as it was read: ``KnownManifest``, with paths as they are written."""

    path: str
    length_bytes: int
    modified: int
    total: int
    paths: list[str]


def read_lake_manifest(wanted: tuple[LakeStorage, str]) -> ReadManifest | str:
    """Read a manifest in its storage, or tell why it cannot be read."""
    storage, path = wanted
    try:
        location = canonical_location(path)
        length, modified = _facts(storage, location)
        data = storage.read_file(FileInfo(location, length))
        with DECODERS:
            entries = read_manifest_entries(data)
    except (RejectedTable, RefusedError, ValueError) as fault:
        return str(fault)
    except UnavailableError as fault:
        return Unanswered(str(fault))
    # a file that was replaced between the two is read again next time
    return ReadManifest(path, len(data), modified if length == len(data) else -1, entries.total, entries.paths)


def known_manifests(read: Sequence[ReadManifest]) -> Iterator[KnownManifest]:
    """The columns of what was read: for all of them at once, which takes a third of the time."""
    parts = live_files_of([manifest.paths for manifest in read])
    for manifest, files in zip(read, parts, strict=True):
        yield KnownManifest(*manifest[:4], files)


def read_known_manifest(wanted: tuple[LakeStorage, str]) -> KnownManifest | str:
    """``read_lake_manifest``, in columns."""
    read = read_lake_manifest(wanted)
    return read if isinstance(read, str) else next(known_manifests([read]))


ReadManifests = Callable[[Sequence[tuple[LakeStorage, str]]], Iterator[KnownManifest | str]]
"""Reads manifests in their storages, in order; of those that cannot be read it tells why."""


def read_lake_file(storage: LakeStorage, path: str) -> bytes:
    """Read a manifest list or a document; raises as ``LakeStorage.read_file`` does, for what is too large, too."""
    location = canonical_location(path)
    return storage.read_file(FileInfo(location, _facts(storage, location)[0]))


def _facts(storage: LakeStorage, location: str) -> tuple[int, int]:
    """The length and time of a file; zeros where the read tells what is wrong."""
    try:
        system, path = storage.open_system(location)
        return system.file_facts(path)
    except (FileNotFoundError, NotAFileError, PermissionError):
        return 0, 0
    except OSError as fault:
        raise UnavailableError(f"cannot look at {location}: {fault}") from fault
