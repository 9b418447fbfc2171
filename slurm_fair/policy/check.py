"""Checks of a plan against its view, and the plan that changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slurm_fair.model import Explanation, JobTable, Placement, Plan, Snapshot, Verdict
from slurm_fair.model.columns import Floats, Ints, absent, all_of, any_of
from slurm_fair.model.counted import one_of
from slurm_fair.model.sizes import shares
from slurm_fair.policy.view import View

_NOTHING = Placement.none()


def planned(make: Callable[[View], object], view: View) -> Plan:
    """The plan that a policy's method makes; TypeError for anything else that it returns."""
    plan = make(view)
    if not isinstance(plan, Plan):
        raise TypeError(f"plan(view) returned {_named(plan)}, not a Plan")
    if plan.reserve_after is not None:
        _check_reserve_after(plan.reserve_after, len(view.snapshot.jobs))
    return plan


def _check_reserve_after(reserve_after: object, jobs: int) -> None:
    """TypeError for what is no column of numbers."""
    found = _named(reserve_after)
    if isinstance(reserve_after, np.ndarray):
        if reserve_after.shape == (jobs,) and reserve_after.dtype.kind in "fiu":
            return
        found = f"{reserve_after.dtype} of shape {reserve_after.shape}"
    raise TypeError(f"the plan's reserve_after has to be one number for each of {jobs} jobs, not {found}")


def _named(thing: object) -> str:
    return "None" if thing is None else one_of(type(thing).__name__)


def objections(plan: Plan, view: View) -> str:
    """The fault of a plan, in one line; empty when it has none. No policy is trusted with more."""
    rows = len(view.snapshot.jobs.key)
    if len(plan.verdict) != rows:
        return f"it has {len(plan.verdict)} verdicts for {rows} jobs"
    granted, renewed, revoked = plan.granted, plan.renewed, plan.revoked
    if granted.size and not all_of(view.waiting[granted]):
        return "it grants a job that cannot start now"
    over = not renewed.size or all_of(view.flags(view.decided_rows)[renewed])
    if not over or (revoked.size and not all_of(view.over[revoked])):
        return "it ends or renews a lease that is not over"
    if revoked.size and any_of(view.only_renewable[revoked]):
        return "it revokes a job that would lose its work"
    if not granted.size and not len(plan.places.row):
        return ""
    return _misplaced(plan, view, granted, revoked)


def _misplaced(plan: Plan, view: View, gangs: Ints, revoked: Ints) -> str:
    jobs, places, node_count = view.snapshot.jobs, plan.places, len(view.snapshot.nodes.names)
    node, gpus = places.node, places.gpus
    if node.size and (_least(node) < 0 or node.item(node.argmax()) >= node_count or _least(gpus) < 1):
        return "it places GPUs on no node"
    if not _each_on_one_node(places, jobs, gangs):
        wrong = _not_its_gang(plan, view.snapshot, gangs) or _misshapen(places, jobs, gangs)
        if wrong:
            return wrong
    if _stands_still(places, view):
        return "it gives a job GPUs of a type on which it does not run"
    left = view.lease_places.take(view.flags(revoked)[view.lease_places.row]) if revoked.size else _NOTHING
    if any_of(np.bincount(node, gpus)[node] > (view.free_gpus + left.per_node(node_count))[node]):
        return "it gives GPUs away that are not free"
    taken, given_back = (_beside(each, view.snapshot) for each in (places, left))
    for spare, new, back in zip((view.spare_cpus, view.spare_memory_mb), taken, given_back, strict=True):
        if any_of((new > 0) & (new > spare + back)):
            return "it gives CPUs or memory away that are not free"
    return ""


def _beside(places: Placement, snapshot: Snapshot) -> tuple[Ints, Ints]:
    """CPUs and memory that these jobs take of each node beside their GPUs."""
    count = len(snapshot.nodes.names)
    _, cpus, memory_mb = shares(places, places.row, snapshot.jobs, snapshot.sizes)
    return (
        np.bincount(places.node, cpus, count).astype(np.int64),
        np.bincount(places.node, memory_mb, count).astype(np.int64),
    )


def _least(column: Ints | Floats) -> float:
    return column.item(column.argmin())


def _each_on_one_node(places: Placement, jobs: JobTable, gangs: Ints) -> bool:
    """True if each gang, and nobody else, has all that it asks for on one node: mostly just so."""
    alone = len(places.row) == len(gangs) and all_of(places.row == gangs)
    return alone and all_of(places.gpus == jobs.gpus[gangs])


