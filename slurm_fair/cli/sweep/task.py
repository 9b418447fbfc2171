"""One run of a sweep, as a process or a Dask cluster is given it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from slurm_fair.cli.simulate.one_run import Beat, SimulationOrder, run_one
from slurm_fair.cli.simulate.repeats import scenario_of_run
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.cli.simulate.text import row_of
from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.sim.repeat import under_load
from slurm_fair.sim.scenario import Scenario

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SweepTask:
    """The scenario of the whole sweep, and what this run makes of it."""

    cell: SweepRun
    setup: PolicySetup
    scenario: Scenario

    @property
    def name(self) -> str:
        return self.cell.name


def simulated_metrics(task: SweepTask, beat: Beat) -> Row:
    """Simulate the run; the metrics by their JSON keys.

    Seed 0 is the run that `simulate` makes, seed N the N-th further one of its `--repeat`.
    """
    loaded = under_load(task.scenario, task.cell.load)
    scenario = scenario_of_run(loaded, task.setup, task.cell.seed)
    setup = replace(task.setup, seed=task.setup.seed + task.cell.seed)
    return row_of(setup, run_one(SimulationOrder(scenario, setup, label=task.name), beat))
