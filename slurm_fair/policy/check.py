"""Whether a plan can be, and the plan that changes nothing."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import LeasePhase, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools
from slurm_fair.policy.view import View

_ACTS = tuple(int(verdict) for verdict in (Verdict.GRANT, Verdict.RENEW, Verdict.REVOKE))


def objections(plan: Plan, view: View) -> str:
    """What is wrong with a plan, in one line; empty when it can be. No policy is trusted with more."""
    rows = len(view.snapshot.jobs)
    if len(plan) != rows:
        return f"it has {len(plan)} verdicts for {rows} jobs"
    granted, renewed, revoked = (plan.verdict == verdict for verdict in _ACTS)
    if np.count_nonzero(granted & ~view.waiting):
        return "it grants a job that cannot start now"
    if np.count_nonzero((renewed | revoked) & ~view.expired):
        return "it ends or renews a lease that is not over"
    if np.count_nonzero(revoked & view.pinned_down):
        return "it revokes a job that would lose its work"
    return _misplaced(plan, view, granted, revoked)


def _misplaced(plan: Plan, view: View, granted: Bools, revoked: Bools) -> str:
    jobs, nodes = view.snapshot.jobs, view.snapshot.nodes
    places = plan.places
    gangs = granted.nonzero()[0]
    if not len(places) and not len(gangs):
        return ""
    if len(places) and (places.node.max() >= len(nodes) or places.node.min() < 0 or places.gpus.min() < 1):
        return "it places GPUs on no node"
    given = np.bincount(places.row, places.gpus, minlength=len(jobs)).astype(np.int64)
    got, gpus = given[gangs], jobs.gpus[gangs]
    if got.sum() != given.sum() or (got < gpus).any():
        return "a granted job does not get its whole gang, or another gets GPUs"
    whole_nodes = (jobs.gpus_per_node[gangs] == 0) & (
        jobs.nodes[gangs] <= 1
    )  # the rest of the last comes along
    if ((got != gpus) & ~whole_nodes).any():
        return "a granted job gets more than its gang"
    available = view.free_gpus
    if np.count_nonzero(revoked):
        leases = view.lease_places
        available = available + leases.take(revoked[leases.row]).per_node(len(nodes))
    if (places.per_node(len(nodes)) > available).any():
        return "it gives GPUs away that are not free"
    return ""


def standstill(view: View, note: str) -> Plan:
    """Every lease stays, nobody is granted anything."""
    jobs = view.snapshot.jobs
    row = view.lease_row
    leased = row >= 0
    verdict = np.where(leased, Verdict.KEEP, np.where(view.waiting, Verdict.WAIT, Verdict.LEAVE))
    ending = leased & (view.leases.phase[row] == LeasePhase.REVOKING) if len(view.leases) else leased
    reason = np.where(ending, 2, np.where(leased, 1, 0))
    return Plan(
        verdict.astype(np.int8),
        reason.astype(np.int64),
        np.full(len(jobs), -1, dtype=np.int64),
        np.full(len(jobs), np.nan),
        Placement.none(),
        (
            "no plan could be made in this tick",
            "keeps its GPUs until there is a plan again",
            "is giving its GPUs back",
        ),
        view.memory,
        note,
    )


def postponed(plan: Plan) -> Plan:
    """The plan without what is new in it: grants, and the revocations that make room for them."""
    granted, revoked = plan.verdict == Verdict.GRANT, plan.verdict == Verdict.REVOKE
    if not (granted | revoked).any():
        return plan
    verdict = np.where(granted, Verdict.WAIT, np.where(revoked, Verdict.KEEP, plan.verdict))
    return plan.with_columns(
        verdict=verdict.astype(np.int8),
        reason=np.where(granted | revoked, len(plan.reasons), plan.reason),
        reasons=(*plan.reasons, "leases end in a moment: decided then"),
        places=Placement.none(),
    )
