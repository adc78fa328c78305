"""Curves as pictures: lines over two axes as SVG, each with its name at its end. Made from results, by nothing but text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

__all__ = ["Curve", "Series", "curve_of", "picture", "spread"]

Point = tuple[float, float]
WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 84, 200, 66, 62
LINE_HEIGHT = 17
COLOURS = ("#1f6fb2", "#c2571a", "#3d8b4f", "#8a4fa3", "#a33b4a", "#5b6770", "#a8871d", "#2a9aa0")
DASHES = ("", "7 4", "2 3")
STYLE = """
    text { font-family: "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1f2a33; font-size: 13px }
    .title { font-size: 16px; font-weight: bold }
    .axis { stroke: #5b6770; stroke-width: 1.5; fill: none }
    .grid { stroke: #e3e7ea; stroke-width: 1 }
    .line { fill: none; stroke-width: 2.2; stroke-linejoin: round }
    .lead { fill: none; stroke-width: 1; opacity: 0.5 }
"""


@dataclass(frozen=True)
class Series:
    label: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Curve:
    """A picture to be. ``x_scale`` and ``y_scale`` are ``linear``, ``log`` or, for shares up to 1, ``share``: 90 %, 99 %, 99.9 % ...

    marks         values of x that get a tick, where those that the scale would choose do not fit
    """

    name: str
    title: str
    x: str
    y: str
    series: Sequence[Series]
    x_scale: str = "linear"
    y_scale: str = "linear"
    marks: Sequence[float] = field(default_factory=list)


def curve_of(kept: dict[str, Any]) -> Curve:
    """The reverse of ``dataclasses.asdict``."""
    series = [Series(one["label"], [(x, y) for x, y in one["points"]]) for one in kept["series"]]
    return Curve(**{**kept, "series": series})


def picture(curve: Curve) -> str:
    """The text of an SVG file."""
    xs = [x for one in curve.series for x, _ in one.points]
    ys = [y for one in curve.series for _, y in one.points]
    across = _Axis(curve.x_scale, min(xs), max(xs), LEFT, WIDTH - RIGHT, list(curve.marks))
    up = _Axis(curve.y_scale, min(ys) if curve.y_scale == "log" else 0.0, max(ys), HEIGHT - BOTTOM, TOP, [])
    lines = [*_frame(curve, across, up), *_lines(curve.series, across, up)]
    body = "\n  ".join(lines)
    about = "; ".join(one.label for one in curve.series)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">\n'
        f"  <title>{escape(curve.title)}</title>\n  <desc>{escape(about)}</desc>\n  <style>{STYLE}  </style>\n"
        f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n  {body}\n</svg>\n'
    )


def spread(wanted: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Where to put labels: as near to where they are wanted as lets them stand apart between two bounds, in the order given."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    placed = [0.0] * len(wanted)
    at = low - apart
    for number in order:
        at = placed[number] = max(wanted[number], at + apart)
    at = high + apart
    for number in reversed(order):
        at = placed[number] = min(placed[number], at - apart)
    return placed


class _Axis:
    """From values to pixels, and where its ticks are."""

    def __init__(self, scale: str, low: float, high: float, start: float, end: float, marks: Sequence[float]) -> None:
        self._bent, self._shown, ticks = _SCALES[scale]
        self.ticks = list(marks) or ticks(low, high)
        low, high = min(low, *self.ticks), max(high, *self.ticks)
        self._low, self._high = self._bent(low), self._bent(high)
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        share = (self._bent(value) - self._low) / ((self._high - self._low) or 1)
        return round(self._start + share * (self._end - self._start), 1)

    def text(self, value: float) -> str:
        return self._shown(value)


def _frame(curve: Curve, across: _Axis, up: _Axis) -> Iterable[str]:
    yield f'<text class="title" x="{LEFT - 60}" y="28">{escape(curve.title)}</text>'
    yield f'<text x="{LEFT - 60}" y="{TOP - 14}">{escape(curve.y)}</text>'
    for tick in up.ticks:
        y = up.at(tick)
        yield f'<path class="grid" d="M{LEFT} {y} H{WIDTH - RIGHT}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{up.text(tick)}</text>'
    for tick in across.ticks:
        x = across.at(tick)
        yield f'<path class="grid" d="M{x} {TOP} V{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{across.text(tick)}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}"/>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 16}" text-anchor="middle">{escape(curve.x)}</text>'


def _lines(series: Sequence[Series], across: _Axis, up: _Axis) -> Iterable[str]:
    ends = [up.at(one.points[-1][1]) for one in series]
    labels = spread(ends, LINE_HEIGHT, TOP + 4, HEIGHT - BOTTOM - 2)
    for number, one in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        points = [(across.at(x), up.at(y)) for x, y in one.points]
        path = " L".join(f"{x} {y}" for x, y in points)
        yield f'<path class="line" stroke="{colour}" stroke-dasharray="{dash}" d="M{path}"/>'
        yield from (f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points)
        x, y = points[-1]
        edge = WIDTH - RIGHT + 10
        yield f'<path class="lead" stroke="{colour}" d="M{x} {y} L{edge} {round(labels[number], 1)} h8"/>'
        yield f'<text x="{edge + 12}" y="{round(labels[number] + 4, 1)}" style="fill:{colour}">{escape(one.label)}</text>'


def _linear_ticks(_: float, high: float) -> list[float]:
    """From 0 in four to eight round steps."""
    step = 10 ** math.floor(math.log10(high or 1))
    while high / step > 8:
        step *= 2
    while high / step < 4:
        step /= 2
    return [step * number for number in range(math.ceil(high / step) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Decades; with 2 and 5 between them where there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [step * 10.0**decade for decade in range(first, last + 1) for step in steps]
    below = max((tick for tick in ticks if tick <= low), default=ticks[0])
    above = min((tick for tick in ticks if tick >= high), default=ticks[-1])
    return [tick for tick in ticks if below <= tick <= above]


def _share_ticks(_: float, high: float) -> list[float]:
    return [0.5, *(1 - 10.0**-nines for nines in range(1, 7) if 10.0**-nines >= (1 - high) * 0.99)]


def _number(value: float) -> str:
    return f"{value:,.10g}"


_SCALES: dict[str, tuple[Callable[[float], float], Callable[[float], str], Callable[[float, float], list[float]]]] = {
    "linear": (lambda value: value, _number, _linear_ticks),
    "log": (math.log10, _number, _log_ticks),
    "share": (lambda share: -math.log10(1 - share), lambda share: f"{share * 100:.6g} %", _share_ticks),
}
