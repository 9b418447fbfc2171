"""Rates of links out of the times of all-reduces (Hops eq. 2, and what the GPUs of a node share)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from slurm_fair.model.columns import Floats
from slurm_fair.throughput.links import RATES
from slurm_fair.throughput.timing import link_factors

_NET, _BUS, _HOST = RATES.index("net"), RATES.index("bus"), RATES.index("host")
# Shapes on several nodes with several GPUs on one, below which host is not told from net and bus.
_FOR_HOST = 3


@dataclass(frozen=True, slots=True)
class Timing:
    """One group of GPUs, and what an all-reduce among them took for each parameter, its start not counted."""

    gpus: int
    nodes: int
    most: int  # GPUs on one node
    seconds: float  # for each parameter; nan = too short to be told from the start


@dataclass(frozen=True, slots=True)
class Rates:
    """Parameters a second by link; nan = no group tells, inf = it takes no time."""

    link: float
    net: float
    bus: float
    host: float
    off: float  # the largest difference between a time and what the rates say, as a part of it


def rates_of(timings: Sequence[Timing]) -> Rates:
    """The rates that are nearest to these times, each off by its own part; no link takes less than no time."""
    shape = np.array([(one.gpus, one.nodes, one.most) for one in timings], dtype=np.float64).T
    factors = link_factors(*shape)
    used = [link for link in range(len(RATES)) if factors[:, link].any()]
    if _HOST in used and int(((shape[1] > 1) & (shape[2] > 1)).sum()) < _FOR_HOST:
        used.remove(_HOST)
    if _BUS in used and len(np.unique(shape[2])) < 2 + (_NET not in used):
        used.remove(_BUS)
    seconds = np.array([one.seconds for one in timings])
    of_link, off = _nearest(factors[:, used] / seconds[:, None])
    rates = np.full(len(RATES), np.nan)
    with np.errstate(divide="ignore"):
        rates[used] = 1.0 / of_link
    link, net, bus, host = rates.tolist()
    return Rates(link, net, bus, host, off)


def _nearest(rows: Floats) -> tuple[Floats, float]:
    """Seconds of each column, none below 0, whose sums come nearest to 1; the largest difference.

    Every set of columns is tried: there are four at most.
    """
    columns, least = rows.shape[1], np.inf
    best = np.zeros(columns)
    for count in range(1, columns + 1):
        for chosen in combinations(range(columns), count):
            found, *_ = np.linalg.lstsq(rows[:, chosen], np.ones(len(rows)), rcond=None)
            if (found < 0).any():
                continue
            error = float(np.square(rows[:, chosen] @ found - 1).sum())
            if error < least * (1 - 1e-9):
                least, best = error, np.bincount(chosen, found, columns).astype(np.float64)
    return best, float(np.abs(rows @ best - 1).max())
