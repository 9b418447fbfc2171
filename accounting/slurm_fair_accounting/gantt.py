"""Who held which GPU when, as inline SVG: a row a GPU, a bar a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair_accounting.page import COLOURS, text
from slurm_fair_accounting.plot import over_time, words_at

_WIDTH, _LEFT, _RIGHT, _ROW, _BOTTOM = 1160.0, 70.0, 24.0, 11.0, 40.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One run on one GPU, in seconds since the beginning."""

    row: int
    start: float
    end: float
    colour: int
    words: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A node and its GPUs, one row each."""

    name: str
    rows: int


def gantt(caption: str, lanes: Sequence[Lane], bars: Sequence[Bar], span_seconds: float) -> str:
    """A figure; the bars' words show when a pointer rests on them."""
    rows = sum(lane.rows for lane in lanes)
    axis, unit = over_time(span_seconds)
    height = rows * _ROW + _BOTTOM
    room = _WIDTH - _LEFT - _RIGHT
    parts = []
    for value, words in axis.ticks:
        at = _LEFT + float(axis.at(np.array([value]))[0]) * room
        parts.append(f'<path class="grid" d="M{at:.1f} 0V{rows * _ROW:g}"/>')
        parts.append(words_at(at, rows * _ROW + 16, words, "middle"))
    parts.append(words_at(_LEFT + room / 2, rows * _ROW + 34, axis.label, "middle"))
    scale = room / (axis.high * unit)
    parts += [_bar(bar, scale) for bar in bars]
    first = 0
    for lane in lanes:
        parts.append(f'<path class="grid" d="M0 {first * _ROW:g}H{_WIDTH:g}"/>')
        parts.append(words_at(4, (first + lane.rows / 2) * _ROW + 4, lane.name, "start"))
        first += lane.rows
    drawing = f'<svg viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{text(caption)}">'
    return f"<figure><figcaption>{text(caption)}</figcaption>{drawing}{''.join(parts)}</svg></figure>"


def _bar(bar: Bar, scale: float) -> str:
    x, width = _LEFT + bar.start * scale, max((bar.end - bar.start) * scale, 0.2)
    return (
        f'<rect class="bar f{bar.colour % COLOURS}" x="{x:.1f}" y="{bar.row * _ROW + 1:.1f}" width="{width:.1f}" '
        f'height="{_ROW - 2:g}"><title>{text(bar.words)}</title></rect>'
    )
