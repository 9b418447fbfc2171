"""The worth of a GPU-hour to each job: a sum over work left, quota, fair finish time and makespan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Self

import numpy as np

from slurm_fair.ledger.formulas import ratio
from slurm_fair.model import Mode, Snapshot
from slurm_fair.policy import (
    Bools,
    Codes,
    Deadlines,
    Floats,
    Ints,
    ShapeSpeeds,
    View,
    alike,
    any_of,
    attained,
    over_array_limit,
    take_or,
    usual_gpus,
)
from slurm_fair.policy.orders.in_line import gpus_ahead
from slurm_fair.policy.remaining import LEAST_SECONDS, Remaining, limit_leaves
from slurm_fair.solve.lots import Payers, Quotas
from slurm_fair_plugins.fair.arrivals import stretched
from slurm_fair_plugins.fair.siblings import Asking, SiblingPlaces, changed_places

HOUR = 3600.0
_LEAST_PRICE_HOURS = 1e-4  # below a second of work nobody is nearly done: quota goes before everything
_LEAST_REPAY_LEASES = 1e-6  # what is lacking is back at once
_DEBT_WEIGHT = 100.0  # worth per GPU-hour of an hour of quota too many that a tenant lacks
# The makespan guard looks so many leases ahead, and no further than a small part of the backlog.
_AHEAD_TERMS, _AHEAD_PART = 2.0, 0.05
_MOST_DEBT_HOURS = 1e200  # beside weights that are next to nothing, so that no sum overflows
_SLIVER = 1e-9  # of a GPU
# While a tenant lacks too much, jobs beyond quotas have this much left at least: anybody may always say a second.
_LEAST_BEYOND_SECONDS, _LEAST_BEYOND_TERMS = 240.0, 0.25


class Term(IntEnum):
    """The part of a job's worth that decides its place."""

    CLAIM = 0  # it would miss its fair finish time
    MAKESPAN = 1  # it takes nearly as long as all work that there is
    NEARLY_DONE = 2
    QUOTA = 3
    PRICE = 4  # its tenant is beyond its quota, and what it has left is above the price
    DEBT = 5  # its tenant is within its quota, and lacks so much of it that its price has grown


@dataclass(frozen=True, slots=True)
class Objective:
    """The settings of the objective."""

    price_hours: float
    debt_hours: float
    repay_leases: float
    unknown_beyond: float
    claim: float
    stretch: float
    margin_seconds: float
    makespan: float
    makespan_part: float
    restart_seconds: float
    inertia: float
    growing_part: float

    @property
    def price(self) -> float:
        """The worth of a tenant's own GPU for an hour, in what is left: 1 / X."""
        return 1.0 / max(self.price_hours, _LEAST_PRICE_HOURS)

    def counted_left(self, run_left: Floats, runs: Bools) -> Floats:
        """Seconds that count as left: fewer for a job that runs, and what a restart costs more for the others."""
        return np.where(runs, run_left * (1.0 - self.inertia), run_left + self.restart_seconds)

    def growth(self, debt: Floats, term: float) -> Floats:
        """The part of itself by which a quota grows: its tenant has back what it lacks after so many leases."""
        if self.repay_leases <= 0:
            return np.zeros(len(debt))
        return debt * HOUR / (max(self.repay_leases, _LEAST_REPAY_LEASES) * term)

    def own_price(self, debt: Floats) -> Floats:
        """The price of a GPU-hour of a tenant's quota: it grows with what the tenant lacks beyond `debt_hours`.

        It grows by no more than puts the GPU before a job that has a second left: beside a larger sum no claim
        would count, and rounding would hide which of a tenant's jobs is shorter.
        """
        more = np.maximum(debt - self.debt_hours, 0.0) * _DEBT_WEIGHT * max(self.price, 1.0) ** 2
        return self.price + np.minimum(more, HOUR / LEAST_SECONDS)


