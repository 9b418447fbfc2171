"""Quotas that a policy is told of in a simulation, and those that its result measures, are the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slurm_fair.ledger import LedgerSettings, advance
from slurm_fair.ledger.metrics.windows import Steps, exact_windows, quotas_of
from slurm_fair.ledger.outcomes.outcomes import Outcomes
from slurm_fair.model import Ledger, Standing, TickRecord
from slurm_fair.sim import NodeEvent, Outage, SimulationResult
from tests.support.builders import job, snapshot
from tests.support.simulated import Arrival, Rounds, arrival, arrivals, simulated

WEIGHTS = {"a": 1.0, "b": 2.0, "c": 5.0}
DOWN, UP, DRAIN = NodeEvent.DOWN, NodeEvent.UP, NodeEvent.DRAIN


def owed_exactly(result: SimulationResult) -> dict[str, float]:
    """From the jobs and the changes of M alone."""
    outcomes = result.outcomes
    edges = np.array([result.epoch, float(outcomes.ended_or_now.max())])
    weight = np.array([WEIGHTS[name] for name in outcomes.tenants])
    counts = result.counts_seconds
    windows = exact_windows(outcomes, result.runs, weight, result.capacity, edges, counts_seconds=counts)
    return dict(zip(outcomes.tenants, windows.owed[:, 0].tolist(), strict=True))


def owed_by_the_ledger(result: SimulationResult) -> dict[str, float]:
    return {name: owed for name, (_, owed) in result.accounts.items() if name in result.outcomes.tenants}


ARRIVALS = arrivals(900, seconds=(5, 900))
OUTAGES = st.lists(
    st.builds(Outage, st.integers(0, 1500).map(float), st.just("n1"), st.sampled_from((DOWN, UP, DRAIN))),
    max_size=4,
).map(lambda outages: (*sorted(outages, key=lambda one: one.time_s), Outage(1600.0, "n1", UP)))


@pytest.mark.parametrize("policy", ["astraea", "fifo"])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(jobs=ARRIVALS, outages=OUTAGES, everyone=st.booleans())
def test_the_ledger_of_a_simulation_owes_what_the_definitions_say(
    policy: str, jobs: list[Arrival], outages: tuple[Outage, ...], everyone: bool
) -> None:
    """Tenant c has the greatest weight and comes last; nodes come and go between two looks.

    The node that is never away could take each of the jobs.
    """
    jobs = [*jobs, arrival(1200.0, seconds=50.0, tenant="c")]
    how = Rounds(everyone=everyone)
    result = simulated(jobs, policy, gpus=16, gpus_per_node=8, weights=WEIGHTS, outages=outages, how=how)
    assert owed_by_the_ledger(result) == pytest.approx(owed_exactly(result), rel=1e-9, abs=1e-4)


@pytest.mark.parametrize("everyone", [False, True])
def test_a_tenant_whose_first_job_is_still_to_come_counts_from_it_on_or_from_the_beginning(
    everyone: bool,
) -> None:
    quotas: list[float] = []

    def listen(tick: TickRecord, standing: Standing) -> None:
        elapsed = standing.ledger.time - standing.ledger.began
        if elapsed:
            quotas.append(float(standing.ledger.tenants.owed_quota[0]) / elapsed)

    jobs = [arrival(3.0, gpus=4, seconds=900.0), arrival(5000.0, seconds=10.0, tenant="c")]
    result = simulated(
        jobs,
        gpus=4,
        gpus_per_node=4,
        weights={"a": 1.0, "c": 3.0},
        listen=listen,
        how=Rounds(everyone=everyone),
    )
    quota = 1.0 if everyone else 4.0
    if everyone:
        assert quotas == pytest.approx([quota] * len(quotas))
    assert result.accounts["a"] == pytest.approx((3600.0, 907.0 * quota))  # from second 3 to second 910
    assert result.windows.owed.sum() == pytest.approx(907.0 * quota)


@pytest.mark.parametrize("everyone", [False, True])
def test_a_tenant_none_of_whose_jobs_came_before_the_time_was_up_counts_where_all_do(everyone: bool) -> None:
    jobs = [arrival(0.0, gpus=4, seconds=7200.0), arrival(9000.0, tenant="c")]
    result = simulated(
        jobs,
        gpus=4,
        gpus_per_node=4,
        weights={"a": 1.0, "c": 3.0},
        until=3600.0,
        how=Rounds(everyone=everyone),
    )
    owed = 3600.0 if everyone else 4 * 3600.0
    assert result.outcomes.tenants == ("a",)
    assert result.windows.owed.tolist() == [[pytest.approx(owed)]]
    assert result.accounts["a"][1] == pytest.approx(owed)


def test_a_tenant_that_was_forgotten_counts_no_more() -> None:
    """In reports of a live journal; in the ledger the daemon does the same."""
    found = Outcomes.given(
        key=np.array([1, 2]),
        tenant=np.array([0, 1]),
        tenants=("a", "b"),
        gpus=np.array([1, 1]),
        submit=np.array([0.0, 100.0]),
        end=np.array([10.0, 200.0]),
        until=200.0,
    )
    capacity, weight = Steps.steady(8.0, 0.0), np.array([1.0, 3.0])
    one, other = quotas_of(found, weight, capacity, counts_seconds=40.0)
    instants = np.array([0.0, 49.0, 51.0, 100.0, 239.0, 241.0])
    assert one.at(instants).tolist() == [8.0, 8.0, 0.0, 0.0, 0.0, 0.0]
    assert other.at(instants).tolist() == [0.0, 0.0, 0.0, 8.0, 8.0, 0.0]
    one, other = quotas_of(found, weight, capacity, 8.0, 40.0, along=np.array([True, False]))
    assert one.at(instants).tolist() == [1.6, 1.6, 1.6, 1.0, 1.0, 1.6]
    assert other.at(instants).tolist() == [0.0, 0.0, 0.0, 3.0, 3.0, 0.0]


def test_a_gang_is_owed_nothing_while_no_nodes_could_take_it() -> None:
    """It needs both nodes, of which one is away from second 100 to second 500."""
    outages = (Outage(100.0, "n1", DOWN), Outage(500.0, "n1", UP))
    jobs = [
        arrival(0.0, gpus=4, seconds=1000.0, tenant="b"),
        arrival(50.0, gpus=8, nodes=2, seconds=50.0, tenant="a"),
    ]
    result = simulated(jobs, gpus=8, gpus_per_node=4, weights={"a": 1.0, "b": 1.0}, outages=outages)
    gang = int(np.flatnonzero(result.outcomes.gpus == 8)[0])
    claimed = float(result.outcomes.end[gang] - result.outcomes.submit[gang]) - 400.0
    assert result.accounts["a"][1] == pytest.approx(4.0 * claimed, abs=4.0 * 20)  # two looks


def test_m_is_averaged_over_what_befell_the_nodes_and_when() -> None:
    """Looks are at multiples of 10 s; node n1 is away from second 101 to second 199."""
    outages = (Outage(101.0, "n1", DOWN), Outage(199.0, "n1", UP))
    result = simulated([arrival(0.0, gpus=1, seconds=400.0)], gpus=8, gpus_per_node=4, outages=outages)
    assert result.capacity.time.tolist() == [result.epoch + second for second in (0.0, 101.0, 199.0)]
    assert result.capacity.level.tolist() == [8.0, 4.0, 8.0]
    span = float(result.outcomes.end[0] - result.outcomes.submit[0])
    assert result.mean_gpus == pytest.approx((8 * span - 4 * 98) / span)


# -- the ledger alone ---------------------------------------------------------------------------------------------


def test_what_the_first_look_shows_was_there_before_it() -> None:
    waits = job(1, tenant="a", gpus=2, submit=1000.0)
    shown = snapshot(time=1030.0, nodes={"n1": 8}, jobs=[waits], weights={"b": 3.0})
    ledger, _ = advance(Ledger.new(1000.0), shown)
    assert float(ledger.jobs.owed[0]) == pytest.approx(2 * 30)  # alone until b has a job
    everyone, _ = advance(Ledger.new(1000.0), shown, LedgerSettings(everyone_counts=True))
    assert everyone.tenants.owed_quota.tolist() == pytest.approx([2 * 30, 6 * 30])


@pytest.mark.parametrize(
    ("resized", "owed"),
    [
        pytest.param((), 8 * 10, id="without an instant a change counts from the look that shows it"),
        pytest.param(((1004.0, 2),), 8 * 4 + 2 * 6, id="a change counts from its instant"),
        pytest.param(((1004.0, 0), (1007.0, 2)), 8 * 4 + 2 * 3, id="two changes between two looks"),
        pytest.param(((1000.0, 4), (1010.0, 2)), 4 * 10, id="changes at the very instants of looks"),
        pytest.param(((990.0, 8), (1005.0, 2)), 8 * 5 + 2 * 5, id="a change of before the last look"),
    ],
)
def test_m_changes_between_two_looks(resized: tuple[tuple[float, int], ...], owed: float) -> None:
    waits = job(1, tenant="a", gpus=8, submit=1000.0)
    ledger, _ = advance(Ledger.new(1000.0), snapshot(time=1000.0, nodes={"n1": 8}, jobs=[waits]))
    shown = snapshot(time=1010.0, nodes={"n1": 2}, jobs=[waits])
    ledger, _ = advance(ledger, replace(shown, resized=resized))
    assert float(ledger.jobs.owed[0]) == pytest.approx(owed)
    assert ledger.tenants.owed_quota.tolist() == pytest.approx([owed])
    assert ledger.total_gpus == 2
