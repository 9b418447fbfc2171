"""Astraea: who is chosen, who gives way, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import Blocked, JobState, LeasePhase, Verdict
from slurm_fair_plugins.astraea import Astraea
from tests.support.accounts import Account, places, reasons, verdicts, view
from tests.support.astraea_views import (
    GRANT,
    KEEP,
    LEAVE,
    NOW,
    RENEW,
    REVOKE,
    WAIT,
    cluster,
    decided,
    granted,
    over,
    running,
)
from tests.support.builders import NodeSpec, job, lease, leases, node

EARLY_START = "it never ran, and with it the first leases of its tenant stay within its quota"
IN_TURN, AHEAD_OF_IT = Astraea(early_starts=0), Astraea(early_starts=1)  # of the tenant's turn


def test_the_neediest_tenant_goes_first() -> None:
    seen = cluster(job(1, gpus=8, tenant="a"), job(2, gpus=8, tenant="b"))
    needy = view(seen, tenants={"a": Account(20, 10), "b": Account(10, 10)})
    assert granted(needy) == ["2"]


def test_a_grant_is_charged_before_the_next_choice() -> None:
    """a is behind by less than one lease of one GPU: it gets one, then b catches up."""
    seen = cluster(*(job(i, tenant="a") for i in (1, 2)), *(job(i, tenant="b") for i in (3, 4)), gpus=3)
    charged = view(seen, tenants={"a": Account(0, 9000), "b": Account(450, 9000)})
    assert granted(charged) == ["1", "2", "3"]


def test_the_heavier_tenant_gets_its_part_when_nobody_is_owed_anything_yet() -> None:
    jobs = [job(i, tenant="a" if i <= 8 else "b") for i in range(1, 17)]
    seen = view(cluster(*jobs, a=1.0, b=3.0))
    assert granted(seen) == ["1", "2", "9", "10", "11", "12", "13", "14"]


def test_a_tenant_whose_gang_does_not_fit_is_skipped_for_the_round() -> None:
    seen = cluster(
        job(1, gpus=8, tenant="a"), job(2, tenant="a", submit=5), job(3, gpus=4, tenant="b"), gpus=4
    )
    plan = Astraea().plan(view(seen, tenants={"a": Account(0, 10), "b": Account(90, 10)}))
    assert verdicts(seen, plan) == {"1": WAIT, "2": WAIT, "3": GRANT}
    assert reasons(seen, plan) == {
        "1": "its gang does not fit what those ahead of it leave",
        "2": "a job of its tenant that goes before it does not fit now",
        "3": "it is among those owed most",
    }


def test_gpus_that_nobody_ahead_can_use_are_filled() -> None:
    seen = cluster(
        job(1, gpus=8, tenant="a"), job(2, tenant="a", submit=5), job(3, gpus=3, tenant="b"), gpus=4
    )
    plan = Astraea().plan(view(seen, tenants={"a": Account(0, 10), "b": Account(90, 10)}))
    assert verdicts(seen, plan) == {"1": WAIT, "2": GRANT, "3": GRANT}
    assert reasons(seen, plan)["2"] == "it fills GPUs that nobody ahead of it can use"


LATE, NEVER_RAN, PLAIN = Account(9, 10), Account(1, 10, ran=0.0), Astraea(new_jobs_first=False)
ORDERS: list[tuple[str, Astraea, dict[str, Account], str]] = [
    ("the smallest rho first", Astraea(), {"1": LATE, "2": Account(5, 10), "3": LATE}, "2"),
    ("a job that never ran first", Astraea(), {"1": Account(0, 10), "2": NEVER_RAN, "3": LATE}, "2"),
    ("not so when switched off", PLAIN, {"1": Account(0, 10), "2": NEVER_RAN, "3": LATE}, "1"),
    ("of equals the one submitted first", Astraea(), {}, "3"),
]


@pytest.mark.parametrize(("policy", "accounts", "first"), [o[1:] for o in ORDERS], ids=[o[0] for o in ORDERS])
def test_a_tenant_offers(policy: Astraea, accounts: dict[str, Account], first: str) -> None:
    seen = cluster(*(job(i, gpus=8, submit=10 - i) for i in (1, 2, 3)))
    assert granted(view(seen, jobs=accounts), policy) == [first]


def test_an_expired_job_of_a_tenant_owed_less_gives_way() -> None:
    one = running(1, {"n1": 8}, tenant="a")
    seen = cluster(one, job(2, gpus=8, tenant="b"))
    plan = Astraea().plan(view(seen, over(one), {"a": Account(20, 10), "b": Account(0, 10)}))
    assert verdicts(seen, plan) == {"1": REVOKE, "2": GRANT}
    assert places(seen, plan) == {"2": {"n1": 8}}
    assert plan.explanation.rank.tolist() == [1, 0]


def test_a_renewed_job_keeps_its_gpus_and_the_others_go_round_it() -> None:
    one, two = running(1, {"n1": 4}, tenant="b"), running(2, {"n2": 4}, tenant="a")
    seen = cluster(one, two, job(3, gpus=8, tenant="b", submit=1), gpus={"n1": 8, "n2": 8})
    both = view(seen, over(one, two), {"a": Account(3e6, 1e6), "b": Account(0, 1e6)})
    plan = Astraea().plan(both)
    assert verdicts(seen, plan) == {"1": RENEW, "2": REVOKE, "3": GRANT}
    assert places(seen, plan) == {"3": {"n2": 8}}


def test_nobody_stops_when_nobody_takes_its_gpus() -> None:
    one = running(1, {"n1": 6}, tenant="a")
    seen = cluster(one, job(2, gpus=2, tenant="b"))
    plan = Astraea().plan(view(seen, over(one), {"a": Account(90, 10), "b": Account(0, 10)}))
    assert verdicts(seen, plan) == {"1": RENEW, "2": GRANT}


def test_a_whole_node_is_made_where_it_harms_those_owed_least() -> None:
    """Jobs 4 and 2 would lose to b's gang by number, but they lie on two nodes: 3 goes rather than 1."""
    on = {1: ("n1", "c"), 2: ("n1", "f"), 3: ("n2", "d"), 4: ("n2", "e")}
    small = [running(i, {name: 4}, tenant=tenant) for i, (name, tenant) in on.items()]
    seen = cluster(*small, job(9, gpus=8, tenant="b"), gpus={"n1": 8, "n2": 8})
    owed = {name: Account(1e6 * i, 1e6) for i, name in enumerate("bcdef")}
    plan = Astraea().plan(view(seen, over(*small), owed))
    assert verdicts(seen, plan) == {"1": RENEW, "2": RENEW, "3": REVOKE, "4": REVOKE, "9": GRANT}
    assert plan.explanation.rank.tolist() == [1, 4, 2, 3, 0]
    told = reasons(seen, plan)
    assert (told["3"], told["4"]) == ("a job that is owed more needs its node", "others are owed more")
    assert (told["1"], told["2"]) == (
        "it is still among those owed most",
        "nobody who is owed more can use its GPUs",
    )


