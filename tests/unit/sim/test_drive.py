"""The loop of a simulation: at which instants it looks, and that nothing between them is missed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from slurm_fair.errors import SlurmFairError
from slurm_fair.model import LeaseTerms, Standing, Verb
from slurm_fair.policy.profiling import Profiling
from slurm_fair.sim import (
    Costs,
    Log,
    Manners,
    NodeEvent,
    Outage,
    Scenario,
    Simulation,
    rules_for,
    with_looks_at_changes,
    with_renewal,
)
from slurm_fair.sim.world.load import nobody
from slurm_fair.trace import uniform
from tests.support.fake_cluster import MemoryJournal
from tests.support.simulated import Arrival, Rounds, arrival, trace

ROLLING = Rounds(lease=300.0, aligned=False)


@dataclass
class Seen:
    """A simulation whose looks are noted, in seconds since its beginning."""

    simulation: Simulation
    looks: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.simulation.after_look = lambda simulation: self.looks.append(self.now)

    @property
    def now(self) -> float:
        return round(self.simulation.clock.now() - self.simulation.epoch, 6)

    def ended(self) -> list[float]:
        """The seconds at which jobs were over."""
        jobs = self.simulation.cluster.jobs
        return [round(end - self.simulation.epoch, 6) for end in jobs.end[: jobs.count].tolist()]


def played(
    jobs: list[Arrival], policy: str = "fifo", gpus: int = 1, how: Rounds = ROLLING, **more: Any
) -> Seen:
    """A whole simulation on one node."""
    seen = made(jobs, policy, gpus, how, **more)
    seen.simulation.run()
    return seen


def made(
    jobs: list[Arrival], policy: str = "fifo", gpus: int = 1, how: Rounds = ROLLING, **more: Any
) -> Seen:
    options = {name: more.pop(name) for name in ("looks", "manners") if name in more}
    scenario = Scenario(trace(jobs), uniform(gpus, gpus), how.costs, rounds=how.rounds, **more)
    rules = rules_for(
        policy,
        {},
        lease=how.lease,
        interval=how.interval,
        aligned=how.aligned,
        gavel_rounds=how.rounds == "gavel",
        checkpoint_cost=how.costs.checkpoint,
    )
    rules = with_looks_at_changes(with_renewal(rules, how.renewal), how.interval_min)
    log = Log(0.0)
    return Seen(Simulation(scenario, rules, log, batches=log.batches(), **options))


# -- regular looks --------------------------------------------------------------------------------------------


def test_a_job_is_seen_at_the_next_regular_look_and_when_it_is_over() -> None:
    seen = played([arrival(13, seconds=101)])
    assert seen.looks == [20.0, 130.0]
    assert seen.ended() == [121.0]


def test_an_arrival_at_the_instant_of_a_look_belongs_to_it() -> None:
    assert played([arrival(20, seconds=100)]).looks == [20.0, 120.0]


def test_where_looks_follow_changes_one_comes_with_each_but_never_too_soon_after_the_last() -> None:
    how = replace(ROLLING, interval_min=5.0)
    seen = played(
        [arrival(13, seconds=50), arrival(15, seconds=50), arrival(30, seconds=10)], gpus=3, how=how
    )
    assert seen.looks == [13.0, 18.0, 30.0, 40.0, 63.0, 68.0]
    assert seen.ended() == [63.0, 68.0, 40.0]


def test_jobs_that_come_between_two_looks_are_seen_together() -> None:
    seen = played([arrival(at, seconds=100) for at in (1, 5, 9.5)], gpus=3)
    assert seen.looks == [10.0, 110.0]


def test_a_job_that_waits_has_the_first_look_after_another_has_ended() -> None:
    seen = played([arrival(0, seconds=101), arrival(3, seconds=20)])
    assert seen.ended() == [101.0, 130.0]
    assert 110.0 in seen.looks


def test_nobody_waits_and_somebody_is_to_come_so_that_no_end_needs_a_look() -> None:
    seen = played([arrival(0, seconds=50), arrival(200, seconds=50)], gpus=2)
    assert 50.0 not in seen.looks
    assert seen.looks[-2:] == [200.0, 250.0]


def test_the_first_look_has_time_to_come_though_the_trace_begins_late() -> None:
    assert played([arrival(100_003, seconds=10)]).looks[0] == 100_010.0


# -- the end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("until", "last"),
    [(205.0, 205.0), (200.0, 200.0), (1000.0, 1000.0), (1005.0, 1000.0), (math.inf, 1000.0)],
)
def test_when_the_time_is_up_there_is_a_last_look(until: float, last: float) -> None:
    assert played([arrival(0, seconds=1000)], until_s=until).looks[-1] == last


def test_a_time_that_is_up_before_the_first_arrival_has_one_look_at_nobody() -> None:
    seen = played([arrival(100, seconds=10)], until_s=50.0)
    assert seen.looks == [50.0]
    assert seen.simulation.standing.leases.key.tolist() == []


def test_without_jobs_one_look_ends_it() -> None:
    log = Log(0.0)
    scenario = Scenario(nobody(), uniform(1), until_s=60.0)
    seen = Seen(Simulation(scenario, rules_for("fifo", {}, lease=300.0), log, batches=log.batches()))
    seen.simulation.run()
    assert seen.looks == [60.0]


# -- leases ---------------------------------------------------------------------------------------------------


def test_who_waits_gets_the_gpu_at_the_very_instant_at_which_a_lease_ends() -> None:
    how = replace(ROLLING, renewal=math.inf)
    seen = played([arrival(0, seconds=400), arrival(5, seconds=100)], "las", how=how)
    assert seen.looks.count(300.0) == 2, "once more, with the GPU that came free"
    assert seen.ended() == [500.0, 400.0]


def test_while_a_job_saves_nobody_has_its_gpu() -> None:
    how = replace(ROLLING, costs=Costs(checkpoint=25.0), renewal=math.inf)
    seen = played([arrival(0, seconds=400), arrival(5, seconds=100)], "las", how=how)
    assert seen.ended()[1] == 425.0
    assert 325.0 in seen.looks


def test_leases_that_are_only_renewed_need_one_look_an_hour_or_so() -> None:
    how = Rounds(lease=300.0, aligned=False, renewal=60.0)
    seen = played([arrival(0, seconds=3 * 3600)], "astraea", how=how)
    assert seen.ended() == [10_800.0]
    assert len(seen.looks) <= 6, "and not one at each of 180 ends of leases"


def test_who_comes_while_leases_are_only_renewed_is_served_when_the_next_one_ends() -> None:
    how = Rounds(lease=300.0, aligned=False, renewal=60.0)
    seen = played([arrival(0, seconds=5000), arrival(2001, seconds=100, tenant="b")], "astraea", how=how)
    assert seen.ended()[1] - 100 == 2004.0, "before the next regular look"
    assert len(seen.looks) < 100


def test_in_gavels_rounds_looks_are_where_rounds_end() -> None:
    how = Rounds(lease=100.0, rounds="gavel")
    seen = played([arrival(0, seconds=250), arrival(30, seconds=120)], "las", how=how)
    assert {look % 100 for look in seen.looks} == {0.0}


# -- what goes wrong ------------------------------------------------------------------------------------------


def test_a_node_that_comes_back_while_nobody_waits_gives_a_lost_job_its_gpu_again() -> None:
    outages = (Outage(33.0, "n1", NodeEvent.DOWN), Outage(52.0, "n1", NodeEvent.UP))
    seen = played([arrival(0, seconds=100), arrival(5000, seconds=10)], outages=outages)
    assert seen.ended() == [160.0, 5010.0], "it begins again at the look after 52 s"
    assert {40.0, 60.0} <= set(seen.looks)


def test_a_policy_that_never_comes_to_rest_is_told_with_the_second() -> None:
    simulation = made([arrival(0)]).simulation
    now = simulation.epoch + 40.0
    assert {simulation._at_once(now) for _ in range(1000)} == {now}
    with pytest.raises(SlurmFairError, match="policy fifo does not come to rest: 1000 looks at second 40"):
        simulation._at_once(now)


# -- looks of somebody else -----------------------------------------------------------------------------------


def test_looks_that_are_given_decide_alone() -> None:
    asked: list[tuple[int, float, float]] = []

    def looks(standing: Standing, acts: int, now: float, change: float) -> float:
        asked.append((acts, now - seen.simulation.epoch, change - seen.simulation.epoch))
        return now + 37.0

    how = Rounds(lease=60.0, aligned=False, renewal=math.inf)
    seen: Seen = made([arrival(13, seconds=100)], "las", how=how, looks=looks)
    seen.simulation.run()
    assert seen.looks == [50.0, 87.0, 124.0, 161.0]
    assert asked == [(0, 13.0, 13.0), (1, 50.0, 150.0), (0, 87.0, 150.0), (0, 124.0, 150.0)]


def test_looks_that_are_over_end_the_simulation() -> None:
    instants = iter([20.0, 60.0, math.inf])
    seen: Seen = made(
        [arrival(0, seconds=1000)],
        looks=lambda standing, acts, now, change: seen.simulation.epoch + next(instants),
    )
    seen.simulation.run()
    assert seen.looks == [20.0, 60.0]


# -- the controller -------------------------------------------------------------------------------------------


def test_a_look_is_a_tick_whose_standing_goes_on_into_the_next() -> None:
    journal = MemoryJournal()
    rules = rules_for("fifo", {}, lease=300.0, aligned=False)
    simulation = Simulation(Scenario(trace([arrival(0, seconds=50)]), uniform(1, 1)), rules, journal)
    first = simulation.look()
    assert [outcome.action.verb for outcome in first.outcomes] == [Verb.OPEN]
    assert simulation.standing is journal.standing
    simulation.clock.sleep_until(simulation.epoch + 60.0)
    second = simulation.look()
    assert (second.number, second.outcomes) == (first.number + 1, ())
    assert len(simulation.decisions) == 2
    assert simulation.standing.ledger.tenants.had.tolist() == [50.0]


def test_a_job_that_has_saved_waits_as_long_as_the_grace_unless_told_otherwise() -> None:
    simulation = made([arrival(0)], how=replace(ROLLING, costs=Costs(checkpoint=100.0))).simulation
    assert simulation.cluster.life.manners.patience_seconds == simulation.rules.terms.grace == 200.0
    patient = made([arrival(0)], manners=Manners(patience_seconds=7.0)).simulation
    assert patient.cluster.life.manners.patience_seconds == 7.0


def test_speeds_that_are_profiled_give_the_rules_a_profiler() -> None:
    assert made([arrival(0)]).simulation.rules.profiling is None
    assert made([arrival(0)], speeds="learned").simulation.rules.profiling is None
    assert made([arrival(0)], speeds="profiled").simulation.rules.profiling == Profiling()


def test_the_clock_begins_where_leases_that_end_together_begin() -> None:
    simulation = made([arrival(0)], how=Rounds(lease=700.0)).simulation
    terms: LeaseTerms = simulation.rules.terms
    assert terms.aligned
    assert terms.next_common_end(simulation.epoch) == simulation.epoch + 700.0
