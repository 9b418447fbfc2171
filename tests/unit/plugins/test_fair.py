"""The house policy: each term of the worth, which of them decides, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.model import Mode
from slurm_fair.policy import View
from slurm_fair_plugins.fair import Fair
from slurm_fair_plugins.fair.arrivals import Arrivals
from tests.support.accounts import places, reasons
from tests.support.builders import JobSpec, job, node
from tests.support.rounds import Play
from tests.support.told_play import ToldPlay

HOUR = 3600.0
NO_GUARDS = {"claim_weight": 0.0, "makespan_weight": 0.0, "inertia": 0.0, "restart_seconds": 0.0}


def plain(**settings: float) -> Fair:
    """The policy without claims, makespan guard and advantage of who runs, but for what is given."""
    return Fair(**{**NO_GUARDS, **settings})  # type: ignore[arg-type]


@dataclass
class Growing(Play):
    """A play in which some jobs grow their batch size."""

    growing: Sequence[int] = field(default=())

    def seen(self) -> View:
        """The view with the modes told."""
        seen = super().seen()
        told = seen.said
        rows = np.isin(seen.snapshot.jobs.record, self.growing)
        told = told.with_columns(mode=np.where(rows, Mode.GNS, Mode.STATIC).astype(np.int8))
        return replace(seen, snapshot=replace(seen.snapshot, told=told))


def four(tenant: str, *bases: int, submit: float = 0.0) -> list[JobSpec]:
    """Jobs of four GPUs."""
    return [job(base, gpus=4, tenant=tenant, submit=submit) for base in bases]


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


# Sixteen jobs of one tenant on eight GPUs: a fair finish is after twice the run time.
CROWD = [job(1, gpus=8), *(job(base, gpus=8, submit=900.0) for base in range(2, 17))]
CROWD_DECLARED = {str(base): 2.9 * HOUR for base in range(2, 17)} | {"1": 3 * HOUR}


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


@pytest.mark.parametrize(("of_b", "rate", "guarded"), [(2, 8.0, True), (4, 8.0, False), (4, 1.0, True)])
def test_a_job_is_as_long_as_all_work_only_if_it_is_so_in_the_fastest_of_its_ways(
    of_b: int, rate: float, guarded: bool
) -> None:
    """Eight times as fast on four GPUs of type b, the job of 20 hours is done before half of the other work."""
    nodes = {"n1": node(4, gpu_type="a"), "n2": node(4 - of_b, gpu_type="a"), "n3": node(of_b, gpu_type="b")}
    others = [str(base) for base in range(2, 12)]
    left = {"1": 20 * HOUR} | dict.fromkeys(others, HOUR)
    rates = {each: (1.0, rate if each == "1" else 1.0) for each in left}
    seen = ToldPlay([job(int(each), gpus=4) for each in left], nodes, left=left, rates=rates).seen()
    said = reasons(seen.snapshot, plain(makespan_weight=1000.0).plan(seen))
    assert (said["1"] == "with 18 h left it takes as long as all work that there is (18 h)") == guarded


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


SAID = {
    "quota": (
        {},
        (17, 9.5, 18),
        "2",
        "its tenant is within its quota (0 of 4 GPUs go before it), and it has 10 h left",
    ),
    "nearly done": ({"price_hours": 12.0}, (17, 9.5, 18), "2", "it is nearly done, with 10 h left"),
    "makespan": (
        {"makespan_weight": 1000.0},
        (18, 1, 1),
        "1",
        "with 18 h left it takes as long as all work that there is (18 h)",
    ),
    "price": (
        {},
        (17, 9.5, 18),
        "3",
        "its gang does not fit what those ahead of it leave: its tenant is beyond its quota (4 of 4 GPUs go "
        "before it), and the 18 h that it has left are above the price of 1 h",
    ),
}


@pytest.mark.parametrize(("settings", "hours", "who", "text"), SAID.values(), ids=SAID)
def test_it_is_said_which_term_decided_with_its_number(
    settings: dict[str, float], hours: tuple[float, float, float], who: str, text: str
) -> None:
    declared = dict(zip("123", (HOUR * each for each in hours), strict=True))
    seen = Play([*four("a", 1, 3), *four("b", 2)], {"n1": 8}, declared=declared).seen()
    assert reasons(seen.snapshot, plain(**settings).plan(seen))[who] == text


def lacking(play: Play, hours: float, tenant: str = "b") -> View:
    """The policy's view of a tenant that was owed and wanted so many hours of its quota more than it had."""
    seen = play.seen()
    accounts, tenants = seen.ledger.tenants, seen.snapshot.tenants.names
    quota = dict(zip(tenants, seen.tenant_quota.tolist(), strict=True))
    more = np.array([hours * HOUR * quota[name] * (name == tenant) for name in accounts.names])
    accounts = accounts.with_columns(owed_demand=accounts.had + more)
    return replace(seen, ledger=replace(seen.ledger, tenants=accounts))