def test_a_job_owed_more_is_never_evicted_for_one_owed_less() -> None:
    one, two = running(1, {"n1": 4}, tenant="a"), running(2, {"n2": 4}, tenant="a")
    seen = cluster(one, two, job(3, gpus=8, tenant="b"), gpus={"n1": 8, "n2": 8})
    result = decided(view(seen, over(one, two), {"a": Account(0, 1e9), "b": Account(20, 10)}), IN_TURN)
    assert result == {"1": RENEW, "2": RENEW, "3": WAIT}


def test_a_gang_that_cannot_start_does_not_cost_its_tenant_what_runs() -> None:
    one = running(1, {"n1": 4}, tenant="a")
    kept = running(2, {"n2": 8}, tenant="c")
    seen = cluster(
        one, kept, job(3, gpus=16, tenant="a"), job(4, gpus=4, tenant="b"), gpus={"n1": 4, "n2": 8}
    )
    held = leases(lease(1, {"n1": 4}, end=NOW), lease(2, {"n2": 8}, end=NOW + 1))
    accounts = {"a": Account(0, 1e9), "b": Account(20, 10)}
    assert decided(view(seen, held, accounts), IN_TURN) == {"1": RENEW, "2": KEEP, "3": WAIT, "4": WAIT}


PINNED = [
    ("a job without checkpoints", {"checkpoints": False}, "it would lose work if it were stopped now"),
    (
        "a job that Slurm would not requeue",
        {"requeueable": False},
        "it would lose work if it were stopped now",
    ),
]


