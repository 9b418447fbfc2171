"""The GPUs that a plan is about, what it gives out of them, and what no plan could give out more of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState, Plan, Verdict
from slurm_fair.policy import View
from slurm_fair_plugins.fair.period import Stock, bound_of, given_by
from tests.support.accounts import view
from tests.support.builders import job, lease, leases, node, snapshot
from tests.support.solving_policies import plain

RUNNING = JobState.RUNNING


def seen() -> View:
    """The lease of job 1 is over, that of job 2 goes on; a GPU is free on n2, and n3 takes no work."""
    jobs = [
        job(1, gpus=4, state=RUNNING, on={"n1": 4}),
        job(2, gpus=3, state=RUNNING, on={"n2": 3}),
        job(3, gpus=1),
    ]
    nodes = {"n1": node(4), "n2": node(4), "n3": node(4, usable=False)}
    shown = snapshot(time=1000.0, nodes=nodes, jobs=jobs)
    return view(shown, leases(lease(1, {"n1": 4}, end=999.0), lease(2, {"n2": 3}, end=5000.0)))


def test_the_stock_is_what_is_free_and_what_leases_that_are_over_give_back() -> None:
    stock = Stock.of(seen())
    assert stock.gpus.tolist() == [4, 1, 0]
    assert stock.contested.tolist() == [True, False, False]


def test_only_gpus_of_the_stock_are_given() -> None:
    stock = Stock.of(seen())
    plan: Plan = replace(plain(seen()), verdict=np.full(3, Verdict.RENEW, dtype=np.int8))
    assert given_by(plan, stock).tolist() == [True, False, False]
    granted = np.array([Verdict.REVOKE, Verdict.RENEW, Verdict.GRANT], dtype=np.int8)
    assert given_by(replace(plan, verdict=granted), stock).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("able", "bound"),
    [([True, True, True], 4 * 3.0 + 2.0), ([True, False, True], 4 * 1.0 + 2.0), ([False, False, False], 0.0)],
)
def test_the_bound_gives_the_gpus_to_whom_one_is_worth_most(able: list[bool], bound: float) -> None:
    """Five GPUs; the last one served gets a part of its gang."""
    a_gpu, gpus = np.array([1.0, 3.0, 2.0]), np.array([8.0, 4.0, 1.0])
    assert bound_of(a_gpu, gpus, np.array(able), Stock.of(seen())) == pytest.approx(bound)
