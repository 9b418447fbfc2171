"""Small simulated clusters on which a policy is tried, and the views that it is shown there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.policy import Policy, View
from slurm_fair.policy.check import planned
from slurm_fair.policy.error_place import POLICY_FAILURES
from slurm_fair.policy.trial_views import Kept
from slurm_fair.sim.run import rules_for, simulate
from slurm_fair.sim.scenario import Costs, NodeEvent, Outage, Scenario
from slurm_fair.tick import InThisProcess
from slurm_fair.trace import Machines, Trace, uniform
from slurm_fair.trace.collect import Collector, ColumnRules

JOBS, TENANTS = 40, 4
_COLUMNS = ("job_id", "tenant", "submit_s", "gpus", "duration_s", "declared_s", "mode")
_GANGS, _MODES = (1, 1, 2, 1, 4, 2, 8, 1, 3), ("static", "gns", "accordion")
_LEASE = 300.0


class TrialStage(NamedTuple):
    """A scenario, and whether its leases end together."""

    scenario: Scenario
    aligned: bool


class Shown(NamedTuple):
    """The views that a policy was shown on a stage, and the error that ended the trial early."""

    views: tuple[Kept, ...]
    error: BaseException | None
    of_policy: bool = True  # the policy raised it; else the simulation would not carry its plan out


@dataclass(slots=True)
class _Recorder:
    """Keeps what a policy is shown."""

    policy: Policy
    views: list[Kept] = field(default_factory=list)
    error: BaseException | None = None

    def plan(self, view: View) -> Plan:
        """The plan of the policy that is watched."""
        self.views.append(Kept.of(view))
        try:
            return planned(self.policy.plan, view)
        except POLICY_FAILURES as error:
            self.error = error
            raise


def stages() -> tuple[TrialStage, ...]:
    """One GPU type, declarations a fifth off at most; two types, a node goes down, and nobody says anything."""
    plain = Scenario(_trace(), uniform(16, 4), Costs(10.0, 5.0, 0.0))
    odd = Scenario(
        _trace(declared=False),
        _two_types(),
        Costs(20.0, 10.0, 30.0),
        weights={"t1": 3.0},
        outages=(Outage(700.0, "n2", NodeEvent.DOWN), Outage(2500.0, "n2", NodeEvent.UP)),
        undeclared="unknown",
    )
    return TrialStage(plain, True), TrialStage(odd, False)


def simulated_views(name: str, settings: dict[str, object], stage: TrialStage, most: int) -> Shown:
    """Views of a simulation that this policy drives itself, spread over all of it; the last one is among them."""
    rules = rules_for(name, settings, lease=_LEASE, aligned=stage.aligned)
    recorder = _Recorder(rules.policy)
    problem: BaseException | None = None
    try:
        simulate(stage.scenario, replace(rules, planner=InThisProcess(recorder.plan)))
    except POLICY_FAILURES as error:
        problem = recorder.error or error
    views = recorder.views
    at = np.unique(np.linspace(0, len(views) - 1, min(most, len(views))).round().astype(np.int64))
    return Shown(tuple(views[number] for number in at.tolist()), problem, recorder.error is not None)


def _trace(declared: bool = True) -> Trace:
    """Jobs of which no two are alike."""
    collector = Collector(_COLUMNS, ColumnRules())
    for number in range(JOBS):
        seconds = 90.0 + (number * number * 37) % 1300 + 0.25 * number
        says = f"{seconds * (0.8 + 0.01 * number):g}" if declared else ""
        row = [
            str(number + 1),
            f"t{number * 7 % TENANTS + 1}",
            f"{number * 41.0 + number % 3 * 5.5:g}",
            str(_GANGS[number % len(_GANGS)]),
            f"{seconds:g}",
            says,
            _MODES[number % 3],
        ]
        collector.add(f" job {number}", row)
    return collector.trace()


def _two_types() -> Machines:
    alike = uniform(24, 8)
    return alike.with_columns(
        gpu_type=np.array([0, 0, 1]),
        speed=np.array([1.0, 1.0, 0.5]),
        gpu_types=("fast", "slow"),
    )
