"""Bars beside names as inline SVG: one value a name, or a few to compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair_accounting.drawing.plot import Axis, Numbers, bar_at, figure, legend_of, shortened, words_at

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 640.0, 130.0, 90.0, 6.0, 44.0
_BAR, _BETWEEN = 14.0, 6.0
_MOST_LETTERS = 18


@dataclass(frozen=True, slots=True)
class Measure:
    """One value for each name, as drawn and as written; its place decides its colour."""

    name: str
    values: Numbers
    words: Sequence[str]
    place: int = 0


def bars(
    caption: str, names: Sequence[str], measures: Sequence[Measure], x: Axis, across: float = math.nan
) -> str:
    """A figure; a value beyond the axis is drawn at its end, its words say how much it is."""
    each = len(measures) * _BAR + _BETWEEN
    foot = _TOP + len(names) * each
    drawn, written = [_grid(x, foot)], []
    for row, name in enumerate(names):
        top = _TOP + row * each + _BETWEEN / 2
        middle = top + len(measures) * _BAR / 2
        written.append(words_at(_LEFT - 6, middle + 4, shortened(name, _MOST_LETTERS), "end"))
        for at, measure in enumerate(measures):
            value, words, above = float(measure.values[row]), measure.words[row], top + at * _BAR
            end = _LEFT if math.isnan(value) else _at(x, value)
            said = f"{name}, {measure.name}: {words}"
            drawn.append(bar_at(_LEFT, above + 1, end, above + _BAR - 1, measure.place, said))
            written.append(words_at(end + 4, above + _BAR - 3, words, "start"))
    keys = legend_of([(one.name, one.place) for one in measures]) if len(measures) > 1 else ""
    return figure(caption, keys, [*drawn, *_mark(x, across, foot), *written], _WIDTH, foot + _BOTTOM)


def _mark(x: Axis, across: float, foot: float) -> list[str]:
    """A line where the meaning of values changes."""
    inside = x.low <= across <= x.high
    return [f'<path class="limit" d="M{_at(x, across):.1f} {_TOP:g}V{foot:.1f}"/>'] if inside else []


def _grid(x: Axis, foot: float) -> str:
    parts: list[str] = []
    for value, words in x.ticks:
        at = _at(x, value)
        parts.append(f'<path class="grid" d="M{at:.1f} {_TOP:g}V{foot:.1f}"/>')
        parts.append(words_at(at, foot + 16, words, "middle"))
    parts.append(words_at((_LEFT + _WIDTH - _RIGHT) / 2, foot + 34, x.label, "middle"))
    parts.append(f'<path class="frame" d="M{_LEFT:g} {_TOP:g}V{foot:.1f}H{_WIDTH - _RIGHT:g}"/>')
    return "".join(parts)


def _at(x: Axis, value: float) -> float:
    return _LEFT + float(x.at(np.array([value]))[0]) * (_WIDTH - _LEFT - _RIGHT)
