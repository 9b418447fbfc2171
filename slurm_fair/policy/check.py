"""Whether a plan can be, and the plan that changes nothing."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import LeasePhase, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools
from slurm_fair.policy.view import View


def objections(plan: Plan, view: View) -> str:
    """What is wrong with a plan, in one line; empty when it can be. No policy is trusted with more."""
    rows = len(view.snapshot.jobs)
    if len(plan) != rows:
        return f"it has {len(plan)} verdicts for {rows} jobs"
    granted, renewed, revoked = (plan.verdict == v for v in (Verdict.GRANT, Verdict.RENEW, Verdict.REVOKE))
    if (granted & ~view.waiting).any():
        return "it grants a job that cannot start now"
    if ((renewed | revoked) & ~view.expired).any():
        return "it ends or renews a lease that is not over"
    if (revoked & view.pinned_down).any():
        return "it revokes a job that would lose its work"
    return _misplaced(plan, view, granted, revoked)


def _misplaced(plan: Plan, view: View, granted: Bools, revoked: Bools) -> str:
    jobs, nodes = view.snapshot.jobs, view.snapshot.nodes
    places = plan.places
    if len(places) and (places.node.max() >= len(nodes) or places.node.min() < 0 or places.gpus.min() < 1):
        return "it places GPUs on no node"
    given = np.bincount(places.row, places.gpus, minlength=len(jobs)).astype(np.int64)
    whole_nodes = (jobs.gpus_per_node == 0) & (jobs.nodes <= 1)  # the rest of a last node comes along
    if (given[~granted] != 0).any() or (given[granted] < jobs.gpus[granted]).any():
        return "a granted job does not get its whole gang, or another gets GPUs"
    if (given[granted & ~whole_nodes] != jobs.gpus[granted & ~whole_nodes]).any():
        return "a granted job gets more than its gang"
    coming_free = view.lease_places.only(np.flatnonzero(revoked)).per_node(len(nodes))
    taken = places.per_node(len(nodes))
    if (taken > view.free_gpus + coming_free).any():
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
