"""From the rows of an import's report to what a page shows. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.catalogs import ReportRow
from headwater.cli.page.charts import Chart, Series, count_text, rows
from headwater.cli.page.figures import Tile
from headwater.clock import Micros, as_text

__all__ = ["ImportFigures", "ImportGatherer", "LeftOut"]

_OUTCOMES = ("imported", "updated", "unchanged", "quarantined")
_GONE = ("gone", "dropped")
_NAMESPACES = 12
_NO_NAMESPACE = "(none)"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One line of the list of quarantined tables."""

    table: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ImportFigures:
    """All that the page shows. ``about``: whose import it was, and when."""

    title: str
    about: Sequence[str]
    tiles: Sequence[Tile]
    charts: Sequence[Chart]
    left_out: Sequence[LeftOut]


class ImportGatherer:
    """Takes the rows of a report as they come, and remembers of most of them only that they were."""

    def __init__(self) -> None:
        self._done: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()
        self._namespaces: dict[str, Counter[str]] = defaultdict(Counter)
        self._commits: set[str] = set()
        self._left_out: list[LeftOut] = []

    def add(self, row: ReportRow) -> None:
        self._done[row.outcome] += 1
        if row.outcome in _GONE:
            self._left_out.append(LeftOut(".".join(row.key), row.outcome, row.message))
            return
        self._namespaces[row.key[0] if len(row.key) > 1 else _NO_NAMESPACE][row.outcome] += 1
        if row.commit:
            self._commits.add(row.commit)
        if row.rule:
            self._rules[row.rule] += 1
            self._versions[f"{row.kind} {row.version}"] += 1
        if row.code:
            self._codes[row.code] += 1
            self._left_out.append(LeftOut(".".join(row.key) or row.directory, row.code, row.message))

    def figures(self, catalog: str, about: Sequence[str], *, now: Micros) -> ImportFigures:
        """about: of which realm, by which import, and when it ran; now: when the page is made"""
        told = [*about, f"page made {as_text(now)}"]
        return ImportFigures(f"Import into {catalog}", told, self._tiles(), self._charts(), self._left_out)

    def _tiles(self) -> list[Tile]:
        left_out, gone = self._done["quarantined"], sum(self._done[name] for name in _GONE)
        return [
            Tile("looked at", count_text(self._done.total() - gone), "table folders"),
            Tile("imported", count_text(self._done["imported"]), "new in the catalog"),
            Tile("updated", count_text(self._done["updated"]), "moved forward"),
            Tile("unchanged", count_text(self._done["unchanged"]), "were there already"),
            Tile(
                "quarantined", count_text(left_out), "see the list for why" if left_out else "none", "bad" if left_out else ""
            ),
            *([Tile("gone", count_text(gone), f"at their source, {self._done['dropped']} dropped")] if gone else []),
            Tile("commits", count_text(len(self._commits)), "on the default branch"),
        ]

    def _charts(self) -> list[Chart]:
        largest = sorted(self._namespaces, key=lambda name: (-self._namespaces[name].total(), name))[:_NAMESPACES]
        series = [Series(name, f"o-{name}", [self._namespaces[one][name] for one in largest]) for name in _OUTCOMES]
        more = len(self._namespaces) - len(largest)
        about = "What became of the tables of each namespace" + (f"; {more} smaller ones are not shown." if more > 0 else ".")
        charts = [
            rows("By namespace", about, series, largest, text=count_text),
            _counted("Why tables were left out", "Quarantined tables by reason.", "quarantined", self._codes),
            _counted("How the latest metadata was told", "Tables by the rule that decided.", "tables", self._rules),
            _counted("Formats", "Tables and views by format version.", "tables", self._versions),
        ]
        return [chart for chart in charts if chart.bars]


def _counted(title: str, about: str, name: str, counts: Mapping[str, int]) -> Chart:
    labels = sorted(counts, key=lambda label: (-counts[label], label))
    return rows(title, about, [Series(name, f"o-{name}", [counts[label] for label in labels])], labels, text=count_text)
