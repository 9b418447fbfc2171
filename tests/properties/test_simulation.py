"""What every policy owes in every simulation, whatever arrives and whatever breaks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.ledger.outcomes import Outcomes
from slurm_fair.policy import registry
from slurm_fair.sim import Costs, NodeEvent, Outage
from tests.simulated import Arrival, Rounds, Witness, arrival, simulated

POLICIES = registry.names()
GPUS, PER_NODE = 8, 4
MINUTE = 60.0

ARRIVALS = st.lists(
    st.builds(
        arrival,
        st.integers(0, 40).map(lambda minutes: minutes * MINUTE / 2),
        gpus=st.sampled_from((1, 1, 1, 2, 3, 4, 8)),
        seconds=st.integers(1, 60).map(lambda minutes: minutes * MINUTE / 2 + 7),
        tenant=st.sampled_from(("a", "b", "c")),
        user=st.sampled_from(("", "u1", "u2")),
    ),
    min_size=1,
    max_size=12,
)
HOW = st.builds(
    Rounds,
    lease=st.sampled_from((120.0, 300.0, 600.0)),
    interval=st.sampled_from((10.0, 30.0)),
    aligned=st.booleans(),
    rounds=st.just("conserving"),
    costs=st.builds(
        Costs,
        checkpoint=st.sampled_from((0.0, 5.0)),
        restart=st.sampled_from((0.0, 20.0)),
        requeue_delay=st.sampled_from((0.0, 60.0)),
    ),
)
OUTAGES = st.sampled_from(
    (
        (),
        (Outage(300.0, "n1", NodeEvent.DOWN), Outage(900.0, "n1", NodeEvent.UP)),
        (Outage(200.0, "n2", NodeEvent.DRAIN), Outage(2000.0, "n2", NodeEvent.UP)),
    )
)
few = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def finished(outcomes: Outcomes, jobs: list[Arrival]) -> None:
    """Everybody ended, and did neither more nor less than its own work."""
    assert len(outcomes) == len(jobs)
    assert outcomes.completed.all()
    asked = np.array([job.seconds for job in sorted(jobs, key=lambda job: job.at)])
    assert (outcomes.ran >= asked - 1e-6).all(), "a job ended before its work was done"


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(jobs=ARRIVALS, how=HOW, outages=OUTAGES)
def test_every_policy_finishes_every_trace_within_the_machines(
    policy: str, jobs: list[Arrival], how: Rounds, outages: tuple[Outage, ...]
) -> None:
    witness = Witness()
    result = simulated(
        jobs, policy, gpus=GPUS, gpus_per_node=PER_NODE, how=how, outages=outages, listen=witness,
        settings={}, weights={"a": 1.0, "b": 2.0},
    )  # fmt: skip
    assert witness.looks == len(result.decisions) > 0
    finished(result.outcomes, jobs)


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(jobs=ARRIVALS, how=HOW)
def test_without_costs_nobody_runs_longer_than_its_work(
    policy: str, jobs: list[Arrival], how: Rounds
) -> None:
    result = simulated(jobs, policy, gpus=GPUS, gpus_per_node=PER_NODE, how=replace(how, costs=Costs()))
    finished(result.outcomes, jobs)
    asked = np.array([job.seconds for job in sorted(jobs, key=lambda job: job.at)])
    assert result.outcomes.ran == pytest.approx(asked, abs=1e-3)
    assert result.summary.overhead_fraction == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(jobs=ARRIVALS, how=HOW)
def test_held_time_is_work_and_what_changing_hands_costs(
    policy: str, jobs: list[Arrival], how: Rounds
) -> None:
    result = simulated(jobs, policy, gpus=GPUS, gpus_per_node=PER_NODE, how=how)
    work = sum(job.seconds * job.gpus for job in jobs)
    lost = result.summary.overhead_fraction * result.summary.gpu_seconds
    assert result.summary.gpu_seconds == pytest.approx(work + lost, rel=1e-6, abs=0.1)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=ARRIVALS, how=HOW)
def test_the_same_twice_is_the_same(policy: str, jobs: list[Arrival], how: Rounds) -> None:
    first, second = (simulated(jobs, policy, gpus=GPUS, gpus_per_node=PER_NODE, how=how) for _ in range(2))
    assert repr(first.summary) == repr(second.summary)
    for name, column in first.outcomes._arrays().items():
        assert np.array_equal(column, getattr(second.outcomes, name), equal_nan=column.dtype.kind == "f"), (
            name
        )


@pytest.mark.parametrize("policy", POLICIES)
@few
@given(jobs=ARRIVALS)
def test_every_policy_finishes_in_gavels_rounds(policy: str, jobs: list[Arrival]) -> None:
    how = Rounds(lease=120.0, rounds="gavel", costs=Costs(restart=20.0))
    result = simulated(jobs, policy, gpus=GPUS, gpus_per_node=PER_NODE, how=how, listen=Witness())
    finished(result.outcomes, jobs)
    assert math.isfinite(result.summary.makespan_s)
