"""From the records of runs to what a page shows. Pure; what a record lacks counts as nothing, for releases roll forward and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.cli.page.charts import Chart, Series, bytes_text, columns, count_text, rows, seconds_text
from headwater.clock import Micros, as_text
from headwater.maintenance import COLLECT, Run

__all__ = ["Figures", "RealmFigures", "RunRow", "Tile", "figures_of"]

_REASONS = ("head", "grace", "retention", "record", "filter", "young", "fixed", "unknown type")
_PHASES = ("mark", "plan", "raise", "sweep", "delete")
_COLUMNS = 40
_TYPES = 12


@dataclass(frozen=True, slots=True)
class Tile:
    """One large number. ``tone`` is "bad" for what wants a look."""

    name: str
    value: str
    about: str
    tone: str = ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the table."""

    started: str
    kind: str
    realm: str
    subject: str
    took: str
    scanned: str
    garbage: str
    deleted: str
    freed: str
    marks: str
    filter: str
    notes: Sequence[str]
    error: str


@dataclass(frozen=True, slots=True)
class RealmFigures:
    realm: str
    tiles: Sequence[Tile]
    charts: Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Figures:
    """All that the page shows, beside when and of what it was made."""

    store: str
    made: str
    tiles: Sequence[Tile]
    realms: Sequence[RealmFigures]
    runs: Sequence[RunRow]


def figures_of(runs: Sequence[Run], *, store: str, now: Micros) -> Figures:
    """The figures of some runs, which come newest first. ``store`` is shown as it is given: give it without secrets."""
    collections = [run for run in reversed(runs) if run.kind == COLLECT]
    realms = sorted({run.realm for run in collections})
    return Figures(
        store=store,
        made=as_text(now),
        tiles=_tiles(runs),
        realms=[_realm(realm, [run for run in collections if run.realm == realm]) for realm in realms],
        runs=[_row(run) for run in runs],
    )


def _tiles(runs: Sequence[Run]) -> list[Tile]:
    failed = sum(bool(run.error) for run in runs)
    collections = [run for run in runs if run.kind == COLLECT]
    return [
        Tile("runs", count_text(len(runs)), f"since {as_text(runs[-1].started)[:10]}" if runs else "none yet"),
        Tile("failed", count_text(failed), "see the table for why" if failed else "none of them", "bad" if failed else ""),
        Tile("deleted", count_text(sum(_number(run, "deleted") for run in collections)), "rows, confirmed by the database"),
        Tile("freed", bytes_text(sum(_number(run, "deletedBytes") for run in collections)), "at least"),
        Tile("longest", seconds_text(max((_seconds(run) for run in runs), default=0)), "of one run"),
    ]


def _realm(realm: str, runs: Sequence[Run]) -> RealmFigures:
    """One realm's collections, oldest first."""
    done = [run for run in runs if not run.error][-_COLUMNS:]
    shown = runs[-_COLUMNS:]
    last = done[-1] if done else None
    tiles = [
        Tile("collections", count_text(len(runs)), f"last {as_text(runs[-1].started)[:16].replace('T', ' ')}"),
        Tile("kept", "-" if last is None else count_text(sum(_table(last, "kept").values())), "rows, by the last one"),
        Tile("garbage", "-" if last is None else count_text(_number(last, "garbage")), "rows, found by the last one"),
    ]
    if last is not None and last.counts.get("filterBytes"):
        fpp = float(last.counts.get("filterFpp", 0))
        tiles.append(Tile("filter", bytes_text(_number(last, "filterBytes")), f"{fpp:.1e} of the garbage is kept by mistake"))
    charts = [_kept(done), _garbage(done), _durations(shown)]
    if last is not None:
        charts += [_types(last), *_freed(done)]
    return RealmFigures(realm, tiles, [chart for chart in charts if chart.bars])


def _kept(runs: Sequence[Run]) -> Chart:
    series = [Series(name, _css(name), [_table(run, "kept").get(name, 0) for run in runs]) for name in _reasons(runs)]
    about = "Rows that stayed at each collection, each under the first reason that holds."
    return columns("Kept, and why", about, series, _starts(runs), text=count_text)


