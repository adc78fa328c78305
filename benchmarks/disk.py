"""Where benchmarks work: on the project's own disk, never in memory, and what one fsync costs there."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

__all__ = ["file_system", "fsync_seconds", "require_disk", "working_folder"]

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".cache" / "benchmarks"
_IN_MEMORY = ("tmpfs", "ramfs")
_FSYNC_BYTES = 8192
_FSYNCS = 100


@contextmanager
def working_folder() -> Iterator[Path]:
    """A new folder on the disk of the project, removed at the end."""
    folder = WORK / f"work-{time.time_ns()}"
    folder.mkdir(parents=True)
    try:
        require_disk(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def require_disk(folder: Path) -> None:
    """End the run when the folder lies in memory: what is measured there says nothing about a database that keeps its word."""
    if (kind := file_system(folder)) in _IN_MEMORY:
        raise SystemExit(
            f"{folder} lies on {kind}, which is memory: benchmarks need a disk that fsync reaches; move the project to one"
        )


def file_system(path: Path) -> str:
    places = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return max(places, key=lambda part: len(part.mountpoint)).fstype if places else "unknown file system"


def fsync_seconds(folder: Path) -> float:
    """What it takes to append 8 KiB to a file and wait for the disk; the median of 100."""
    file, taken = folder / f"fsync-{os.getpid()}", []
    with file.open("wb", buffering=0) as stream:
        for _ in range(_FSYNCS):
            started = time.perf_counter()
            stream.write(bytes(_FSYNC_BYTES))
            os.fsync(stream.fileno())
            taken.append(time.perf_counter() - started)
    file.unlink()
    return statistics.median(taken)