def short_beside_long() -> Play:
    """Tenant a fills its quota and has a job of half an hour more; job 3 of tenant b takes 18 hours."""
    return Play([*four("a", 1, 2), *four("b", 3)], {"n1": 8}, declared=HALF_AND_LONG)


HALF_AND_LONG = {"1": 0.4 * HOUR, "2": 0.5 * HOUR, "3": 18 * HOUR}


@pytest.mark.parametrize(("hours", "served"), [(0.0, "2"), (4.01, "2"), (4.03, "3"), (1e6, "3")])
def test_short_jobs_go_first_until_the_other_tenant_lacks_too_much_of_its_quota(
    hours: float, served: str
) -> None:
    """4 hours that it may lack, and 0.02 more at 100 an hour: a job of half an hour is worth 2."""
    seen = lacking(short_beside_long(), hours)
    assert places(seen.snapshot, plain().plan(seen)).keys() == {"1", served}


@pytest.mark.parametrize(
    ("hours", "text"),
    [
        (3.9, "its tenant is within its quota ({}), and it has 18 h left"),
        (8.2, "its tenant lacks 8 h of its quota ({})"),
        (1000.0, "its tenant lacks 45 days of its quota ({})"),
    ],
)
def test_it_is_said_how_much_of_its_quota_a_tenant_lacks(hours: float, text: str) -> None:
    seen = lacking(short_beside_long(), hours)
    told = reasons(seen.snapshot, plain(repay_leases=0.0).plan(seen))["3"]
    assert told.endswith(text.format("0 of 4 GPUs go before it"))
    told = reasons(seen.snapshot, plain(repay_leases=100.0).plan(seen))["3"]
    more = hours * 4 / 25  # hours of its quota of 4 GPUs, over 25 hours of leases
    assert told.endswith(text.format(f"0 of 4 GPUs and {more:.3g} that pay back what it lacks go before it"))


@pytest.mark.parametrize(
    ("hours", "repay", "served"),
    [(0.0, 1.0, "3"), (0.2, 1.0, "2"), (0.2, 0.0, "3")],
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
        play = Play(jobs[:others], {"n1": 4}, declared={"1": 0.5 * HOUR})
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


def test_a_claim_is_told_with_the_time_that_is_left_for_it() -> None:
    seen = Play(CROWD, {"n1": 8}, declared=CROWD_DECLARED, now=900.0 + 3 * HOUR).seen()
    plan = Fair(claim_stretch=1.0, makespan_weight=0.0).plan(seen)
    assert reasons(seen.snapshot, plan)["1"] == "it is 15 min late for its fair finish time"


def test_jobs_are_counted_once_and_forgotten_after_so_many_hours() -> None:
    jobs = [job(base, gpus=8, submit=100.0 * base) for base in range(1, 6)]
    play = Play(jobs, {"n1": 8}, declared={str(base): 100 * HOUR for base in range(1, 6)})
    counts = []
    for _ in range(4):
        seen = play.seen()
        counts.append(Arrivals.of(seen, 24).jobs(seen, 24))
        play.round(Fair())
    assert counts == [5, 5, 5, 5]
    play.finish(1, 2)
    seen = play.seen()
    assert Arrivals.of(seen, 24).jobs(seen, 24) == 5
    later = replace(seen, now=seen.now + 30 * HOUR)
    assert Arrivals.of(later, 24).jobs(later, 24) == 3, "those that are still there count"


def test_a_submission_in_the_future_hides_none_that_come_later() -> None:
    jobs = [job(base, gpus=8, submit=100.0 * base) for base in range(1, 4)]
    play = Play(jobs, {"n1": 8}, declared={str(base): 100 * HOUR for base in range(1, 4)})
    seen = play.seen()
    submit = np.where(seen.snapshot.jobs.record == 1, 1e15, seen.snapshot.jobs.submit)
    table = seen.snapshot.jobs.with_columns(submit=submit)
    known = {"last": 150.0, "at_last": 0, "hour": [0], "jobs": [1]}
    odd = replace(seen, snapshot=replace(seen.snapshot, jobs=table), memory={"came": known})
    assert Arrivals.of(odd, 24).jobs(odd, 24) == 3


def test_a_setting_that_cannot_be_is_refused_in_one_line() -> None:
    with pytest.raises(
        ConfigError, match=r"^policy\.fair\.price_hours = -1: give a number from 0 to 1000000"
    ):
        Fair(price_hours=-1)
