"""Prices of ways, and the bound that any prices prove."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.solve.places.fleet import Fleet

_STEP, _FADE = 0.6, 0.97  # of the price iteration
_SWING = (0.3, 3.0)  # a price moves by so much in a step


@dataclass(frozen=True, slots=True)
class Prices:
    """A price for each way, and what no plan can be worth more than."""

    way: Floats  # [way]
    bound: float


def priced(fleet: Fleet, way: Floats) -> Prices:
    """The bound of any prices p >= 0 (Lagrange): the most that servers can earn, and what is left to jobs.

    D(p) = max over what servers can offer of sum p * offered  +  sum_i max(0, max_c (v_c - p_c)).
    """
    way = np.maximum(way, 0.0)
    return Prices(way, _earned(fleet, way) + _left_to_jobs(fleet, way))


def linear(fleet: Fleet, steps: int) -> Prices:
    """The best prices that are so much a GPU of each kind, by raising what is asked for too much."""
    ways = fleet.ways
    per_kind = fleet.servers.reshape(-1, fleet.most + 1) @ np.arange(fleet.most + 1)
    price = _first_prices(fleet, len(per_kind))
    best, least, step = price, np.inf, _STEP
    for _ in range(steps):
        of_way = price[ways.kind] * ways.gpus
        chosen, surplus = best_uses(fleet, of_way)
        worth = float((per_kind * price).sum() + np.maximum(surplus, 0.0).sum())
        if worth < least:
            best, least = price, worth
        way = ways.way[chosen[surplus > 0]]
        demand = np.bincount(ways.kind[way], weights=ways.gpus[way], minlength=len(per_kind))
        price = price * np.clip(demand / np.maximum(per_kind, 1), *_SWING) ** step
        step *= _FADE
    return priced(fleet, best[ways.kind] * ways.gpus)


def _first_prices(fleet: Fleet, kinds: int) -> Floats:
    """The usual worth of a GPU of each kind."""
    ways = fleet.ways
    price = np.zeros(kinds)
    density, kind = ways.value / ways.gpus[ways.way], ways.kind[ways.way]
    for each in np.unique(kind).tolist():
        price[each] = np.median(density[kind == each])
    return price


def starts(fleet: Fleet) -> Ints:
    """The first use of each job that has any; uses stand by job."""
    job = fleet.ways.job
    return np.flatnonzero(np.append(True, job[1:] != job[:-1])[: len(job)])


def best_uses(fleet: Fleet, way: Floats) -> tuple[Ints, Floats]:
    """The use that is best for each job at these prices, and what it is worth above its price."""
    surplus = fleet.ways.value - way[fleet.ways.way]
    first = starts(fleet)
    if not len(first):
        return first, surplus
    best = np.maximum.reduceat(surplus, first)
    many = np.diff(np.append(first, len(surplus)))
    at = np.where(surplus == np.repeat(best, many), np.arange(len(surplus)), len(surplus))
    return np.minimum.reduceat(at, first), best


def _left_to_jobs(fleet: Fleet, way: Floats) -> float:
    return float(np.maximum(best_uses(fleet, way)[1], 0.0).sum())


def _earned(fleet: Fleet, way: Floats) -> float:
    """The most that servers can earn: each by itself, and more where a window pays more than its servers.

    u(c) = max(u(c - 1), max_r p_r + u(c - r)) for a server with c GPUs free; a group earns beyond its servers
    the best of p_w + u(rest) - sum of u over the window's servers - what smaller groups in it earn beyond theirs.
    """
    nodes, ways, windows = fleet.servers.reshape(-1, fleet.most + 1), fleet.ways, fleet.windows
    price = np.full((len(nodes), fleet.most + 1), -np.inf)
    alone = np.flatnonzero(~ways.several & (ways.gpus <= fleet.most))
    price[ways.kind[alone], ways.gpus[alone]] = way[alone]
    worth = np.zeros(nodes.shape)
    for free in range(1, fleet.most + 1):
        last = (price[:, 1 : free + 1] + worth[:, :free][:, ::-1]).max(axis=1)
        worth[:, free] = np.maximum(worth[:, free - 1], last)
    node = worth.ravel()
    beyond = np.zeros(len(fleet.groups))
    window, taken = windows.node
    paid = way[windows.way] + node[windows.rest]
    paid -= np.bincount(window, weights=node[taken], minlength=len(paid))
    for level in np.unique(windows.level).tolist():
        here = np.flatnonzero(windows.level == level)
        holder, group = windows.hold
        more = paid - np.bincount(holder, weights=beyond[group], minlength=len(paid))
        np.maximum.at(beyond, windows.group[here], more[here])
    return float((fleet.servers * node).sum() + (fleet.groups * beyond).sum())
