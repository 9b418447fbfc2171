"""The plan of a look, or a standstill where the policy cannot make one."""

from __future__ import annotations

import traceback
from dataclasses import replace

from slurm_fair.errors import NoPlan
from slurm_fair.model import Plan, Verdict
from slurm_fair.policy import View
from slurm_fair.policy.check import objections, postponed, standstill
from slurm_fair.policy.draft import KEPT_FOR_NOW
from slurm_fair.policy.error_place import POLICY_FAILURES, beginning, where
from slurm_fair.policy.fading import with_faded
from slurm_fair.policy.profiling import with_their_turns, with_turns
from slurm_fair.policy.reserve import with_new
from slurm_fair.policy.turns import with_turns_of
from slurm_fair.ports import Clock, Planner
from slurm_fair.tick.prepared import NO_TURNS, of_profiler
from slurm_fair.tick.rules import InThisProcess, Rules


def decide(view: View, rules: Rules, clock: Clock, *, in_full: bool = True, fault: str = "") -> Plan:
    """The planner's plan; one that raises, is late or cannot be means that the current leases stay.

    `in_full` works out its reasons and ranks too: what raises there raises now, and not after the acts.
    `fault` is one of the profiler before: this look goes without its turns.
    """
    plan = _renewed_in_time(_decided(view, rules, clock, in_full, fault), view)
    if in_full and view.undecided_rows.size:
        return replace(plan, why=plan.explanation.saying([(view.undecided_rows, KEPT_FOR_NOW)]))
    return plan


def _decided(view: View, rules: Rules, clock: Clock, in_full: bool, fault: str) -> Plan:
    began, planner = clock.now(), rules.planner or InThisProcess(rules.policy.plan)
    try:
        plan, wrong = _planned(view, rules, planner, in_full, fault)
    except NoPlan as why:
        return standstill(view, str(why))
    except POLICY_FAILURES as error:
        place = where(type(rules.policy), error)
        return standstill(view, f"{place}: the policy raised: {traceback.format_exc(limit=-3)}")
    late = clock.now() - began
    if late > rules.plan_limit_seconds and not planner.keeps_time:
        return standstill(view, f"the policy took {late:.1f} s (limit {rules.plan_limit_seconds:g} s)")
    if wrong:
        return standstill(view, f"{beginning(type(rules.policy))}: the plan cannot be: {wrong}")
    if view.terms.grants_at(view.now):
        return plan
    return postponed(plan).explained() if in_full else postponed(plan)


def _renewed_in_time(plan: Plan, view: View) -> Plan:
    """The plan; a lease that is renewed later is left as it is until then, and others may still get its GPUs."""
    renewed = plan.renewed
    if not renewed.size or not view.terms.beat:
        return plan
    early = renewed[~view.renews_now(renewed)]
    if not early.size:
        return plan
    verdict = plan.verdict.copy()
    verdict[early] = Verdict.KEEP.code
    return replace(plan, verdict=verdict)


def _planned(view: View, rules: Rules, planner: Planner[View], in_full: bool, fault: str) -> tuple[Plan, str]:
    """The plan of this look, and what is wrong with it; a fault of the profiler costs the turns, and no plan."""
    found = fault or _with_turns(view, rules, planner, in_full)
    if not isinstance(found, str):
        return found
    plan = _of_policy(view, rules, planner, in_full)  # the GPUs of the turns are everybody's
    memory = with_turns_of(plan.memory, view.memory)
    return replace(plan, memory=memory, fault=found), objections(plan, view)


def _with_turns(view: View, rules: Rules, planner: Planner[View], in_full: bool) -> tuple[Plan, str] | str:
    """The policy's plan with the turns of the profiler, and what is wrong with it; or the profiler's fault."""
    try:
        shown, turns = with_turns(view, rules.policy, rules.profiling)
    except Exception as error:
        return of_profiler(error)
    plan = _of_policy(shown, rules, planner, in_full)
    try:
        whole = with_their_turns(plan, view, rules.policy, rules.profiling, turns)
        whole = whole.explained() if in_full else whole
        wrong = objections(whole, view)
    except Exception as error:
        return of_profiler(error)
    if wrong and not objections(plan, shown):
        return f"the profiler's turns cannot be: {wrong}{NO_TURNS}"
    return whole, wrong


def _of_policy(view: View, rules: Rules, planner: Planner[View], in_full: bool) -> Plan:
    """The plan that the policy makes of what it is shown, with what the controller keeps in its memory."""
    plan = with_new(planner.plan(view, rules.plan_limit_seconds), view, rules.policy)
    memory = with_faded(plan.memory, view)
    if memory is not plan.memory or plan.reserve_after is not None:
        plan = replace(plan, memory=memory, reserve_after=None)
    return plan.explained() if in_full else plan
