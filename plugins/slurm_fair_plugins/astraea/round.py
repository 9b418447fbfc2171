"""One round of `astraea`: tenants are offered GPUs, each picks among its own jobs, and a walk places them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from slurm_fair.model import Blocked, Placement, Verdict
from slurm_fair.model.columns import among
from slurm_fair.policy import (
    Balances,
    Bools,
    Candidates,
    Deadlines,
    Draft,
    Floats,
    Ints,
    Pools,
    Shapes,
    Sites,
    View,
    Walk,
    absent,
    all_of,
    any_of,
    by_tenant,
    expected_winners,
    merged,
    once,
    over_array_limit,
    placed,
    placer,
    ranks,
    spreads,
)
from slurm_fair.policy.draft import BLOCKED_REASONS, LOSES_WORK, OTHERS_FIRST, UNUSABLE_NODES, Saying
from slurm_fair.policy.orders.two_phase import Accounts, fits_first_leases
from slurm_fair.policy.orders.walk import contest_of, may_place, placed_alone, with_due_gangs_first
from slurm_fair_plugins.astraea.deadlines import deadline_reasons
from slurm_fair_plugins.astraea.settings import AstraeaSettings
from slurm_fair_plugins.astraea.walked import Walked
from slurm_fair_plugins.astraea.words import (
    EARLY,
    NODE_NEEDED,
    NOWHERE,
    PROMISED_AWAY,
    STILL_OWED,
)


class Preference(IntEnum):
    """The order of preference inside a tenant (section 5.2.1)."""

    URGENT = 0
    NEW = 1
    KEPT = 2
    OTHER = 3


# No slots: each part is worked out when it is first asked for, and many a round has no need of some.
@dataclass(frozen=True)
class Round:
    """The candidates of one round, and the order in which they are picked."""

    settings: AstraeaSettings
    view: View

    @once
    def pools(self) -> Pools:
        """The nodes on which gangs may lie."""
        return Pools.of(self.view.snapshot)

    @once
    def uncontested(self) -> Ints:
        """Rows whose lease is over and renewed whatever the others are owed."""
        view = self.view
        if not view.over_rows.size:
            return view.over_rows
        return (view.only_renewable | view.stranded).nonzero()[0]

    @once
    def candidates(self) -> Candidates:
        """The jobs that wait, and those that run under a lease that is over."""
        view, rows = self.view, self.view.waiting_rows
        runs = np.zeros(len(rows), dtype=bool)
        if view.over_rows.size:
            rows = (view.waiting | view.contested).nonzero()[0]
            runs = view.contested[rows]
        numbers, asking = _numbered(runs)
        shapes = Shapes.of(self.pools, view.snapshot, rows[~runs], spread=spreads(self.settings.placement))
        return Candidates(view.snapshot.jobs, rows, numbers, asking, shapes, int(np.count_nonzero(runs)))

    @once
    def accounts(self) -> Accounts:
        """The ledger's rows of the candidates."""
        return Accounts.of(self.view, self.candidates.rows)

    @once
    def rho(self) -> Floats:
        return self.accounts.rho()

    @once
    def _need(self) -> Floats:
        """The rho by which siblings are compared: of one that runs, without the leases that it may be ahead."""
        ahead = self.settings.swap_after * self.view.terms.term
        if not ahead or not self.candidates.runs:
            return self.rho
        return self.accounts.rho(np.where(self.running, self._weighed * ahead, 0.0))

    @once
    def _weighed(self) -> Ints | Floats:
        """The candidates' gangs by the weight of the GPUs: what a lease is charged by."""
        return self.view.weighed_gpus[self.candidates.rows]

    @once
    def deadlines(self) -> Deadlines | None:
        """Deadlines of the candidates that have one."""
        return Deadlines.of(self.view, self.candidates.rows, self.settings.urgent)

    @once
    def nowhere(self) -> Bools:
        """Candidates for which there is no place in the cluster."""
        nowhere = np.zeros(len(self.candidates.rows), dtype=bool)
        nowhere[self.candidates.asking >= 0] = ~self.candidates.shapes.possible()
        return nowhere

    @once
    def _own_order(self) -> tuple[Ints, Ints]:
        """Every tenant's jobs in its own order (algorithm 2): who can run, and who is over an array limit."""
        rows, tenant = self.candidates.rows, self.candidates.tenant
        several = any_of(np.bincount(tenant) > 1)
        offers: Ints = by_tenant(tenant, *self._within_tenant()) if several else tenant.argsort()
        if not all_of(self.candidates.shapes.possible()):
            offers = offers[~self.nowhere[offers]]
        over = over_array_limit(self.view, rows[offers])
        return (offers[~over], offers[over]) if any_of(over) else (offers, offers[:0])

    def _within_tenant(self) -> tuple[Ints, Floats, Floats]:
        """The keys by which a tenant's own jobs are ordered: whether it prefers them, their need, their age."""
        accounts, need, deadlines = self.accounts, self._need, self.deadlines
        preference = np.empty(len(need), dtype=np.int64)
        preference.fill(Preference.OTHER)
        longest = self.settings.keep_long_renewed
        if longest > 0:
            terms = self.view.terms
            renewals = self.view.renewals[accounts.rows] * (terms.shortest / terms.term)  # in whole terms
            preference[renewals >= longest] = Preference.KEPT
        if self.settings.new_jobs_first:
            preference[accounts.never_ran()] = Preference.NEW
        if deadlines is not None:
            preference[deadlines.urgent] = Preference.URGENT
            need = np.where(deadlines.urgent, deadlines.spare, need)  # among these the least time to spare
        return preference, need, accounts.first_submit()

    @once
    def order(self) -> Ints:
        """Phase 1: the candidates as they are picked."""
        return self._picks(self._own_order[0], self.uncontested)

    @once
    def walk_order(self) -> Ints:
        """The order, behind early starts, and behind gangs for which nodes were set aside that are free now."""
        early = self.early[self.order]
        order = np.concatenate((self.order[early], self.order[~early])) if any_of(early) else self.order
        rows = self.candidates.rows[order]
        in_order = with_due_gangs_first(self.view, rows)
        return order if in_order is rows else ranks(len(self.view.waiting), self.candidates.rows)[in_order]

    @once
    def early(self) -> Bools:
        """Candidates that never ran, and whose tenant's first leases leave room for them in its quota.

        None where a job of the tenant has a deadline to make: that one goes first.
        """
        settings, tenant, early = self.settings, self.candidates.tenant, np.zeros(len(self.rho), dtype=bool)
        if not settings.early_starts or not settings.new_jobs_first:
            return early
        new = self.accounts.never_ran()
        if self.deadlines is not None:
            new &= ~among(tenant, np.unique(tenant[self.deadlines.urgent]))
        starts = self.order[new[self.order]]
        if starts.size:
            starts = starts[tenant[starts].argsort(kind="stable")]
            gpus = self._weighed[starts]
            early[starts] = fits_first_leases(self.view, tenant[starts], gpus, settings.early_starts)
        return early

    def _picks(self, offers: Ints, *served: Ints) -> Ints:
        """The tenants' offers in the order in which they are picked, after what these rows cost."""
        tenant = self.candidates.tenant[offers]
        if len(offers) < 2 or tenant.item(0) == tenant.item(-1):  # one tenant's, in its own order
            return offers
        balances = Balances.of(self.view, self.settings.choose_share)
        for rows in served:
            if len(rows):
                balances = balances.charged(*_charges(self.view, rows))
        merge = merged(balances, tenant, self._weighed[offers], self.view.terms.term)
        return offers[merge]

    @once
    def expected(self) -> Bools:
        """True where a candidate's lease is likely to be renewed."""
        if not self.candidates.runs:
            return np.zeros(len(self.candidates.rows), dtype=bool)
        return expected_winners(self.view, self.pools, self.candidates, self.walk_order)

    def _alone(self) -> Sites | None:
        """The sites of the only job that waits, if it needs nobody's GPUs: then nobody need be put in order."""
        name = self.settings.placement
        return placed_alone(self.view, self.pools, placer(name), spreads(name))

    def _may_change(self) -> bool:
        """False where the walk could change nothing: then it is made only for those who ask why."""
        view = self.view
        if view.over_rows.size and view.owes:
            return True
        return may_place(view, self.pools, spreads(self.settings.placement))

    @once
    def walked(self) -> Walked | None:
        """Phase 2: down the order, and once more for what is left over; None where it could change nothing."""
        if not self.view.waiting_rows.size and not self.view.owes:
            return None
        place = placer(self.settings.placement)
        contest = contest_of(self.view, self.pools, place, self.candidates, self.walk_order, self.expected)
        walk = Walk(self.candidates, self.pools, contest)
        promised = walk.contest.clear_debts()
        walk.strict(self.walk_order)
        filled = walk.fill(self._left_over(walk))
        return Walked.of(walk, filled, promised)

    def _left_over(self, walk: Walk) -> Ints:
        """Waiting jobs that still fit somewhere, picked anew after what the round has cost their tenants."""
        candidates, offers = self.candidates, self._own_order[0]
        if len(walk.granted) == len(candidates.rows) - candidates.runs:
            return offers[:0]
        served = candidates.contest_place >= 0
        served[list(walk.granted)] = True
        left = offers[~served[offers]]
        if len(left):
            left = left[walk.fitting()[left]]
        if len(left) < 2:
            return left
        served[(candidates.contest_place >= 0).nonzero()[0][walk.contest.evicted]] = False
        return self._picks(left, self.uncontested, candidates.rows[served])

    @once
    def rank(self) -> Ints:
        """Places in the order, by row of the snapshot's jobs."""
        return ranks(len(self.view.waiting), self.candidates.rows[self.order])

    @once
    def score(self) -> Floats:
        """The rho of the candidates, and of those whose renewal nobody contests."""
        score = np.full(len(self.view.waiting), np.nan)
        score[self.candidates.rows] = self.rho
        if len(self.uncontested):
            score[self.uncontested] = Accounts.of(self.view, self.uncontested).rho()
        return score

    def say(self, sheet: Draft) -> Placement:
        """Puts the verdicts into the draft; returns where the granted gangs lie."""
        sheet.explain_later(self._why)
        if not self._may_change():
            return Placement.none()
        alone = self._alone()
        if alone is not None:
            sheet.decide(self.view.waiting_rows, Verdict.GRANT)
            return placed(self.view.waiting_rows, [alone])
        walked = self.walked
        if walked is None:
            return Placement.none()
        rows = self.candidates.rows
        if walked.evicted:
            sheet.decide(rows[self.running][walked.evicted], Verdict.REVOKE)
        if walked.granted:
            sheet.decide(rows[walked.granted], Verdict.GRANT)
        return walked.places

    def _why(self) -> Iterator[Saying]:
        """Reasons for all verdicts: a later one replaces an earlier one."""
        view, rows, walked = self.view, self.candidates.rows, self.walked
        contested, expected = rows[self.running], self.expected[self.running]
        yield view.stranded, UNUSABLE_NODES
        yield view.only_renewable, LOSES_WORK
        yield rows[self.nowhere], NOWHERE
        yield rows[self._own_order[1]], BLOCKED_REASONS[Blocked.ARRAY_LIMIT]
        if walked is not None:
            yield from walked.why(self.candidates, self.order)
            first = np.array([job for job in walked.granted if job not in walked.filled], dtype=np.int64)
            yield rows[first[self.early[first]]], EARLY
        yield contested[expected], STILL_OWED
        if walked is not None and walked.evicted:
            likely = expected[walked.evicted]
            yield contested[walked.evicted][~likely], OTHERS_FIRST
            yield contested[walked.evicted][likely], NODE_NEEDED
            yield contested[walked.promised], PROMISED_AWAY
        if self.deadlines is not None:
            yield from deadline_reasons(self.deadlines, rows, self.running, walked)

    @property
    def running(self) -> Bools:
        """Candidates that run: those that are contested."""
        return self.candidates.contest_place >= 0


def _numbered(flags: Bools) -> tuple[Ints, Ints]:
    """The place of each flagged one among these, and of each other one among those; -1 where it is not of them."""
    every = np.arange(len(flags))
    if not any_of(flags):
        return absent(len(flags)), every
    place = flags.cumsum() - 1
    return np.where(flags, place, -1), np.where(flags, -1, every - place - 1)


def _charges(view: View, rows: Ints) -> tuple[Ints, Floats]:
    """The cost of a lease to each job's tenant: r * t_lease (algorithm 1, line 14)."""
    jobs = view.snapshot.jobs
    return jobs.tenant[rows], view.weighed_gpus[rows].astype(np.float64) * view.terms.term
