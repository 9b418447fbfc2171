"""The house policy: each term of the worth, which of them decides, and what is said of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.model import Mode
from slurm_fair.policy import View
from slurm_fair_plugins.fair import Fair
from slurm_fair_plugins.fair.credit import CREDIT
from tests.support.accounts import places, reasons
from tests.support.builders import job, node
from tests.support.fair_plays import (
    CROWD,
    CROWD_DECLARED,
    HOUR,
    four,
    lacking,
    plain,
    short_beside_long,
)
from tests.support.rounds import Play
from tests.support.simulated import Rounds, arrival, simulated
from tests.support.told_play import ToldPlay


@dataclass
class Growing(Play):
    """A play in which some jobs grow their batch size."""

    growing: Sequence[int] = field(default=())

    def seen(self) -> View:
        """The view with the modes told."""
        seen = super().seen()
        told = seen.told_alone
        rows = np.isin(seen.snapshot.jobs.record, self.growing)
        told = told.with_columns(mode=np.where(rows, Mode.GNS, Mode.STATIC).astype(np.int8))
        return replace(seen, snapshot=replace(seen.snapshot, told=told))


# Two tenants own half of eight GPUs each; tenant a has two jobs, b one that takes longer than both.
LONG = {"1": 5 * HOUR, "2": 6 * HOUR, "3": 9 * HOUR}


def test_a_tenant_within_its_quota_goes_before_shorter_jobs_of_one_beyond_it() -> None:
    play = Play([*four("a", 1, 2), *four("b", 3)], {"n1": 8}, declared=LONG)
    assert play.round(plain()) == {"1", "3"}


def test_a_high_enough_price_in_hours_lets_the_shorter_job_go_first() -> None:
    play = Play([*four("a", 1, 2), *four("b", 3)], {"n1": 8}, declared=LONG)
    assert play.round(plain(price_hours=7.0)) == {"1", "2"}


@pytest.mark.parametrize(("price", "served"), [(0.0, {"3"}), (1.0, {"2"})], ids=["X = 0", "X = 1 h"])
def test_a_job_that_is_nearly_done_counts_as_within_its_quota(price: float, served: set[str]) -> None:
    """Job 1 fills its tenant's quota; job 2 has half an hour, job 3 of the other tenant nine hours."""
    jobs = [job(1, gpus=4, tenant="a"), job(2, gpus=4, tenant="a"), job(3, gpus=4, tenant="b")]
    declared = {"1": 0.4 * HOUR, "2": 0.5 * HOUR, "3": 9 * HOUR}
    play = Play(jobs, {"n1": 8}, declared=declared)
    assert play.round(plain(price_hours=price)) == {"1"} | served


def test_the_job_that_crosses_the_quota_is_served() -> None:
    """Tenant a owns four GPUs: its first job leaves one of them over, so its second is within the quota."""
    jobs = [job(1, gpus=3, tenant="a"), job(2, gpus=3, tenant="a"), *four("b", 3)]
    play = Play(jobs, {"n1": 10}, weights={"a": 4.0, "b": 6.0}, declared=LONG)
    assert play.round(plain()) == {"1", "2", "3"}


def test_whom_a_restart_would_cost_goes_on() -> None:
    """Job 2 comes later, and has five minutes less to do when its turn could come."""
    jobs = [job(1, gpus=8), job(2, gpus=8, submit=1000)]
    declared = {"1": 3 * HOUR, "2": 3 * HOUR - 1200.0}
    assert Play(jobs, {"n1": 8}, declared=declared).play(plain(), 2) == [{"1"}, {"2"}]
    assert Play(jobs, {"n1": 8}, declared=declared).play(plain(restart_seconds=600.0), 2)[1] == {"1"}
    assert Play(jobs, {"n1": 8}, declared=declared).play(plain(inertia=0.2), 2)[1] == {"1"}


def test_a_job_that_would_miss_its_fair_finish_time_goes_first() -> None:
    """Job 1 takes the longest, waits from the beginning, and has to be done after about six hours."""
    claims = {"claim_weight": 1e4, "claim_stretch": 1.0, "claim_margin_seconds": 900.0}
    without = Play(CROWD, {"n1": 8}, declared=CROWD_DECLARED, now=900.0 + 3 * HOUR).round(plain())
    assert without != {"1"}
    play = Play(CROWD, {"n1": 8}, declared=CROWD_DECLARED, now=900.0 + 3 * HOUR)
    assert play.round(plain(**claims)) == {"1"}
    early = Play(CROWD, {"n1": 8}, declared=CROWD_DECLARED)
    assert early.round(plain(**claims)) != {"1"}


