"""Hops' scheduler: who runs where in this round, and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from slurm_fair.model import Plan, Snapshot
from slurm_fair.policy import (
    Bools,
    Floats,
    Ints,
    Offer,
    Order,
    Sites,
    View,
    Within,
    Words,
    check_settings,
    only_one_shape,
    over_array_limit,
    sizes_of,
)
from slurm_fair.solve.places import PlacesAnswer, PlacesLimits, fast
from slurm_fair_plugins.configurations import configurations, freely_placed, shapes_now
from slurm_fair_plugins.hops.program import considered, program, worth
from slurm_fair_plugins.hops.servers import split_by_speed
from slurm_fair_plugins.hops.window import sensitivity, window_end, with_insensitive
from slurm_fair_plugins.priority import Name, by_priority, priorities

WORDS = Words(
    granted="the plan of this round is worth most with it on these GPUs",
    renewed="the plan of this round is worth most with it where it is",
    revoked="the plan of this round is worth more with others on its GPUs",
    moved="it goes on with other GPUs, which are worth more to it",
    waits="others are worth more in the plan of this round",
)
OUTSIDE = "jobs ahead of it in the queue ask for all GPUs of the cluster"


@dataclass(frozen=True, slots=True)
class Hops:
    """Latency-ratio fairness by an integer program over exact places (Hops, SoCC 2024).

    The jobs at the head of the queue, whose least sizes come to all GPUs of the cluster, are planned together:
    the sum of  (priority + bias)^lambda x speed over the job's least speed  is as large as can be, over sizes, GPU
    types and exact servers (eq. 11-13). What is left over is planned again, at once and at each look until the
    round ends; jobs that suffer little from lying apart then join from behind the window. Readings: "R < S" of
    the paper is R <= S, and a sensitive job may have each size that no server holds, where the paper asks it of
    its least. GPUs that would be idle go to anybody who runs on them, in one more plan. A running job
    that gets the same size on the same kind of server stays where it is, and that it runs so already is worth
    `inertia` more. Jobs that fix their nodes or how their GPUs split have one
    configuration and are placed first. Priorities are worked out at each plan. Give leases of one length that end
    together (align = "aligned") for the paper's rounds.
    """

    score_is: ClassVar[Order] = Order("its priority in the queue", highest_first=True)
    by_solver: ClassVar[bool] = True
    solves: ClassVar[bool] = True
    lease_seconds: ClassVar[float] = 360.0
    placement: ClassVar[str] = "relaxed"  # over more nodes than a gang needs, where its user left that open
    unknown_run_time: ClassVar[str] = "count as the median of those that are known, or an hour where none is"

    priority: Name = "lr"
    power: Annotated[float, Within(0, 10, "0 = throughput alone; the paper's lambda")] = 1.0
    threshold: Annotated[float, Within(1, 1e6, "sensitivity above which a job stays on one node")] = 1.4
    gap: Annotated[float, Within(0, 1, "a part of the best plan's worth")] = 0.01
    inertia: Annotated[float, Within(0, 10, "a part of a configuration's worth")] = 0.05

    def __post_init__(self) -> None:
        check_settings(self, "hops")

    def plan(self, view: View) -> Plan:
        """The plan of a round, or of what is left of one."""
        limits = PlacesLimits(gap=self.gap).within(view.deadline - view.now)
        return _Round(view, self, limits).plan()

    def quick_plan(self, view: View) -> Plan:
        """The same without a solver: prices and packing alone."""
        return _Round(view, self, PlacesLimits(gap=self.gap, seconds=0.0)).plan()

    def rests(self, snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
        """True where nobody who runs could go on with another size or on another GPU type."""
        return only_one_shape(snapshot, memory)


class _Round:
    """The queue of one look, and the offer that is planned."""

    def __init__(self, view: View, policy: Hops, limits: PlacesLimits) -> None:
        self.view, self.policy, self.offer, self.limits = view, policy, Offer(view), limits
        rows = np.flatnonzero(view.waiting | self.offer.contested)
        prior = priorities(view, rows, policy.priority)
        order = by_priority(view, rows, prior)
        self.rows, self.prior = rows[order], prior[order]  # in the order of the queue
        sizes = sizes_of(view)
        least = np.full(len(view.waiting), np.iinfo(np.int64).max)
        np.minimum.at(least, sizes.row, sizes.gpus)
        self.least = least[self.rows]
        self._over_array_limit = over_array_limit(view, self.rows)

    def plan(self) -> Plan:
        """Jobs with one shape, the round's plan, plans of what it leaves, and whoever fits the rest."""
        inside = self._window()
        self._lay_those_of_one_shape(inside)
        if self.offer.contested.any():
            self._solve(inside, fragments=False)
        self.offer.stop_contested(self.rows)
        self._solve(inside, fragments=True)
        self._solve(inside, fragments=True, everyone=True)
        self._lay_the_rest()
        score = np.full(len(self.view.waiting), np.nan)
        score[self.rows] = self.prior
        outside = self.rows[~inside & self.view.waiting[self.rows]]
        return self.offer.finish(self.rows, score=score, words=WORDS, waits=((outside, OUTSIDE),))

    def _window(self) -> Bools:
        total = int(np.maximum(self.view.snapshot.nodes.capacity, 0).sum())
        return np.arange(len(self.rows)) < window_end(self.least, total)

    def _lay_those_of_one_shape(self, inside: Bools) -> None:
        first = self.view.due_gangs
        fixed = self.rows[inside & self._undecided() & ~freely_placed(self.view, self.rows)]
        fixed = np.concatenate([first, fixed[~np.isin(fixed, first)]])
        self.offer.lay(fixed[self.view.waiting[fixed] & self.offer.undecided[fixed]])

    def _lay_the_rest(self) -> None:
        """Jobs that fit what no plan used get it, in the order of the queue."""
        rest = self.rows[self._undecided() & self.view.waiting[self.rows]]
        if len(rest) and self.offer.free.any():
            self.offer.lay(rest)

    def _undecided(self) -> Bools:
        """Jobs of the queue of which nothing was decided yet."""
        undecided: Bools = self.offer.undecided[self.rows] & ~self._over_array_limit
        return undecided

    def _solve(self, inside: Bools, *, fragments: bool, everyone: bool = False) -> None:
        """One plan: whoever keeps its shape stays, all others are laid on what is left then.

        With `everyone` all who wait take part, the sensitive ones apart too, and servers with something free
        are neighbours whatever lies between them: GPUs would be idle otherwise.
        """
        able = self._undecided() & freely_placed(self.view, self.rows)
        chosen, how_sensitive = inside & able, sensitivity(self.view, self.rows)
        if fragments:
            idle = int(self.offer.free.sum())
            able &= self.view.waiting[self.rows]  # who runs is planned when the round begins
            chosen &= able
            chosen |= able if everyone else with_insensitive(inside, how_sensitive, self.least, idle) & able
        rows = self.rows[chosen]
        if not len(rows) or int(self.least[chosen].min()) > int(self.offer.free.sum()):
            return
        ways = configurations(self.view, self.offer.pools, rows)
        ways = considered(ways, how_sensitive[chosen], np.inf if everyone else self.policy.threshold)
        if not len(ways.job):
            return
        kind = self.offer.pools.region
        now = shapes_now(self.view, kind, rows)
        if not everyone:
            ways, now, kind = split_by_speed(self.view, ways, now, rows, kind)
        value = worth(ways, self._weights()[chosen], now, self.policy.inertia)
        servers = np.flatnonzero(self.offer.pools.usable & ((self.offer.free > 0) | (not everyone)))

        def best(value: Floats) -> PlacesAnswer:
            """The best plan over what the offer has free now."""
            return fast(program(self.offer, kind, servers, ways, value, len(rows)), self.limits)

        if not fragments:
            got = best(value).column
            same = (got >= 0) & ways.unchanged(now)[got] & self.offer.contested[rows]
            self.offer.keep(rows[same])
            decided = self.offer.kept[rows] | (got < 0)
            value = np.where(decided[ways.job], 0.0, value)
        self._carry_out(rows, servers, best(value))

    def _carry_out(self, rows: Ints, nodes: Ints, answer: PlacesAnswer) -> None:
        sites: dict[int, Sites] = {}
        for job, server, gpus in zip(
            answer.job.tolist(), nodes[answer.server].tolist(), answer.gpus.tolist(), strict=True
        ):
            sites.setdefault(int(rows[job]), []).append((server, gpus))
        for row, place in sites.items():
            self.offer.give(row, place)

    def _weights(self) -> Floats:
        """(prior + bias)^lambda, with the paper's bias for priorities that are not positive."""
        least = float(self.prior.min(initial=np.inf))
        bias = 0.0 if least > 0 else abs(least) + 0.01
        weights: Floats = (self.prior + bias) ** self.policy.power
        return weights