def _garbage(runs: Sequence[Run]) -> Chart:
    deleted = [_number(run, "deleted") for run in runs]
    left = [max(_number(run, "garbage") - _number(run, "deleted"), 0) for run in runs]
    series = [Series("deleted", "c-deleted", deleted), Series("left", "c-garbage", left)]
    about = "Garbage that each collection found: confirmed gone; the rest changed meanwhile, or went before an interruption."
    return columns("Garbage and deletions", about, series, _starts(runs), text=count_text)


def _durations(runs: Sequence[Run]) -> Chart:
    phases = [[_table(run, "seconds").get(name, 0) for run in runs] for name in _PHASES]
    rest = [max(_seconds(run) - sum(one[at] for one in phases[:4]), 0) for at, run in enumerate(runs)]
    within = [max(sweep - delete, 0) for sweep, delete in zip(phases[3], phases[4], strict=True)]
    shown = dict(zip(_PHASES, [*phases[:3], within, phases[4]], strict=True)) | {"other": rest}
    series = [Series(name, f"p-{name}", values) for name, values in shown.items()]
    about = "Seconds of each run by phase; deletions are part of the sweep, and shown apart from its scan."
    return columns("Duration", about, series, _starts(runs), text=seconds_text)


def _types(last: Run) -> Chart:
    named = _tables(last, "types")
    largest = sorted(named, key=lambda kind: (-sum(named[kind].values()), kind))[:_TYPES]
    reasons = dict.fromkeys([*_REASONS, *(name for kind in largest for name in named[kind] if name != "garbage"), "garbage"])
    series = [Series(name, _css(name), [named[kind].get(name, 0) for kind in largest]) for name in reasons]
    return rows(
        "By type", "Rows that the last collection scanned, by the type of their object.", series, largest, text=count_text
    )


def _freed(runs: Sequence[Run]) -> list[Chart]:
    """Bytes by type over all runs; releases before this one did not tell."""
    total: dict[str, float] = {}
    for run in runs:
        for kind, told in _tables(run, "deletedTypes").items():
            total[kind] = total.get(kind, 0) + told.get("bytes", 0)
    largest = [kind for kind in sorted(total, key=lambda kind: (-total[kind], kind)) if total[kind]][:_TYPES]
    if not largest:
        return []
    series = [Series("freed", "c-deleted", [total[kind] for kind in largest])]
    return [
        rows(
            "Freed, by type",
            "Bytes of the rows that were deleted, over the runs shown; at least.",
            series,
            largest,
            text=bytes_text,
        )
    ]


def _row(run: Run) -> RunRow:
    def shown(name: str, text: Any = count_text) -> str:
        return text(_number(run, name)) if name in run.counts else ""

    size = _number(run, "filterBytes")
    return RunRow(
        started=as_text(run.started)[:19].replace("T", " "),
        kind=run.kind,
        realm=run.realm,
        subject=run.subject,
        took=seconds_text(_seconds(run)),
        scanned=shown("scanned"),
        garbage=shown("garbage"),
        deleted=shown("deleted") or shown("rowsDeleted"),
        freed=shown("deletedBytes", bytes_text),
        marks=shown("marks"),
        filter=f"{bytes_text(size)}, fpp {float(run.counts.get('filterFpp', 0)):.1e}" if size else "",
        notes=run.notes,
        error=run.error,
    )


def _reasons(runs: Sequence[Run]) -> list[str]:
    told = (name for run in runs for name in _table(run, "kept"))
    return list(dict.fromkeys([*_REASONS, *told]))


def _css(reason: str) -> str:
    name = reason.replace(" ", "-")
    return f"r-{name}" if reason in (*_REASONS, "garbage") else "r-other"


def _starts(runs: Sequence[Run]) -> list[str]:
    return [as_text(run.started) for run in runs]


def _seconds(run: Run) -> float:
    return max(run.finished - run.started, 0) / 1_000_000


def _number(run: Run, name: str) -> float:
    value = run.counts.get(name, 0)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _table(run: Run, name: str) -> dict[str, float]:
    value = run.counts.get(name)
    return _numbers(value) if isinstance(value, Mapping) else {}


def _tables(run: Run, name: str) -> dict[str, dict[str, float]]:
    value = run.counts.get(name)
    told = value.items() if isinstance(value, Mapping) else ()
    return {str(key): _numbers(one) for key, one in told if isinstance(one, Mapping)}


def _numbers(value: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): one for name, one in value.items() if isinstance(one, int | float) and not isinstance(one, bool)}
