"""Astraea: long-term GPU-time fairness by leases (Ye et al., TPDS 2022), algorithms 1 and 2 and section 5.1.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from slurm_fair.errors import ConfigError
from slurm_fair.model import Blocked, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.policy.arrays import over_array_limit
from slurm_fair.policy.contest import Contest
from slurm_fair.policy.draft import (
    BLOCKED_REASONS,
    LOSES_WORK,
    OTHERS_FIRST,
    UNUSABLE_NODES,
    Draft,
    placed,
)
from slurm_fair.policy.gang import Pools, Shapes
from slurm_fair.policy.placement import Placer, placer
from slurm_fair.policy.two_phase import (
    Balances,
    by_tenant,
    expected_winners,
    first_submit,
    job_rho,
    merged,
    never_ran,
)
from slurm_fair.policy.view import View
from slurm_fair.policy.walk import Candidates, Walk

OWED_MOST = "it is among those owed most"
FILLS = "it fills GPUs that nobody ahead of it can use"
STILL_OWED = "it is still among those owed most"
MISFIT = "its gang does not fit what those ahead of it leave"
TENANT_SKIPPED = "a job of its tenant that goes before it does not fit now"
NOWHERE = "no node of its partition can take its gang"
NODE_NEEDED = "a job that is owed more needs its node"
PROMISED_AWAY = "its GPUs were promised to a job that is owed more"

NEW, KEPT, OTHER = 0, 1, 2  # order of preference inside a tenant (section 5.2.1)


@dataclass(frozen=True, slots=True)
class Astraea:
    """The neediest tenant's neediest job first; the fields are the settings."""

    choose_share: Literal["quota", "demand"] = "quota"  # eq. 16 or eq. 8
    new_jobs_first: bool = True  # a job that never ran goes before others of its tenant
    keep_long_renewed: int = 0  # so do leases renewed this often, after the new jobs; 0 = off
    placement: str = "consolidated"

    def __post_init__(self) -> None:
        if self.choose_share not in ("quota", "demand"):
            raise ConfigError(f"astraea: choose_share is 'quota' or 'demand', not '{self.choose_share}'")
        if self.keep_long_renewed < 0:
            raise ConfigError("astraea: keep_long_renewed is a number of renewals, 0 = off")
        placer(self.placement)

    def plan(self, view: View) -> Plan:
        """One round: pick on all free and expired GPUs, renew in place, place the others, fill what is left."""
        sheet, pools = Draft(view), Pools.of(view.snapshot)
        settled = _settled(view, pools, sheet)
        candidates = _candidates(view, pools, settled)
        offers = self._offers(view, candidates, sheet)
        balances = Balances.of(view, self.choose_share)
        balances = balances.charged(*_charges(view, np.flatnonzero(settled)))
        order = _picks(view, balances, candidates, offers)
        expected = expected_winners(view, pools, candidates, order)
        contest = _contest(view, pools, placer(self.placement), candidates, order, expected)
        walk = Walk(candidates, pools, contest)
        promised = contest.clear_debts()
        walk.strict(order)
        filled = walk.fill(_left_over(view, balances, walk, offers))
        _say(sheet, walk, order, expected, filled, promised)
        return _finished(view, sheet, walk, order)

    def _offers(self, view: View, candidates: Candidates, sheet: Draft) -> Ints:
        """Every tenant's jobs in its own order (algorithm 2), without those that cannot run."""
        rows = candidates.rows
        preference = self._preference(view, rows)
        offers = by_tenant(candidates.tenant, preference, job_rho(view, rows), first_submit(view, rows))
        nowhere = (candidates.contested < 0) & ~candidates.shapes.possible()
        sheet.say(rows[nowhere], Verdict.WAIT, NOWHERE)
        offers = offers[~nowhere[offers]]
        over = over_array_limit(view, rows[offers])
        sheet.say(rows[offers[over]], Verdict.WAIT, BLOCKED_REASONS[Blocked.ARRAY_LIMIT])
        return offers[~over]

    def _preference(self, view: View, rows: Ints) -> Ints:
        preference = np.full(len(rows), OTHER, dtype=np.int64)
        if self.keep_long_renewed > 0:
            preference[view.renewals[rows] >= self.keep_long_renewed] = KEPT
        if self.new_jobs_first:
            preference[never_ran(view, rows)] = NEW
        return preference


