"""Who compares: this process, by runs in a temporary folder, or another engine with the same rules and the same result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.lake_files.file_comparison import BucketResult, compare_bucket
from headwater.lake_files.file_runs import FileRuns
from headwater.lake_files.held_paths import HeldPaths
from headwater.lake_files.lake_file_values import ListedFile, LiveFile
from headwater.lake_files.place_index import PlaceIndex

ListFiles = Callable[[], Iterable[ListedFile]]
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
    """Compares what is live with what is there."""

    def compare(
        self, live: Iterable[LiveFile], listing: ListFiles, places: PlaceIndex, held: HeldPaths, is_whole: Callable[[], bool]
    ) -> FileComparison:
        """Read all live files, then begin the listing, then compare.

        is_whole      asked once the listing is over: whether all places were listed
        """
        ...


class ProcessEngine:
    """Compares in this process, in constant memory."""

    def compare(
        self, live: Iterable[LiveFile], listing: ListFiles, places: PlaceIndex, held: HeldPaths, is_whole: Callable[[], bool]
    ) -> FileComparison:
        runs = FileRuns()
        try:
            runs.add_live(live)
            runs.add_listed(listing())
        except BaseException:
            runs.close()
            raise
        return FileComparison(_results(runs, places, held, is_whole()), runs.live, runs.listed, runs.listed_bytes, runs.odd)


def _results(runs: FileRuns, places: PlaceIndex, held: HeldPaths, is_whole: bool) -> Iterator[BucketResult]:
    with runs:
        for number in range(runs.buckets):
            yield compare_bucket(runs.bucket(number), places, held.bucket(number), is_held_whole=is_whole)
