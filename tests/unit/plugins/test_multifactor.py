"""Slurm's multifactor priority, fair tree and backfill."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair_plugins.multifactor import Multifactor, fair_tree, level_fs
from tests.support.accounts import reasons
from tests.support.builders import JobSpec, job
from tests.support.rounds import Play

ARRIVAL = Multifactor(priority_weight_fairshare=0.0, priority_weight_job_size=0.0)


def test_level_fairshare_is_shares_over_usage_among_siblings() -> None:
    """Slurm's fair tree page: LF = S / U, above 1 is under-served, infinite without usage."""
    level = level_fs(np.array([1.0, 1.0, 2.0]), np.array([1.0, 3.0, 0.0]))
    assert level.tolist() == [1.0, 1.0 / 3.0, np.inf]


def test_all_users_of_a_better_tenant_come_before_all_of_a_worse_one() -> None:
    tenant, user = np.array([2.0, 2.0, 0.5, 0.5]), np.array([0.1, 0.2, np.inf, 9.0])
    assert fair_tree(tenant, user).tolist() == [0.75, 1.0, 0.5, 0.25]


def test_tied_users_share_a_rank_and_tied_tenants_are_merged() -> None:
    alike = fair_tree(np.array([1.0, 1.0, 1.0]), np.array([5.0, 5.0, 1.0]))
    assert alike.tolist() == [1.0, 1.0, 1.0 / 3.0]
    merged = fair_tree(np.array([np.inf, np.inf, np.inf, 0.5]), np.array([3.0, 1.0, 2.0, 9.0]))
    assert merged.tolist() == [1.0, 0.5, 0.75, 0.25]


def test_the_tenant_that_used_less_goes_first_and_old_usage_fades() -> None:
    """a has used the node, so b goes first; what a used loses half its weight in each half-life."""
    jobs = [job(1, gpus=8, tenant="a"), job(2, gpus=8, tenant="a"), job(3, gpus=8, tenant="b", submit=1)]
    policy = Multifactor(priority_decay_half_life_seconds=9000.0)
    play = Play(jobs, {"n1": 8})
    assert play.round(policy) == {"1"}
    play.finish(1)
    assert play.round(policy) == {"3"}
    usage = dict(play.memory["tenant_usage"])
    play.round(policy)
    assert play.memory["tenant_usage"]["a"] == pytest.approx(usage["a"] * 2 ** (-play.term / 9000.0))


def test_users_of_one_tenant_are_told_apart() -> None:
    jobs = [job(1, gpus=4, user="u"), job(2, gpus=8, user="u"), job(3, gpus=8, user="v", submit=5)]
    play = Play(jobs, {"n1": 8})
    play.round(Multifactor(backfill="none"))
    play.jobs = [job(1, gpus=4, user="u"), *jobs[1:]]
    play.on, play.since = {"1": {"n1": 4}}, {"1": 900.0}
    play.round(Multifactor())
    play.finish(1)
    assert play.round(Multifactor()) == {"3"}


@pytest.mark.parametrize(("small", "first"), [(False, "1"), (True, "2")], ids=["big first", "small first"])
def test_size_is_favoured_either_way(small: bool, first: str) -> None:
    policy = Multifactor(
        priority_weight_fairshare=0.0, priority_weight_age=0.0, priority_favor_small=small, backfill="none"
    )
    assert first in Play([job(1, gpus=8), job(2, gpus=4)], {"n1": 8}).round(policy)


# 4 of 8 GPUs run until 4,500 s; the head needs 8. What may start beside it?
BESIDE: list[tuple[str, JobSpec, float, bool]] = [
    ("a short one starts", job(3, gpus=4, submit=2), 3000.0, True),
    ("one that would delay the reservation does not", job(3, gpus=4, submit=2), 9000.0, False),
    ("one that says nothing of its length does not", job(3, gpus=1, submit=2), np.inf, False),
]


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@pytest.mark.parametrize(("spec", "seconds", "starts"), [b[1:] for b in BESIDE], ids=[b[0] for b in BESIDE])
def test_beside_a_reservation(mode: str, spec: JobSpec, seconds: float, starts: bool) -> None:
    jobs = [job(1, gpus=4), job(2, gpus=8, submit=1), spec]
    play = Play(jobs[:1], {"n1": 8}, declared={"1": 4500.0, "2": 1800.0, "3": seconds})
    policy = Multifactor(priority_weight_fairshare=0.0, priority_weight_job_size=0.0, backfill=mode)  # type: ignore[arg-type]
    play.round(policy)
    play.jobs = jobs
    seen = play.seen()
    said = reasons(seen.snapshot, policy.plan(seen))
    assert said["2"] == "it does not fit now: a place is reserved for it"
    assert play.round(policy) == ({"1", "3"} if starts else {"1"})


def test_a_long_job_starts_on_gpus_that_the_reservation_does_not_need() -> None:
    """The head needs 12 of 16 GPUs when 1 ends: 4 of them are anybody's, though only once."""
    jobs = [job(1, gpus=8), job(2, gpus=12, submit=1), job(3, gpus=4, submit=2), job(4, gpus=4, submit=3)]
    nodes = {"n1": 4, "n2": 4, "n3": 4, "n4": 4}
    play = Play(jobs[:1], nodes, declared={"1": 4500.0, "2": 1800.0, "3": 9e4, "4": 9e4})
    play.round(ARRIVAL)
    play.jobs = jobs
    assert play.round(ARRIVAL) == {"1", "3"}


def test_conservative_protects_every_tested_job_where_easy_protects_the_first() -> None:
    """2 starts when 1 ends and 3 after it; 4 delays only 3."""
    jobs = [job(1, gpus=7), job(2, gpus=7, submit=1), job(3, gpus=8, submit=2), job(4, gpus=1, submit=3)]
    declared = {"1": 3600.0, "2": 3600.0, "3": 900.0, "4": 20_000.0}
    for mode, ran in (("easy", {"1", "4"}), ("conservative", {"1"})):
        policy = Multifactor(priority_weight_fairshare=0.0, priority_weight_job_size=0.0, backfill=mode)  # type: ignore[arg-type]
        play = Play(jobs, {"n1": 8}, declared=declared)
        assert play.round(policy) == ran, mode


def test_without_backfill_the_first_that_does_not_fit_shuts_its_partition() -> None:
    jobs = [job(1, gpus=5), job(2, gpus=4, submit=1), job(3, gpus=1, submit=2)]
    policy = Multifactor(priority_weight_fairshare=0.0, priority_weight_job_size=0.0, backfill="none")
    assert Play(jobs, {"n1": 8}).round(policy) == {"1"}


@pytest.mark.parametrize(
    "settings",
    [{"priority_max_age_seconds": 0.0}, {"bf_max_job_test": 0}, {"priority_decay_half_life_seconds": -1.0}],
    ids=["age", "depth", "half-life"],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"policy\.slurm\."):
        Multifactor(**settings)  # type: ignore[arg-type]
