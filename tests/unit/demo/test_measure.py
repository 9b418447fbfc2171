"""The comparison's numbers, on acts small enough to work out by hand."""

from __future__ import annotations

import pytest

from slurm_fair.demo.measure import HungryTime, Measures, TenantMeasures, hungry_in_all, measure
from slurm_fair.model import RunTable
from tests.support.builders import RunSpec, runs

EQUAL = {"a": 1.0, "b": 1.0}


def of(measures: Measures, tenant: str) -> TenantMeasures:
    return next(each for each in measures.tenants if each.name == tenant)


def test_first_come_takes_all_while_both_are_hungry() -> None:
    # 8 GPUs: a holds them from 0 to 20, b comes at 4 and holds them from 20 to 30.
    found = measure(
        runs(
            RunSpec(1, tenant="a", gpus=8, submit=0, start=0.5, end=20),
            RunSpec(2, tenant="b", gpus=8, submit=4, start=20, end=30),
        ),
        EQUAL,
        8,
    )
    assert found.hungry_seconds == pytest.approx(16)
    assert (of(found, "a").hungry_share, of(found, "b").hungry_share) == (1.0, 0.0)
    assert (of(found, "a").hungry_rho, of(found, "b").hungry_rho) == (2.0, 0.0)
    assert found.jain_hungry == pytest.approx(0.5)
    assert found.worst_rho == 0.0
    assert (found.first_wait_mean_seconds, found.first_wait_max_seconds) == (8.25, 16)
    assert found.jct_mean_seconds == pytest.approx((20 + 26) / 2)
    assert found.makespan_seconds == 30
    assert found.preemptions == 0


def test_leases_in_turn_give_each_tenant_its_half() -> None:
    # Each holds all GPUs for five seconds in turn; a requeued run and the next one are the same job.
    found = measure(
        runs(
            RunSpec(1, tenant="a", gpus=8, submit=0, start=1, end=6, requeued=True),
            RunSpec(2, tenant="b", gpus=8, submit=1, start=6, end=11, requeued=True),
            RunSpec(1, tenant="a", gpus=8, submit=6, start=11, end=16),
            RunSpec(2, tenant="b", gpus=8, submit=11, start=16, end=21),
        ),
        EQUAL,
        8,
    )
    assert found.preemptions == 2
    assert found.hungry_seconds == pytest.approx(15)
    assert of(found, "a").hungry_share == pytest.approx(2 / 3)
    assert found.held_gpu_seconds == pytest.approx(160)
    assert found.first_wait_mean_seconds == pytest.approx((1 + 5) / 2)
    assert found.jct_mean_seconds == pytest.approx((16 + 20) / 2)


def test_weights_make_the_quota() -> None:
    found = measure(
        runs(
            RunSpec(1, tenant="a", gpus=2, submit=0, start=0.5, end=10),
            RunSpec(2, tenant="b", gpus=6, submit=0, start=0.5, end=10),
        ),
        {"a": 1.0, "b": 3.0},
        8,
    )
    assert of(found, "a").hungry_rho == pytest.approx(0.95)
    assert of(found, "b").hungry_rho == pytest.approx(0.95)
    assert found.jain_hungry == pytest.approx(1.0)


def test_a_tenant_that_wants_less_than_its_quota_is_not_hungry() -> None:
    found = measure(
        runs(
            RunSpec(1, tenant="a", gpus=8, submit=0, start=0.5, end=10),
            RunSpec(2, tenant="b", gpus=2, submit=0, start=10, end=14),
        ),
        EQUAL,
        8,
    )
    assert found.hungry_seconds == 0
    assert of(found, "b").rho == pytest.approx(8 / 28)


def test_gpus_are_counted_as_idle_only_while_somebody_waits() -> None:
    # 4 of 8 GPUs held for 10 s while b waits, then all 8 by b, then nothing is left to wait.
    found = measure(
        runs(
            RunSpec(1, tenant="a", gpus=4, submit=0, start=0.0001, end=10),
            RunSpec(2, tenant="b", gpus=8, submit=0, start=10, end=20),
        ),
        EQUAL,
        8,
    )
    assert found.held_while_waiting == pytest.approx(0.5, abs=0.001)


def test_nothing_ran() -> None:
    found = measure(runs(), EQUAL, 8)
    assert found.tenants == ()
    assert found.makespan_seconds == 0


FIRST_COME = runs(
    RunSpec(1, tenant="a", gpus=8, submit=100, start=100, end=120),
    RunSpec(2, tenant="b", gpus=8, submit=104, start=120, end=130),
)
B_FIRST = runs(
    RunSpec(1, tenant="a", gpus=8, submit=200, start=210, end=230),
    RunSpec(2, tenant="b", gpus=8, submit=204, start=204, end=210),
)


def test_acts_are_compared_over_the_time_in_which_everybody_was_hungry_in_all_of_them() -> None:
    # From second 4, when b comes, to second 10, when b's job of the second act ends.
    window = hungry_in_all([FIRST_COME, B_FIRST], EQUAL, 8)
    assert window == HungryTime(4, 10)
    first, second = (measure(act, EQUAL, 8, window) for act in (FIRST_COME, B_FIRST))
    assert first.hungry_seconds == second.hungry_seconds == pytest.approx(6)
    assert (of(first, "a").hungry_share, of(second, "a").hungry_share) == (1.0, 0.0)
    assert measure(FIRST_COME, EQUAL, 8).hungry_seconds == pytest.approx(16)


@pytest.mark.parametrize(
    "other",
    [runs(), runs(RunSpec(1, tenant="a", gpus=1, submit=0, start=0.5, end=20))],
    ids=["nothing ran", "nobody was hungry"],
)
def test_without_such_a_time_each_act_has_its_own(other: RunTable) -> None:
    assert hungry_in_all([FIRST_COME, other], EQUAL, 8) is None