def test_a_growing_job_has_its_claim_earlier() -> None:
    settings = {"claim_weight": 1e4, "claim_stretch": 1.0, "claim_margin_seconds": 0.0}
    now = 2 * HOUR
    plays = [Growing(CROWD, {"n1": 8}, declared=CROWD_DECLARED, now=now, growing=who) for who in ((), (1,))]
    slow, grows = (play.round(plain(**settings, claim_growing_part=0.5)) for play in plays)
    assert (slow == {"1"}, grows == {"1"}) == (False, True)


def test_a_job_as_long_as_the_whole_backlog_goes_first() -> None:
    jobs = [job(1, gpus=4), *(job(base, gpus=4) for base in range(2, 5))]
    declared = {"1": 20 * HOUR, "2": 900.0, "3": 900.0, "4": 900.0}
    assert Play(jobs, {"n1": 4}, declared=declared).round(plain()) == {"2"}
    assert Play(jobs, {"n1": 4}, declared=declared).round(plain(makespan_weight=1000.0)) == {"1"}


def test_a_job_much_shorter_than_all_work_never_goes_first_for_being_long() -> None:
    """All work is less than a lease: the longest job is half of it."""
    declared = {"1": 300.0, "2": 60.0, "3": 120.0, "4": 120.0}
    jobs = [job(base, gpus=4) for base in range(1, 5)]
    assert Play(jobs, {"n1": 4}, declared=declared).round(plain(makespan_weight=1000.0)) == {"2"}


ALIKE, ON_B, ALL = (1.0, 1.0), (1.0, 8.0), (8.0, 8.0)  # speeds on types a and b
GUARDED = {
    "too few GPUs of type b for it": (2, ON_B, ALIKE, "gpu", True),
    "eight times as fast there": (4, ON_B, ALIKE, "gpu", False),
    "no faster there": (4, ALIKE, ALIKE, "gpu", True),
    "type b is in another partition": (4, ON_B, ALIKE, "other", True),
    "all jobs are eight times as fast everywhere": (4, ALL, ALL, "gpu", True),
}


@pytest.mark.parametrize(("of_b", "its", "others", "partition", "guarded"), GUARDED.values(), ids=GUARDED)
def test_a_job_is_as_long_as_all_work_only_if_it_is_so_in_the_fastest_of_its_ways(
    of_b: int, its: tuple[float, ...], others: tuple[float, ...], partition: str, guarded: bool
) -> None:
    """Eight times as fast on four GPUs of type b, the job of 20 hours is done before half of the other work."""
    b = node(of_b, gpu_type="b", partitions=(partition,))
    nodes = {"n1": node(4, gpu_type="a"), "n2": node(4 - of_b, gpu_type="a"), "n3": b}
    left = {"1": 20 * HOUR} | {str(base): HOUR for base in range(2, 12)}
    rates = {each: its if each == "1" else others for each in left}
    seen = ToldPlay([job(int(each), gpus=4) for each in left], nodes, left=left, rates=rates).seen()
    said = reasons(seen.snapshot, plain(makespan_weight=1000.0).plan(seen))
    assert ("it takes nearly as long as all work that there is" in said["1"]) == guarded


def test_neither_claim_nor_guard_helps_a_tenant_beyond_its_quota() -> None:
    """Job 2 is as long as all work there is, but its tenant's other job fills the quota."""
    jobs = [*four("a", 1), *four("a", 2), *four("b", 3)]
    declared = {"1": 30 * HOUR, "2": 29.9 * HOUR, "3": HOUR}
    play = Play(jobs, {"n1": 8}, declared=declared)
    assert play.round(plain(makespan_weight=1000.0)) == {"1", "3"}


def test_what_a_tenant_was_lent_does_not_stop_its_longest_job() -> None:
    """Job 1 fills the quota of tenant a under a lease that goes on; job 2 is as long as all work there is."""
    jobs = [*four("a", 1), *four("a", 2), *four("b", 3)]
    play = ToldPlay(jobs, {"n1": 8}, left={"1": HOUR, "2": 30 * HOUR, "3": 2 * HOUR})
    play.on, play.since, play.settled = {"1": {"n1": 4}}, {"1": 0.0}, {"1"}
    assert places(play.seen().snapshot, plain().plan(play.seen())).keys() == {"3"}
    assert places(play.seen().snapshot, plain(makespan_weight=1000.0).plan(play.seen())).keys() == {"2"}


