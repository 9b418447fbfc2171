"""Turns of the profiler in any simulation: bounded in GPUs and time, and nothing else that is promised breaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slurm_fair.model import LeasePhase, Standing, TickRecord
from slurm_fair.model.columns import find
from slurm_fair.policy import registry
from slurm_fair.policy.profiling import Profiling
from slurm_fair.policy.turns import TurnBook
from tests.support.any_scenario import Case, Peopled, cases, play
from tests.support.played_accounts import every_account
from tests.support.witness import Witness

BOUNDS = Profiling(gpus=5, seconds=45.0, gpu_hours=0.25, iterations=30, tries=2)


class Profiled(Peopled):
    """A simulation with these bounds."""

    def __post_init__(self) -> None:
        self.rules = replace(self.rules, profiling=BOUNDS)
        super().__post_init__()


class TurnsWitness(Witness):
    """Watches for what must never be of turns, beside all that must never be."""

    def __call__(self, tick: TickRecord, standing: Standing) -> None:
        books, leases = TurnBook.kept(standing.memory, tick.time), standing.leases
        at = find(leases.key, np.array([turn.key for turn in books.turns], dtype=np.int64))
        assert (at >= 0).all() or tick.outcomes, "a turn without a lease"
        assert sum(turn.gpus for turn in books.turns) <= BOUNDS.gpus
        assert leases.gpus[at[at >= 0]].sum() <= BOUNDS.gpus
        self._dues |= set(leases.end[at[at >= 0]].tolist())
        self._turns = {turn.key for turn in books.turns}
        # Where Slurm refuses to stop a job at the end of its turn, it has another lease.
        at = at[(at >= 0) & ~np.array([turn.over for turn in books.turns], dtype=bool)]
        running = at[leases.phase[at] == LeasePhase.RUNNING]
        assert (leases.end[running] <= leases.start[running] + BOUNDS.seconds).all()
        assert max(books.tries.values(), default=0) <= BOUNDS.tries
        super().__call__(tick, standing)


@pytest.mark.parametrize("policy", registry.names())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_turns_are_bounded_and_break_no_promise_under_any_policy(policy: str, case: Case) -> None:
    case = replace(case, scenario=replace(case.scenario, speeds="profiled"))
    every_account(play(case, policy, TurnsWitness(), Profiled, TurnsWitness.wants))
