"""Curves as inline SVG: axes with units, a legend, and no more points than an eye can tell apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair_accounting.drawing.page import COLOURS, text

Numbers = NDArray[np.float64]
MOST_POINTS = 1000
WIDTH, HEIGHT = 640.0, 300.0
_LEAST = 0.01  # values below it lie at the edge of a logarithmic axis
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 34.0, 10.0, 44.0
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# Where a logarithmic axis of seconds has its marks.
_MOMENTS: tuple[tuple[float, str], ...] = (
    (0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (60, "1 min"), (600, "10 min"), (3600, "1 h"), (36000, "10 h"),
    (86400, "1 d"), (864000, "10 d"), (8640000, "100 d"), (86400000, "1000 d"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """One curve; its place among all decides its colour and dashes."""

    name: str
    x: Numbers
    y: Numbers
    place: int = 0


@dataclass(frozen=True, slots=True)
class Axis:
    """The quantity along one axis, from where to where."""

    label: str
    low: float
    high: float
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()

    def at(self, values: Numbers) -> Numbers:
        """Positions of values, 0 to 1; those beyond an end lie at it."""
        inside = np.clip(values, self.low, self.high)
        if self.log:
            part = np.log(inside / self.low) / math.log(self.high / self.low)
        else:
            part = (inside - self.low) / (self.high - self.low)
        return np.asarray(part)


# -- axes -----------------------------------------------------------------------------------------------------


def values_of(rows: Sequence[Mapping[str, Any]], key: str) -> Numbers:
    """A column of rows as numbers, nan where a row has none."""
    return np.array([math.nan if row[key] is None else row[key] for row in rows], dtype=np.float64)


def axis_number(value: float) -> str:
    """The number in as few characters as it takes."""
    return f"{value:.6g}"


def linear_axis(label: str, low: float, high: float, most: int = 7) -> Axis:
    """Marks at round numbers; the axis reaches to the mark after its highest value."""
    high = high if high > low else low + 1.0
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * part for part in _STEPS if power * part >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple((step * at, axis_number(step * at)) for at in range(first, last + 1))
    return Axis(label, step * first, step * last, ticks=marks)


def logarithmic(label: str, values: Numbers, seconds: bool = False) -> Axis:
    """An axis from the smallest positive value to the largest, marked at powers of ten or at usual durations."""
    known = values[np.isfinite(values) & (values > 0)]
    low = max(float(known.min()), _LEAST) if known.size else _LEAST
    high = max(float(known.max()), low * 1.01) if known.size else 10 * _LEAST
    marks = _MOMENTS if seconds else _powers(low, high)
    below = [at for at, _ in marks if at <= low] or [low]
    above = [at for at, _ in marks if at >= high] or [high]
    shown = tuple(mark for mark in marks if below[-1] <= mark[0] <= above[0])
    few = shown if len(shown) <= 10 else tuple(mark for mark in shown if _is_power(mark[0]) or seconds)
    return Axis(label, below[-1], above[0], log=True, ticks=few)


def _powers(low: float, high: float) -> tuple[tuple[float, str], ...]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    return tuple((value, axis_number(value)) for value in values)


def _is_power(value: float) -> bool:
    return math.isclose(math.log10(value), round(math.log10(value)), abs_tol=1e-9)


def over_time(span_seconds: float, since: str = "the first submission") -> tuple[Axis, float]:
    """An axis of time since the beginning, in minutes, hours or days, and the seconds of its unit."""
    unit, seconds = next(
        (pair for pair in (("min", 60.0), ("h", 3600.0)) if span_seconds <= 72 * pair[1]), ("d", 86400.0)
    )
    return linear_axis(f"time since {since}, {unit}", 0.0, max(span_seconds / seconds, 1e-9)), seconds


# -- curves ---------------------------------------------------------------------------------------------------


def cumulative(name: str, values: Numbers, place: int = 0) -> Series:
    """The part of the values that is at most x; very many values stand as evenly chosen quantiles."""
    known = np.sort(values[~np.isnan(values)])
    part = np.arange(1, len(known) + 1) / max(len(known), 1)
    kept = chosen(len(known))
    return Series(name, known[kept], part[kept], place)


def chosen(count: int) -> NDArray[np.int64]:
    """Evenly spaced rows, the first and the last among them."""
    if count <= MOST_POINTS:
        return np.arange(count)
    return np.unique(np.round(np.linspace(0, count - 1, MOST_POINTS)).astype(np.int64))


def chart(
    caption: str,
    series: Sequence[Series],
    x: Axis,
    y: Axis,
    across: float = math.nan,
    up: float = math.nan,
) -> str:
    """A figure with its curves; at `across` on the x axis or `up` on the y axis the meaning of values changes."""
    keys = legend_of([(one.name, one.place) for one in series])
    return figure(caption, keys, curves(series, x, y, across, up), WIDTH, HEIGHT)


def curves(
    series: Sequence[Series], x: Axis, y: Axis, across: float = math.nan, up: float = math.nan
) -> list[str]:
    """The inside of a chart: its axes, its marks and its curves."""
    inner: list[str] = []
    if x.low <= across <= x.high:
        at = float(at_x(x, np.array([across]))[0])
        inner.append(_line("mark", at, _TOP, at, HEIGHT - _BOTTOM))
    if y.low <= up <= y.high:
        at = float(at_y(y, np.array([up]))[0])
        inner.append(_line("mark", _LEFT, at, WIDTH - _RIGHT, at))
    inner += [_curve(one, x, y) for one in series if len(one.x)]
    return [_grid(x, y), *inner]


def columns(
    caption: str, layers: Sequence[Series], edges: Numbers, words: Sequence[str], x: Axis, y: Axis
) -> str:
    """Columns from edge to edge, each with the layers' heights on top of each other and its own words."""
    sides = at_x(x, edges).tolist()
    below = np.zeros(len(words))
    inner = [_grid(x, y)]
    for layer in layers:
        foot, below = at_y(y, below), below + layer.y
        for column, (top, bottom) in enumerate(zip(at_y(y, below).tolist(), foot.tolist(), strict=True)):
            if layer.y[column] > 0:
                height = f"{layer.name}, {words[column]}: {axis_number(layer.y[column])}"
                inner.append(bar_at(sides[column], top, sides[column + 1], bottom, layer.place, height))
    keys = legend_of([(layer.name, layer.place) for layer in layers])
    return figure(caption, keys, inner, WIDTH, HEIGHT)


