"""Policies that choose sizes and kinds of servers by counting GPUs, and look for places afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from slurm_fair.model import Plan, Snapshot
from slurm_fair.policy import (
    Bools,
    Floats,
    Ints,
    Offer,
    Sites,
    View,
    Within,
    Words,
    only_one_shape,
    over_array_limit,
)
from slurm_fair.solve.capacity import CapacityProblem, within_capacity
from slurm_fair.solve.linear import Effort
from slurm_fair_plugins.configurations import (
    Configurations,
    Shape,
    configurations,
    freely_placed,
    shapes_now,
)
from slurm_fair_plugins.priority import Queue, queued

WORDS = Words(
    granted="its size and GPU type are part of the best choice for all jobs",
    renewed="its size and GPU type are still part of the best choice",
    revoked="the best choice for all jobs gives its GPUs to others",
    moved="it goes on with another size or GPU type",
    waits="the best choice for all jobs has nothing for it, or no place was left for it",
)
_EFFORT = Effort(nodes=500, iterations=200_000, gap=0.001)
_LEAST_GAIN = 0.01
_AHEAD = 0.01  # what more a configuration is worth to the first of the queue: it goes before its equals


@dataclass(frozen=True, slots=True)
class Sized:
    """A policy that takes  without - gain^power  of each configuration, and chooses the largest sum.

    The gain is a job's speed over its least speed. A change costs a running job the factor
    (age - restarts x cost) / (age + cost)  of its gain.
    """

    by_solver: ClassVar[bool] = True
    solves: ClassVar[bool] = True
    lease_seconds: ClassVar[float] = 60.0
    blind_to_types: ClassVar[bool] = False  # takes all kinds of servers for one

    power: Annotated[float, Within(-10, -0.01, "the paper's p: the lower, the more even")] = -1.0
    restart_seconds: Annotated[float, Within(0, 86400, "what a change costs a job")] = 30.0
    queue: Queue = "age"

    @property
    def without(self) -> float:
        """The worth of gain^power of a job that has no GPUs."""
        raise NotImplementedError

    def plan(self, view: View) -> Plan:
        """The best choice for all whose lease is over or who wait; then places, the largest jobs first."""
        return _Choice(view, self, (view.deadline - view.now) / 2).plan()

    def quick_plan(self, view: View) -> Plan:
        """The same without a solver: the most valuable per GPU first."""
        return _Choice(view, self, 0.0).plan()

    def rests(self, snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
        """True where nobody who runs could go on with another size or on another GPU type."""
        return only_one_shape(snapshot, memory)


class _Choice:
    """The jobs of one look in the order of the queue, and the offer."""

    def __init__(self, view: View, policy: Sized, limit_seconds: float) -> None:
        self.view, self.policy, self.offer, self.limit_seconds = view, policy, Offer(view), limit_seconds
        rows = np.flatnonzero(view.waiting | self.offer.contested)
        self.rows = queued(view, rows, policy.queue)
        self._barred = over_array_limit(view, self.rows)
        self.score: Floats = np.full(len(view.waiting), np.nan)

    def plan(self) -> Plan:
        """Jobs with one shape first; then the choice, its places, and whoever fits what is left."""
        view, offer = self.view, self.offer
        first = view.due_gangs[offer.undecided[view.due_gangs] & view.waiting[view.due_gangs]]
        offer.lay(first)
        fixed = self.rows[self._open() & ~freely_placed(view, self.rows)]
        offer.lay(fixed[view.waiting[fixed]])
        self._choose(self.rows[self._open() & freely_placed(view, self.rows)])
        by_score = np.argsort(-np.nan_to_num(self.score[self.rows], nan=-np.inf), kind="stable")
        order = self.rows[by_score]
        offer.stop_contested(order)
        offer.lay(order[self._open()[by_score] & view.waiting[order]])
        return offer.finish(order, score=self.score, words=WORDS)

    def _open(self) -> Bools:
        still: Bools = self.offer.undecided[self.rows] & ~self._barred
        return still

    def _choose(self, rows: Ints) -> None:
        view, pools, offer = self.view, self.offer.pools, self.offer
        if not len(rows) or not offer.free.any():
            return
        ways = configurations(view, pools, rows)
        ways = ways.take(ways.spread == (ways.gpus > ways.biggest))  # on as few servers as can be
        now, free = (
            shapes_now(view, pools.region, rows),
            np.bincount(pools.region[pools.usable], offer.free[pools.usable]),
        )
        if not offer.contested.any():  # between rounds: nothing is chosen for which there is no room now
            ways = ways.take(_has_room(offer, ways))
        possible = ways
        if self.policy.blind_to_types:
            ways, free = blind(ways, len(rows)), free.sum(keepdims=True)
            now = replace(now, on=np.minimum(now.on, 0))
        if not len(ways.job):
            return
        value = self._values(rows, ways, now)
        problem = CapacityProblem(ways.job, ways.on, ways.gpus, value, len(rows), free.astype(np.int64))
        column = within_capacity(problem, _EFFORT, self.limit_seconds).column
        got = np.flatnonzero(column >= 0)
        self.score[rows[got]] = ways.gain[column[got]]
        self._lay(rows, got, ways.take(column[got]), possible, now)

    def _values(self, rows: Ints, ways: Configurations, now: Shape) -> Floats:
        view, cost = self.view, self.policy.restart_seconds
        age = view.now - view.first_submit[rows]
        factor = (age - view.snapshot.jobs.restarts[rows] * cost) / np.maximum(age + cost, 1e-9)
        changes = (now.on[ways.job] >= 0) & ~ways.unchanged(now)
        gain = ways.gain * np.where(changes, np.clip(factor, 0.0, 1.0)[ways.job], 1.0)
        values: Floats = self.policy.without - np.maximum(gain, _LEAST_GAIN) ** self.policy.power
        return values * (1.0 + _AHEAD * (1.0 - ways.job / len(rows)))

    def _lay(
        self, rows: Ints, got: Ints, chosen: Configurations, possible: Configurations, now: Shape
    ) -> None:
        """Places of the chosen ones: who keeps its configuration stays, the others follow, the largest first."""
        stays = self.offer.contested[rows[got]] & chosen.unchanged(now)
        self.offer.keep(rows[got[stays]])
        stays = self.offer.kept[rows[got]]
        allowed = _runs_there(self.offer, possible, chosen, len(rows))[got]
        if not self.policy.blind_to_types:
            allowed &= np.arange(allowed.shape[1]) == chosen.on[:, None]
        for at in np.argsort(-chosen.gpus, kind="stable").tolist():
            if stays[at]:
                continue
            row, sites = int(rows[got[at]]), self._place(allowed[at], int(chosen.gpus[at]))
            if sites:
                self.offer.give(row, sites)

    def _place(self, allowed: Bools, gpus: int) -> Sites:
        """The fullest server that has room for all, else as many idle servers of one kind as it takes."""
        free, pools = self.offer.free, self.offer.pools
        inside = pools.usable & allowed[np.maximum(pools.region, 0)]
        roomy = np.flatnonzero(inside & (free >= gpus))
        if len(roomy):
            return [(int(roomy[free[roomy].argmin()]), gpus)]
        for region in np.flatnonzero(allowed).tolist():
            idle = np.flatnonzero((pools.region == region) & (free == pools.size) & (free > 0))
            together = np.cumsum(free[idle])
            count = int(np.searchsorted(together, gpus)) + 1
            if 1 < count <= len(idle):
                here = np.minimum(free[idle], gpus - together + free[idle])[:count]
                return list(zip(idle[:count].tolist(), here.tolist(), strict=True))
        return []


def _runs_there(offer: Offer, possible: Configurations, chosen: Configurations, jobs: int) -> Bools:
    """[job, region]: where each job runs in the size that was chosen for it; nowhere where none was."""
    size, runs = (
        np.zeros(jobs, dtype=np.int64),
        np.zeros((jobs, 1 + int(offer.pools.region.max())), dtype=bool),
    )
    size[chosen.job] = chosen.gpus
    alike = possible.gpus == size[possible.job]
    runs[possible.job[alike], possible.on[alike]] = True
    return runs


def _has_room(offer: Offer, ways: Configurations) -> Bools:
    """True for what one server, or for what is larger the idle servers of a kind, have free."""
    pools, free = offer.pools, offer.free
    regions = 1 + int(pools.region.max(initial=-1))
    most, idle = np.zeros((2, regions), dtype=np.int64)
    np.maximum.at(most, pools.region[pools.usable], free[pools.usable])
    whole = pools.usable & (free == pools.size)
    np.add.at(idle, pools.region[whole], free[whole])
    room: Bools = ways.gpus <= np.where(ways.spread, idle[ways.on], most[ways.on])
    return room


def blind(ways: Configurations, jobs: int) -> Configurations:
    """The same sizes where all kinds of servers count as one: a job's speed is its mean over them."""
    most = 1 + int(ways.gpus.max(initial=0))
    key, at, group = np.unique(ways.job * most + ways.gpus, return_index=True, return_inverse=True)
    speed = np.bincount(group, ways.speed, len(key)) / np.bincount(group, minlength=len(key))
    one = ways.take(at)
    return replace(one, on=np.zeros(len(key), dtype=np.int64), speed=speed)
