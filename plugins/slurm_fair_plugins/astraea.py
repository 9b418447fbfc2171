"""Astraea: long-term GPU-time fairness by leases (Ye et al., TPDS 2022), algorithms 1 and 2 and section 5.1.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from slurm_fair.model import Blocked, Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, absent, all_of, any_of
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
from slurm_fair.policy.gang import Pools
from slurm_fair.policy.placement import Placer, placer, spreads
from slurm_fair.policy.rivals import NoRivals
from slurm_fair.policy.settings import PlacerName, Within, check_settings
from slurm_fair.policy.shapes import Shapes
from slurm_fair.policy.two_phase import (
    Accounts,
    Balances,
    by_tenant,
    expected_winners,
    merged,
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
MUST_START = "it must run now to make its deadline"
MUST_GO_ON = "it must go on to make its deadline"
TOO_LATE = "it can no longer make its deadline, so it waits its turn"

URGENT, NEW, KEPT, OTHER = range(4)  # order of preference inside a tenant (section 5.2.1)


@dataclass(frozen=True, slots=True)
class Astraea:
    """The neediest tenant's neediest job first; the fields are the settings.

    Section 5.2.1 names three kinds of jobs that a tenant's own order may prefer, and 6.1.1 uses one of them: so
    new jobs first is on, and long-renewed leases are not preferred. The paper does not rank the kinds; here a
    deadline goes before a first start, because what is missed is missed for good. None of it changes what tenants
    get: a tenant's turn comes by its rho alone, and a preferred job is charged like any other.

    Jobs store only when they lose their lease (5.1.1, on-demand checkpoint): one that is renewed hears nothing.
    """

    choose_share: Literal["quota", "demand"] = "quota"  # eq. 16 or eq. 8
    new_jobs_first: bool = True  # a job that never ran goes before others of its tenant
    # So do leases renewed this often, after the new jobs.
    keep_long_renewed: Annotated[int, Within(0, 1e9, "0 = off")] = 0
    urgent: Literal["tight", "any", "off"] = "tight"  # which jobs with a deadline go before all these
    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "astraea")

    def plan(self, view: View) -> Plan:
        """One round: pick on all free and expired GPUs, renew in place, place the others, fill what is left."""
        sheet = Draft(view)
        if not any_of(view.waiting | view.expired):
            return sheet.unchanged(rests=True)
        pools = Pools.of(view.snapshot)
        settled = _settled(view, pools, sheet)
        candidates = _candidates(view, pools, settled, spreads(self.placement))
        accounts = Accounts(view, candidates.rows)
        deadlines = Deadlines.of(view, candidates.rows, self.urgent)
        offers = self._offers(candidates, accounts, deadlines, sheet)
        order = self._picks(view, candidates, offers, settled)
        expected = _expected(view, pools, candidates, order)
        contest = _contest(view, pools, placer(self.placement), candidates, order, expected)
        walk = Walk(candidates, pools, contest)
        promised = contest.clear_debts()
        walk.strict(order)
        filled = walk.fill(self._left_over(view, walk, offers, settled))
        _say(sheet, walk, order, expected, filled, promised)
        if deadlines is not None:
            deadlines.say(sheet, walk)
        return _finished(sheet, walk, order, accounts, settled)

    def _offers(
        self,
        candidates: Candidates,
        accounts: Accounts,
        deadlines: Deadlines | None,
        sheet: Draft,
    ) -> Ints:
        """Every tenant's jobs in its own order (algorithm 2), without those that cannot run."""
        rows = candidates.rows
        offers = np.arange(len(rows))
        if len(rows) > 1:
            preference, need = self._preference(accounts), accounts.rho
            if deadlines is not None:
                preference[deadlines.urgent] = URGENT
                need = np.where(
                    deadlines.urgent, deadlines.spare, need
                )  # among these the least time to spare
            offers = by_tenant(candidates.tenant, preference, need, accounts.first_submit)
        possible = candidates.shapes.possible()
        if not all_of(possible):
            nowhere = np.zeros(len(rows), dtype=bool)
            nowhere[candidates.asking >= 0] = ~possible
            sheet.say(rows[nowhere], Verdict.WAIT, NOWHERE)
            offers = offers[~nowhere[offers]]
        over = over_array_limit(accounts.view, rows[offers])
        if any_of(over):
            sheet.say(rows[offers[over]], Verdict.WAIT, BLOCKED_REASONS[Blocked.ARRAY_LIMIT])
            offers = offers[~over]
        return offers

    def _preference(self, accounts: Accounts) -> Ints:
        preference = np.full(len(accounts.rows), OTHER, dtype=np.int64)
        if self.keep_long_renewed > 0:
            preference[accounts.view.renewals[accounts.rows] >= self.keep_long_renewed] = KEPT
        if self.new_jobs_first:
            preference[accounts.never_ran] = NEW
        return preference

    def _picks(self, view: View, candidates: Candidates, offers: Ints, *served: Ints) -> Ints:
        """Phase 1: the tenants' offers in the order in which they are picked, after what these rows cost."""
        if len(offers) < 2:
            return offers
        balances = Balances.of(view, self.choose_share)
        for rows in served:
            if len(rows):
                balances = balances.charged(*_charges(view, rows))
        merge = merged(balances, candidates.tenant[offers], candidates.gpus[offers], view.terms.term)
        picks: Ints = offers[merge]
        return picks

    def _left_over(self, view: View, walk: Walk, offers: Ints, settled: Ints) -> Ints:
        """Waiting jobs that still fit somewhere, picked anew after what the round has cost their tenants."""
        candidates = walk.candidates
        if len(walk.granted) == len(candidates.rows) - candidates.runs:
            return offers[:0]
        served = candidates.contested >= 0
        served[list(walk.granted)] = True
        left = offers[~served[offers]]
        if len(left):
            left = left[walk.fitting()[left]]
        if len(left) < 2:
            return left
        served[(candidates.contested >= 0).nonzero()[0][walk.contest.evicted]] = False
        return self._picks(view, candidates, left, settled, candidates.rows[served])


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Which candidates have to run now, as users and progress say it (section 5.2.1, third kind)."""

    spare: Floats  # seconds that it may still wait before it has to start
    urgent: Bools
    missed: Bools  # it has a deadline that it cannot make even if it runs from now on

    @classmethod
    def of(cls, view: View, rows: Ints, urgent: str) -> Deadlines | None:
        """None where no candidate has a deadline, or nobody is to go by them."""
        said = view.snapshot.told
        if said is None or urgent == "off":
            return None
        at = np.isfinite(said.deadline[rows]).nonzero()[0]
        if len(at) == 0:
            return None
        terms, ahead = view.terms, said.deadline[rows[at]] - view.now
        left, again = _needed(view, rows[at], ahead)
        spare, late = ahead - again, np.where(view.waiting[rows[at]], again, left) > ahead
        # A lease later it may take until the job whose GPUs it gets has given them back.
        soon = terms.term + terms.grace + terms.interval if urgent == "tight" else np.inf
        found = cls(np.zeros(len(rows)), np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool))
        found.spare[at], found.urgent[at], found.missed[at] = spare, ~late & (spare < soon), late
        return found

    def say(self, sheet: Draft, walk: Walk) -> None:
        """What deadlines have to do with who runs and who waits."""
        rows, stays = walk.candidates.rows, walk.candidates.contested >= 0
        waits = ~stays
        stays[np.flatnonzero(stays)[walk.contest.evicted]] = False
        granted = list(walk.granted)
        waits[granted] = False
        starts = np.zeros(len(rows), dtype=bool)
        starts[granted] = True
        sheet.say(rows[starts & self.urgent], Verdict.GRANT, MUST_START)
        sheet.say(rows[stays & self.urgent], Verdict.RENEW, MUST_GO_ON)
        sheet.say(rows[waits & self.missed], Verdict.WAIT, TOO_LATE)


def _needed(view: View, rows: Ints, ahead: Floats) -> tuple[Floats, Floats]:
    """Seconds that each needs if it goes on, and if it starts anew.

    Slurm starts a job only when its whole time limit fits before its deadline, however little of it is left. A job
    of which nobody knows how long it takes needs all the time that there is.
    """
    left, limit = view.told.left_seconds[rows], view.snapshot.jobs.time_limit_seconds[rows]
    left = np.where(np.isfinite(left), left, np.maximum(ahead, 0.0))
    again = np.where(np.isfinite(limit), np.maximum(left, limit), left)
    return left, again


def _settled(view: View, pools: Pools, sheet: Draft) -> Ints:
    """Rows whose lease is over and renewed whatever the others are owed."""
    if not any_of(view.expired):
        return np.zeros(0, dtype=np.int64)
    places = view.lease_places
    of_use = np.zeros(len(view.expired), dtype=bool)
    of_use[places.row[pools.usable[places.node]]] = True
    stranded = view.expired & ~of_use
    settled: Ints = (view.pinned_down | stranded).nonzero()[0]
    if len(settled):
        sheet.say(stranded, Verdict.RENEW, UNUSABLE_NODES)
        sheet.say(view.pinned_down, Verdict.RENEW, LOSES_WORK)
    return settled


def _candidates(view: View, pools: Pools, settled: Ints, spread: bool) -> Candidates:
    jobs, expired = view.snapshot.jobs, view.expired
    if len(settled):
        expired = expired.copy()
        expired[settled] = False
    rows = (view.waiting | expired).nonzero()[0]
    runs = expired[rows]
    contested, asking = _numbered(runs)
    waits = rows[~runs]
    shapes = Shapes.of(pools, view.snapshot, waits, spread=spread)
    return Candidates(
        rows, jobs.tenant[rows], jobs.gpus[rows], contested, asking, shapes, len(rows) - len(waits)
    )


def _numbered(flags: Bools) -> tuple[Ints, Ints]:
    """The place of each flagged one among these, and of each other one among those; -1 where it is not of them."""
    every = np.arange(len(flags))
    if not any_of(flags):
        return np.full(len(flags), -1, dtype=np.int64), every
    place = flags.cumsum() - 1
    return np.where(flags, place, -1), np.where(flags, -1, every - place - 1)


def _charges(view: View, rows: Ints) -> tuple[Ints, Floats]:
    """What a lease costs each job's tenant: r * t_lease (algorithm 1, line 14)."""
    jobs = view.snapshot.jobs
    return jobs.tenant[rows], jobs.gpus[rows].astype(np.float64) * view.terms.term