@pytest.mark.parametrize(("types", "first"), [("aa", True), ("ab", False)])
def test_where_types_differ_an_even_share_is_one_of_gpus(types: str, first: bool) -> None:
    """A fair finish is after twice the run time by jobs, and after eight times that by GPUs."""
    nodes = {f"n{at}": node(4, gpu_type=kind) for at, kind in enumerate(types)}
    jobs = [job(1, gpus=4), *(job(base, gpus=4, submit=900.0) for base in range(2, 17))]
    settings = {"claim_weight": 1e4, "claim_stretch": 1.0, "claim_margin_seconds": 900.0}
    play = Play(jobs, nodes, declared=CROWD_DECLARED, now=900.0 + 3 * HOUR)
    assert ("1" in play.round(plain(**settings))) == first


def test_of_unknown_run_times_what_ran_least_goes_first_and_nobody_has_a_claim() -> None:
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1000)], {"n1": 8})
    policy = Fair(inertia=0.0, restart_seconds=0.0)
    assert play.play(policy, 4) == [{"1"}, {"2"}, {"1"}, {"2"}]


@pytest.mark.parametrize(
    ("tenant", "ran", "times", "first"),
    [
        ("a", 0.4, 2.0, "2"),
        ("a", 0.6, 2.0, "3"),
        ("a", 0.6, 1.0, "2"),
        ("a", 1.1, 1.0, "3"),
        ("c", 0.6, 9.0, "2"),
    ],
)
def test_what_a_job_of_unknown_length_ran_counts_twice_beyond_its_tenants_quota(
    tenant: str, ran: float, times: float, first: str
) -> None:
    """X is one hour; job 1 fills the quota of tenant a, and job 3 of tenant b takes 18 hours."""
    jobs = [*four("a", 1), *four(tenant, 2), *four("b", 3)]
    declared = {"1": 0.1 * HOUR, "3": 18 * HOUR}
    play = Play(jobs, {"n1": 8}, declared=declared, ran={"2": ran * HOUR}, waited={"2": 0.0})
    assert play.round(plain(unknown_beyond=times)) == {"1", first}


@pytest.mark.parametrize(("leaves", "first"), [(0.6, "2"), (1.2, "3")])
def test_a_time_limit_bounds_what_a_job_of_unknown_length_counts_as_having_left(
    leaves: float, first: str
) -> None:
    """X is one hour; job 2 is beyond its tenant's quota, and ran ten hours."""
    limited = job(2, gpus=4, tenant="a", time_limit_seconds=(10.0 + leaves) * HOUR)
    declared = {"1": 0.1 * HOUR, "3": 18 * HOUR}
    play = Play([*four("a", 1), limited, *four("b", 3)], {"n1": 8}, declared=declared, ran={"2": 10.0 * HOUR})
    seen = play.seen()
    said = reasons(seen.snapshot, plain().plan(seen))["2"]
    assert ("its time limit leaves it 30 min at most" in said) == (first == "2")
    assert play.round(plain()) == {"1", first}


@pytest.mark.parametrize(("hours", "served"), [(0.0, "2"), (4.01, "2"), (4.03, "3"), (1e6, "3")])
def test_short_jobs_go_first_until_the_other_tenant_lacks_too_much_of_its_quota(
    hours: float, served: str
) -> None:
    """4 hours that it may lack, and 0.02 more at 100 an hour: a job of half an hour is worth 2."""
    seen = lacking(short_beside_long(), hours)
    assert places(seen.snapshot, plain().plan(seen)).keys() == {"1", served}


@pytest.mark.parametrize(
    ("hours", "repay", "served"),
    [(0.0, 1.0, "3"), (0.2, 1.0, "2"), (0.2, 0.0, "3"), (0.2, 1e-320, "2")],
)
def test_a_quota_grows_by_what_its_tenant_lacks_until_that_is_paid_back(
    hours: float, repay: float, served: str
) -> None:
    """Job 1 fills the quota of tenant a to the last GPU, and job 2 is shorter than job 3 of tenant b."""
    play = Play([*four("a", 1, 2), *four("b", 3)], {"n1": 8}, declared=LONG)
    seen = lacking(play, hours, "a")
    assert places(seen.snapshot, plain(repay_leases=repay).plan(seen)).keys() == {"1", served}


def test_work_of_unknown_length_belongs_to_the_backlog() -> None:
    """Job 1 alone says how long it takes: it is no longest of all while the others may take twice as long."""
    jobs = [job(1, gpus=4), *(job(base, gpus=4) for base in range(2, 12))]
    for others, first in ((2, {"1"}), (11, {"2"})):
        play = Play(jobs[:others], {"n1": 4}, declared={"1": 2.0 * HOUR})
        assert play.round(plain(makespan_weight=1000.0)) == first


