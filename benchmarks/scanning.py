"""Scans in processes of their own: what memory one takes, and how fast several are together."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import psutil

from headwater.store import ObjectPosition, ScanSplit, Store, open_store

__all__ = ["Stretch", "growth_of", "growth_of_one", "scan", "scan_together"]

PAGE = 600
"""Keys of a page, as many as the RealmStore takes."""
_LOOK_EVERY = 10
_spawning = multiprocessing.get_context("spawn")
_opened: list[Store] = []
"""The store of this process, where it is one of those that scan."""


class Stretch(NamedTuple):
    """What one process scanned, from when to when by the machine's monotonic clock."""

    rows: int
    started: float
    ended: float


def scan(store: Store, split: ScanSplit[ObjectPosition], peak: list[int] | None = None) -> int:
    """Count a split's rows at the Backend, page by page. ``peak`` receives this process' memory now and then, in bytes."""
    after: ObjectPosition | None = None
    rows = pages = 0
    while page := store.backend.scan_objects(split, after, PAGE):
        rows, pages, after = rows + len(page), pages + 1, page[-1].position
        if peak is not None and pages % _LOOK_EVERY == 0:
            peak.append(psutil.Process().memory_info().rss)
    return rows


def growth_of(store: Store, split: ScanSplit[ObjectPosition]) -> float:
    """By how many MiB this process grows during a scan, at most. The first page, which warms everything up, is before."""
    store.backend.scan_objects(split, None, PAGE)
    peak = [psutil.Process().memory_info().rss]
    scan(store, split, peak)
    return (max(peak) - peak[0]) / 1024**2


def growth_of_one(url: str, split: ScanSplit[ObjectPosition]) -> float:
    """The same in a new process, which has nothing else to remember."""
    with ProcessPoolExecutor(1, mp_context=_spawning, initializer=_open, initargs=(url,)) as pool:
        return pool.submit(_growth, split).result()


def scan_together(url: str, splits: Sequence[ScanSplit[Any]], rounds: int) -> list[tuple[int, float]]:
    """Scan splits at once, each in a process of its own that has the store open: rows and seconds of each round."""
    with ProcessPoolExecutor(len(splits), mp_context=_spawning, initializer=_open, initargs=(url,)) as pool:
        list(pool.map(_pause, [0.2] * len(splits)))  # every process is up, and none takes the work of two
        return [_together(list(pool.map(_stretch, splits))) for _ in range(rounds)]


def _together(stretches: Sequence[Stretch]) -> tuple[int, float]:
    return sum(one.rows for one in stretches), max(one.ended for one in stretches) - min(one.started for one in stretches)


def _open(url: str) -> None:
    _opened.append(open_store(url))


def _pause(seconds: float) -> None:
    time.sleep(seconds)


def _growth(split: ScanSplit[ObjectPosition]) -> float:
    return growth_of(_opened[0], split)


def _stretch(split: ScanSplit[ObjectPosition]) -> Stretch:
    started = time.monotonic()
    rows = scan(_opened[0], split)
    return Stretch(rows, started, time.monotonic())
