"""Sums of tenants that fade: by half in a half-life, however often somebody looks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import TickRecord
from slurm_fair.policy import View
from slurm_fair.policy.fading import with_faded, with_fading
from slurm_fair.policy.orders.two_phase import Balances
from tests.support.accounts import Account, view
from tests.support.builders import job, snapshot
from tests.support.simulated import Rounds, arrival, simulated

HALF = 3600.0


def at(time: float, had: float, memory: Mapping[str, Any] | None = None, tenant: str = "a") -> View:
    """A view at which a tenant has had so many GPU-seconds in all and was owed twice as many."""
    seen = snapshot(time=time, nodes={"n1": 8}, jobs=[job(1, tenant=tenant)])
    return replace(view(seen, tenants={tenant: Account(had, 2 * had)}), memory=memory or {})


@given(st.lists(st.floats(1.0, 20_000.0), min_size=1, max_size=8), st.floats(0.1, 64.0))
def test_what_comes_evenly_fades_alike_however_often_somebody_looks(gaps: list[float], rate: float) -> None:
    memory = with_faded({}, with_fading(at(0.0, 0.0), HALF))
    time = 0.0
    for gap in gaps:
        time += gap
        now = with_fading(at(time, rate * time, memory), HALF)
        memory = with_faded({}, now)
    exact = rate * HALF / math.log(2.0) * (1.0 - 2.0 ** (-time / HALF))
    assert now.tenant_sums.had[0] == pytest.approx(exact, rel=1e-9)
    assert now.tenant_sums.owed_quota[0] == pytest.approx(2 * exact, rel=1e-9)
    assert now.ledger.tenants.had[0] == rate * time


def test_half_is_left_after_a_half_life() -> None:
    memory = with_faded({}, with_fading(at(0.0, 800.0), HALF))
    later = with_fading(at(HALF, 800.0, memory), HALF)
    assert later.tenant_sums.had[0] == pytest.approx(400.0)
    assert Balances.of(later, "quota").owed[0] == pytest.approx(800.0)


def test_a_tenant_that_comes_later_begins_with_what_it_has_had() -> None:
    memory = with_faded({}, with_fading(at(0.0, 800.0), HALF))
    later = with_fading(at(1e-7, 60.0, memory, tenant="b"), HALF)
    assert later.tenant_sums.had[0] == pytest.approx(60.0)


def test_nothing_fades_where_there_is_no_half_life() -> None:
    seen = at(0.0, 800.0, {"faded": {}, "mine": 1})
    assert with_fading(seen, 0.0) is seen
    assert with_faded({"faded": {}, "mine": 1}, seen) == {"mine": 1}


def test_a_tenant_that_was_away_is_owed_less_for_it_where_fairness_fades() -> None:
    """One tenant has had all 8 GPUs for two days; the other, which ran one small job, now wants its half."""
    busy = [arrival(0.0, gpus=1, seconds=6 * 86_400.0, tenant="busy") for _ in range(8)]
    away = [arrival(0.0, gpus=1, seconds=60.0, tenant="away")]
    back = [arrival(2 * 86_400.0, gpus=1, seconds=86_400.0, tenant="away") for _ in range(8)]
    got = []
    for half_life in (0.0, 4 * 3600.0):
        gpus: list[float] = []

        def listen(tick: TickRecord, standing: object, gpus: list[float] = gpus) -> None:
            if 2 * 86_400.0 < tick.time % 1e6 < 2.5 * 86_400.0:
                jobs = tick.snapshot.jobs
                mine = jobs.tenant == tick.snapshot.tenants.names.index("away")
                gpus.append(float(jobs.gpus[mine & jobs.running].sum()))

        how = Rounds(lease=1800.0, interval=60.0, half_life=half_life)
        simulated([*busy, *away, *back], gpus=8, how=how, until=2.5 * 86_400.0, listen=listen)
        got.append(float(np.mean(gpus)))
    assert got[0] > 7.0
    assert 4.0 < got[1] < 6.5
