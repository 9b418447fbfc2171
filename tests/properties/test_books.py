"""GPU time held, that in the books and that which events tell of are the same, whatever fails and when."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.model import Event, JobState, Standing, TickRecord
from slurm_fair.sim import Costs, NodeEvent, Outage, Scenario, Simulation, rules_for, simulate
from slurm_fair.sim.port.clock import epoch_for
from slurm_fair.trace import uniform
from tests.support.simulated import Arrival, arrival, arrivals, trace

ARRIVALS = arrivals(600, seconds=(3, 900))
OUTAGES = st.lists(
    st.tuples(
        st.integers(0, 8000).map(lambda quarters: quarters / 4),
        st.sampled_from(("n1", "n2")),
        st.sampled_from((NodeEvent.DOWN, NodeEvent.DOWN, NodeEvent.DRAIN)),
        st.integers(1, 400).map(lambda quarters: quarters / 4),
    ),
    max_size=8,
)
COSTS = st.builds(
    Costs,
    checkpoint=st.sampled_from((0.0, 5.0, 25.0)),
    restart=st.sampled_from((0.0, 20.0)),
    requeue_delay=st.sampled_from((0.0, 60.0)),
)


def outages_of(drawn: list[tuple[float, str, NodeEvent, float]]) -> tuple[Outage, ...]:
    """Every node comes back."""
    found = [Outage(at, node, event) for at, node, event, _ in drawn]
    found += [Outage(at + away, node, NodeEvent.UP) for at, node, _, away in drawn]
    found += [Outage(2200.0, node, NodeEvent.UP) for node in ("n1", "n2")]
    return tuple(sorted(found, key=lambda outage: outage.time_s))


@pytest.mark.parametrize("policy", ["astraea", "fifo", "tiresias"])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=ARRIVALS, drawn=OUTAGES, costs=COSTS, until=st.sampled_from((math.inf, math.inf, 777.0)))
def test_what_runs_held_is_in_the_books_and_in_the_events(
    policy: str,
    jobs: list[Arrival],
    drawn: list[tuple[float, str, NodeEvent, float]],
    costs: Costs,
    until: float,
) -> None:
    seen: list[Simulation] = []
    events: list[Event] = []

    def listen(tick: TickRecord, standing: Standing) -> None:
        events.extend(tick.events)

    scenario = Scenario(trace(jobs), uniform(8, 4), costs, outages=outages_of(drawn), until_s=until)
    rules = rules_for(policy, {}, lease=None if policy == "fifo" else 120.0, checkpoint_cost=costs.checkpoint)
    result = simulate(scenario, rules, after_look=seen.append, listen=listen)
    cluster, now = seen[0].cluster, seen[0].clock.now()
    columns, count = cluster.jobs, cluster.jobs.count
    runs_on = np.flatnonzero(columns.state[:count] == JobState.RUNNING)
    held = cluster.tally.held_gpu_seconds + float((columns.gpus * (now - columns.start))[runs_on].sum())
    runs = result.runs
    assert float((runs.gpus * (runs.end - runs.start)).sum()) == pytest.approx(held, abs=1e-3)
    assert result.summary.gpu_seconds == pytest.approx(held, abs=1e-3)
    assert sum(had for had, _ in result.accounts.values()) == pytest.approx(held, abs=1e-3)
    assert result.outcomes.ran.sum() == pytest.approx(float((runs.end - runs.start).sum()), abs=1e-3)
    assert result.outcomes.restarts.sum() == columns.restarts[:count].sum()
    assert result.summary.preemptions == cluster.tally.preemptions
    started = [event for event in events if event.kind == "started"]
    assert all(event.detail["nodes"] for event in started)
    assert len(started) == len(runs)
    if math.isinf(until):
        assert result.outcomes.completed.all()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=ARRIVALS, drawn=OUTAGES, restart=st.sampled_from((0.0, 20.0)))
def test_in_gavels_rounds_a_job_holds_its_gpus_until_it_ends_and_not_for_the_rest_of_the_round(
    jobs: list[Arrival], drawn: list[tuple[float, str, NodeEvent, float]], restart: float
) -> None:
    seen: list[Simulation] = []
    scenario = Scenario(
        trace(jobs), uniform(8, 4), Costs(restart=restart), outages=outages_of(drawn), rounds="gavel"
    )
    rules = rules_for("las", {}, lease=120.0, gavel_rounds=True)
    result = simulate(scenario, rules, after_look=seen.append)
    assert result.outcomes.completed.all()
    runs, held = result.runs, seen[0].cluster.tally.held_gpu_seconds
    assert float((runs.gpus * (runs.end - runs.start)).sum()) == pytest.approx(held, abs=1e-3)
    assert result.summary.gpu_seconds == pytest.approx(held, abs=1e-3)
    work = sum(job.gpus * job.seconds for job in jobs)
    assert held == pytest.approx(work + seen[0].cluster.tally.lost_gpu_seconds, abs=1e-3)


def test_a_run_that_is_lost_before_anybody_saw_it_is_told_with_its_nodes_and_charged() -> None:
    """It is opened at second 0 and its node fails 4 s later; looks are 10 s apart."""
    events: list[Event] = []
    outages = (Outage(4.0, "n1", NodeEvent.DOWN), Outage(100.0, "n1", NodeEvent.UP))
    scenario = Scenario(trace([arrival(0.0, gpus=2, seconds=50.0)]), uniform(4, 4), outages=outages)
    rules = rules_for("fifo", {})
    result = simulate(scenario, rules, listen=lambda tick, standing: events.extend(tick.events))
    of_runs = [
        (event.kind, event.time - result.epoch, event.detail.get("nodes"), event.detail.get("state"))
        for event in events
        if event.kind in ("started", "stopped")
    ]
    assert of_runs == [
        ("started", 0.0, ["n1"], None),
        ("stopped", 4.0, None, "NODE_FAIL"),
        ("started", 100.0, ["n1"], None),
    ]
    (finished,) = (event for event in events if event.kind == "finished")
    assert finished.detail["had"] == pytest.approx(2 * 54)
    assert (finished.detail["ran"], finished.detail["waited"]) == pytest.approx((54, 96))
    assert finished.detail["restarts"] == 1
    assert result.summary.preemptions == 0


def test_a_job_that_was_asked_to_save_when_its_node_failed_was_not_pre_empted_by_us() -> None:
    """A lease of 100 s ends while a rival waits; saving takes 30 s, and the node fails 15 s into it."""
    jobs = [arrival(0.0, gpus=4, seconds=500.0), arrival(5.0, gpus=4, seconds=50.0, tenant="b")]
    outages = (Outage(115.0, "n1", NodeEvent.DOWN), Outage(300.0, "n1", NodeEvent.UP))
    scenario = Scenario(trace(jobs), uniform(4, 4), Costs(checkpoint=30.0), outages=outages)
    rules = rules_for("astraea", {}, lease=100.0, checkpoint_cost=30.0)
    kinds: list[str] = []

    def listen(tick: TickRecord, standing: Standing) -> None:
        if tick.time < epoch_for(100.0) + 200:
            kinds.extend(event.kind for event in tick.events)

    result = simulate(scenario, rules, listen=listen)
    assert "revoked" in kinds
    assert "requeued" not in kinds
    assert result.summary.restarts - result.summary.preemptions == 1