@pytest.mark.parametrize(("columns", "reason"), [p[1:] for p in PINNED], ids=[p[0] for p in PINNED])
def test_is_always_renewed(columns: dict[str, bool], reason: str) -> None:
    one = running(1, {"n1": 8}, tenant="a", **columns)
    seen = cluster(one, job(2, gpus=8, tenant="b"))
    plan = Astraea().plan(view(seen, over(one), {"a": Account(90, 10), "b": Account(0, 10)}))
    assert verdicts(seen, plan) == {"1": RENEW, "2": WAIT}
    assert reasons(seen, plan)["1"] == reason


def test_what_must_be_renewed_is_charged_first() -> None:
    one = running(1, {"n1": 6}, tenant="a", checkpoints=False)
    seen = cluster(one, job(2, gpus=2, tenant="a"), job(3, gpus=2, tenant="b"))
    charged = view(seen, over(one), {"a": Account(0, 9000), "b": Account(900, 9000)})
    assert granted(charged) == ["3"]


def test_a_job_on_a_draining_node_goes_on() -> None:
    one = running(1, {"n1": 8}, tenant="a")
    nodes: dict[str, int | NodeSpec] = {"n1": node(8, usable=False), "n2": 8}
    seen = cluster(one, job(2, gpus=8, tenant="b"), gpus=nodes)
    plan = Astraea().plan(view(seen, over(one), {"a": Account(90, 10)}))
    assert verdicts(seen, plan) == {"1": RENEW, "2": GRANT}
    assert places(seen, plan) == {"2": {"n2": 8}}


def test_long_renewed_leases_are_kept_when_asked() -> None:
    one = running(1, {"n1": 8}, tenant="a")
    seen = cluster(one, job(2, gpus=8, tenant="a"))
    held = leases(lease(1, {"n1": 8}, end=NOW, renewals=5))
    jobs = {"1": Account(9, 10), "2": Account(5, 10)}
    at_once = Astraea(swap_after=0)
    assert decided(view(seen, held, jobs=jobs), at_once) == {"1": REVOKE, "2": GRANT}
    kept = replace(at_once, keep_long_renewed=5)
    assert decided(view(seen, held, jobs=jobs), kept) == {"1": RENEW, "2": WAIT}


AHEAD = [
    ("less than four leases ahead of its sibling: it stays", 4 * 8 * 900.0 - 1, {"1": RENEW, "2": WAIT}),
    ("four leases ahead of it, and more: it gives way", 4 * 8 * 900.0 + 9000.0, {"1": REVOKE, "2": GRANT}),
]


@pytest.mark.parametrize(("had", "expected"), [case[1:] for case in AHEAD], ids=[case[0] for case in AHEAD])
def test_a_job_that_runs_gives_way_to_a_sibling_when_it_is_four_leases_ahead(
    had: float, expected: dict[str, Verdict]
) -> None:
    one = running(1, {"n1": 8}, tenant="a")
    seen = cluster(one, job(2, gpus=8, tenant="a"))
    held = leases(lease(1, {"n1": 8}, end=NOW))
    jobs = {"1": Account(had, 90_000.0), "2": Account(1.0, 90_000.0)}
    assert decided(view(seen, held, jobs=jobs)) == expected


def test_of_two_tenants_the_needier_goes_first_however_close_they_are() -> None:
    one = running(1, {"n1": 8}, tenant="a")
    seen = cluster(one, job(2, gpus=8, tenant="b"))
    held = leases(lease(1, {"n1": 8}, end=NOW))
    tenants = {"a": Account(9, 10), "b": Account(8, 10)}
    assert decided(view(seen, held, tenants=tenants)) == {"1": REVOKE, "2": GRANT}


EARLY = [
    ("its tenant's first leases leave room for it in the quota", AHEAD_OF_IT, 4.0, GRANT),
    ("with it they would hold more than that", AHEAD_OF_IT, 3.9, WAIT),
    ("they would hold more than the part that the site wants", Astraea(early_starts=0.9), 4.0, WAIT),
    ("the site wants none", IN_TURN, 4.0, WAIT),
    ("new jobs do not go first", replace(AHEAD_OF_IT, new_jobs_first=False), 4.0, WAIT),
]


