"""Charts of points with their spreads, beside each other in one SVG file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair_accounting.drawing import plot
from slurm_fair_accounting.drawing.page import COLOURS, drawing_style, text
from slurm_fair_accounting.drawing.plot import Axis, Numbers, Series

_ACROSS = 2  # panels in a row
_MARGIN, _LINE, _LETTER, _KEY = 14.0, 18.0, 7.0, 34.0
_DOT = 3.2


@dataclass(frozen=True, slots=True)
class Points:
    """One curve through points, the half length of each one's whisker, and its words."""

    series: Series
    whisker: Numbers  # nan = none
    words: Sequence[str]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of several under its caption."""

    caption: str
    points: Sequence[Points]
    x: Axis
    y: Axis


def picture(title: str, panels: Sequence[Panel]) -> str:
    """The text of an SVG file: the title, one legend for all, and the panels in rows of two."""
    width = min(len(panels), _ACROSS) * (plot.WIDTH + _MARGIN) + _MARGIN
    keys, top = _keys(_names(panels), width, _MARGIN + 2 * _LINE)
    tall = plot.HEIGHT + 2 * _LINE
    drawn = [
        _panel(panel, _MARGIN + at % _ACROSS * (plot.WIDTH + _MARGIN), top + at // _ACROSS * tall)
        for at, panel in enumerate(panels)
    ]
    height = top + -(-len(panels) // _ACROSS) * tall + _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{text(title)}">',
            f"<style>\n{drawing_style()}\n</style>",
            f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
            _heading(_MARGIN, _MARGIN + _LINE / 2, title),
            keys,
            *drawn,
            "</svg>\n",
        ]
    )


def _names(panels: Sequence[Panel]) -> list[tuple[str, int]]:
    """Each curve once, in the order of their places."""
    met = {one.series.place: one.series.name for panel in panels for one in panel.points}
    return [(met[place], place) for place in sorted(met)]


def _keys(names: Sequence[tuple[str, int]], width: float, top: float) -> tuple[str, float]:
    """The legend in as many lines as it takes, and where they end."""
    x, y, parts = _MARGIN, top, list[str]()
    for name, place in names:
        long = _KEY + _LETTER * len(name) + _MARGIN
        if x > _MARGIN and x + long > width:
            x, y = _MARGIN, y + _LINE
        parts.append(f'<path class="line {plot.look_of(place)}" d="M{x:.1f} {y - 4:.1f}h26"/>')
        parts.append(plot.words_at(x + _KEY, y, name, "start"))
        x += long
    return "".join(parts), y + _LINE


def _panel(panel: Panel, left: float, top: float) -> str:
    series = [one.series for one in panel.points]
    inner = plot.curves(series, panel.x, panel.y)
    inner += [_marks(one, panel.x, panel.y) for one in panel.points]
    head = _heading(0.0, _LINE / 2, panel.caption)
    return (
        f'<g transform="translate({left:g} {top:g})">{head}<g transform="translate(0 {_LINE:g})">'
        f"{''.join(inner)}</g></g>"
    )


def _heading(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-weight="bold" style="font-weight: bold">{text(words)}</text>'


def _marks(points: Points, x: Axis, y: Axis) -> str:
    series, colour = points.series, points.series.place % COLOURS
    across, up = plot.at_x(x, series.x), plot.at_y(y, series.y)
    least, most = (plot.at_y(y, series.y + side * points.whisker) for side in (-1.0, 1.0))
    parts = []
    for h, v, low, high, words in zip(across, up, least, most, points.words, strict=True):
        if not np.isfinite(h) or not np.isfinite(v):
            continue
        if np.isfinite(low) and low > high:
            parts.append(f'<path class="line c{colour}" d="M{h:.1f} {low:.1f}V{high:.1f}"/>')
        dot = f'<circle class="f{colour}" cx="{h:.1f}" cy="{v:.1f}" r="{_DOT:g}">'
        parts.append(f"{dot}<title>{text(words)}</title></circle>")
    return "".join(parts)
