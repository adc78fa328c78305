"""The HTML pages of maintenance and of an import: their figures, from run records and rows of a report, in a template.

A count that a record lacks is zero, because older releases wrote fewer counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2

from headwater.catalogs import ReportRow
from headwater.clock import Micros, as_text
from headwater.html_report.svg_charts import (
    Chart,
    Series,
    bar_chart,
    chart_bytes_text,
    chart_count_text,
    column_chart,
    seconds_text,
)
from headwater.jobs import COLLECT
from headwater.jobs.task_runs import Run

_REASONS = ("head", "grace", "retention", "record", "filter", "young", "fixed", "unknown type")
_PHASES = ("mark", "plan", "raise", "sweep", "delete")
_COLUMNS = 40
_TYPES = 12


@dataclass(frozen=True, slots=True)
class Tile:
    """One large number. ``tone`` is "bad" if it needs attention."""

    name: str
    value: str
    about: str
    tone: str = ""


def report_page(runs: Sequence[Run], *, store: str, now: Micros) -> str:
    """Render one HTML page with charts of runs, given newest first. It loads no other file.

    store         how the page names the store; without secrets
    """
    collections = [run for run in reversed(runs) if run.kind == COLLECT]
    realms = sorted({run.realm for run in collections})
    return _render(
        "report.html.jinja",
        store=store,
        made=as_text(now),
        tiles=_tiles(runs),
        realms=[_realm(realm, [run for run in collections if run.realm == realm]) for realm in realms],
        runs=[_row(run) for run in runs],
    )


def _render(template: str, **page: Any) -> str:
    """Fill a template. Everything that comes from a store is escaped."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=jinja2.FunctionLoader(lambda part: files(__package__).joinpath(part).read_text(encoding="utf-8")),
    )
    return environment.get_template(template).render(page=page)


def _tiles(runs: Sequence[Run]) -> list[Tile]:
    failed = sum(bool(run.error) for run in runs)
    collections = [run for run in runs if run.kind == COLLECT]
    return [
        Tile("runs", chart_count_text(len(runs)), f"since {as_text(runs[-1].started)[:10]}" if runs else "none yet"),
        Tile(
            "failed", chart_count_text(failed), "see the table for why" if failed else "none of them", "bad" if failed else ""
        ),
        Tile(
            "deleted", chart_count_text(sum(_number(run, "deleted") for run in collections)), "rows, confirmed by the database"
        ),
        Tile("freed", chart_bytes_text(sum(_number(run, "deletedBytes") for run in collections)), "at least"),
        Tile("longest", seconds_text(max((_seconds(run) for run in runs), default=0)), "of one run"),
    ]


