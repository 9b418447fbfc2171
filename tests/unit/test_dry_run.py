"""A run that does not act: it looks, refuses every act, and leaves behind what is so when nothing was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from slurm_fair.dry_run import DryRun, without_effect
from slurm_fair.model import (
    Action,
    Blind,
    LeasePhase,
    Leases,
    Outcome,
    Plan,
    Result,
    Snapshot,
    Untried,
    Verb,
)
from slurm_fair.model.ids import pack
from slurm_fair.policy import View
from slurm_fair.policy.turns import has_turns
from tests.support import journals
from tests.support.accounts import view
from tests.support.builders import LeaseSpec, job, lease, leases, snapshot

SEEN = snapshot(nodes={"n1": 8}, jobs=[job(1)])
TURNS = {"turns": [], "tries": [], "day": 1, "spent": {"a": 60.0}}


@dataclass
class Acting:
    """A cluster that notes what it is asked."""

    shown: Snapshot | Blind = SEEN
    acts: bool = True
    asked: list[Mapping[int, float]] = field(default_factory=list)
    done: list[Action] = field(default_factory=list)

    def observe(self, asked: Mapping[int, float]) -> Snapshot | Blind:
        self.asked.append(asked)
        return self.shown

    def actuate(self, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        self.done += actions
        return tuple(Outcome(action, Result.DONE) for action in actions)


# -- the cluster ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [SEEN, Blind(5.0, "no answer")])
def test_a_dry_run_sees_what_there_is(shown: Snapshot | Blind) -> None:
    cluster = Acting(shown)
    assert DryRun(cluster).observe({7: 1.5}) is shown
    assert cluster.asked == [{7: 1.5}]


def test_every_act_is_refused_untried_in_its_order_and_may_be_tried_later() -> None:
    cluster = Acting()
    actions = [Action(verb, pack(number), number, 0.0, 0) for number, verb in enumerate(Verb, 1)]
    outcomes = DryRun(cluster).actuate(actions)
    assert [outcome.action for outcome in outcomes] == actions
    assert {(outcome.result, outcome.detail, outcome.later, outcome.untried) for outcome in outcomes} == {
        (Result.REFUSED, "dry run", True, Untried.DRY_RUN)
    }
    assert not any(outcome.refused_for_good for outcome in outcomes)
    assert cluster.done == []


def test_no_acts_have_no_outcomes_and_a_dry_run_says_that_it_does_not_act() -> None:
    assert DryRun(Acting()).actuate([]) == ()
    assert not DryRun(Acting()).acts
    assert not DryRun(DryRun(Acting())).acts


# -- what a tick leaves behind --------------------------------------------------------------------------------


def left(*specs: LeaseSpec) -> Leases:
    return without_effect(leases(*specs), planned(), shown())[0]


def planned(**memory: object) -> Plan:
    return replace(journals.plan(), memory=memory)


def shown(**memory: object) -> View:
    return replace(view(SEEN), memory=memory)


def test_no_promise_is_left() -> None:
    promised = lease(1, {"n1": 4}, phase=LeasePhase.GRANTED)
    kept = left(promised, lease(2, {"n1": 2}))
    assert kept.key.tolist() == [pack(2)]
    assert len(kept.promises) == 0
    assert len(left(promised)) == 0
    assert len(left()) == 0


def test_a_lease_that_was_being_revoked_runs_on_and_its_job_was_not_asked() -> None:
    kept = left(
        lease(1, {"n1": 2}, phase=LeasePhase.REVOKING, asked=50.0, end=60.0),
        lease(2, {"n1": 2}, phase=LeasePhase.RUNNING, asked=40.0, end=70.0),
    )
    assert kept.phase.tolist() == [LeasePhase.RUNNING] * 2
    assert kept.asked.tolist() == [0.0, 40.0]
    assert kept.end.tolist() == [60.0, 70.0]
    assert kept.phase.dtype == np.int8


def test_the_leases_that_were_there_stay_as_they_are() -> None:
    before = leases(lease(1, {"n1": 2}, phase=LeasePhase.REVOKING, asked=50.0))
    without_effect(before, planned(), shown())
    assert (before.phase.tolist(), before.asked.tolist()) == ([LeasePhase.REVOKING], [50.0])


@pytest.mark.parametrize(("before", "after"), [({}, {"profiler": TURNS}), ({"profiler": TURNS}, {})])
def test_turns_of_the_profiler_stay_as_they_were_and_the_rest_of_the_memory_goes_on(
    before: Mapping[str, object], after: Mapping[str, object]
) -> None:
    plan = planned(window=3, **after)
    _, kept = without_effect(leases(), plan, shown(window=2, **before))
    assert kept.memory == {"window": 3, **before}
    assert has_turns(kept.memory) is bool(before)
    assert kept.verdict is plan.verdict
    assert plan.memory == {"window": 3, **after}
