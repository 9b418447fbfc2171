"""The GPUs that a plan is about, what it gives out of them, and what no plan could give out more of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState, Plan, Verdict
from slurm_fair.policy import View
from slurm_fair.solve.lots import Payers, Quotas
from slurm_fair_plugins.fair.period import Slices, Stock, bound_of, given_by
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


def test_a_node_that_takes_no_new_work_gives_what_those_who_may_stay_there_hold() -> None:
    """Else a gang that lies half on it could not stay, in the solver's problem."""
    jobs = [job(1, gpus=8, nodes=2, cpus=8, memory_mb=10, state=RUNNING, on={"n1": 4, "n2": 4})]
    shown = snapshot(time=1000.0, nodes={"n1": node(4), "n2": node(6, usable=False)}, jobs=jobs)
    stock = Stock.of(view(shown, leases(lease(1, {"n1": 4, "n2": 4}, end=999.0))))
    assert (stock.gpus.tolist(), stock.contested.tolist()) == ([4, 4], [True])
    assert (stock.cpus.tolist(), stock.memory_mb.tolist()) == ([64, 64], [512_000, 512_000])


def test_only_gpus_of_the_stock_are_given() -> None:
    stock = Stock.of(seen())
    plan: Plan = replace(plain(seen()), verdict=np.full(3, Verdict.RENEW, dtype=np.int8))
    assert given_by(plan, stock).tolist() == [True, False, False]
    granted = np.array([Verdict.REVOKE, Verdict.RENEW, Verdict.GRANT], dtype=np.int8)
    assert given_by(replace(plan, verdict=granted), stock).tolist() == [False, False, True]


NO_QUOTAS = Quotas(np.zeros(2), np.ones(2))


def slices(*each: tuple[float, float, int], quotas: Quotas = NO_QUOTAS, over: float = 0.0) -> Slices:
    """GPUs, the own worth of one, and the tenant whose quota they fill; the first lies so far over its quota."""
    gpus, own, tenant = (np.array(column) for column in zip(*each, strict=True))
    beyond = np.zeros(len(gpus))
    beyond[0] = over
    return Slices(gpus.astype(float), own.astype(float), Payers(tenant, beyond, quotas))


def test_the_bound_gives_the_gpus_to_whom_one_is_worth_most() -> None:
    """Five GPUs; the last one served gets a part of its gang."""
    asked = slices((8, 1, -1), (4, 3, 0), (1, 2, 1))
    assert bound_of(asked, Stock.of(seen())) == pytest.approx(4 * 3.0 + 2.0)
    assert bound_of(slices((8, 1, -1), (1, 2, 1)), Stock.of(seen())) == pytest.approx(4 * 1.0 + 2.0)


def test_the_price_of_a_quota_counts_for_so_many_gpus_of_its_tenant_and_no_more() -> None:
    """Tenant 0 has a price of 5 for 3 GPUs, which are those of the job that is worth most to it."""
    quotas = Quotas(np.array([3.0, 0.0]), np.array([5.0, 9.0]))
    each = (2, 1, 0), (2, 2, 0), (4, 4, 1), (4, 3, -1)
    asked = slices(*each, quotas=quotas)
    assert asked.priced().tolist() == [1, 2, 0, 0]
    assert slices(*each, quotas=quotas, over=1.0).priced().tolist() == [2, 2, 0, 0]
    assert bound_of(asked, Stock.of(seen())) == pytest.approx(2 * 7.0 + 1 * 6.0 + 2 * 4.0)