def _realm(realm: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Compute the charts of one realm's collections, given oldest first."""
    done = [run for run in runs if not run.error][-_COLUMNS:]
    shown = runs[-_COLUMNS:]
    last = done[-1] if done else None
    tiles = [
        Tile("collections", chart_count_text(len(runs)), f"last {as_text(runs[-1].started)[:16].replace('T', ' ')}"),
        Tile("kept", "-" if last is None else chart_count_text(sum(_table(last, "kept").values())), "rows, by the last one"),
        Tile("garbage", "-" if last is None else chart_count_text(_number(last, "garbage")), "rows, found by the last one"),
    ]
    if last is not None and last.counts.get("filterBytes"):
        fpp = float(last.counts.get("filterFpp", 0))
        tiles.append(
            Tile("filter", chart_bytes_text(_number(last, "filterBytes")), f"{fpp:.1e} of the garbage is kept by mistake")
        )
    charts = [_kept(done), _garbage(done), _durations(shown)]
    if last is not None:
        charts += [_types(last), *_freed(done)]
    return {"realm": realm, "tiles": tiles, "charts": [chart for chart in charts if chart.bars]}


def _kept(runs: Sequence[Run]) -> Chart:
    series = [Series(name, _css(name), [_table(run, "kept").get(name, 0) for run in runs]) for name in _reasons(runs)]
    about = "Rows that stayed at each collection, each under the first reason that holds."
    return column_chart("Kept, and why", about, series, _starts(runs), text=chart_count_text)


def _garbage(runs: Sequence[Run]) -> Chart:
    deleted = [_number(run, "deleted") for run in runs]
    left = [max(_number(run, "garbage") - _number(run, "deleted"), 0) for run in runs]
    series = [Series("deleted", "c-deleted", deleted), Series("left", "c-garbage", left)]
    about = "Garbage that each collection found: confirmed gone; the rest changed meanwhile, or went before an interruption."
    return column_chart("Garbage and deletions", about, series, _starts(runs), text=chart_count_text)


def _durations(runs: Sequence[Run]) -> Chart:
    phases = [[_table(run, "seconds").get(name, 0) for run in runs] for name in _PHASES]
    rest = [max(_seconds(run) - sum(phase[at] for phase in phases[:4]), 0) for at, run in enumerate(runs)]
    within = [max(sweep - delete, 0) for sweep, delete in zip(phases[3], phases[4], strict=True)]
    shown = dict(zip(_PHASES, [*phases[:3], within, phases[4]], strict=True)) | {"other": rest}
    series = [Series(name, f"p-{name}", values) for name, values in shown.items()]
    about = "Seconds of each run by phase; deletions are part of the sweep, and shown apart from its scan."
    return column_chart("Duration", about, series, _starts(runs), text=seconds_text)


def _types(last: Run) -> Chart:
    named = _tables(last, "types")
    largest = sorted(named, key=lambda kind: (-sum(named[kind].values()), kind))[:_TYPES]
    reasons = dict.fromkeys([*_REASONS, *(name for kind in largest for name in named[kind] if name != "garbage"), "garbage"])
    series = [Series(name, _css(name), [named[kind].get(name, 0) for kind in largest]) for name in reasons]
    return bar_chart(
        "By type", "Rows that the last collection scanned, by the type of their object.", series, largest, text=chart_count_text
    )


def _freed(runs: Sequence[Run]) -> list[Chart]:
    """Chart the freed bytes by type over all runs; older releases did not record them."""
    total: dict[str, float] = {}
    for run in runs:
        for kind, counts in _tables(run, "deletedTypes").items():
            total[kind] = total.get(kind, 0) + counts.get("bytes", 0)
    largest = [kind for kind in sorted(total, key=lambda kind: (-total[kind], kind)) if total[kind]][:_TYPES]
    if not largest:
        return []
    series = [Series("freed", "c-deleted", [total[kind] for kind in largest])]
    return [
        bar_chart(
            "Freed, by type",
            "Bytes of the rows that were deleted, over the runs shown; at least.",
            series,
            largest,
            text=chart_bytes_text,
        )
    ]


def _row(run: Run) -> dict[str, Any]:
    """One line of the table."""

    def shown(name: str, text: Any = chart_count_text) -> str:
        return text(_number(run, name)) if name in run.counts else ""

    size = _number(run, "filterBytes")
    return {
        "started": as_text(run.started)[:19].replace("T", " "),
        "kind": run.kind,
        "realm": run.realm,
        "subject": run.subject,
        "took": seconds_text(_seconds(run)),
        "scanned": shown("scanned"),
        "garbage": shown("garbage"),
        "deleted": shown("deleted") or shown("rowsDeleted"),
        "freed": shown("deletedBytes", chart_bytes_text),
        "marks": shown("marks"),
        "filter": f"{chart_bytes_text(size)}, fpp {float(run.counts.get('filterFpp', 0)):.1e}" if size else "",
        "notes": run.notes,
        "error": run.error,
    }


def _reasons(runs: Sequence[Run]) -> list[str]:
    recorded = (name for run in runs for name in _table(run, "kept"))
    return list(dict.fromkeys([*_REASONS, *recorded]))


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
    entries = value.items() if isinstance(value, Mapping) else ()
    return {str(key): _numbers(counts) for key, counts in entries if isinstance(counts, Mapping)}


def _numbers(value: Mapping[str, Any]) -> dict[str, float]:
    return {str(key): count for key, count in value.items() if isinstance(count, int | float) and not isinstance(count, bool)}


_OUTCOMES = ("imported", "updated", "unchanged", "quarantined")
_GONE = ("gone", "dropped")
_NAMESPACES = 12
_NO_NAMESPACE = "(none)"


class ImportGatherer:
    """Collects figures from the rows of a report one by one; most rows are only counted."""

    def __init__(self) -> None:
        self._done: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()
        self._namespaces: dict[str, Counter[str]] = defaultdict(Counter)
        self._commits: set[str] = set()
        self._left_out: list[dict[str, str]] = []

    def add(self, row: ReportRow) -> None:
        self._done[row.outcome] += 1
        if row.outcome in _GONE:
            self._leave_out(".".join(row.key), row.outcome, row.message)
            return
        self._namespaces[row.key[0] if len(row.key) > 1 else _NO_NAMESPACE][row.outcome] += 1
        if row.commit:
            self._commits.add(row.commit)
        if row.rule:
            self._rules[row.rule] += 1
            self._versions[f"{row.kind} {row.version}"] += 1
        if row.code:
            self._codes[row.code] += 1
            self._leave_out(".".join(row.key) or row.directory, row.code, row.message)

    def _leave_out(self, table: str, code: str, message: str) -> None:
        self._left_out.append({"table": table, "code": code, "message": message})

    def render_page(self, catalog: str, about: Sequence[str], *, now: Micros) -> str:
        """Render one HTML page on the import, with every table that it left out. It loads no other file.

        about         the realm, the import and its time
        now           the time of the page
        """
        return _render(
            "import.html.jinja",
            title=f"Import into {catalog}",
            about=[*about, f"page made {as_text(now)}"],
            tiles=self._tiles(),
            charts=self._charts(),
            left_out=self._left_out,
        )

    def _tiles(self) -> list[Tile]:
        left_out, gone = self._done["quarantined"], sum(self._done[name] for name in _GONE)
        return [
            Tile("looked at", chart_count_text(self._done.total() - gone), "table folders"),
            Tile("imported", chart_count_text(self._done["imported"]), "new in the catalog"),
            Tile("updated", chart_count_text(self._done["updated"]), "moved forward"),
            Tile("unchanged", chart_count_text(self._done["unchanged"]), "were there already"),
            Tile(
                "quarantined",
                chart_count_text(left_out),
                "see the list for why" if left_out else "none",
                "bad" if left_out else "",
            ),
            *([Tile("gone", chart_count_text(gone), f"at their source, {self._done['dropped']} dropped")] if gone else []),
            Tile("commits", chart_count_text(len(self._commits)), "on the default branch"),
        ]

    def _charts(self) -> list[Chart]:
        largest = sorted(self._namespaces, key=lambda name: (-self._namespaces[name].total(), name))[:_NAMESPACES]
        series = [Series(name, f"o-{name}", [self._namespaces[space][name] for space in largest]) for name in _OUTCOMES]
        more = len(self._namespaces) - len(largest)
        about = "What became of the tables of each namespace" + (f"; {more} smaller ones are not shown." if more > 0 else ".")
        charts = [
            bar_chart("By namespace", about, series, largest, text=chart_count_text),
            _counted("Why tables were left out", "Quarantined tables by reason.", "quarantined", self._codes),
            _counted("How the latest metadata was chosen", "Tables by the rule that decided.", "tables", self._rules),
            _counted("Formats", "Tables and views by format version.", "tables", self._versions),
        ]
        return [chart for chart in charts if chart.bars]


def _counted(title: str, about: str, name: str, counts: Mapping[str, int]) -> Chart:
    labels = sorted(counts, key=lambda label: (-counts[label], label))
    return bar_chart(
        title, about, [Series(name, f"o-{name}", [counts[label] for label in labels])], labels, text=chart_count_text
    )