@pytest.mark.parametrize(
    ("policy", "quota", "expected"), [case[1:] for case in EARLY], ids=[case[0] for case in EARLY]
)
def test_a_job_that_never_ran_goes_before_a_needier_tenant(
    policy: Astraea, quota: float, expected: Verdict
) -> None:
    """First leases of `a` hold 2 of 8 GPUs, and its new job wants 2; a lease of the needier `b` is over."""
    first, goes_on = running(1, {"n1": 2}, tenant="a"), running(2, {"n1": 4}, tenant="b")
    ended = running(3, {"n1": 2}, tenant="b")
    seen = cluster(first, goes_on, ended, job(4, gpus=2, tenant="a"), a=quota, b=8.0 - quota)
    held = leases(
        lease(1, {"n1": 2}, end=NOW + 500), lease(2, {"n1": 4}, end=NOW + 500), lease(3, {"n1": 2}, end=NOW)
    )
    now = view(seen, held, {"a": Account(20, 10), "b": Account(10, 10)})
    gives_way = REVOKE if expected == GRANT else RENEW
    assert decided(now, policy) == {"1": KEEP, "2": KEEP, "3": gives_way, "4": expected}
    assert (reasons(seen, policy.plan(now))["4"] == EARLY_START) == (expected == GRANT)


def test_a_lease_that_was_renewed_does_not_stand_in_the_way_of_early_starts() -> None:
    one, two = running(1, {"n1": 4}, tenant="a"), running(2, {"n1": 4}, tenant="b")
    seen = cluster(one, two, job(3, gpus=4, tenant="a"))
    tenants = {"a": Account(20, 10), "b": Account(10, 10)}
    for renewals, expected in ((0, WAIT), (1, GRANT)):
        held = leases(lease(1, {"n1": 4}, end=NOW + 500, renewals=renewals), lease(2, {"n1": 4}, end=NOW))
        assert decided(view(seen, held, tenants), AHEAD_OF_IT)["3"] == expected


def test_what_no_policy_decides() -> None:
    jobs = [
        running(1, {"n1": 1}),
        job(2, on={"n1": 1}, state=JobState.ENDING),
        job(3, on={"n1": 1}, state=JobState.SUSPENDED),
        job(4, state=JobState.DONE),
        running(5, {"n1": 1}),
        running(6, {"n1": 1}),
        job(7),
        *(job(10 + blocked, blocked=blocked) for blocked in Blocked if blocked),
    ]
    held = leases(
        lease(1, {"n1": 1}, end=NOW + 1),
        *(lease(i, {"n1": 1}, end=NOW) for i in (2, 3)),
        lease(6, {"n1": 1}, end=NOW, phase=LeasePhase.REVOKING),
        lease(7, {"n1": 1}, end=NOW, phase=LeasePhase.GRANTED),
    )
    seen = cluster(*jobs)
    plan = Astraea().plan(view(seen, held))
    said, told = verdicts(seen, plan), reasons(seen, plan)
    assert {label: said[label] for label in "1234567"} == {
        "1": KEEP, "2": LEAVE, "3": LEAVE, "4": LEAVE, "5": LEAVE, "6": LEAVE, "7": KEEP,
    }  # fmt: skip
    assert told["7"] == "its GPUs are promised: it starts when its GPUs, CPUs and memory are free"
    assert {said[str(10 + blocked)] for blocked in Blocked if blocked} == {LEAVE}
    assert len({told[str(10 + blocked)] for blocked in Blocked if blocked}) == len(Blocked) - 1
    assert (plan.explanation.rank == -1).all()


def test_promised_gpus_are_not_given_twice() -> None:
    """The lease's table numbers nodes in its own way; the snapshot's way is another."""
    seen = cluster(job(1, gpus=4), job(2, gpus=6), gpus={"n1": 8, "n2": 8})
    plan = Astraea().plan(view(seen, leases(lease(1, {"n2": 4}, end=NOW + 900, phase=LeasePhase.GRANTED))))
    assert places(seen, plan) == {"2": {"n1": 6}}


