"""The search for dead files as Spark jobs: the same rules and the same result as in process, spread over executors.

    manifests     read where they are wanted, some at a time; what they hold comes to this process, which remembers it
    places        listed one a task
    buckets       compared one a task; what this process has of a bucket goes there, and what is dead comes back

So this process holds what a few tasks have in hand, and the rest on its disk. Executors reach storages as this process does, by a file of
storages of the same path, or by their environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from headwater.iceberg.filesystem import LakeStorage
from headwater.lake_files.file_columns import ListedFiles, LiveFiles, listed_in_columns, weighed_batches
from headwater.lake_files.file_comparison import BucketResult, compare_bucket
from headwater.lake_files.file_engine import (
    ComparisonGround,
    FileComparison,
    ListFiles,
    ProcessEngine,
    comparison_of,
    gather_files,
)
from headwater.lake_files.file_runs import BucketFiles, FileRuns
from headwater.lake_files.lake_file_values import BlockedPlace, ListedFile
from headwater.lake_files.listed_places import PlaceListing, list_place
from headwater.lake_files.manifest_memory import KnownManifest
from headwater.lake_files.manifest_reader import ReadManifests, read_known_manifest
from headwater.lake_files.place_index import PlaceIndex
from headwater.settings import Settings
from headwater.throttle import ProgressCallback, no_progress
from headwater_workers.pipeline.spark_session import Jobs, SparkOptions, find_engine, session

_TASKS_PER_SLOT = 4
_WEIGHT = 250_000
"""Files that a slot has in hand, about, while this process waits for what becomes of them."""
_Bucket = tuple[BucketFiles, Any]
"""The files of a bucket, and the digests of what was held of it."""
T = TypeVar("T")
R = TypeVar("R")


class SparkFileEngine:
    """Searches on Spark where that is worth its start, and otherwise in this process.

    It is worth it from as many files on as the setting ``spark_from_files`` says, by what the last run met.
    """

    def __init__(self, settings: Settings, *, progress: ProgressCallback = no_progress) -> None:
        self._settings = settings
        self._engine = find_engine(settings)
        self._progress = progress
        self._in_process = ProcessEngine()
        self._spark: Any = None

    def manifest_reader(self) -> ReadManifests | None:
        return None if self._spark is None else self._read_manifests

    def list_places(self, listing: PlaceListing) -> Iterable[ListedFiles]:
        if self._spark is None:
            return self._in_process.list_places(listing)
        return listed_in_columns(self._listed(listing))

    def compare(self, live: Iterable[LiveFiles], listing: ListFiles, ground: ComparisonGround) -> FileComparison:
        is_large = ground.expected >= self._settings.spark_from_files
        if not self._engine.is_spark or not is_large:
            return self._in_process.compare(live, listing, ground)
        stack = ExitStack()
        try:
            self._open(stack)
            runs = gather_files(live, listing)
            stack.callback(runs.close)
        except BaseException:
            stack.close()
            raise
        return comparison_of(runs, self._results(stack, runs, ground, ground.is_whole()))

    def _open(self, stack: ExitStack) -> None:
        self._spark = stack.enter_context(session("headwater file report", SparkOptions.of(self._settings)))
        stack.callback(self._forget)

    def _forget(self) -> None:
        self._spark = None

    def _results(self, stack: ExitStack, runs: FileRuns, ground: ComparisonGround, is_whole: bool) -> Iterator[BucketResult]:
        with stack:
            work = partial(_compared, ground.places, is_whole)
            buckets = ((runs.bucket(number), ground.held.bucket(number)) for number in range(runs.buckets))
            yield from self._each("compare", work, buckets, _weigh_bucket)

    def _read_manifests(self, wanted: Sequence[tuple[LakeStorage, str]]) -> Iterator[KnownManifest | str]:
        return self._each("read manifests", read_known_manifest, wanted, _weigh_manifest)

    def _listed(self, listing: PlaceListing) -> Iterator[ListedFile]:
        work = partial(_listed_place, listing.lake)
        for entries in self._each("list", work, (place.location for place in listing.places), _weigh_place):
            for entry in entries:
                if isinstance(entry, BlockedPlace):
                    listing.blocked.append(entry)
                else:
                    yield entry
            listing.listed += 1

    def _each(
        self, stage: str, work: Callable[[T], R], items: Iterable[T], weigh: Callable[[T], int] = lambda item: 1
    ) -> Iterator[R]:
        """Do a piece of work for each item on executors, in order: so many at a time that they weigh ``_WEIGHT`` for each slot."""
        context, jobs = self._spark.sparkContext, Jobs(self._spark, self._progress)
        slots = max(1, int(context.defaultParallelism))
        for some in weighed_batches(items, weigh, _WEIGHT * slots):
            collect = context.parallelize(some, min(len(some), _TASKS_PER_SLOT * slots)).map(work).collect
            yield from jobs.run_job(stage, collect)


def _weigh_bucket(bucket: _Bucket) -> int:
    files, held = bucket
    return int(files.live.num_rows + files.listed.num_rows + len(held))


def _weigh_place(place: str) -> int:
    """What it has is not known yet."""
    return _WEIGHT // 16


def _weigh_manifest(wanted: tuple[LakeStorage, str]) -> int:
    return _WEIGHT // 256


def _compared(places: PlaceIndex, is_whole: bool, bucket: _Bucket) -> BucketResult:
    files, held = bucket
    return compare_bucket(files, places, held, is_held_whole=is_whole)


def _listed_place(lake: LakeStorage, place: str) -> list[ListedFile | BlockedPlace]:
    return list(list_place(lake, place))
