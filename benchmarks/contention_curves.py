"""Pictures of the contention scenario: waits by their share, and measures by one factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.contention import ContentionCase, ContentionRun, medians
from benchmarks.pictures import Curve, Series

__all__ = ["committer_curve", "wait_curve", "worker_curve"]

LETTERS = {"SERIALIZABLE": "S", "REPEATABLE READ": "RR", "READ COMMITTED": "RC"}
LEGEND = "S: SERIALIZABLE, RC: READ COMMITTED"
SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
Runs = Mapping[ContentionCase, Sequence[ContentionRun]]


def wait_curve(runs: Runs) -> Curve:
    """Waits of all repetitions together, at SERIALIZABLE and as the library is shipped."""
    series = []
    for case, repeated in runs.items():
        if case.isolation in ("SERIALIZABLE", "as shipped"):
            waits = sorted(wait for run in repeated for wait in run.waits)
            points = [(share, waits[int(share * len(waits))]) for share in SHARES if (1 - share) * len(waits) >= 1]
            series.append(Series(short_label(case), points))
    workers = next(iter(runs)).workers
    return Curve(
        name="files-waits",
        title=f"How long jobs wait for their commit: {workers} workers, 10 attempts",
        x=f"share of jobs that wait at most so long ({LEGEND})",
        y="seconds",
        x_scale="share",
        y_scale="log",
        series=series,
    )


def worker_curve(runs: Runs) -> Curve:
    return Curve(
        name="files-workers",
        title="Wait of all but one in a hundred jobs, by the number of workers",
        x=f"workers, a connection each ({LEGEND})",
        y="p99, seconds",
        x_scale="log",
        y_scale="log",
        series=series_by(runs, "workers", "p99_s"),
        marks=sorted({case.workers for case in runs}),
    )


def committer_curve(runs: Runs) -> Curve:
    return Curve(
        name="files-committers",
        title="Jobs a second, by the number of committers",
        x=f"committers ({LEGEND})",
        y="jobs/s",
        x_scale="log",
        series=series_by(runs, "cap", "jobs_per_s"),
        marks=sorted({case.cap or case.workers for case in runs}),
    )


def series_by(runs: Runs, factor: str, measure: str) -> list[Series]:
    """A line for each option and isolation: medians of a measure by a factor."""
    points: dict[str, list[tuple[float, float]]] = {}
    for case, repeated in runs.items():
        at = float(getattr(case, factor) or case.workers)
        points.setdefault(short_label(case), []).append((at, medians(repeated)[measure]["median"]))
    return [Series(label, sorted(line)) for label, line in points.items()]


def short_label(case: ContentionCase) -> str:
    """Fits beside a picture; the titles of its axes say what the letters mean."""
    return f"{case.option.label}, {LETTERS.get(case.isolation, case.isolation)}"
