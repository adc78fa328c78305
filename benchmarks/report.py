"""Rows of figures: printed as a table, kept as JSON with a description of the machine, and shown as Markdown in the documentation."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Row", "Target", "at_least", "at_most", "markdown", "read_results", "show", "write_results"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
QUICK_RESULTS = ROOT / ".cache" / "benchmarks"
HEADS = ("case", "backend", "value", "unit", "floor", "ratio", "target", "met")


@dataclass(frozen=True, slots=True)
class Target:
    """``<= 60`` or ``>= 100``, in the unit of the row."""

    is_upper: bool
    bound: float

    def is_met_by(self, value: float) -> bool:
        return value <= self.bound if self.is_upper else value >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.is_upper else '>='} {self.bound:g}"


def at_most(bound: float) -> Target:
    return Target(True, bound)


def at_least(bound: float) -> Target:
    return Target(False, bound)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``floor`` is what the same costs at least, in the same unit."""

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
            "met": None if self.target is None else self.target.is_met_by(self.value),
        }


@dataclass(frozen=True, slots=True)
class Machine:
    processor: str
    cores: int
    memory_gib: float
    system: str
    filesystem: str
    python: str
    sqlite: str

    @classmethod
    def here(cls) -> Machine:
        return cls(
            processor=_processor(),
            cores=os.cpu_count() or 0,
            memory_gib=round(psutil.virtual_memory().total / 1024**3, 1),
            system=f"{platform.system()} {platform.machine()}",
            filesystem=_filesystem(ROOT),
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
        )


def write_results(suite: str, rows: Iterable[Row], *, settings: dict[str, Any], is_quick: bool) -> Path:
    """Keep the figures. A quick run never takes the place of a full one."""
    folder = QUICK_RESULTS if is_quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    kept = {
        "suite": suite,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "quick": is_quick,
        "machine": asdict(Machine.here()),
        "settings": settings,
        "rows": [row.plain(suite) for row in rows],
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
    lines = [
        f"Measured on {results['date']}: {machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, {machine['filesystem']}, Python {machine['python']}, SQLite {machine['sqlite']}. "
        f"Load before the run: {load:.2g}.",
        "",
        "| " + " | ".join(HEADS) + " |",
        "|" + "|".join("---" for _ in HEADS) + "|",
        *("| " + " | ".join(_shown(row[head]) for head in HEADS) + " |" for row in results["rows"]),
    ]
    return "\n".join(lines) + "\n"


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


def _filesystem(path: Path) -> str:
    places = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return max(places, key=lambda part: len(part.mountpoint)).fstype if places else "unknown file system"


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
