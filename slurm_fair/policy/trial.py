"""Trials of a policy on views: each rule that every policy must keep to, each fault with its cure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.errors import SlurmFairError
from slurm_fair.model import Plan, Verdict
from slurm_fair.model.columns import Floats, Ints, ranks
from slurm_fair.model.ids import label
from slurm_fair.policy.check import objections, planned
from slurm_fair.policy.error_place import POLICY_FAILURES, beginning, where
from slurm_fair.policy.orders.walk import ListedTwice
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.registry import gist
from slurm_fair.policy.rests import rests
from slurm_fair.policy.trial_views import Kept, only, parts_of, turned, with_strangers, without_nodes
from slurm_fair.policy.view import View

RULES: Mapping[str, str] = {
    "plan": "it makes a plan of every view, and the controller can carry it out",
    "twice": "it lists no job twice",
    "same": "the same view gives the same plan",
    "view": "it changes nothing of what it sees",
    "rows": "in which row a job stands decides nothing",
    "ledger": "the ledger's rows are not taken for those of the jobs",
    "memory": "the journal can keep its memory, and the memory that comes back gives the same plan",
    "rests": "while it rests its memory stays as it is",
    "unsaid": "it plans where nobody said anything of the work",
    "empty": "it plans where there is no job",
    "nodes": "it plans where there is no node",
}
# What the journal keeps of a memory: as text, to compare, and as it comes back.
Keep = Callable[[Mapping[str, Any]], tuple[str, Mapping[str, Any]]]


class BrokenRule(NamedTuple):
    """A rule that a policy does not keep to."""

    rule: str
    what: str
    place: str  # file:line


class _Broken(Exception):
    """A rule is not kept, and how."""


@dataclass(slots=True)
class PolicyTrial:
    """One policy and the first fault that was found for each rule."""

    make: Callable[[], Policy]
    keep: Keep
    found: dict[str, BrokenRule] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # rules that say nothing of it, and why
    plans: int = 0

    def on(self, kept: Sequence[Kept]) -> None:
        """Every rule on every view; a policy that throws dice gives nothing to compare."""
        for rule, check in _CHECKS.items():
            if rule in _COMPARING and "same" in self.found:
                self.left_out[rule] = "the rule `same` is broken, so that plans cannot be compared"
                continue
            for each in kept:
                if rule not in self.found:
                    self._try(rule, check, each)

    def met(self, error: BaseException, rule: str = "plan") -> None:
        """An error that came up while the policy planned."""
        rule = "twice" if isinstance(error, ListedTwice) else rule
        what = str(error) if isinstance(error, (_Broken, ListedTwice, SlurmFairError)) else gist(error)
        place = where(type(self.make()), error)
        for found in self.found.values():
            if found.what == what and found.place == place:
                if rule != found.rule:
                    self.left_out[rule] = f"the error of the rule `{found.rule}` stops it"
                return
        self.found.setdefault(rule, BrokenRule(rule, what, place))

    @property
    def faults(self) -> tuple[BrokenRule, ...]:
        """The broken rules, in the order of the rules."""
        return tuple(self.found[rule] for rule in RULES if rule in self.found)

    def plan(self, view: View, policy: Policy | None = None) -> Plan:
        """All of a plan, also what is worked out only when somebody asks."""
        self.plans += 1
        return planned((policy or self.make()).plan, view).explained()

    def _try(self, rule: str, check: Callable[[PolicyTrial, Kept], None], kept: Kept) -> None:
        try:
            check(self, kept)
        except _Broken as broken:
            self.found[rule] = BrokenRule(rule, str(broken), beginning(type(self.make())))
        except POLICY_FAILURES as error:
            self.met(error, rule)


def _is_sound(trial: PolicyTrial, kept: Kept) -> None:
    view = kept.view()
    plan = trial.plan(view)
    _can_be_carried_out(plan, view)
    _say_something(plan)


def _can_be_carried_out(plan: Plan, view: View) -> None:
    wrong = objections(plan, view)
    if wrong:
        raise _Broken(f"a plan cannot be: {wrong}")


def _say_something(plan: Plan) -> None:
    why = plan.explanation
    for row, reason in enumerate(why.reason.tolist()):
        if not 0 <= reason < len(why.reasons) or not why.reasons[reason].strip():
            raise _Broken(f"row {row} has no reason: every job left out is told why")


def _lists_once(trial: PolicyTrial, kept: Kept) -> None:
    plan = trial.plan(kept.view())
    rank = plan.explanation.rank
    ranks = np.sort(rank[rank >= 0])
    if (ranks != np.arange(len(ranks))).any():
        raise _Broken("its ranks are not the places 0, 1, 2, ... of one order: a job stands in it twice")
    rows = np.unique(np.stack([plan.places.row, plan.places.node]), axis=1)
    if rows.shape[1] != len(plan.places.row):
        raise _Broken("it gives GPUs of one node to a job twice")


def _is_the_same(trial: PolicyTrial, kept: Kept) -> None:
    policy = trial.make()
    first = trial.plan(kept.view(), policy)
    for again in (policy, trial.make()):
        other = _differs(kept.view(), first, trial.plan(kept.view(), again))
        if other:
            raise _Broken(f"{other} when the same view is planned again: dice only from view.seed, no state")


def _changes_nothing(trial: PolicyTrial, kept: Kept) -> None:
    view = kept.view()
    before = parts_of(view)
    trial.plan(view)
    after = parts_of(view)
    changed = [name for name in before if before[name] != after[name]]
    if changed:
        raise _Broken(f"it writes into view.{changed[0]}: take a copy first")


def _goes_by_no_row(trial: PolicyTrial, kept: Kept) -> None:
    if getattr(trial.make(), "by_solver", False):
        trial.left_out["rows"] = (
            "it says `by_solver`: a solver takes any of the answers that are equally good"
        )
        return
    view = replace(kept.view(), memory={}, joined=None)
    other, was = turned(view)
    back = ranks(len(was), was)
    different = _differs(view, trial.plan(view), trial.plan(other), back)
    if different:
        cure = (
            "let what jobs differ in decide (view.first_submit between equals), not the row or the job's id"
        )
        raise _Broken(f"{different} when the rows are permuted: {cure}")
    if len(was) > 1 and view.waiting_rows.size:
        _remembers_by_no_row(trial, view, other, back)


def _remembers_by_no_row(trial: PolicyTrial, view: View, other: View, row_of: Ints) -> None:
    """A second look shows one job more, and those behind it are in other rows than at the first."""
    new = view.waiting_rows.item(0)
    one, two = _after_it_came(trial, view, new), _after_it_came(trial, other, row_of.item(new))
    different = _differs(view, trial.plan(one), trial.plan(two), row_of)
    if different:
        cure = "remember jobs by their keys (keep_job_numbers), not by their rows"
        raise _Broken(f"{different} at the second of two looks when the rows are permuted: {cure}")


def _after_it_came(trial: PolicyTrial, view: View, new: int) -> View:
    """The view with the memory of a first look that did not show the job in this row."""
    before = only(view, np.delete(np.arange(len(view.waiting)), new))
    return replace(view, memory=trial.plan(before).memory, happened=())


def _takes_the_right_account(trial: PolicyTrial, kept: Kept) -> None:
    seen = kept.view()
    for view in (replace(seen, memory={}), seen):
        different = _differs(view, trial.plan(view), trial.plan(with_strangers(view)))
        if different:
            cure = "row i of view.ledger is not job i: use view.account_row, or view.had_gpu_seconds and its like"
            raise _Broken(f"{different} when the ledger knows one job more: {cure}")


def _can_be_kept(trial: PolicyTrial, kept: Kept) -> None:
    view = kept.view()
    plan = trial.plan(view)
    trial.keep(plan.memory)
    _, comes_back = trial.keep(view.memory)
    if "same" in trial.found:
        return
    different = _differs(view, plan, trial.plan(replace(kept.view(), memory=comes_back)))
    if different:
        raise _Broken(f"{different} when its memory comes back from the journal: keep plain data")


def _rests(trial: PolicyTrial, kept: Kept) -> None:
    view = kept.view()
    plan = trial.plan(view)
    if view.waiting_rows.size or not rests(trial.make(), view.snapshot, plan.memory):
        return
    again = trial.plan(replace(kept.view(), memory=plan.memory, happened=()))
    if trial.keep(plan.memory)[0] != trial.keep(again.memory)[0]:
        raise _Broken("it rests while nobody waits, and remembers something else then: leave `rests` out")


def _plans(change: Callable[[View], View]) -> Callable[[PolicyTrial, Kept], None]:
    """Check that a policy plans some other view, at first and with its memory of the look before."""

    def check(trial: PolicyTrial, kept: Kept) -> None:
        view = change(kept.view())
        for each in (replace(view, memory={}), view):
            _can_be_carried_out(trial.plan(each), each)

    return check


def _nothing_said(view: View) -> View:
    return replace(view, snapshot=replace(view.snapshot, told=None))


_CHECKS: Mapping[str, Callable[[PolicyTrial, Kept], None]] = {
    "plan": _is_sound,
    "twice": _lists_once,
    "same": _is_the_same,
    "view": _changes_nothing,
    "rows": _goes_by_no_row,
    "ledger": _takes_the_right_account,
    "memory": _can_be_kept,
    "rests": _rests,
    "unsaid": _plans(_nothing_said),
    "empty": _plans(lambda view: only(view, view.waiting_rows[:0])),
    "nodes": _plans(without_nodes),
}

_COMPARING = frozenset({"rows", "ledger", "rests"})


def _differs(view: View, one: Plan, two: Plan, row_of: Ints | None = None) -> str:
    """The first job that another plan treats otherwise, empty without one; `row_of` is each job's row there."""
    rows = np.arange(len(one.verdict)) if row_of is None else row_of
    keys = view.snapshot.jobs.key
    for at in (one.verdict != two.verdict[rows]).nonzero()[0].tolist():
        verdicts = f"{_word(one.verdict[at])} and {_word(two.verdict[rows[at]])}"
        return f"job {label(int(keys[at]))} gets {verdicts}"
    sites, others = one.places.sites, two.places.sites
    for at in sites:
        if sorted(sites[at]) != sorted(others.get(int(rows[at]), [])):
            return f"job {label(int(keys[at]))} lies on other nodes"
    mine, other = _reserve_after(one), _reserve_after(two)[rows]
    for at in ((mine != other) & ~(np.isnan(mine) & np.isnan(other))).nonzero()[0].tolist():
        return f"job {label(int(keys[at]))} has nodes set aside after {mine[at]:g} and {other[at]:g} s"
    return ""


def _reserve_after(plan: Plan) -> Floats:
    return np.full(len(plan.verdict), np.nan) if plan.reserve_after is None else plan.reserve_after


def _word(verdict: Any) -> str:
    return Verdict(int(verdict)).name
