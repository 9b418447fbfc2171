"""Static quotas: what a tenant has not paid for stays idle."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.policy.orders.apportion import whole_parts
from slurm_fair_plugins.yarn_cs import YarnCs
from tests.support.builders import job
from tests.support.rounds import Play


def test_a_quota_is_not_lent_though_it_lies_idle() -> None:
    play = Play([job(i, tenant="a", submit=i) for i in range(1, 9)], {"n1": 8}, weights={"a": 1.0, "b": 1.0})
    assert play.round(YarnCs()) == {"1", "2", "3", "4"}


def test_each_tenants_line_is_its_own() -> None:
    """a's head does not fit a's quota beside its first job and blocks a's line; b is not touched by it."""
    jobs = [job(1, gpus=2, tenant="a"), job(2, gpus=3, tenant="a", submit=1), job(3, tenant="a", submit=2)]
    play = Play([*jobs, job(4, gpus=4, tenant="b", submit=9)], {"n1": 8})
    assert play.round(YarnCs()) == {"1", "4"}


def test_weights_make_the_quota() -> None:
    jobs = [job(i, tenant="a" if i <= 8 else "b", submit=i) for i in range(1, 17)]
    ran = Play(jobs, {"n1": 8}, weights={"a": 3.0, "b": 1.0}).round(YarnCs())
    assert sorted(map(int, ran)) == [1, 2, 3, 4, 5, 6, 9, 10]


def test_a_gang_bigger_than_its_quota_runs_when_its_tenant_runs_nothing_else() -> None:
    jobs = [job(1, tenant="a"), job(2, gpus=6, tenant="a", submit=1), job(3, tenant="a", submit=2)]
    play = Play([*jobs, job(4, tenant="b")], {"n1": 8})
    assert play.round(YarnCs()) == {"1", "4"}
    play.finish(1)
    assert play.round(YarnCs()) == {"2", "4"}


@pytest.mark.parametrize(
    ("gpus", "weights", "parts"),
    [
        (8, [1, 1], [4, 4]),
        (8, [1, 1, 1], [3, 3, 2]),
        (10, [3, 2, 2], [4, 3, 3]),
        (7, [0, 1], [0, 7]),
        (7, [0, 0], [0, 0]),
    ],
    ids=["even", "the first of equals is rounded up", "largest remainders", "no weight", "no weights at all"],
)
def test_whole_parts_add_up(gpus: int, weights: list[float], parts: list[int]) -> None:
    assert whole_parts(gpus, np.array(weights, dtype=np.float64)).tolist() == parts
