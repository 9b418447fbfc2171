"""A simulated job that has saved for nobody goes on, as a real one does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.model import TickRecord
from slurm_fair.reconcile.for_whom import NEEDED_NO_MORE
from slurm_fair.sim import Costs, Log, Scenario, Simulation, rules_for
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.sim.result import result_of
from tests.support.any_scenario import machines
from tests.support.simulated import Arrival, trace

# At 1200 s the second job is asked to save; by then what was promised finds room without it.
JOBS = (
    Arrival(seconds=20),
    Arrival(seconds=1207),
    Arrival(at=690, gpus=3, seconds=1477),
    Arrival(at=930, seconds=37),
    Arrival(at=990, seconds=37),
    Arrival(at=1110, gpus=3, seconds=37),
    Arrival(at=1170, seconds=1357),
)


def test_a_job_whose_request_is_withdrawn_after_it_has_saved_goes_on_when_the_grace_is_over() -> None:
    jobs = [replace(job, job_id=str(row)) for row, job in enumerate(JOBS)]
    rules = rules_for(
        "gandiva", {}, lease=300, interval=10, aligned=False, gavel_rounds=True, checkpoint_cost=5
    )
    ticks: list[TickRecord] = []
    log = Log(epoch_for(300), lambda tick, standing: ticks.append(tick))
    scenario = Scenario(trace(jobs), machines((4, 4)), Costs(checkpoint=5), rounds="gavel", until_s=100_000)
    simulation = Simulation(scenario, rules, log)
    simulation.run()
    outcomes = result_of(simulation, log, 0.0, 0.0).outcomes
    stays = [event.key >> 23 for tick in ticks for event in tick.events if event.kind == "stays"]
    whys = [event.detail["why"] for tick in ticks for event in tick.events if event.kind == "stays"]
    assert (stays, whys) == ([2], [NEEDED_NO_MORE])
    assert outcomes.completed.all()
    assert outcomes.end[1] - outcomes.submit[1] == pytest.approx(1207 + 5 + rules.terms.grace)
