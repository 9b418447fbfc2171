"""A simulation has an end, jobs that cannot run in it, and looks that count."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from slurm_fair.errors import InputError
from slurm_fair.sim import NodeEvent, Outage
from slurm_fair.trace import Machines, uniform
from tests.support.simulated import Arrival, Rounds, arrival, simulated

THREE = [arrival(0, seconds=100), arrival(10, gpus=2, seconds=50), arrival(20, seconds=30)]


@pytest.mark.parametrize("policy", ["fifo", "astraea"])
@pytest.mark.parametrize("until", [55.0, 1.0])
def test_what_runs_when_the_time_is_up_is_measured_then(policy: str, until: float) -> None:
    jobs = [arrival(0, seconds=100), arrival(20, seconds=30)]
    result = simulated(jobs, policy, gpus=1, gpus_per_node=1, until=until)
    assert result.summary.gpu_seconds == pytest.approx(until)
    assert result.summary.jobs_completed == 0


def test_all_that_happened_before_the_time_was_up_counts() -> None:
    result = simulated(THREE, "fifo", gpus=2, gpus_per_node=2, until=165.0)
    assert result.summary.gpu_seconds == pytest.approx(100 + 2 * 50 + 15)
    assert result.summary.jobs_completed == 2


@pytest.mark.parametrize(
    ("job", "machines"),
    [
        (arrival(gpus=3, nodes=3), uniform(8, 4)),
        (arrival(gpus=1, nodes=2), uniform(8, 4)),
        (arrival(gpus=10, nodes=2), uniform(8, 4)),
    ],
)
def test_a_job_that_could_never_run_is_refused_by_name(job: Arrival, machines: Machines) -> None:
    with pytest.raises(InputError, match=r"1 of 2 jobs wants more .*: wide"):
        simulated([arrival(), replace(job, job_id="wide")], machines=machines)


def test_outages_of_one_instant_come_as_they_are_listed() -> None:
    outages = (
        Outage(10.0, "n1", NodeEvent.UP),
        Outage(10.0, "n1", NodeEvent.DOWN),
        Outage(20.0, "n1", NodeEvent.UP),
    )
    result = simulated([arrival(0, seconds=15)], "fifo", gpus=1, gpus_per_node=1, outages=outages)
    assert float(result.outcomes.end[0]) - result.epoch == pytest.approx(35.0)


def test_gpus_that_change_hands_are_not_idle() -> None:
    jobs = [arrival(0, seconds=450), arrival(5, seconds=450)]
    result = simulated(jobs, "astraea", gpus=1, gpus_per_node=1, how=Rounds(lease=100.0))
    assert result.summary.preemptions > 0
    assert result.summary.fragments_mean == 0.0


def test_gpus_that_may_not_be_granted_before_a_common_end_are_no_fragments_of_a_plan() -> None:
    jobs = [arrival(0, seconds=900), arrival(585, seconds=60)]
    result = simulated(jobs, "astraea", gpus=2, gpus_per_node=2, how=Rounds(lease=600.0))
    assert result.outcomes.waited.max() == pytest.approx(15.0)
    assert result.summary.fragments_mean == 0.0


def test_a_lease_that_never_ends_holds_its_gpus_until_its_job_ends() -> None:
    held: list[float] = []
    simulated(
        THREE,
        "fifo",
        gpus=2,
        gpus_per_node=2,
        how=Rounds(lease=None),
        listen=lambda tick, standing: held.extend(
            event.detail["held_seconds"] for event in tick.events if event.kind == "returned"
        ),
    )
    assert sorted(held) == pytest.approx([30.0, 50.0, 100.0])


@pytest.mark.parametrize(("renewal", "start"), [(None, 750.0), (60.0, 660.0), (math.inf, 1200.0)])
def test_who_had_a_term_makes_way_when_its_renewed_lease_ends(renewal: float | None, start: float) -> None:
    jobs = [arrival(0.0, gpus=8, seconds=9000.0), arrival(650.0, gpus=8, seconds=60.0, tenant="b")]
    how = Rounds(lease=600.0, aligned=False, renewal=renewal)
    done = simulated(jobs, how=how)
    assert done.outcomes.start[1] - done.epoch == pytest.approx(start, abs=20.0)


def test_a_simulation_in_which_renewed_leases_end_too_often_is_refused() -> None:
    """New leases alone would end 300,000 times, which is not too often."""
    how = Rounds(lease=2.0, interval=1.0, aligned=False, renewal=1.0)
    with pytest.raises(InputError, match="renewed leases of 1 s end 600000 times"):
        simulated([arrival(0.0, gpus=8, seconds=600_000.0)], how=how)


def test_a_gang_that_starts_after_others_does_not_lose_a_whole_round_of_gavels() -> None:
    """Slurm splits it over nodes as it likes, so it begins when those who were promised GPUs there have begun."""
    early = [*[arrival(0, seconds=20)] * 3, arrival(0, seconds=127), arrival(0, gpus=2, seconds=157)]
    jobs = [*early, arrival(0, gpus=6, seconds=37), arrival(120, seconds=127)]
    result = simulated(jobs, "gandiva", gpus=8, gpus_per_node=4, how=Rounds(lease=120.0, rounds="gavel"))
    assert float(result.outcomes.start[5]) - result.epoch == pytest.approx(120.0)


def test_what_a_gang_leaves_of_its_nodes_is_given_out_in_the_same_round() -> None:
    """Slurm may split 12 GPUs over two nodes as it likes, so all 16 are promised until it is seen there."""
    jobs = [arrival(0, gpus=12, seconds=50), arrival(0, gpus=4, seconds=50)]
    result = simulated(jobs, "las", gpus=16, gpus_per_node=8, how=Rounds(lease=360.0, rounds="gavel"))
    assert (result.outcomes.start - result.epoch).tolist() == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize(
    ("policy", "settings", "starts"),
    [
        ("fifo", {"reset_seconds": 1000.0}, [0.0, 1050.0, 2050.0]),
        ("gavel", {"newcomers": "wait"}, [0.0, 100.0, 1100.0]),
        ("gandiva-fair", {"newcomers": "wait", "split": "equal"}, [0.0, 100.0, 1100.0]),
    ],
)
@pytest.mark.parametrize("aligned", [True, False])
def test_who_waits_for_the_time_when_a_policy_decides_anew_is_served_then(
    policy: str, settings: dict[str, object], starts: list[float], aligned: bool
) -> None:
    """Nothing else happens by then: all GPUs are idle. The very first time does not count."""
    jobs = [
        arrival(0, gpus=8, seconds=100),
        arrival(50, gpus=8, seconds=200),
        arrival(150, gpus=8, seconds=100),
    ]
    result = simulated(jobs, policy, how=Rounds(lease=120.0, aligned=aligned), settings=settings)
    assert (result.outcomes.start - result.epoch).tolist() == starts


def test_the_placement_score_counts_every_start_by_how_much_its_place_slows_it() -> None:
    """Three GPUs of each node are taken, so a gang of two lies apart and is half as fast."""
    jobs = [*[arrival(0, gpus=3, seconds=500)] * 2, arrival(10, gpus=2, seconds=50, sensitivity=2.0)]
    result = simulated(jobs, gpus=8, gpus_per_node=4, settings={"placement": "relaxed"})
    assert result.placement_score == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert (result.outcomes.end - result.epoch).tolist() == [500.0, 500.0, 110.0]
