"""The walk's plan, and a better one by the solver where the walk's is not proven to be within a small gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from slurm_fair.ledger.formulas import ratio
from slurm_fair.model import Placement, Plan
from slurm_fair.model.sizes import gangs_in, with_gangs
from slurm_fair.policy import (
    Bools,
    Floats,
    Ints,
    OrderOptions,
    Pools,
    Shapes,
    ShapeSpeeds,
    View,
    absent,
    any_of,
    ordered,
    ranks,
    speed_in,
    spreads,
    usual_gpus,
)
from slurm_fair.policy.plan_value import GREEDY, SOLVED, PlanValue
from slurm_fair.solve.linear import Effort
from slurm_fair.solve.lots import LotsAnswer, best_lots
from slurm_fair_plugins.fair.lots import Lots, lies_apart
from slurm_fair_plugins.fair.period import Slices, Stock, bound_of, given_by
from slurm_fair_plugins.fair.words import WORDS
from slurm_fair_plugins.fair.worth import Worth

_EFFORT = Effort(nodes=200, iterations=50_000, gap=0.005, direct=True)
_BETTER = 1e-6  # of the value: what the solver must gain to be followed


class _Given(NamedTuple):
    """Jobs that have or get GPUs, and what these are worth beside their tenants' quotas."""

    row: Ints
    gpus: Ints
    value: Floats

    def plus(self, more: _Given) -> _Given:
        """These jobs and more."""
        return _Given(*(np.concatenate(columns) for columns in zip(self, more, strict=True)))


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """One period: the GPUs on offer, their worth to each job, and the way in which a gang is laid."""

    view: View
    worth: Worth
    placement: str
    score: Floats  # worth by row
    gap: float  # up to which the walk's plan stands
    restart_seconds: float

    def walked(self) -> Plan:
        """The plan of the walk down the order of worth."""
        return self._walk(self.view, self.worth.order(self.view))

    def _walk(self, view: View, order: Ints, moves: OrderOptions | None = None) -> Plan:
        usual: OrderOptions = {"place": self.placement, "score": self.score, "words": WORDS}
        return ordered(view, order, **(usual | (moves or {})))

    def best(self, limit_seconds: float) -> tuple[Plan, PlanValue]:
        """The plan of the walk where its gap is small, else the better one of it and the solver's."""
        plan, stock = self.walked(), Stock.of(self.view)
        able = self._able(stock)
        value = self._value(self._given(plan, stock))
        bound = max(self._bound(able, stock), value)
        period = PlanValue(value, bound, GREEDY, at=self.view.now)
        if period.gap <= self.gap or limit_seconds <= 0:
            return plan, period
        lots = Lots.of(self.view, self.worth, stock, able, self.restart_seconds)
        if not lots.can_win:
            return plan, period
        answer = best_lots(replace(lots.problem, start=lots.taken_by(plan)), _EFFORT, limit_seconds)
        if np.isfinite(answer.bound) and lots.whole and not spreads(self.placement):
            bound = min(bound, max(answer.bound, value))
        other, moved = self._wished(lots, answer) if any_of(answer.lot >= 0) else (plan, lots.rows[:0])
        better = self._value(self._given(other, stock).plus(_moved(lots, answer, moved)))
        if better <= value * (1.0 + _BETTER):
            return plan, replace(period, bound=bound, asked=True)
        in_line = replace(
            other, ranked=lambda: plan.rank, why=lambda: other.explanation.with_columns(rank=plan.rank)
        )
        return in_line, PlanValue(better, max(bound, better), SOLVED, True, self.view.now)

    def _value(self, given: _Given) -> float:
        """The worth of all that is given: each job's own, and the GPUs that fill their tenants' quotas."""
        at = ranks(len(self.view.waiting), self.worth.rows)[given.row]
        return float(given.value.sum()) + self.worth.payers.take(at).worth(given.gpus)

    def _able(self, stock: Stock) -> Bools:
        """Jobs whose gang would find a place if all that may be given were free; who runs has one."""
        view, rows = self.view, self.worth.rows
        able = stock.contested[rows]
        waits = view.waiting[rows].nonzero()[0]
        pools = Pools.of(view.snapshot)
        able[waits] = Shapes.of(pools, view.snapshot, rows[waits]).fitting(pools, stock.gpus)
        elastic = view.snapshot.sizes
        if elastic is not None and len(elastic):  # the smallest size may fit where the usual one does not
            able[waits] |= view.flags(elastic.row)[rows[waits]]
        return able

    def _bound(self, able: Bools, stock: Stock) -> float:
        """No plan is worth more than this."""
        return bound_of(self._slices(able, stock), stock)

    def _slices(self, able: Bools, stock: Stock) -> Slices:
        """The GPUs of each job that is able, each worth as much as in its best shape, until all of them are that.

        A job that has several shapes may have more, which are worth nothing by themselves.
        """
        view, worth = self.view, self.worth
        rows, payers = worth.rows[able], worth.payers.take(able)
        usual = usual_gpus(view)[rows].astype(np.float64)
        types = np.unique(view.snapshot.nodes.gpu_type[stock.gpus > 0])
        if len(types) < 2 and view.snapshot.sizes is None and not any_of(view.told.rate != 1.0):
            return Slices(usual, worth.own[able], payers)
        shapes, jobs = ShapeSpeeds.of(view, stock.gpus), len(view.waiting)
        a_gpu, in_all, most = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
        gives = usual_gpus(view)[shapes.row] * shapes.speed
        np.maximum.at(a_gpu, shapes.row, gives / shapes.gpus)
        np.maximum.at(in_all, shapes.row, gives)
        np.maximum.at(most, shapes.row, shapes.gpus)
        gpus = ratio(in_all[rows], a_gpu[rows], nothing=0.0)
        own = np.concatenate((worth.own[able] * a_gpu[rows], np.zeros(len(rows))))
        more = np.maximum(most[rows] - gpus, 0.0)
        twice = payers.take(np.tile(np.arange(len(rows)), 2))
        twice = twice._replace(beyond=np.concatenate((payers.beyond, np.zeros(len(rows)))))
        return Slices(np.concatenate((gpus, more)), own, twice)

    def _given(self, plan: Plan, stock: Stock) -> _Given:
        """Jobs that a plan gives GPUs of the stock, or leaves theirs."""
        view = self.view
        places = view.lease_places.plus(plan.places) if len(plan.places) else view.lease_places
        gpus = gangs_in(places, view.snapshot.jobs.gpus, view.snapshot.sizes)
        kind = absent(len(view.waiting))
        kind[places.row] = view.snapshot.nodes.gpu_type[places.node]
        has = (kind[self.worth.rows] >= 0) & given_by(plan, stock)[self.worth.rows]
        mine = self.worth.rows[has]
        nodes = np.bincount(places.row, minlength=len(view.waiting))[mine]
        apart = lies_apart(view, mine, kind[mine], gpus[mine], nodes)
        speed = speed_in(view, mine, kind[mine], gpus[mine], apart)
        return _Given(mine, gpus[mine], usual_gpus(view)[mine] * speed * self.worth.own[has])

    def _wished(self, lots: Lots, answer: LotsAnswer) -> tuple[Plan, Ints]:
        """The walk by the solver's choice, and the rows that stop to go on where the solver wants them.

        The solver knows that the nodes of each lot have its CPUs and memory, not that they have those of several
        lots together. So those who wait and find no room on the nodes of their lots are walked as they asked
        themselves, without a lot; all who wait are, where that leaves others over.
        """
        got = (answer.lot >= 0).nonzero()[0]
        plan, moved = self._with_lots(lots, answer, got)
        waits = self.view.waiting[lots.rows]
        for every in (False, True) if self.view.wants_more_than_gpus else ():
            left = waits[got] & ~np.isin(lots.rows[got], plan.granted)
            if not any_of(left):
                break
            got = got[~(waits[got] if every else left)]
            plan, moved = self._with_lots(lots, answer, got)
        return plan, moved

    def _with_lots(self, lots: Lots, answer: LotsAnswer, got: Ints) -> tuple[Plan, Ints]:
        """The walk with these jobs first: who stays, then who was given nodes, which it asks for.

        With it the rows that stop to go on where the solver wants them.
        """
        view = self.view
        lot = answer.lot[got]
        chosen, gpus, goes = lots.rows[got], lots.gpus[lot], lot >= lots.stays
        going, named = chosen[goes], lots.nodes_of(lot[goes], chosen[goes])
        seen = _asking(view, going, gpus[goes], named)
        first = np.concatenate((chosen[~goes], going[np.argsort(-gpus[goes], kind="stable")]))
        others = self.worth.order(view)
        order = np.concatenate((first, others[~view.flags(first)[others]]))
        runs = view.over[going]
        if not any_of(runs):
            return self._walk(seen, order), going[:0]
        kind, on_type = absent(len(view.waiting)), absent(len(view.waiting))
        kind[named.row] = view.snapshot.nodes.gpu_type[named.node]
        on_type[going[runs]] = kind[going[runs]]
        resized = gpus[goes] != np.bincount(view.lease_places.row, view.lease_places.gpus, len(kind))[going]
        moved = [going[:0]]
        how: OrderOptions = {
            "on_type": on_type,
            "move": view.flags(going[runs]),
            "resize": view.flags(going[runs & resized]),
            "on_move": moved.append,
        }
        return self._walk(seen, order, how), moved[-1]


def _moved(lots: Lots, answer: LotsAnswer, rows: Ints) -> _Given:
    """The GPUs for which these jobs stop, which run: those that the solver chose."""
    got = (answer.lot >= lots.stays).nonzero()[0]
    got = got[np.isin(lots.rows[got], rows)]
    lot = answer.lot[got]
    return _Given(lots.rows[got], lots.gpus[lot], lots.problem.value[lot])


def _asking(view: View, rows: Ints, gpus: Ints, named: Placement) -> View:
    """The view in which these jobs ask for so many GPUs, and for the nodes of `named`."""
    snapshot = view.snapshot
    jobs, sizes = snapshot.jobs, snapshot.jobs.gpus.copy()
    sizes[rows] = gpus
    if snapshot.sizes is not None:
        jobs = with_gangs(jobs, snapshot.sizes, sizes)
    every = snapshot.wanted.plus(named)
    order = np.lexsort((every.node, every.row))
    wanted = Placement(every.row[order], every.node[order], every.gpus[order])
    return replace(view, snapshot=replace(snapshot, jobs=jobs, wanted=wanted))
