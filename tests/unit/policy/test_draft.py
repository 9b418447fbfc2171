"""Drafts, and plans, leases and ledgers that are copied and kept."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from slurm_fair.model import LeaseTerms, Plan, Standing, TickRecord, Verdict
from slurm_fair.policy import Draft, View
from slurm_fair.sim import Scenario, Simulation, rules_for
from slurm_fair.sim.loop.log import Log
from slurm_fair.trace import uniform
from tests.support import journals
from tests.support.simulated import arrival, trace

COPIES: dict[str, Callable[[object], object]] = {
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "copied": copy.copy,
    "copied in depth": copy.deepcopy,
}


class Last(Log):
    """Keeps the last tick that it was given, and the standing after it."""

    def append(self, tick: TickRecord, standing: Standing) -> None:
        """Kept as it is."""
        super().append(tick, standing)
        self.tick, self.standing = tick, standing


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_is_the_same_value_with_nothing_left_to_be_read(copied: Callable[[object], object]) -> None:
    rules, jobs = rules_for("fifo", {}, lease=300.0), [arrival(10.0 * at, gpus=4) for at in range(5)]
    journal = Last(0.0)
    Simulation(Scenario(trace(jobs), uniform(8, 4), until_s=50.0), rules, journal).run()
    for value in (journal.standing.leases, journal.standing.ledger, journal.tick.plan.explained()):
        assert journals.same(copied(value), value)


def test_reasons_are_those_of_the_rows_that_were_named_whatever_becomes_of_the_array() -> None:
    view = _view()
    draft, rows = Draft(view), np.zeros(len(view.waiting), dtype=bool)
    for row in range(2):
        rows[:] = False
        rows[row] = True
        draft.say(rows, Verdict.WAIT, f"row {row}")
    plan: Plan = draft.unchanged()
    assert [plan.explanation.reasons[number] for number in plan.explanation.reason[:2].tolist()] == [
        "row 0",
        "row 1",
    ]


def _view() -> View:
    journal = Last(0.0)
    jobs = [arrival(0.0, gpus=8), arrival(0.0, gpus=8)]
    Simulation(Scenario(trace(jobs), uniform(8, 4), until_s=1.0), rules_for("fifo", {}), journal).run()
    standing, tick = journal.standing, journal.tick
    return View(tick.snapshot, standing.ledger, standing.leases, LeaseTerms(), tick.time)