@dataclass(frozen=True, slots=True)
class Worth:
    """The terms of some jobs, one entry for each of `rows`; worth is per GPU and hour."""

    rows: Ints
    total: Floats
    term: Codes  # Term
    left: Floats  # seconds that it counts as having left, with what a restart costs
    run_left: Floats  # seconds that it has left to run, without that
    ran: Floats  # seconds that it has run
    at_best: Floats  # seconds in the fastest of its ways
    known: Bools  # whether anybody said so
    limited: Bools  # nobody did, and its time limit leaves it no more
    slack: Floats  # seconds until it has to start to end in time; inf = it has no claim
    backlog: float  # seconds that all work takes at the least, and the longest job
    ahead: Floats  # GPUs of its own tenant that go before it
    quota: Floats  # GPUs of its tenant
    repaid: Floats  # GPUs beyond them that pay its tenant back what it lacks
    debt: Floats  # hours of its quota that its tenant lacks; 0 where that is too little to raise its price
    own: Floats  # of `total`, the part that it keeps when others of its tenant have the quota
    payers: Payers  # jobs that are nearly done fill nobody's quota
    deadlines: Deadlines | None = None  # None: no job has one
    siblings: SiblingPlaces | None = None  # None: no job has changed its place for a deadline

    @classmethod
    def of(cls, view: View, rows: Ints, crowd: int, aims: Objective, longer: Floats | None = None) -> Self:
        """The worth of these jobs; `crowd` is how many jobs share the cluster."""
        remaining = Remaining.of(view, longer)
        run_left = remaining.seconds[rows]
        left = aims.counted_left(run_left, view.over[rows])
        slack = _slack(view, rows, remaining, crowd, aims)
        at_best = _at_best(view, remaining)
        backlog, at_best = _backlog(view, remaining, at_best), at_best[rows]
        urgent = slack < aims.margin_seconds
        ahead_seconds = min(_AHEAD_TERMS * view.terms.term, _AHEAD_PART * backlog)
        known = remaining.known[rows]
        critical = known & (at_best + ahead_seconds >= aims.makespan_part * backlog) & np.isfinite(at_best)
        claim = aims.claim * np.where(urgent, 1.0 + (aims.margin_seconds - slack) / HOUR, 0.0)
        guard = aims.makespan * np.where(
            critical, 1.0 + np.where(critical, at_best, 0.0) / max(backlog, 1.0), 0.0
        )
        short = HOUR / left
        ahead = _ahead(view, rows, short + np.maximum(claim, guard), critical)
        tenant = view.snapshot.jobs.tenant[rows]
        lacks = _debt_hours(view)
        quota, debt = view.tenant_quota[tenant], lacks[tenant]
        repaid = quota * aims.growth(debt, view.terms.term)
        in_quota = ahead < quota + repaid - _SLIVER
        limited = ~known & (run_left >= limit_leaves(view)[rows])
        guess = aims.counted_left(attained(view, aims.unknown_beyond)[rows], view.over[rows])
        left = np.where(known | in_quota, left, guess)
        short = HOUR / left
        nearly = short >= aims.price
        claim, guard = (np.where(in_quota, each, 0.0) for each in (claim, guard))
        if any_of(debt > aims.debt_hours):
            least = min(_LEAST_BEYOND_SECONDS, _LEAST_BEYOND_TERMS * view.terms.term)
            short = np.where(in_quota, short, np.minimum(short, HOUR / least))
        price = np.where(in_quota, aims.own_price(debt), np.where(nearly, aims.price, 0.0))
        total = alike(short + price + claim + guard)
        own = np.where(nearly, total, alike(short + claim + guard))
        gpus = np.where(in_quota & ~nearly, usual_gpus(view)[rows], 0.0)
        over = gpus * _part_over(view, rows, quota + repaid - ahead)
        quotas = Quotas(
            np.bincount(tenant, gpus - over, len(lacks)).astype(np.float64), aims.own_price(lacks)
        )
        payers = Payers(np.where(nearly, -1, tenant), over, quotas)
        term = np.select(
            [claim > 0, guard > 0, in_quota & (debt > aims.debt_hours), nearly, in_quota],
            [Term.CLAIM, Term.MAKESPAN, Term.DEBT, Term.NEARLY_DONE, Term.QUOTA],
            Term.PRICE,
        )
        ran = view.ran_seconds[rows]
        lefts = left, run_left, ran, at_best
        sums = total, term.astype(np.int8), *lefts, known, limited, slack, backlog, ahead
        debt = np.where(debt > aims.debt_hours, debt, 0.0)
        return cls(rows, *sums, quota, repaid, debt, own, payers)

    def order(self, view: View) -> Ints:
        """Rows, what is worth most first; between equals the one submitted first."""
        return self.rows[self._order(view) if self.siblings is None else self.siblings.order]

    def _order(self, view: View) -> Ints:
        return np.lexsort((view.first_submit[self.rows], -self.total))

    def with_deadlines(self, view: View, found: Deadlines | None) -> Self:
        """The worth once jobs that must run now have changed places with others of their tenants.

        Who runs and is renewed in any case changes no place: another would have it beside him.
        """
        if found is None:
            return self
        takes_part = (view.waiting | view.contested)[self.rows]
        urgent = found.urgent & takes_part
        at = urgent.nonzero()[0]
        at = at[found.spare[at].argsort(kind="stable")]
        urgent[at[over_array_limit(view, self.rows[at])]] = False
        if not any_of(urgent):
            return replace(self, deadlines=found)
        tenant, gpus = view.snapshot.jobs.tenant[self.rows], view.weighed_gpus[self.rows].astype(np.float64)
        asking = Asking(tenant, gpus, self.term != Term.PRICE, urgent, found.spare)
        places = changed_places(asking, self._order(view), takes_part)
        had = self.payers.take(places.taken)
        # Who crosses a quota brings room for the rest of one gang, however many share its place.
        beyond = np.where(places.last, np.minimum(had.beyond, usual_gpus(view)[self.rows]), 0.0)
        return replace(
            self,
            total=self.total[places.taken],
            own=self.own[places.taken],
            payers=had._replace(beyond=beyond),
            deadlines=found,
            siblings=places,
        )

    def by_row(self, jobs: int, column: Floats) -> Floats:
        """A column for all rows of the snapshot's jobs, nan where a job is none of these."""
        numbers = np.full(jobs, np.nan)
        numbers[self.rows] = column
        return numbers


