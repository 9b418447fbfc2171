"""Trials of policies on views at hand: what counts as a fault, which comes first, and what is not compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from slurm_fair.model import Explanation, JobState, Placement, Plan
from slurm_fair.policy import Policy, View, contenders, oldest_first, ordered
from slurm_fair.policy.orders.walk import ListedTwice
from slurm_fair.policy.trial import RULES, BrokenRule, PolicyTrial
from slurm_fair.policy.trial_views import Kept
from tests.support import strange_policies as strange
from tests.support.accounts import Account, view
from tests.support.builders import job, lease, leases, snapshot

NOW = 5000.0


def kept(gpus: int = 8) -> Kept:
    """A lease that is over, and five jobs that wait for more than there is; the last of them came first."""
    runs = job(1, gpus=2, state=JobState.RUNNING, start=10, on={"n1": 2}, submit=1.0)
    waits = [job(base, gpus=3, submit=100.0 - base) for base in range(2, 7)]
    shown = snapshot(time=NOW, nodes={"n1": gpus, "n2": gpus}, jobs=[runs, *waits])
    had = {str(base): Account(60.0 - base, 100.0) for base in range(1, 7)}
    return Kept.of(view(shown, leases(lease(1, {"n1": 2}, end=NOW)), jobs=had))


def keep(memory: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """A journal that knows plain data only."""
    text = json.dumps(memory)
    return text, json.loads(text)


def tried(kind: type[Policy], *views: Kept) -> PolicyTrial:
    """Every rule on these views, or on the usual one."""
    trial = PolicyTrial(kind, keep)
    trial.on(views or (kept(),))
    return trial


def broken(kind: type[Policy]) -> dict[str, str]:
    """The rules that it breaks, and what is said of each."""
    return {fault.rule: fault.what for fault in tried(kind).faults}


@dataclass(frozen=True)
class _Silent:
    """Gives everybody an empty reason."""

    def plan(self, view: View) -> Plan:
        plan = strange.Plain().plan(view)
        return replace(plan, why=replace(plan.explanation, reasons=(" ",) * len(plan.explanation.reasons)))


@dataclass(frozen=True)
class _NoSuchReason:
    """Names a reason that is not there."""

    def plan(self, view: View) -> Plan:
        plan = strange.Plain().plan(view)
        why = plan.explanation
        return replace(plan, why=replace(why, reason=np.full_like(why.reason, len(why.reasons))))


@dataclass(frozen=True)
class _InTwoParts:
    """Gives each gang its GPUs of a node in two parts."""

    def plan(self, view: View) -> Plan:
        plan = strange.Plain().plan(view)
        halves = [(row, node, gpus) for row, on in plan.places.sites.items() for node, gpus in on]
        split = [(row, node, part) for row, node, gpus in halves for part in (1, gpus - 1)]
        return replace(plan, places=Placement.of(split))


@dataclass(frozen=True)
class _TurnAbout:
    """Lays the first gang on the first node and on the last one, by turns."""

    asked: ClassVar[list[int]] = []

    def plan(self, view: View) -> Plan:
        self.asked.append(1)
        plan = strange.Plain().plan(view)
        node = plan.places.node if len(self.asked) % 2 else plan.places.node[::-1].copy()
        return replace(plan, places=replace(plan.places, node=node))


@dataclass(frozen=True)
class _BySolver(strange.ByRow):
    """Goes by rows, and says that it asks a solver."""

    by_solver: ClassVar[bool] = True


def test_a_policy_that_keeps_to_every_rule_has_no_fault_and_none_is_left_out() -> None:
    trial = tried(strange.Plain)
    assert (trial.faults, trial.left_out) == ((), {})
    assert trial.plans > len(RULES)


def test_without_views_nothing_is_planned_and_nothing_found() -> None:
    trial = PolicyTrial(strange.Raises, keep)
    trial.on([])
    assert (trial.faults, trial.plans) == ((), 0)


@pytest.mark.parametrize("kind", [_Silent, _NoSuchReason])
def test_every_job_is_given_a_reason_in_words(kind: type[Policy]) -> None:
    assert broken(kind)["plan"] == "row 0 has no reason: every job left out is told why"


def test_gpus_of_one_node_are_given_to_a_job_at_once() -> None:
    assert broken(_InTwoParts)["twice"] == "it gives GPUs of one node to a job twice"


def test_the_same_verdicts_on_other_nodes_are_another_plan() -> None:
    _TurnAbout.asked.clear()
    assert "lies on other nodes when the same view is planned again" in broken(_TurnAbout)["same"]


def test_a_policy_that_asks_a_solver_may_go_by_rows_and_says_so() -> None:
    assert "rows" in broken(strange.ByRow)
    trial = tried(_BySolver)
    assert "rows" not in trial.found
    assert "by_solver" in trial.left_out["rows"]


def test_dice_are_told_once_and_not_by_every_rule_that_compares() -> None:
    trial = tried(strange.WaitsByDice)
    assert [fault.rule for fault in trial.faults] == ["same"]
    assert trial.left_out.keys() == {"rows", "ledger", "rests"}


def test_what_a_policy_writes_into_a_view_is_not_there_for_the_next_rule() -> None:
    view_of = kept()
    trial = tried(strange.Writes, view_of)
    assert [fault.rule for fault in trial.faults] == ["view"]
    assert set(view_of.view().snapshot.jobs.weight.tolist()) == {1.0}


def test_a_rule_that_is_broken_on_one_view_is_not_tried_on_the_next() -> None:
    one, five = (tried(strange.OneRank, *[kept()] * count) for count in (1, 5))
    assert one.faults == five.faults
    plain = tried(strange.Plain, *[kept()] * 5)
    assert plain.plans == 5 * tried(strange.Plain).plans
    assert five.plans < plain.plans


def test_a_rule_that_holds_on_the_first_view_may_be_broken_on_a_later_one() -> None:
    """On nodes of 300 GPUs everybody runs, whatever the order."""
    assert tried(strange.ByRow, kept(gpus=300)).faults == ()
    assert [fault.rule for fault in tried(strange.ByRow, kept(gpus=300), kept()).faults] == ["rows"]


# --- errors that came up elsewhere


def raised(kind: type[Policy]) -> Exception:
    """The error of a policy, with the way to it."""
    try:
        kind().plan(kept().view())
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


def test_an_error_of_a_simulation_breaks_the_first_rule_at_the_line_where_it_came_up() -> None:
    trial = PolicyTrial(strange.Raises, keep)
    trial.met(raised(strange.Raises))
    (fault,) = trial.faults
    assert (fault.rule, fault.what) == ("plan", "ZeroDivisionError: float division by zero")
    assert fault.place.rpartition(":")[0].endswith("strange_policies.py")


def test_an_order_that_lists_a_job_twice_breaks_the_rule_of_its_own() -> None:
    trial = PolicyTrial(strange.Twice, keep)
    trial.met(raised(strange.Twice))
    assert [fault.rule for fault in trial.faults] == ["twice"]
    assert isinstance(raised(strange.Twice), ListedTwice)


def test_the_same_error_stops_other_rules_and_breaks_none_of_them() -> None:
    trial, error = PolicyTrial(strange.Raises, keep), raised(strange.Raises)
    for rule in ("plan", "plan", "nodes"):
        trial.met(error, rule)
    assert [fault.rule for fault in trial.faults] == ["plan"]
    assert trial.left_out == {"nodes": "the error of the rule `plan` stops it"}


def test_of_several_errors_of_one_rule_the_first_is_told() -> None:
    trial = PolicyTrial(strange.Raises, keep)
    trial.met(ValueError("one"))
    trial.met(ValueError("two"))
    assert [fault.what for fault in trial.faults] == ["ValueError: one"]


def test_faults_are_told_in_the_order_of_the_rules() -> None:
    trial = PolicyTrial(strange.Plain, keep)
    for rule in reversed(list(RULES)):
        trial.found[rule] = BrokenRule(rule, "", "")
    assert [fault.rule for fault in trial.faults] == list(RULES)


def test_a_memory_that_the_journal_refuses_is_a_fault_of_the_memory_alone() -> None:
    assert broken(strange.KeepsASet).keys() == {"memory"}


def test_plans_are_counted_with_all_that_is_worked_out_only_when_asked() -> None:
    asked: list[int] = []

    class Lazy:
        def plan(self, view: View) -> Plan:
            plan = ordered(view, oldest_first(view, contenders(view)))

            def why() -> Explanation:
                asked.append(1)
                return plan.explanation

            return replace(plan, why=why)

    trial = PolicyTrial(Lazy, keep)
    trial.plan(kept().view())
    trial.plan(kept().view(), Lazy())
    assert (trial.plans, len(asked)) == (2, 2)
