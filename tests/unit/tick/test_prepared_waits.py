"""A tick and what the plan of its policy says of the wait of gangs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slurm_fair.model import Plan, TickRecord
from slurm_fair.policy import View
from slurm_fair_plugins.astraea import Astraea
from tests.support.tick_bench import TickBench, gated


@dataclass(frozen=True)
class LetsGangsWait:
    """Astraea, which also says for how long gangs wait until nodes are set aside for them."""

    seconds: Any

    def plan(self, view: View) -> Plan:
        return replace(Astraea().plan(view), reserve_after=self.seconds)


def seen(bench: TickBench) -> TickRecord:
    """The record of a look at one job that waits."""
    record = bench.see(gated(1)).record
    assert record is not None
    return record


def test_a_tick_does_not_keep_for_how_long_gangs_were_to_wait() -> None:
    bench = TickBench(LetsGangsWait(np.zeros(1)))
    plan = seen(bench).plan
    assert (plan.note, plan.reserve_after, bench.acts()) == ("", None, ["open 1"])


def test_where_it_is_no_column_of_numbers_leases_stay() -> None:
    bench = TickBench(LetsGangsWait(np.zeros(3)))
    assert "one number for each of 1 jobs, not float64 of shape (3,)" in seen(bench).plan.note
    assert bench.acts() == []
