"""The walk's plan, and a better one by the solver where the walk's is not proven to be within a small gap."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.ledger.formulas import ratio
from slurm_fair.model import Placement, Plan, Verdict
from slurm_fair.model.sizes import with_gangs
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
    speed_in,
    usual_gpus,
)
from slurm_fair.policy.plan_value import GREEDY, SOLVED, PlanValue
from slurm_fair.solve.linear import Effort
from slurm_fair.solve.lots import LotsAnswer, best_lots
from slurm_fair_plugins.fair.lots import Lots, lies_apart
from slurm_fair_plugins.fair.period import Stock, bound_of, value_of
from slurm_fair_plugins.fair.words import WORDS
from slurm_fair_plugins.fair.worth import Worth

_EFFORT = Effort(nodes=200, iterations=50_000, gap=0.005, direct=True)
_BETTER = 1e-6  # of the value: what the solver must gain to be followed


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """One period: what may be given, to whom it is worth what, and how a gang is laid."""

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
        value = value_of(plan, stock, self._values(plan))
        bound = max(bound_of(*self._most(stock), able, stock), value)
        period = PlanValue(value, bound, GREEDY, at=self.view.now)
        if period.gap <= self.gap or limit_seconds <= 0:
            return plan, period
        lots = Lots.of(self.view, self.worth, stock, able, self.restart_seconds)
        if not lots.can_win:
            return plan, period
        answer = best_lots(replace(lots.problem, start=lots.taken_by(plan)), _EFFORT, limit_seconds)
        if np.isfinite(answer.bound) and lots.whole:
            bound = min(bound, max(answer.bound, value))
        other = self._wished(lots, answer) if any_of(answer.lot >= 0) else plan
        better = value_of(other, stock, self._values(other)) + self._of_moves(lots, answer, other)
        if better <= value * (1.0 + _BETTER):
            return plan, replace(period, bound=bound, asked=True)
        in_line = replace(
            other, ranked=lambda: plan.rank, why=lambda: other.explanation.with_columns(rank=plan.rank)
        )
        return in_line, PlanValue(better, max(bound, better), SOLVED, True, self.view.now)

    def _of_moves(self, lots: Lots, answer: LotsAnswer, plan: Plan) -> float:
        """The worth of those who run, and are stopped to go on where the solver wants them."""
        got = (answer.lot >= lots.stays).nonzero()[0]
        moved = self.view.expired[lots.rows[got]] & (plan.verdict[lots.rows[got]] == Verdict.REVOKE)
        return float(lots.problem.value[answer.lot[got[moved]]].sum())

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

    def _most(self, stock: Stock) -> tuple[Floats, Floats]:
        """The most that a GPU is worth to each job in any shape, and as many such as its best shape is worth."""
        view, rows, total = self.view, self.worth.rows, self.worth.total
        usual = usual_gpus(view)[rows].astype(np.float64)
        types = np.unique(view.snapshot.nodes.gpu_type[stock.gpus > 0])
        if len(types) < 2 and view.snapshot.sizes is None and not any_of(view.told.rate != 1.0):
            return total, usual
        shapes, jobs = ShapeSpeeds.of(view, stock.gpus), len(view.waiting)
        a_gpu, in_all = np.zeros(jobs), np.zeros(jobs)
        gives = usual_gpus(view)[shapes.row] * shapes.speed
        np.maximum.at(a_gpu, shapes.row, gives / shapes.gpus)
        np.maximum.at(in_all, shapes.row, gives)
        a_gpu, in_all = a_gpu[rows], in_all[rows]
        return total * a_gpu, ratio(in_all, a_gpu, nothing=0.0)

    def _values(self, plan: Plan) -> Floats:
        """The worth of what each row has or is given by a plan; nan for rows that get nothing."""
        view = self.view
        places = view.lease_places.plus(plan.places) if len(plan.places) else view.lease_places
        gpus = np.bincount(places.row, places.gpus, len(view.waiting)).astype(np.int64)
        kind = absent(len(view.waiting))
        kind[places.row] = view.snapshot.nodes.gpu_type[places.node]
        values, rows = np.full(len(view.waiting), np.nan), self.worth.rows
        has = kind[rows] >= 0
        mine = rows[has]
        nodes = np.bincount(places.row, minlength=len(view.waiting))[mine]
        apart = lies_apart(view, mine, kind[mine], gpus[mine], nodes)
        speed = speed_in(view, mine, kind[mine], gpus[mine], apart)
        values[mine] = usual_gpus(view)[mine] * speed * self.worth.total[has]
        return values

    def _wished(self, lots: Lots, answer: LotsAnswer) -> Plan:
        """The walk with the solver's choice first: who stays, then who was given a node, which it asks for."""
        view = self.view
        got = (answer.lot >= 0).nonzero()[0]
        lot = answer.lot[got]
        chosen, gpus, goes = lots.rows[got], lots.gpus[lot], lot >= lots.stays
        going, named = chosen[goes], lots.nodes_of(lot[goes], chosen[goes])
        seen = _asking(view, going, gpus[goes], named)
        first = np.concatenate((chosen[~goes], going[np.argsort(-gpus[goes], kind="stable")]))
        others = self.worth.order(view)
        order = np.concatenate((first, others[~view.flags(first)[others]]))
        runs = view.expired[going]
        if not any_of(runs):
            return self._walk(seen, order)
        kind, on_type = absent(len(view.waiting)), absent(len(view.waiting))
        kind[named.row] = view.snapshot.nodes.gpu_type[named.node]
        on_type[going[runs]] = kind[going[runs]]
        resized = gpus[goes] != np.bincount(view.lease_places.row, view.lease_places.gpus, len(kind))[going]
        moves = view.flags(going[runs]), view.flags(going[runs & resized])
        return self._walk(seen, order, {"on_type": on_type, "move": moves[0], "resize": moves[1]})


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
