"""Tables of the contention scenario for the documentation: a line for each case, medians with their range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.report import markdown_rows

__all__ = ["TABLES", "contention_table", "part_table"]

LOOKING = ", looking first"
SOURCES = {"looking": "options", "server": "options"}
"""Tables of a part of the cases of another one, or with other columns."""
Case = Mapping[str, Any]
"""What ``settings.contention`` of the results holds of a case."""


def contention_table(results: Mapping[str, Any] | None, part: str) -> str:
    """The table of one part of the results, as Markdown."""
    cases = list((results or {}).get("settings", {}).get("contention", {}).get(SOURCES.get(part, part), ()))
    if part in ("options", "looking"):
        cases = [case for case in cases if looks_first(case) == (part == "looking")]
    if results is None or not cases:
        return "Not measured yet.\n"
    columns = TABLES[part]
    lines = [
        "| " + " | ".join(name for name, _ in columns) + " |",
        "|" + "|".join("---" if number < KEYS[part] else "---:" for number in range(len(columns))) + "|",
        *("| " + " | ".join(show(case) for _, show in columns) + " |" for case in cases),
    ]
    loads = [case["measures"]["load"] for case in cases]
    low, high = min(load["min"] for load in loads), max(load["max"] for load in loads)
    repetitions = sorted({case["repetitions"] for case in cases})
    runs = " or ".join(str(number) for number in repetitions)
    lines += [
        "",
        f"{'One run each' if repetitions == [1] else f'Medians of {runs} runs, the range in brackets'}; server, workers and auditor shared "
        f"{results['machine']['cores']} cores, with a load average from {low:.1f} to {high:.1f}.",
    ]
    return "\n".join(lines) + "\n"


def part_table(results: Mapping[str, Any] | None, part: str) -> str:
    """The rows of one part of the suite, without its name."""
    rows = [row for row in (results or {}).get("rows", ()) if row["case"].startswith(f"{part}: ")]
    if results is None or not rows:
        return "Not measured yet.\n"
    return markdown_rows([{**row, "case": row["case"].removeprefix(f"{part}: ")} for row in rows])


def looks_first(case: Case) -> bool:
    return str(case["factors"]["option"]).endswith(LOOKING)


def factor(name: str) -> Callable[[Case], str]:
    return lambda case: "" if case["factors"][name] in (None, "") else str(case["factors"][name])


def measure(name: str, digits: int = 0, *, scale: float = 1, with_range: bool = False) -> Callable[[Case], str]:
    def shown(case: Case) -> str:
        of = case["measures"].get(name)
        if of is None:
            return ""
        middle, low, high = (f"{of[which] * scale:,.{digits}f}" for which in ("median", "min", "max"))
        return f"{middle} ({low}–{high})" if with_range and low != high else middle

    return shown


def wrong(case: Case) -> str:
    """Violations that the auditor saw, and what differed from the oracle."""
    return str(int(case["measures"]["violations"]["max"]) + len(case["problems"]))


def top_waits(case: Case) -> str:
    named = [(name, share) for name, share in case["waits"].items() if name not in ("Client: ClientRead", "running")]
    return ", ".join(f"{name.partition(': ')[2]} {share:.0%}" for name, share in named[:2])


Column = tuple[str, Callable[[Case], str]]
SPEED: tuple[Column, ...] = (
    ("seconds", measure("wall_s", 2, with_range=True)),
    ("jobs/s", measure("jobs_per_s")),
)
WAITS: tuple[Column, ...] = (
    ("wait p50, s", measure("p50_s", 2)),
    ("p99, s", measure("p99_s", 2, with_range=True)),
    ("longest, s", measure("max_s", 2)),
)
LOSSES: tuple[Column, ...] = (
    ("first try, %", measure("first_try_share", scale=100)),
    ("attempts, most", measure("attempts_max")),
    ("40001", measure("errors_40001", with_range=True)),
    ("40P01", measure("errors_40P01")),
    ("failed jobs", measure("failed_jobs", with_range=True)),
)
WRONG: tuple[Column, ...] = (("wrong", wrong),)


def columns_of(*names: str) -> Sequence[Column]:
    heads = {"cap": "committers"}
    return [(heads.get(name, name), factor(name)) for name in names]


KEYS = {
    "options": 2,
    "looking": 2,
    "attempts": 3,
    "workers": 3,
    "queue": 3,
    "batches": 3,
    "collection": 3,
    "keys": 2,
    "large": 3,
}
"""Columns of factors, which come first."""
TABLES: dict[str, Sequence[Column]] = {
    "options": [*columns_of("option", "isolation"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "looking": [*columns_of("option", "isolation"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "attempts": [*columns_of("option", "isolation", "attempts"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "workers": [*columns_of("option", "isolation", "workers"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "queue": [
        *columns_of("option", "isolation", "cap"),
        *SPEED,
        *WAITS,
        ("commit p99, ms", measure("commit_p99_s", 1, scale=1000)),
        *LOSSES,
        *WRONG,
    ],
    "batches": [*columns_of("isolation", "cap", "batch"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "collection": [
        *columns_of("option", "isolation", "collection"),
        *SPEED,
        *WAITS,
        ("stage 1, runs", measure("collections")),
        ("each, ms", measure("collection_p50_ms", 1)),
        *LOSSES,
        *WRONG,
    ],
    "keys": [*columns_of("option", "isolation"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "large": [*columns_of("option", "isolation", "workers"), *SPEED, *WAITS, *LOSSES, *WRONG],
    "server": [
        *columns_of("option", "isolation"),
        ("WAL, bytes a job", measure("wal_bytes_per_job")),
        ("rows deleted or changed by a job", measure("changed_rows_per_job", 1)),
        ("tables, MiB", measure("table_bytes", 1, scale=2**-20)),
        ("predicate locks, most", measure("predicate_locks_max")),
        ("connect p50, ms", measure("connect_p50_ms", 1)),
        ("between attempts, %", measure("paused_share", scale=100)),
        ("waited for", top_waits),
    ],
}
KEYS["server"] = 2
"""The same runs as ``options``, seen from the server."""
