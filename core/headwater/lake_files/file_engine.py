"""Who compares: this process, by runs in a temporary folder, or another engine with the same rules and the same result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from headwater.lake_files.file_columns import ListedFiles, LiveFiles
from headwater.lake_files.file_comparison import BucketResult, compare_bucket
from headwater.lake_files.file_runs import FileRuns
from headwater.lake_files.held_paths import HeldPaths
from headwater.lake_files.listed_places import PlaceListing
from headwater.lake_files.manifest_reader import ReadManifests
from headwater.lake_files.place_index import PlaceIndex

_COMPARERS = 2
"""More would wait for each other: a third of a comparison is Python."""
ListFiles = Callable[[], Iterable[ListedFiles]]
"""Begins a listing of all places, and may be called twice."""


@dataclass(frozen=True, slots=True)
class FileComparison:
    """What an engine found.

    results       by bucket, in order; iterate once
    odd           some live paths that are no locations
    """

    results: Iterator[BucketResult]
    live: int
    listed: int
    listed_bytes: int
    odd: Sequence[str] = ()


class FileEngine(Protocol):
    """Reads manifests, lists places, and compares what is live with what is there."""

    def manifest_reader(self) -> ReadManifests | None:
        """What reads manifests elsewhere; None: this process does. Asked while ``compare`` reads what is live."""
        ...

    def list_places(self, listing: PlaceListing) -> Iterable[ListedFiles]:
        """Iterate over a listing, in its order. Called while ``compare`` reads what is there."""
        ...

    def compare(self, live: Iterable[LiveFiles], listing: ListFiles, ground: ComparisonGround) -> FileComparison:
        """Read all live files, then begin the listing, then compare."""
        ...


@dataclass(frozen=True, slots=True)
class ComparisonGround:
    """What files are compared by.

    is_whole      asked once the listing is over: whether all places were listed
    expected      how many files the last run met; 0 for the first
    """

    places: PlaceIndex
    held: HeldPaths
    is_whole: Callable[[], bool]
    expected: int = 0


class ProcessEngine:
    """Compares in this process, in constant memory."""

    def manifest_reader(self) -> ReadManifests | None:
        return None

    def list_places(self, listing: PlaceListing) -> Iterable[ListedFiles]:
        return listing

    def compare(self, live: Iterable[LiveFiles], listing: ListFiles, ground: ComparisonGround) -> FileComparison:
        runs = gather_files(live, listing)
        return comparison_of(runs, _results(runs, ground.places, ground.held, ground.is_whole()))


def gather_files(live: Iterable[LiveFiles], listing: ListFiles) -> FileRuns:
    """Divide live files, and then those that are there, into buckets. Whoever calls closes them."""
    runs = FileRuns()
    try:
        runs.add_live(live)
        runs.add_listed(listing())
    except BaseException:
        runs.close()
        raise
    return runs


def comparison_of(runs: FileRuns, results: Iterator[BucketResult]) -> FileComparison:
    return FileComparison(results, runs.live, runs.listed, runs.listed_bytes, runs.odd)


def _results(runs: FileRuns, places: PlaceIndex, held: HeldPaths, is_whole: bool) -> Iterator[BucketResult]:
    """The results of all buckets, in order; the next ones are compared while one is used."""
    with runs, ThreadPoolExecutor(_COMPARERS, thread_name_prefix="compare") as pool:

        def compare(number: int) -> BucketResult:
            return compare_bucket(runs.bucket(number), places, held.bucket(number), is_held_whole=is_whole)

        ahead: deque[Future[BucketResult]] = deque()
        for number in range(runs.buckets):
            ahead.append(pool.submit(compare, number))
            if len(ahead) > _COMPARERS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