def _part_over(view: View, rows: Ints, left: Floats) -> Floats:
    """The part of each gang beyond what is left of its tenant's quota."""
    return np.clip(1.0 - left / np.maximum(view.weighed_gpus[rows], _SLIVER), 0.0, 1.0)


def _debt_hours(view: View) -> Floats:
    """[tenant]: hours of its quota that it lacks: GPU time that it was owed and wanted and did not have."""
    sums, quota = view.tenant_sums, view.tenant_quota
    lacks = take_or(np.maximum(sums.owed_demand - sums.had, 0.0), view.tenant_account, 0.0)
    an_hour = np.where(quota > 0, np.maximum(quota * HOUR, lacks / _MOST_DEBT_HOURS), 0.0)
    return ratio(lacks, an_hour, nothing=0.0)


def has_shapes(snapshot: Snapshot) -> bool:
    """True where jobs could run in other shapes: on several GPU types, or in several sizes."""
    return len(snapshot.gpu_types) > 1 or (snapshot.sizes is not None and len(snapshot.sizes) > 0)


def _slack(view: View, rows: Ints, remaining: Remaining, crowd: int, aims: Objective) -> Floats:
    """Seconds that each may still wait for its fair finish time; inf where nobody knows how long it takes.

    Where jobs have a choice of shapes, an even share is one of GPUs: a gang of g takes g times as long in it.
    """
    left, said = remaining.seconds[rows], view.told_alone.done_seconds[rows]
    left = left * np.where(view.told_alone.mode[rows] == Mode.GNS, aims.growing_part, 1.0)
    done = np.where(np.isnan(said), view.ran_seconds[rows], said)
    sharing = np.full(len(rows), float(crowd))
    if has_shapes(view.snapshot):
        sharing = sharing * usual_gpus(view)[rows]
    crowded = crowd > view.snapshot.total_gpus  # else nobody has to wait: quotas alone decide
    known = remaining.known[rows] & crowded & (aims.claim > 0) & np.isfinite(left)
    left = np.where(known, left, 0.0)
    due = view.first_submit[rows] + stretched(view, sharing, done + left, aims.stretch)
    return np.where(known, due - view.now - left, np.inf)


def _at_best(view: View, remaining: Remaining) -> Floats:
    """Seconds that each job has left in the fastest of its ways; as usual where it has none now."""
    if not has_shapes(view.snapshot):
        return remaining.seconds
    shapes = ShapeSpeeds.of(view, view.snapshot.nodes.capacity)
    fastest = np.zeros(len(remaining.seconds))
    np.maximum.at(fastest, shapes.row, shapes.speed)
    return remaining.seconds / np.where(fastest > 0, fastest, 1.0)


def _backlog(view: View, remaining: Remaining, at_best: Floats) -> float:
    """Seconds that all work takes if every GPU is busy, and the longest known job by itself.

    All work is done in jobs' usual sizes, on GPUs of each type alike.
    """
    rows = view.claims.nonzero()[0]
    known = rows[remaining.known[rows]]
    if not known.size:
        return 0.0
    types, gpus = view.snapshot.nodes.gpus_of_types
    speed = view.told.rate[np.ix_(rows, types)] @ gpus / max(gpus.sum(), 1.0)
    work = remaining.seconds[rows] * usual_gpus(view)[rows] / np.where(speed > 0, speed, 1.0)
    return max(float(work.sum()) / max(view.snapshot.total_gpus, 1), float(at_best[known].max()))


def _ahead(view: View, rows: Ints, within: Floats, critical: Bools) -> Floats:
    """GPUs of its own tenant that go before each of these, by weight.

    First counts what a tenant holds under leases that go on, then its jobs by `within`, the highest first. The
    `critical` ones count before what is held: else the longest job would be stopped each time that others of its
    tenant were lent GPUs, and end alone.
    """
    tenant, gpus = view.snapshot.jobs.tenant[rows], view.weighed_gpus[rows].astype(np.float64)
    runs = view.over[rows]
    held = view.tenant_used - np.bincount(tenant[runs], gpus[runs], len(view.tenant_used))
    order = np.lexsort((view.first_submit[rows], -alike(within), tenant))
    mine = tenant[order]
    ahead = np.empty(len(rows))
    ahead[order] = gpus_ahead(mine, gpus[order]) + np.where(critical[order], 0.0, held[mine])
    return ahead
