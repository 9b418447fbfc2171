"""The house policy: GPU-hours go to the jobs to which they are worth most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from slurm_fair.model import Plan, Snapshot
from slurm_fair.policy import (
    YEARS,
    Deadlines,
    Decided,
    Ints,
    Order,
    PlacerName,
    SettingWords,
    Urgency,
    View,
    Within,
    any_of,
    check_settings,
    contenders,
    ordered,
)
from slurm_fair.policy.plan_value import PlanValue
from slurm_fair_plugins.fair.arrivals import Arrivals
from slurm_fair_plugins.fair.choice import PeriodChoice
from slurm_fair_plugins.fair.credit import Credit
from slurm_fair_plugins.fair.setting_words import SETTING_WORDS
from slurm_fair_plugins.fair.words import in_words
from slurm_fair_plugins.fair.worth import Objective, Worth, has_shapes


@dataclass(frozen=True, slots=True)
class Fair:
    """The jobs to which a GPU-hour is worth most go first; the fields are the settings.

    A GPU-hour is worth 1 / (hours that a job has left) to it, and the price 1 / X more while its tenant's quota is
    not filled by jobs before it, or once it has no more than X left itself. X = `price_hours`: how far from its
    end a job of a tenant beyond its quota may be and still go before those of tenants within theirs. Within
    quotas, a job that would miss its fair finish time goes before all others, and then a job that takes as long
    as all work that there is. A job that must run now to make its deadline changes places with others of its
    tenant, and with nobody else.
    """

    setting_words: ClassVar[SettingWords] = SETTING_WORDS
    score_is: ClassVar[Order] = Order("what a GPU-hour is worth to it", highest_first=True)
    unknown_run_time: ClassVar[str] = (
        "count as having left what they have run so far; beyond their tenant's quota `unknown_beyond` times that"
    )

    price_hours: Annotated[float, Within(0, 1e6, "0 = quotas before all else")] = 1.0
    # Beyond it the price of a tenant's quota grows: no flood of short jobs keeps another from it for ever.
    debt_hours: Annotated[float, Within(0, YEARS, "of its quota that it lacks")] = 4.0
    # Its quota grows by what a tenant lacks, so that it has that back after so many leases.
    repay_leases: Annotated[float, Within(0, 1e6, "0 = a quota never grows")] = 1.0
    # Beyond its tenant's quota a job of unknown length counts as having so many times what it ran left.
    unknown_beyond: Annotated[float, Within(1, 1e6, "of what it ran")] = 2.0
    claim_weight: Annotated[float, Within(0, 1e9, "per GPU-hour; 0 = no claims")] = 10_000.0
    claim_stretch: Annotated[float, Within(0, 100, "of the time in an equal share", above=True)] = 0.97
    claim_margin_seconds: Annotated[float, Within(0, YEARS)] = 1200.0
    # Jobs whose batch size grows (GNS) become faster, so that less is left than their pace of today says.
    claim_growing_part: Annotated[float, Within(0, 1, "of what they say", above=True)] = 0.6
    claim_hours: Annotated[int, Within(0, 8760, "0 = who came since the hour began")] = 24
    makespan_weight: Annotated[float, Within(0, 1e9, "per GPU-hour; 0 = no guard")] = 1000.0
    makespan_part: Annotated[float, Within(0, 100, "of the backlog", above=True)] = 0.95
    restart_seconds: Annotated[float, Within(0, YEARS, "what a stop costs a job")] = 20.0
    inertia: Annotated[float, Within(0, 0.99, "less left for who runs")] = 0.2
    # A gang that stands first has nodes set aside once it has waited for so much of what it is known to have left.
    reserve_part: Annotated[float, Within(0, 1e6, "of what it has left")] = 1.0
    # A solver looks for a better plan where the walk's is not proven to be within `solver_gap`. On one GPU type
    # and with jobs of one size each, whole traces are none the better for it: there only if `always`.
    solver: Literal["auto", "always", "off"] = "auto"
    solver_gap: Annotated[float, Within(0, 1, "of the most that a plan could be worth")] = 0.01
    urgent: Urgency = "tight"  # which jobs with a deadline go before others of their tenant
    placement: PlacerName = "consolidated"

    solves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self, "fair")

    def plan(self, view: View) -> Plan:
        """Give GPUs to the jobs to which they are worth most, by the walk or by a solver that finds more."""
        asks = self.solver == "always" or (self.solver == "auto" and has_shapes(view.snapshot))
        return self._planned(view, (view.deadline - view.now) / 2 if asks else 0.0)

    def quick_plan(self, view: View) -> Plan:
        """The walk down the order of worth."""
        return self._planned(view, 0.0)

    def decided(self, plan: Plan, view: View) -> Decided:
        """The worth of each job, and what the whole plan is worth."""
        order, period = self.score_is, PlanValue.of_memory(plan.memory)
        about = "" if period is None else period.said_at(view.now)
        numbers = plan.explanation.score
        found = Deadlines.of(view, self._contenders(view), self.urgent)
        then = order.then if found is None or not any_of(found.urgent) else f"its deadline, or {order.then}"
        return Decided(order.name, False, numbers, order.highest_first, then, about)

    def _planned(self, view: View, limit_seconds: float) -> Plan:
        came, rows = Arrivals.of(view, self.claim_hours), self._contenders(view)
        credit = Credit.of(view)
        memory = credit.kept(came.kept(view.memory))
        if not rows.size:
            return ordered(view, rows, memory=memory)
        worth = Worth.of(view, rows, came.jobs(view, self.claim_hours), self._objective, credit.longer(view))
        worth = worth.with_deadlines(view, Deadlines.of(view, rows, self.urgent))
        score = worth.by_row(len(view.waiting), worth.total)
        choice = PeriodChoice(view, worth, self.placement, score, self.solver_gap, self.restart_seconds)
        if not view.anything_to_have and not has_shapes(view.snapshot):
            plan = choice.walked()
        else:
            plan, period = choice.best(limit_seconds)
            memory = period.kept(memory)
        known = np.where(worth.known, self.reserve_part * worth.run_left, np.nan)
        reserve_after = worth.by_row(len(view.waiting), known)
        return in_words(replace(plan, memory=memory, reserve_after=reserve_after), worth, self.price_hours)

    def rests(self, snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
        """True where nobody who runs could go on in another shape: all are renewed while nobody waits."""
        return self.solver == "off" or not has_shapes(snapshot)

    def _contenders(self, view: View) -> Ints:
        """Jobs that wait and whose lease is over; those that could run in a better shape though nobody waits."""
        if self.rests(view.snapshot, view.memory) or view.waiting_rows.size:
            return contenders(view)
        return view.over_rows

    @property
    def _objective(self) -> Objective:
        return Objective(
            self.price_hours,
            self.debt_hours,
            self.repay_leases,
            self.unknown_beyond,
            self.claim_weight,
            self.claim_stretch,
            self.claim_margin_seconds,
            self.makespan_weight,
            self.makespan_part,
            self.restart_seconds,
            self.inertia,
            self.claim_growing_part,
        )
