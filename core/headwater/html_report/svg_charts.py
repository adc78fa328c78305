"""Charts as geometry: rectangles, ticks and labels in the units of an SVG's view box. Pure; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_WIDTH = 720.0
_LEFT, _RIGHT, _TOP = 58.0, 8.0, 10.0
_PLOT, _FOOT = 170.0, 26.0
_ROW, _ROW_GAP = 18.0, 9.0
_NAMES = 190.0
_NAME_CHARACTERS = 28
_WIDEST = 46.0
"""The widest a column may be: a single one would fill the chart."""
_TICKS = 4
_LABELS = 6

Text = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Series:
    """One number for each column or row; ``css`` names its colour."""

    name: str
    css: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    css: str
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """
    ticks         along the axis of values: the line's place, and its number
    labels        of columns, or of rows
    totals        behind each row, its sum
    legend        names with their colours, those that have something to show
    is_upright    columns stand on their labels; otherwise rows lie beside them
    """

    title: str
    about: str
    width: float
    height: float
    bars: Sequence[Bar]
    ticks: Sequence[Label]
    labels: Sequence[Label]
    totals: Sequence[Label]
    legend: Sequence[tuple[str, str]]
    is_upright: bool
    left: float
    bottom: float


def column_chart(title: str, about: str, series: Sequence[Series], labels: Sequence[str], *, text: Text) -> Chart:
    """Stacked columns, one for each label, the first series at the bottom."""
    totals = [sum(values) for values in zip(*(part.values for part in series), strict=True)]
    ticks, top = _ticks(max(totals, default=0.0), text)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(labels), 1)
    width, bottom = min(step * 0.72, _WIDEST), _TOP + _PLOT
    bars = []
    for at, label in enumerate(labels):
        reached = 0.0
        for part in series:
            value = part.values[at]
            if value > 0:
                height = value / top * _PLOT
                y = bottom - (reached + value) / top * _PLOT
                x = _LEFT + at * step + (step - width) / 2
                bars.append(_bar(x, y, width, height, part.css, f"{label}: {part.name} {text(value)}"))
                reached += value
    every = max(-(-len(labels) // _LABELS), 1)
    shown = [
        Label(round(_LEFT + (at + 0.5) * step, 1), bottom + 17, _day(label))
        for at, label in enumerate(labels)
        if at % every == 0
    ]
    lines = [Label(_LEFT, round(bottom - tick / top * _PLOT, 1), text(tick)) for tick in ticks]
    return Chart(title, about, _WIDTH, bottom + _FOOT, bars, lines, shown, [], _legend(series), True, _LEFT, bottom)


def bar_chart(title: str, about: str, series: Sequence[Series], labels: Sequence[str], *, text: Text) -> Chart:
    """Stacked rows, one for each label, the first series at the left; each ends with its total."""
    totals = [sum(values) for values in zip(*(part.values for part in series), strict=True)]
    ticks, top = _ticks(max(totals, default=0.0), text)
    plot, height = _WIDTH - _NAMES - _LEFT - _RIGHT, len(labels) * (_ROW + _ROW_GAP)
    bars, shown, sums = [], [], []
    for at, label in enumerate(labels):
        reached, y = 0.0, _TOP + at * (_ROW + _ROW_GAP)
        for part in series:
            value = part.values[at]
            if value > 0:
                x = _NAMES + reached / top * plot
                bars.append(_bar(x, y, value / top * plot, _ROW, part.css, f"{label}: {part.name} {text(value)}"))
                reached += value
        shown.append(Label(_NAMES - 8, y + _ROW - 5, _short(label)))
        sums.append(Label(round(_NAMES + reached / top * plot + 6, 1), y + _ROW - 5, text(totals[at])))
    lines = [Label(round(_NAMES + tick / top * plot, 1), _TOP + height + 8, text(tick)) for tick in ticks]
    return Chart(
        title, about, _WIDTH, _TOP + height + _FOOT, bars, lines, shown, sums, _legend(series), False, _NAMES, _TOP + height
    )


def chart_count_text(value: float) -> str:
    """12, 3.4k, 5.6M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def chart_bytes_text(value: float) -> str:
    """12 B, 3.4 KiB, 5.6 MiB."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if value >= 1024**power:
            return f"{value / 1024**power:.1f}".removesuffix(".0") + f" {unit}"
    return f"{value:.0f} B"


def seconds_text(value: float) -> str:
    """0.25 s, 12 s, 3 min, 1.5 h."""
    if value >= 3600:
        return f"{value / 3600:.1f}".removesuffix(".0") + " h"
    if value >= 120:
        return f"{value / 60:.1f}".removesuffix(".0") + " min"
    return f"{value:.3g} s"


def _bar(x: float, y: float, width: float, height: float, css: str, title: str) -> Bar:
    return Bar(round(x, 1), round(y, 1), round(max(width, 0.7), 1), round(max(height, 0.7), 1), css, title)


def _ticks(most: float, text: Text) -> tuple[list[float], float]:
    """Returns round ticks from 0 on, and the last of them, which is at least ``most``. Ticks of bytes are round in their unit, ticks of
    counts are whole."""
    if most <= 0:
        return [0.0], 1.0
    unit = 1024.0 ** next((power for power in (3, 2, 1) if most >= 1024**power), 0) if text is chart_bytes_text else 1.0
    wanted = max(most / unit / _TICKS, 1.0 if text is chart_count_text else 0.0)
    power = 10.0 ** math.floor(math.log10(wanted))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= wanted * (1 - 1e-9)) * unit
    count = math.ceil(most / step - 1e-9)
    return [step * at for at in range(count + 1)], step * count


def _legend(series: Sequence[Series]) -> list[tuple[str, str]]:
    return [(part.name, part.css) for part in series if any(value > 0 for value in part.values)]


def _short(label: str) -> str:
    """Shorten a long name to the width of a row label."""
    half = _NAME_CHARACTERS // 2
    return label if len(label) <= _NAME_CHARACTERS else f"{label[: half - 1]}…{label[-half:]}"


def _day(label: str) -> str:
    """Shorten a time to the width of a column label."""
    return f"{label[5:10]} {label[11:16]}" if len(label) > 16 and label[10] == "T" else label