def test_whose_gpus_were_promised_away_gives_way() -> None:
    one = running(1, {"n1": 8}, tenant="a")
    seen = cluster(one, job(2, gpus=8, tenant="b"))
    held = leases(lease(1, {"n1": 8}, end=NOW), lease(2, {"n1": 8}, phase=LeasePhase.GRANTED, end=NOW + 900))
    plan = Astraea().plan(view(seen, held, {"a": Account(0, 10), "b": Account(90, 10)}))
    assert verdicts(seen, plan) == {"1": REVOKE, "2": KEEP}
    assert reasons(seen, plan)["1"] == "its GPUs were promised to a job that is owed more"


def test_an_arrays_own_limit_holds() -> None:
    tasks = [job(5, task=i, array_limit=2) for i in range(1, 5)]
    first = job(5, task=0, array_limit=2, state=JobState.RUNNING, on={"n1": 1})
    seen = cluster(first, *tasks)
    plan = Astraea().plan(view(seen, leases(lease(5, {"n1": 1}, task=0, end=NOW + 1))))
    assert verdicts(seen, plan) == {"5_0": KEEP, "5_1": GRANT, "5_2": WAIT, "5_3": WAIT, "5_4": WAIT}
    assert reasons(seen, plan)["5_2"] == "its array's own limit is reached"


def test_a_task_that_was_promised_gpus_counts_for_the_limit_of_its_array() -> None:
    tasks = [job(5, task=i, array_limit=2) for i in range(4)]
    promised = lease(5, {"n1": 1}, task=0, phase=LeasePhase.GRANTED, end=NOW + 900)
    seen = cluster(*tasks)
    plan = Astraea().plan(view(seen, leases(promised)))
    assert verdicts(seen, plan) == {"5_0": KEEP, "5_1": GRANT, "5_2": WAIT, "5_3": WAIT}


def test_a_gang_that_no_node_takes_does_not_hold_up_its_tenant() -> None:
    seen = cluster(job(1, gpus=18, gpus_per_node=9), job(2))
    plan = Astraea().plan(view(seen))
    assert verdicts(seen, plan) == {"1": WAIT, "2": GRANT}
    assert reasons(seen, plan)["1"] == "no node of its partition can take its gang"


def test_nodes_of_one_partition_alone_are_used_before_shared_ones() -> None:
    nodes: dict[str, int | NodeSpec] = {
        "n1": node(8, partitions=("p", "q")),
        "n2": node(8, partitions=("q",)),
    }
    jobs = (
        job(1, gpus=8, partition="q"),
        job(2, gpus=8, partition="p", submit=1),
        job(3, partition="p", submit=2),
    )
    seen = cluster(*jobs, gpus=nodes)
    assert places(seen, Astraea().plan(view(seen))) == {"1": {"n2": 8}, "2": {"n1": 8}}


def test_what_a_gang_leaves_of_whole_nodes_is_given_to_nobody() -> None:
    """Slurm splits such a gang over its nodes as it likes: the rest is known only when it runs."""
    seen = cluster(job(1, gpus=12), job(2, submit=1), gpus={"n1": 8, "n2": 8})
    plan = Astraea().plan(view(seen))
    assert verdicts(seen, plan) == {"1": GRANT, "2": WAIT}
    assert places(seen, plan) == {"1": {"n1": 8, "n2": 4}}


def test_scores_are_the_jobs_rho() -> None:
    one = running(1, {"n1": 4})
    seen = cluster(one, job(2), job(3, blocked=Blocked.USER_HOLD))
    plan = Astraea().plan(view(seen, over(one), jobs={"1": Account(5, 10)}))
    assert plan.explanation.score[:2].tolist() == [0.5, 0.0]
    assert np.isnan(plan.explanation.score[2])


def test_jobs_wait_while_no_partition_is_up() -> None:
    seen = cluster(job(1), job(2, gpus=16), gpus={"n1": 8})
    seen = replace(seen, partitions=replace(seen.partitions, up=np.zeros(1, dtype=bool)))
    assert decided(view(seen)) == {"1": WAIT, "2": WAIT}


def test_an_empty_cluster_and_an_empty_queue() -> None:
    assert decided(view(cluster())) == {}
    assert decided(view(cluster(job(1), gpus={"n1": node(8, usable=False)}))) == {"1": WAIT}