def _not_its_gang(plan: Plan, snapshot: Snapshot, gangs: Ints) -> str:
    """Each of the granted gets what it asks for, or another of its sizes, and nobody else anything."""
    jobs, places = snapshot.jobs, plan.places
    rows = len(jobs.key)
    given, wanted = np.bincount(places.row, places.gpus, rows), np.zeros(rows)
    wanted[gangs] = jobs.gpus[gangs]
    if snapshot.sizes is not None and len(given) == rows:
        resized = gangs[snapshot.sizes.allow(gangs, given[gangs].astype(np.int64))]
        wanted[resized] = given[resized]
    if len(given) == rows:
        odd = (given != wanted).nonzero()[0]
        if not odd.size:
            return ""
        # The rest of the last node comes along with a rigid gang.
        whole_nodes = (jobs.gpus_per_node[odd] == 0) & (jobs.nodes[odd] <= 1)
        if snapshot.sizes is not None:
            whole_nodes &= ~np.isin(odd, snapshot.sizes.row)
        if all_of((plan.verdict[odd] == Verdict.GRANT) & (given[odd] > wanted[odd])):
            return "" if all_of(whole_nodes) else "a granted job gets more than its gang"
    return "a granted job does not get its whole gang, or another gets GPUs"


def _misshapen(places: Placement, jobs: JobTable, gangs: Ints) -> str:
    """A gang on more nodes than its job takes; with another size than usual that many in proportion.

    An elastic job whose user fixed the split has as many GPUs on each of its nodes with each size.
    """
    rows = len(jobs.key)
    count, given = np.bincount(places.row, minlength=rows), np.bincount(places.row, places.gpus, rows)
    usual = np.maximum(jobs.gpus[gangs], 1)
    most = np.where(
        given[gangs] == usual, jobs.most_nodes[gangs], np.ceil(jobs.most_nodes[gangs] * given[gangs] / usual)
    )
    if any_of((most > 0) & (count[gangs] > most)):
        return "it lays a gang over more nodes than its job takes"
    resized = (given[places.row] != jobs.gpus[places.row]) & (jobs.gpus_per_node[places.row] > 0)
    uneven = places.gpus * count[places.row] != given[places.row]
    return "it splits a gang unevenly that its user split evenly" if any_of(resized & uneven) else ""


def _stands_still(places: Placement, view: View) -> bool:
    """True if a job would not run where it is to lie."""
    snapshot = view.snapshot
    if snapshot.told is None or len(snapshot.gpu_types) < 2 or not places.row.size:
        return False
    speed = snapshot.told.rate[places.row, snapshot.nodes.gpu_type[places.node]]
    return _least(speed) <= 0


def standstill(view: View, note: str) -> Plan:
    """Every lease stays, nobody is granted anything."""
    jobs = view.snapshot.jobs
    row = view.lease_row
    leased = row >= 0
    verdict = np.where(leased, Verdict.KEEP, np.where(view.waiting, Verdict.WAIT, Verdict.LEAVE))
    ending = leased & view.leases.revoking[row] if len(view.leases) else leased
    reason = np.where(ending, 2, np.where(leased, 1, 0))
    reasons = (
        "no plan could be made in this tick",
        "keeps its GPUs until there is a plan again",
        "is giving its GPUs back",
    )
    why = Explanation(reason.astype(np.int64), absent(len(jobs)), np.full(len(jobs), np.nan), reasons)
    return Plan(verdict.astype(np.int8), Placement.none(), why, view.memory, note)


def postponed(plan: Plan) -> Plan:
    """The plan without what is new in it: grants, and the revocations that make room for them."""
    granted, revoked = plan.verdict == Verdict.GRANT, plan.verdict == Verdict.REVOKE
    if not (granted | revoked).any():
        return plan
    verdict = np.where(granted, Verdict.WAIT, np.where(revoked, Verdict.KEEP, plan.verdict))

    def why() -> Explanation:
        said = plan.explanation
        reason = np.where(granted | revoked, len(said.reasons), said.reason)
        return said.with_columns(
            reason=reason, reasons=(*said.reasons, "leases end in a moment: decided then")
        )

    return replace(plan, verdict=verdict.astype(np.int8), places=Placement.none(), why=why, ranked=None)
