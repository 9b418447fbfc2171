"""Elastic jobs of a trace: they run with the size that they are granted, and are as fast as that makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.sim import SimulationResult, rules_for, simulate
from slurm_fair.sim.port.clock import VirtualClock, epoch_for
from slurm_fair.sim.port.cluster import VirtualCluster
from slurm_fair.sim.scenario import Scenario
from slurm_fair.sim.world.load import population
from slurm_fair.trace import Throughputs, uniform
from slurm_fair.trace.generate import TraceWish, generate
from tests.support import strange_policies as strange
from tests.support.simulated import Arrival, Rounds, arrival, simulated, trace
from tests.support.turning_sizes import TurningSizes

HOW = Rounds(lease=600.0)


def turning(*jobs: Arrival, **options: Any) -> SimulationResult:
    """A run under the policy that gives each run of a job the next of its sizes."""
    with strange.installed(turning=TurningSizes):
        return simulated(jobs, "turning", how=HOW, **options)


def of_first_job(result: SimulationResult) -> list[tuple[int, float]]:
    """GPUs and seconds of each of its runs."""
    mine = result.runs.job == 0
    seconds = (result.runs.end - result.runs.start)[mine]
    return list(zip(result.runs.gpus[mine].tolist(), seconds.tolist(), strict=True))


def test_each_run_has_the_size_that_was_granted_and_its_speed() -> None:
    result = turning(arrival(gpus=4, seconds=1500.0, choices=(2, 8)), elastic_exponent=0.5)
    (first, second, third) = of_first_job(result)
    assert first == (2, 600.0)
    assert second == (4, 600.0)
    left = 1500.0 - 600.0 * 0.5**0.5 - 600.0
    assert third[0] == 8
    assert third[1] == pytest.approx(left / 2**0.5)
    assert result.outcomes.gpus.tolist() == [4]


def test_a_job_is_charged_for_what_it_holds_and_owed_for_its_usual_size() -> None:
    result = turning(arrival(gpus=4, seconds=1200.0, choices=(2,)), elastic_exponent=1.0)
    assert of_first_job(result) == [(2, 600.0), (4, 600.0), (2, 600.0)]
    had, owed = result.accounts["a"]
    assert had == 600.0 * (2 + 4 + 2)
    assert owed == 1800.0 * 4
    assert result.outcomes.had.tolist() == [had]
    assert result.summary.gpu_seconds == pytest.approx(had)


def test_a_measured_speed_goes_before_the_assumed_one() -> None:
    rates = {
        ("v100", "consolidated", "net", 32, gpus): rate for gpus, rate in ((1, 10.0), (2, 15.0), (4, 0.0))
    }
    speeds = Throughputs("x", ("x",), "v100", rates)
    job = arrival(gpus=1, seconds=900.0, model="net", batch_size=32, choices=(2, 4, 8))
    result = turning(job, throughputs=speeds, elastic_exponent=0.5)
    # With four it was measured not to run, with eight it was not measured.
    assert [gpus for gpus, _ in of_first_job(result)] == [1, 2]
    assert of_first_job(result)[1][1] == pytest.approx(300.0 / 1.5)


def test_a_size_with_which_a_job_would_hardly_go_on_is_refused() -> None:
    rates = {("v100", "consolidated", "net", 32, gpus): rate for gpus, rate in ((1, 10.0), (2, 1e-9))}
    speeds = Throughputs("x", ("x",), "v100", rates)
    job = arrival(gpus=1, seconds=900.0, model="net", batch_size=32, choices=(2,))
    with pytest.raises(InputError, match=r"would take 9e\+12 s with 2 GPUs.*leave 2 out of its gpus_choices"):
        turning(job, throughputs=speeds)


def test_a_long_job_may_be_as_slow_as_its_gpus_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurm_fair.sim.run.MOST_LEASE_ENDS", 5)
    with_one = arrival(gpus=16, seconds=2400.0, choices=(1,))
    assert of_first_job(turning(with_one, elastic_exponent=1.0, gpus=16))[0] == (1, 600.0)


def test_a_size_is_left_out_that_the_machines_cannot_give() -> None:
    result = turning(arrival(gpus=2, seconds=1200.0, choices=(1, 16)), gpus=8)
    assert {gpus for gpus, _ in of_first_job(result)} == {1, 2}


def test_a_gang_whose_nodes_are_given_lies_evenly_with_each_size() -> None:
    job = arrival(gpus=8, seconds=2400.0, nodes=2, choices=(4, 16))
    result = turning(job, gpus=16, gpus_per_node=4, elastic_exponent=1.0)
    assert [gpus for gpus, _ in of_first_job(result)][:3] == [4, 8, 16]


def test_a_look_shows_every_size_and_what_is_held() -> None:
    scenario = Scenario(trace([arrival(gpus=2, choices=(1, 4)), arrival(gpus=3)]), uniform(8, 8))
    clock = VirtualClock(epoch_for(600.0))
    cluster = VirtualCluster(scenario, population(scenario, clock.now()), clock, 600.0)
    seen = cluster.observe({})
    assert seen.sizes is not None
    assert seen.sizes.row.tolist() == [0, 0, 0]
    assert seen.sizes.gpus.tolist() == [1, 2, 4]
    assert seen.sizes.usual.tolist() == [False, True, False]
    assert seen.jobs.usual_gpus.tolist() == seen.jobs.gpus.tolist() == [2, 3]


def test_nobody_is_elastic_where_nobody_says_so() -> None:
    scenario = Scenario(trace([arrival(gpus=2)]), uniform(8, 8))
    clock = VirtualClock(epoch_for(600.0))
    cluster = VirtualCluster(scenario, population(scenario, clock.now()), clock, 600.0)
    assert cluster.observe({}).sizes is None


@pytest.mark.parametrize("policy", ["fifo", "tiresias", "astraea", "gavel", "hived"])
def test_a_policy_that_grants_what_is_asked_for_does_the_same_with_elastic_jobs(policy: str) -> None:
    rigid = generate(TraceWish(jobs=60, load=1.2, gpus=32), np.random.default_rng(3))
    jobs = rigid.with_columns(choice_set=np.zeros(60, dtype=np.int64), choice_sets=((1, 2, 4, 8, 16),))
    rules = rules_for(policy, {}, lease=600.0)
    results = [simulate(Scenario(each, uniform(32, 4)), rules) for each in (jobs, rigid)]
    one, other = (result.summary for result in results)
    assert one == other
    assert all(
        (a == b).all() for a, b in zip(*(result.runs._arrays().values() for result in results), strict=True)
    )
