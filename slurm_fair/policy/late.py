"""A plan that came late, carried over to the view of a later look."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Explanation, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Ints, absent, any_of, find, take_or
from slurm_fair.policy.check import standstill
from slurm_fair.policy.view import View


def carried_over(plan: Plan, then: View, view: View, note: str) -> Plan:
    """The part of a plan for an earlier view that still fits this one.

    A grant is dropped whose job no longer waits, or whose GPUs are gone or taken. A lease that was to end is not
    ended where nobody gets its GPUs any more. Who came since waits, and what came to its end since stays.
    """
    at = find(then.snapshot.jobs.key, view.snapshot.jobs.key)
    said = take_or(plan.verdict, at, np.int8(Verdict.LEAVE))
    revoked = (said == Verdict.REVOKE) & view.over & ~view.only_renewable
    places = _still_free(_places(plan, then, view, (said == Verdict.GRANT) & view.waiting), view, revoked)
    renewed = (said == Verdict.RENEW) & view.flags(view.decided_rows)
    stands = standstill(view, note)
    verdict = stands.verdict.copy()
    verdict[renewed] = Verdict.RENEW
    verdict[_makes_room(revoked, places, view)] = Verdict.REVOKE
    verdict[np.unique(places.row)] = Verdict.GRANT
    why = _explained(plan.explanation, stands.explanation, at, verdict == said)
    return Plan(verdict, places, why, plan.memory, note)


def as_a_stand_in(plan: Plan, view: View, note: str) -> Plan:
    """The plan in the place of the policy's own: the memory stays as it was."""
    return replace(plan, memory=view.memory, note=note)


def _places(plan: Plan, then: View, view: View, granted: Bools) -> Placement:
    """The places of these rows, by this view's numbers, where all their nodes are still there."""
    old = find(view.snapshot.jobs.key, then.snapshot.jobs.key)
    row = np.where((old >= 0) & granted[np.maximum(old, 0)], old, -1) if len(granted) else absent(len(old))
    meant = plan.places.renumber(row)
    there = meant.renamed(then.snapshot.nodes.names, view.snapshot.nodes.names)
    rows = len(granted)
    lost = np.bincount(meant.row, meant.gpus, rows) != np.bincount(there.row, there.gpus, rows)
    return there.take(~lost[there.row])


def _still_free(places: Placement, view: View, revoked: Bools) -> Placement:
    """The places without gangs on nodes that cannot give so much, even once the revoked jobs have left."""
    nodes = len(view.snapshot.nodes.names)
    back = view.lease_places.take(revoked[view.lease_places.row])
    room = view.free_gpus + back.per_node(nodes)
    short = places.per_node(nodes) > room
    out = np.unique(places.row[short[places.node]])
    return places.take(~np.isin(places.row, out))


def _makes_room(revoked: Bools, places: Placement, view: View) -> Ints:
    """Rows of the revoked that hold GPUs of a node on which somebody is granted some."""
    if not any_of(revoked):
        return np.zeros(0, dtype=np.int64)
    theirs = view.lease_places.take(revoked[view.lease_places.row])
    return np.unique(theirs.row[np.isin(theirs.node, places.node)])


def _explained(said: Explanation, stands: Explanation, at: Ints, kept: Bools) -> Explanation:
    """The reasons of what is kept, and those of a standstill for the rest."""
    known = kept & (at >= 0)
    reason = np.where(known, take_or(said.reason, at, 0), len(said.reasons) + stands.reason)
    rank, score = take_or(said.rank, at, -1), take_or(said.score, at, np.nan)
    return Explanation(reason, rank, score, (*said.reasons, *stands.reasons))