def figure(caption: str, keys: str, inner: Sequence[str], width: float, height: float) -> str:
    """A drawing under its caption and its legend."""
    svg = f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{text(caption)}">'
    return f"<figure><figcaption>{text(caption)}</figcaption>{keys}{svg}{''.join(inner)}</svg></figure>"


def bar_at(left: float, top: float, right: float, bottom: float, place: int, words: str) -> str:
    """A filled bar; its words show when a pointer rests on it."""
    return (
        f'<rect class="bar f{place % COLOURS}" x="{left:.2f}" y="{top:.2f}" width="{right - left:.2f}" '
        f'height="{bottom - top:.2f}"><title>{text(words)}</title></rect>'
    )


def legend_of(names: Sequence[tuple[str, int]]) -> str:
    """The colours and dashes of the series, with their names."""
    items = "".join(
        f'<li><svg viewBox="0 0 28 10"><path class="line {look_of(place)}" d="M0 5H28"/></svg>{text(name)}</li>'
        for name, place in names
    )
    return f'<ul class="legend">{items}</ul>'


def look_of(place: int) -> str:
    """The classes of a curve's colour and dashes by its place."""
    return f"c{place % COLOURS} d{place // COLOURS % 3}"


def _curve(series: Series, x: Axis, y: Axis) -> str:
    kept = chosen(len(series.x))
    across, up = at_x(x, series.x[kept]), at_y(y, series.y[kept])
    known = np.isfinite(across) & np.isfinite(up)
    path, pen = [], "M"
    for is_known, h, v in zip(known.tolist(), across.tolist(), up.tolist(), strict=True):
        if is_known:
            path.append(f"{pen}{h:.1f} {v:.1f}")
        pen = "L" if is_known else "M"
    title = f"<title>{text(series.name)}</title>"
    return f'<path class="line {look_of(series.place)}" d="{"".join(path)}">{title}</path>'


def _grid(x: Axis, y: Axis) -> str:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts: list[str] = []
    for value, words in x.ticks:
        at = float(at_x(x, np.array([value]))[0])
        parts.append(_line("grid", at, _TOP, at, bottom))
        parts.append(words_at(at, bottom + 16, words, "middle"))
    for value, words in y.ticks:
        at = float(at_y(y, np.array([value]))[0])
        parts.append(_line("grid", _LEFT, at, right, at))
        parts.append(words_at(_LEFT - 6, at + 4, words, "end"))
    parts.append(f'<path class="frame" d="M{_LEFT:g} {_TOP:g}V{bottom:g}H{right:g}"/>')
    parts.append(words_at((_LEFT + right) / 2, HEIGHT - 8, x.label, "middle"))
    middle = (_TOP + bottom) / 2
    parts.append(
        f'<text x="14" y="{middle:g}" text-anchor="middle" transform="rotate(-90 14 {middle:g})">{text(y.label)}'
        "</text>"
    )
    return "".join(parts)


def shortened(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def words_at(x: float, y: float, words: str, anchor: str) -> str:
    """A text in a drawing."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(words)}</text>'


def _line(look: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{look}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def at_x(axis: Axis, values: Numbers) -> Numbers:
    """Positions of values of the x axis in a chart."""
    return _LEFT + axis.at(values) * (WIDTH - _LEFT - _RIGHT)


def at_y(axis: Axis, values: Numbers) -> Numbers:
    """Positions of values of the y axis in a chart."""
    return HEIGHT - _BOTTOM - axis.at(values) * (HEIGHT - _TOP - _BOTTOM)