def _settled(view: View, pools: Pools, sheet: Draft) -> Bools:
    """Expired leases that are renewed whatever the others are owed."""
    places = view.lease_places
    of_use = np.zeros(len(view.snapshot.jobs), dtype=bool)
    of_use[places.row[pools.region[places.node] >= 0]] = True
    stranded = view.expired & ~of_use
    sheet.say(stranded, Verdict.RENEW, UNUSABLE_NODES)
    sheet.say(view.pinned_down, Verdict.RENEW, LOSES_WORK)
    settled: Bools = view.pinned_down | stranded
    return settled


def _candidates(view: View, pools: Pools, settled: Bools) -> Candidates:
    jobs, contested = view.snapshot.jobs, view.expired & ~settled
    rows = np.flatnonzero(view.waiting | contested)
    place = np.where(contested[rows], np.cumsum(contested[rows]) - 1, -1)
    return Candidates(rows, jobs.tenant[rows], jobs.gpus[rows], place, Shapes.of(pools, view.snapshot, rows))


def _charges(view: View, rows: Ints) -> tuple[Ints, Floats]:
    """What a lease costs each job's tenant: r * t_lease (algorithm 1, line 14)."""
    jobs = view.snapshot.jobs
    return jobs.tenant[rows], jobs.gpus[rows].astype(np.float64) * view.terms.term


def _picks(view: View, balances: Balances, candidates: Candidates, offers: Ints) -> Ints:
    """Phase 1: the tenants' offers in the order in which they are picked."""
    merge = merged(balances, candidates.tenant[offers], candidates.gpus[offers], view.terms.term)
    picks: Ints = offers[merge]
    return picks


def _contest(
    view: View, pools: Pools, place: Placer, candidates: Candidates, order: Ints, expected: Bools
) -> Contest:
    rank = np.zeros(len(candidates.rows), dtype=np.int64)
    rank[order] = np.arange(len(order))
    contested = candidates.contested >= 0
    return Contest(view, pools, place, candidates.rows[contested], rank[contested], ~expected[contested])


def _left_over(view: View, balances: Balances, walk: Walk, offers: Ints) -> Ints:
    """Waiting jobs that still fit somewhere, picked anew after what the round has cost their tenants."""
    candidates = walk.candidates
    out = (candidates.contested >= 0) | ~walk.fitting()
    out[list(walk.granted)] = True
    if out[offers].all():
        return offers[:0]
    served = candidates.contested >= 0
    served[np.flatnonzero(served)[walk.contest.evicted]] = False
    served[list(walk.granted)] = True
    balances = balances.charged(*_charges(view, candidates.rows[served]))
    return _picks(view, balances, candidates, offers[~out[offers]])


def _say(
    sheet: Draft, walk: Walk, order: Ints, expected: Bools, filled: list[int], promised: list[int]
) -> None:
    candidates = walk.candidates
    rows, running = candidates.rows, candidates.contested >= 0
    waits = order[~running[order]]
    sheet.say(rows[waits[walk.skipped[candidates.tenant[waits]]]], Verdict.WAIT, TENANT_SKIPPED)
    sheet.say(rows[walk.misfits], Verdict.WAIT, MISFIT)
    sheet.say(rows[list(walk.granted)], Verdict.GRANT, OWED_MOST)
    sheet.say(rows[filled], Verdict.GRANT, FILLS)
    sheet.say(rows[running & expected], Verdict.RENEW, STILL_OWED)
    contested = rows[running]
    evicted, likely = contested[walk.contest.evicted], expected[running][walk.contest.evicted]
    sheet.say(evicted[~likely], Verdict.REVOKE, OTHERS_FIRST)
    sheet.say(evicted[likely], Verdict.REVOKE, NODE_NEEDED)
    sheet.say(contested[promised], Verdict.REVOKE, PROMISED_AWAY)


def _finished(view: View, sheet: Draft, walk: Walk, order: Ints) -> Plan:
    rows = walk.candidates.rows
    rank = np.full(len(view.snapshot.jobs), -1, dtype=np.int64)
    rank[rows[order]] = np.arange(len(order))
    score = np.full(len(rank), np.nan)
    considered = np.flatnonzero(view.waiting | view.expired)
    score[considered] = job_rho(view, considered)
    granted = np.array(list(walk.granted), dtype=np.int64)
    places = placed(rows[granted], list(walk.granted.values()))
    return sheet.finish(places, rank, score)
