"""Rows of figures: printed as a table, kept as JSON with a description of the machine, and shown as Markdown in the documentation."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from benchmarks.disk import ROOT, WORK, file_system, fsync_seconds
from benchmarks.pictures import Curve

__all__ = [
    "ROOT",
    "Row",
    "Target",
    "at_least",
    "at_least_of_floor",
    "at_most",
    "at_most_of_floor",
    "markdown",
    "markdown_rows",
    "read_results",
    "row_of",
    "say",
    "show",
    "write_results",
]

RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = WORK
HEADS = ("case", "backend", "value", "unit", "floor", "ratio", "target", "met")


@dataclass(frozen=True, slots=True)
class Target:
    """``<= 60`` or ``>= 100`` in the unit of the row, or ``>= 0.7 of floor`` for its ratio."""

    is_upper: bool
    bound: float
    is_of_floor: bool = False

    def is_met_by(self, value: float, floor: float | None) -> bool:
        if self.is_of_floor:
            if not floor:
                raise ValueError(f"the target is {self}, but the row has no floor")
            value /= floor
        return value <= self.bound if self.is_upper else value >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.is_upper else '>='} {self.bound:g}{' of floor' if self.is_of_floor else ''}"


def at_most(bound: float) -> Target:
    return Target(True, bound)


def at_least(bound: float) -> Target:
    return Target(False, bound)


def at_least_of_floor(share: float) -> Target:
    """For rates, such as rows/s: a share of what the floor does."""
    return Target(False, share, is_of_floor=True)


def at_most_of_floor(share: float) -> Target:
    """For seconds or bytes: so many times what the floor takes."""
    return Target(True, share, is_of_floor=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``floor`` is what the same costs at least, in the same unit, and the ratio is the value divided by it.

    For a rate, such as rows/s, the ratio is the share of the floor's speed that is reached: the floor's time by ours, 1 at best.
    For seconds or bytes it says how many times as much we take.
    """

    case: str
    backend: str
    value: float
    unit: str
    floor: float | None = None
    target: Target | None = None

    def plain(self, suite: str) -> dict[str, Any]:
        return {
            "suite": suite,
            "case": self.case,
            "backend": self.backend,
            "value": _rounded(self.value),
            "unit": self.unit,
            "floor": None if self.floor is None else _rounded(self.floor),
            "ratio": _rounded(self.value / self.floor) if self.floor else None,
            "target": None if self.target is None else str(self.target),
            "met": None if self.target is None else self.target.is_met_by(self.value, self.floor),
        }


def row_of(kept: dict[str, Any]) -> Row:
    """The reverse of ``Row.plain``."""
    target = None
    if kept["target"] is not None:
        sign, bound, *of_floor = kept["target"].split(" ", 2)
        target = Target(sign == "<=", float(bound), bool(of_floor))
    return Row(kept["case"], kept["backend"], kept["value"], kept["unit"], kept["floor"], target)


@dataclass(frozen=True, slots=True)
class Machine:
    processor: str
    cores: int
    memory_gib: float
    system: str
    filesystem: str
    python: str
    sqlite: str
    fsync_ms: float
    """To append 8 KiB to a file and wait for the disk."""
    versions: dict[str, str]
    """Of servers and drivers that took part."""

    @classmethod
    def here(cls, versions: dict[str, str]) -> Machine:
        WORK.mkdir(parents=True, exist_ok=True)
        return cls(
            processor=_processor(),
            cores=os.cpu_count() or 0,
            memory_gib=round(psutil.virtual_memory().total / 1024**3, 1),
            system=f"{platform.system()} {platform.machine()}",
            filesystem=file_system(ROOT),
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
            fsync_ms=_rounded(fsync_seconds(WORK) * 1000),
            versions=versions,
        )


def write_results(
    suite: str,
    rows: Iterable[Row],
    *,
    settings: dict[str, Any],
    is_quick: bool,
    versions: dict[str, str] | None = None,
    folder: Path | None = None,
    curves: Iterable[Curve] = (),
) -> Path:
    """Keep the figures, in another folder than the usual one if need be. A quick run never takes the place of a full one."""
    folder = folder or (QUICK_RESULTS if is_quick else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    kept = {
        "suite": suite,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "quick": is_quick,
        "machine": asdict(Machine.here(versions or {})),
        "settings": settings,
        "rows": [row.plain(suite) for row in rows],
        "curves": [asdict(curve) for curve in curves],
    }
    file = folder / f"{suite}.json"
    file.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return file


def read_results(suite: str) -> dict[str, Any] | None:
    """The latest full run of a suite, or None when there was none."""
    file = RESULTS / f"{suite}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def show(rows: Iterable[Row]) -> str:
    """The table as a person reads it in a terminal."""
    table = [[_shown(row.plain("")[head]) for head in HEADS] for row in rows]
    widths = [max(len(line[column]) for line in [list(HEADS), *table]) for column in range(len(HEADS))]
    numeric = {HEADS.index(name) for name in ("value", "floor", "ratio")}

    def line(cells: list[str]) -> str:
        return "  ".join(
            cell.rjust(width) if column in numeric else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()

    return "\n".join(line(cells) for cells in [list(HEADS), *table])


def markdown(results: dict[str, Any]) -> str:
    """The table and the machine, for a page of the documentation."""
    machine, load = results["machine"], results["settings"].get("load_before", 0)
    fsync = f" (one fsync: {machine['fsync_ms']:g} ms)" if "fsync_ms" in machine else ""
    versions = "".join(f", {name} {version}" for name, version in machine.get("versions", {}).items())
    lines = [
        f"Measured on {results['date']}: {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, {machine['filesystem']}{fsync}, Python {machine['python']}, SQLite {machine['sqlite']}{versions}. "
        f"Load before the run: {load:.2g}.",
        "",
    ]
    return "\n".join(lines) + "\n" + markdown_rows(results["rows"])


def markdown_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """The table alone."""
    lines = [
        "| " + " | ".join(HEADS) + " |",
        "|" + "|".join("---" for _ in HEADS) + "|",
        *("| " + " | ".join(_shown(row[head]) for head in HEADS) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def say(text: str) -> None:
    """What is going on, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:,g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)


def _rounded(value: float) -> float:
    """Three digits that mean something."""
    return float(f"{value:.3g}") if abs(value) < 1000 else float(round(value))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