@pytest.mark.parametrize("hours", [10.0, 1e6])
@pytest.mark.parametrize("price", [0.0, 0.01, 1.0])
def test_however_much_a_tenant_lacks_its_shorter_jobs_go_before_its_longer_ones(
    price: float, hours: float
) -> None:
    """Its first job leaves a GPU of its quota over, so that both are within it."""
    jobs = [job(base, gpus=3, tenant="b", submit=float(base)) for base in (3, 4)]
    play = Play(jobs, {"n1": 4}, declared={"3": 12 * HOUR, "4": 10 * HOUR})
    seen = lacking(play, hours)
    assert places(seen.snapshot, plain(price_hours=price).plan(seen)).keys() == {"4"}


@pytest.mark.parametrize(("hours", "served"), [(4.15, {"1", "2"}), (4.17, {"1", "3"})])
def test_who_says_that_a_second_is_left_takes_no_more_of_others_than_who_has_four_minutes(
    hours: float, served: set[str]
) -> None:
    """Leases of 900 s: beyond the quota that job 1 fills it counts as 225 s at least: 4 + 16 / 100 hours."""
    jobs = [*four("a", 1, 2), *four("b", 3)]
    play = ToldPlay(jobs, {"n1": 8}, left={"1": 1.0, "2": 1.5, "3": 18 * HOUR})
    seen = lacking(play, hours)
    assert places(seen.snapshot, plain().plan(seen)).keys() == served


def test_no_debt_takes_the_claims_of_others_from_them() -> None:
    """Job 1 of tenant a must start now to end in time; tenant b lacks a hundred years of its quota."""
    jobs = [*CROWD, job(20, gpus=8, tenant="b", submit=900.0)]
    play = Play(jobs, {"n1": 8}, declared={**CROWD_DECLARED, "20": 40 * HOUR}, now=900.0 + 3 * HOUR)
    seen = lacking(play, 1e6)
    claims = {"claim_weight": 1e4, "claim_stretch": 1.0, "claim_margin_seconds": 900.0}
    assert places(seen.snapshot, plain(**claims).plan(seen)).keys() == {"1"}
    assert places(seen.snapshot, plain().plan(seen)).keys() == {"20"}


def test_a_gang_of_known_length_waits_for_as_long_as_it_runs_until_nodes_are_set_aside_for_it() -> None:
    seen = Play(four("a", 1, 2), {"n1": 8}, declared={"1": 30.0}).seen()
    for plan in (plain().plan(seen), plain(restart_seconds=20.0).quick_plan(seen)):
        assert plan.reserve_after is not None
        assert plan.reserve_after == pytest.approx([30.0, math.nan], nan_ok=True)
    twice = plain(reserve_part=2.0).plan(seen).reserve_after
    assert twice is not None
    assert twice[0] == 60.0


def test_a_gang_of_a_tenant_that_said_too_little_waits_for_as_much_more() -> None:
    play = Play(four("a", 1), {"n1": 8}, declared={"1": 30.0})
    seen = replace(play.seen(), memory={CREDIT: {"a": [[9000.0], [11.0]]}})
    assert plain().plan(seen).reserve_after == pytest.approx([300.0])


@pytest.mark.parametrize(
    ("part", "least", "most"), [(1.0, 20.0, 230.0), (1e6, 600.0, 900.0)], ids=["as long as it runs", "a term"]
)
def test_a_gang_of_seconds_waits_for_a_renewal_and_not_for_a_term(
    part: float, least: float, most: float
) -> None:
    """All GPUs have long jobs, whose leases are renewed for 150 s and end one by one."""
    jobs = [arrival(10.0 * place, gpus=2, seconds=9000.0, tenant="ab"[place % 2]) for place in range(8)]
    jobs.append(arrival(1000.0, gpus=16, seconds=20.0, tenant="c"))
    how = Rounds(lease=600.0, aligned=False, reserve_after=600.0)
    done = simulated(jobs, "fair", gpus=16, gpus_per_node=8, how=how, settings={"reserve_part": part})
    assert least <= done.outcomes.start[8] - done.epoch - 1000.0 <= most


def test_a_setting_that_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(
        ConfigError, match=r"^policy\.fair\.price_hours = -1: give a number from 0 to 1000000"
    ):
        Fair(price_hours=-1)
