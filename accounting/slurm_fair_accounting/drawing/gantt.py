"""Charts of time as inline SVG: one row for each GPU with a bar for each run, or one row for each job with a
bar for each lease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair_accounting.drawing.page import COLOURS, text
from slurm_fair_accounting.drawing.plot import figure, over_time, words_at

_WIDTH, _RIGHT, _BOTTOM = 1160.0, 24.0, 40.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One run on one GPU, or one lease of one job, in seconds since the beginning."""

    row: int
    start: float
    end: float
    colour: int
    words: str


@dataclass(frozen=True, slots=True)
class Lane:
    """A node and its GPUs, one row each; or a job."""

    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Height of a row, width of the lanes' names, and the time at the left edge."""

    row: float = 11.0
    left: float = 70.0
    since: str = "the first submission"


_OF_GPUS = Layout()


def gantt(
    caption: str,
    lanes: Sequence[Lane],
    bars: Sequence[Bar],
    span_seconds: float,
    layout: Layout = _OF_GPUS,
) -> str:
    """A figure; the bars' words show when a pointer rests on them."""
    rows = sum(lane.rows for lane in lanes)
    axis, unit = over_time(span_seconds, layout.since)
    row, left, foot = layout.row, layout.left, rows * layout.row
    room = _WIDTH - left - _RIGHT
    parts = []
    for value, words in axis.ticks:
        at = left + float(axis.at(np.array([value]))[0]) * room
        parts.append(f'<path class="grid" d="M{at:.1f} 0V{foot:g}"/>')
        parts.append(words_at(at, foot + 16, words, "middle"))
    parts.append(words_at(left + room / 2, foot + 34, axis.label, "middle"))
    scale = room / (axis.high * unit)
    parts += [_bar(bar, scale, layout) for bar in bars]
    first = 0
    for lane in lanes:
        parts.append(f'<path class="grid" d="M0 {first * row:g}H{_WIDTH:g}"/>')
        parts.append(words_at(4, (first + lane.rows / 2) * row + 4, lane.name, "start"))
        first += lane.rows
    return figure(caption, "", parts, _WIDTH, foot + _BOTTOM)


def _bar(bar: Bar, scale: float, layout: Layout) -> str:
    x, width = layout.left + bar.start * scale, max((bar.end - bar.start) * scale, 0.2)
    return (
        f'<rect class="bar f{bar.colour % COLOURS}" x="{x:.1f}" y="{bar.row * layout.row + 1:.1f}" '
        f'width="{width:.1f}" height="{layout.row - 2:g}"><title>{text(bar.words)}</title></rect>'
    )