def _expected(view: View, pools: Pools, candidates: Candidates, order: Ints) -> Bools:
    """Whose lease is likely to be renewed."""
    if not candidates.runs:
        return np.zeros(len(candidates.rows), dtype=bool)
    return expected_winners(view, pools, candidates, order)


def _contest(
    view: View, pools: Pools, place: Placer, candidates: Candidates, order: Ints, expected: Bools
) -> Contest | NoRivals:
    if not candidates.runs:
        return NoRivals(view, pools, place)
    contested = candidates.contested >= 0
    rank = np.zeros(len(candidates.rows), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Contest(view, pools, place, candidates.rows[contested], rank[contested], ~expected[contested])


def _say(
    sheet: Draft, walk: Walk, order: Ints, expected: Bools, filled: list[int], promised: list[int]
) -> None:
    candidates, rows = walk.candidates, walk.candidates.rows
    if walk.misfits:
        waits = order[candidates.contested[order] < 0]
        sheet.say(rows[waits[walk.skipped(waits)]], Verdict.WAIT, TENANT_SKIPPED)
        sheet.say(rows[walk.misfits], Verdict.WAIT, MISFIT)
    if walk.granted:
        sheet.say(rows[list(walk.granted)], Verdict.GRANT, OWED_MOST)
    if filled:
        sheet.say(rows[filled], Verdict.GRANT, FILLS)
    if candidates.runs:
        running = candidates.contested >= 0
        _say_of_leases(sheet, rows[running], expected[running], walk.contest.evicted, promised)


def _say_of_leases(
    sheet: Draft, contested: Ints, expected: Bools, evicted: list[int], promised: list[int]
) -> None:
    sheet.say(contested[expected], Verdict.RENEW, STILL_OWED)
    if evicted:
        likely = expected[evicted]
        sheet.say(contested[evicted][~likely], Verdict.REVOKE, OTHERS_FIRST)
        sheet.say(contested[evicted][likely], Verdict.REVOKE, NODE_NEEDED)
        sheet.say(contested[promised], Verdict.REVOKE, PROMISED_AWAY)


def _scores(accounts: Accounts, settled: Ints) -> Floats:
    """The rho of the candidates, and of those whose renewal was settled before."""
    view = accounts.view
    score = np.full(len(view.waiting), np.nan)
    score[accounts.rows] = accounts.rho
    if len(settled):
        score[settled] = Accounts(view, settled).rho
    return score


def _finished(sheet: Draft, walk: Walk, order: Ints, accounts: Accounts, settled: Ints) -> Plan:
    rows = walk.candidates.rows
    rank = absent(len(accounts.view.waiting))
    rank[rows[order]] = np.arange(len(order))
    places = (
        placed(rows[list(walk.granted)], list(walk.granted.values())) if walk.granted else Placement.none()
    )
    return sheet.finish(places, rank, lambda: _scores(accounts, settled), rests=True)
