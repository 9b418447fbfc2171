"""Hops' scheduler: who runs where in this round, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.model.columns import Bools, Floats, Ints, find
from slurm_fair.policy import Order, View, Within, Words, check_settings, over_array_limit, sizes_of
from slurm_fair.policy.orders.offer import Offer
from slurm_fair.policy.packing.gang import Sites
from slurm_fair.solve.places import PlacesAnswer, PlacesLimits, fast
from slurm_fair_plugins.hops.configurations import Configurations, configurations, plain, problem, shapes_now
from slurm_fair_plugins.hops.priority import Name, priorities
from slurm_fair_plugins.hops.window import queue, sensitivity, window_end, with_insensitive

WORDS = Words(
    granted="the plan of this round is worth most with it on these GPUs",
    renewed="the plan of this round is worth most with it where it is",
    revoked="the plan of this round is worth more with others on its GPUs",
    moved="it goes on with other GPUs, which are worth more to it",
    waits="others are worth more in the plan of this round",
)
OUTSIDE = "jobs ahead of it in the queue ask for all GPUs of the cluster"
MOVES = "moves"  # in the memory: jobs that stopped to go on with other GPUs


@dataclass(frozen=True, slots=True)
class Hops:
    """Latency-ratio fairness by an integer program over exact places (Hops, SoCC 2024).

    The jobs at the head of the queue, whose least sizes come to all GPUs of the cluster, are planned together:
    the sum of  (priority + bias)^lambda x speed over the job's least speed  is as large as can be, over sizes, GPU
    types and exact servers (eq. 11-13). What is left over is planned again, at once and at each look until the
    round ends; jobs that suffer little from lying apart then join from behind the window. Readings: "R < S" of
    the paper is R <= S. GPUs that no plan uses go to whoever fits them, in the order of the queue. A running job
    that gets the same size on the same kind of server stays where it is, and that it runs so already is worth
    `inertia` more. Jobs that fix their nodes or how their GPUs split have one
    configuration and are placed first. Priorities are worked out at each plan. Give leases of one length that end
    together (align = "aligned") for the paper's rounds.
    """

    score_is: ClassVar[Order] = Order("its priority in the queue", highest_first=True)
    by_solver: ClassVar[bool] = True
    lease_seconds: ClassVar[float] = 360.0

    priority: Name = "lr"
    power: Annotated[float, Within(0, 10, "0 = throughput alone; the paper's lambda")] = 1.0
    threshold: Annotated[float, Within(1, 1e6, "sensitivity above which a job stays on one node")] = 1.4
    gap: Annotated[float, Within(0, 1, "a part of the best plan's worth")] = 0.01
    inertia: Annotated[float, Within(0, 10, "a part of a configuration's worth")] = 0.05

    def __post_init__(self) -> None:
        check_settings(self, "hops")

    def plan(self, view: View) -> Plan:
        """The plan of a round, or of what is left of one."""
        return _Round(view, self).plan()

    def rests(self, snapshot: object, memory: Mapping[str, Any]) -> bool:
        """True while nobody is on the way to other GPUs: who runs then only goes on."""
        return not memory.get(MOVES)


class _Round:
    """The queue of one look, and the offer that is planned."""

    def __init__(self, view: View, policy: Hops) -> None:
        self.view, self.policy, self.offer = view, policy, Offer(view)
        rows = np.flatnonzero(view.waiting | self.offer.contested)
        prior = priorities(view, rows, policy.priority)
        order = queue(view, rows, prior)
        self.rows, self.prior = rows[order], prior[order]  # in the order of the queue
        sizes = sizes_of(view)
        least = np.full(len(view.waiting), np.iinfo(np.int64).max)
        np.minimum.at(least, sizes.row, sizes.gpus)
        self.least = least[self.rows]
        self.moves: dict[int, Sites] = {}
        self._over_array_limit = over_array_limit(view, self.rows)

    def plan(self) -> Plan:
        """Moves that are under way, jobs with one shape, the round's plan, and one of what it leaves."""
        self._go_on_with_moves()
        inside = self._window()
        if len(self.rows) and (self.view.anything_to_have or self.view.owes):
            self._lay_those_of_one_shape(inside)
            first = bool(self.offer.contested.any())
            if first:
                self._solve(inside, fragments=False)
            self._solve(inside, fragments=True)
        self.offer.settle(self.rows)
        self._lay_the_rest()
        score = np.full(len(self.view.waiting), np.nan)
        score[self.rows] = self.prior
        outside = self.rows[~inside & self.view.waiting[self.rows]]
        return self.offer.finish(
            self.rows, score=score, memory=self._memory(), words=WORDS, waits=((outside, OUTSIDE),)
        )

    def _window(self) -> Bools:
        total = int(np.maximum(self.view.snapshot.nodes.capacity, 0).sum())
        return np.arange(len(self.rows)) < window_end(self.least, total)

    def _go_on_with_moves(self) -> None:
        """Room for those on their way back, and their new GPUs for those that wait for them by now."""
        for row, sites in _moving(self.view):
            if self.view.revoking[row]:
                if self.offer.move(row, sites):
                    self.moves[row] = sites
            elif self.view.waiting[row]:
                self.offer.grant(row, sites)

    def _lay_those_of_one_shape(self, inside: Bools) -> None:
        first = self.view.first_turns
        fixed = self.rows[inside & self._undecided() & ~plain(self.view, self.rows)]
        fixed = np.concatenate([first, fixed[~np.isin(fixed, first)]])
        fixed = fixed[self.view.waiting[fixed]]
        fixed = fixed[[row not in self.offer.granted for row in fixed.tolist()]]
        self.offer.lay(fixed)

    def _lay_the_rest(self) -> None:
        """What no plan used goes to whoever fits it, in the order of the queue."""
        rest = self.rows[self._undecided() & self.view.waiting[self.rows]]
        if len(rest) and self.offer.free.any():
            self.offer.lay(rest)

    def _undecided(self) -> Bools:
        """Jobs of the queue of which nothing was decided yet."""
        decided = self.offer.kept.copy()
        decided[[*self.offer.granted, *self.offer.moved]] = True
        return ~decided[self.rows] & ~self._over_array_limit

    def _solve(self, inside: Bools, *, fragments: bool) -> None:
        """One plan: whoever keeps its shape stays, all others are laid on what is left then."""
        able = self._undecided() & plain(self.view, self.rows)
        chosen, rho = inside & able, sensitivity(self.view, self.rows)
        if fragments:
            idle = int(self.offer.free.sum())
            able &= self.view.waiting[self.rows]  # who runs is planned when the round begins
            chosen &= able
            chosen |= with_insensitive(inside, rho, self.least, idle) & able
        rows = self.rows[chosen]
        if not len(rows) or int(self.least[chosen].min()) > int(self.offer.free.sum()):
            return
        ways = configurations(self.view, self.offer.pools, rows, rho[chosen], self.policy.threshold)
        if not len(ways.job):
            return
        now = shapes_now(self.view, self.offer.pools, rows)
        value = ways.worth(self._weights()[chosen], now, self.policy.inertia)
        if not fragments:
            answer = self._answer(ways, value, len(rows))
            got = answer.column
            same = (got >= 0) & (now.on >= 0) & (now.on == ways.on[got]) & (now.gpus == ways.gpus[got])
            same &= (now.spread == ways.spread[got]) & self.offer.contested[rows]
            self.offer.keep(rows[same])
            value = np.where(same[ways.job] | (got < 0)[ways.job], 0.0, value)
        self._carry_out(rows, self._answer(ways, value, len(rows)))

    def _answer(self, ways: Configurations, value: Floats, jobs: int) -> PlacesAnswer:
        limits = PlacesLimits(gap=self.policy.gap)
        return fast(problem(self.offer, ways, value, jobs), limits)

    def _carry_out(self, rows: Ints, answer: PlacesAnswer) -> None:
        nodes = np.flatnonzero(self.offer.pools.usable)
        sites: dict[int, Sites] = {}
        for job, server, gpus in zip(
            answer.job.tolist(), nodes[answer.server].tolist(), answer.gpus.tolist(), strict=True
        ):
            sites.setdefault(int(rows[job]), []).append((server, gpus))
        for row, place in sites.items():
            if self.offer.contested[row]:
                if self.offer.move(row, place):
                    self.moves[row] = place
            else:
                self.offer.grant(row, place)

    def _weights(self) -> Floats:
        """(prior + bias)^lambda, with the paper's bias for priorities that are not positive."""
        least = float(self.prior.min(initial=np.inf))
        bias = 0.0 if least > 0 else abs(least) + 0.01
        weights: Floats = (self.prior + bias) ** self.policy.power
        return weights

    def _memory(self) -> Mapping[str, Any]:
        names, keys = self.view.snapshot.nodes.names, self.view.snapshot.jobs.key
        kept = [
            [int(keys[row]), [[names[node], gpus] for node, gpus in on]] for row, on in self.moves.items()
        ]
        return {MOVES: kept} if kept else {}


def _moving(view: View) -> Iterable[tuple[int, Sites]]:
    """Rows of jobs that stopped to go on elsewhere, and where."""
    kept = view.memory.get(MOVES, ())
    at = {name: node for node, name in enumerate(view.snapshot.nodes.names)}
    rows = find(view.snapshot.jobs.key, np.array([key for key, _ in kept], dtype=np.int64)) if kept else ()
    for row, (_, sites) in zip(list(rows), kept, strict=True):
        if row >= 0 and all(name in at for name, _ in sites):
            yield int(row), [(at[name], int(gpus)) for name, gpus in sites]
