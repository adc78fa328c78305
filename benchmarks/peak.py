"""How much memory one collection takes: run in a process of its own, ``python -m benchmarks.peak URL REALM``; prints two numbers.

First the bytes of an idle worker (everything imported, the store open, the system realm collected once), then its peak.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
from benchmarks.disk import ROOT

import headwater_workers.task_executor
from headwater.gc import collect_realm
from headwater.store import SYSTEM_REALM, open_store

__all__ = ["peak_of"]


def peak_of(url: str, realm: str) -> tuple[int, int]:
    """Bytes of an idle worker, and at the peak of a collection."""
    command = [sys.executable, "-m", "benchmarks.peak", url, realm]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    idle, peak = done.stdout.split()
    return int(idle), int(peak)


def main(url: str, realm: str) -> None:
    assert headwater_workers.task_executor.run_task  # what a worker has loaded
    with open_store(url) as store:
        collect_realm(store, SYSTEM_REALM, dry_run=True)
        idle = psutil.Process().memory_info().rss
        collect_realm(store, realm)
    print(idle, peak_bytes())


def peak_bytes() -> int:
    """Of this process since it began. ``ru_maxrss`` would not do: a child inherits its parent's through fork and exec."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
