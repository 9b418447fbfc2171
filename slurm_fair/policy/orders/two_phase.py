"""Two-phase selection (Astraea, algorithms 1 and 2): the neediest tenant, then its neediest job.

A job's rho does not change inside a round, so each tenant's jobs are sorted once; a tenant's rho before its
k-th grant is known from the gangs before it and never falls, so the picks of the loop are one merge of the
tenants' lists: one sort by that number gives them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.ledger.formulas import Numbers, rho_for_choosing
from slurm_fair.model import Placement, Plan, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of, find, ranks, take_or
from slurm_fair.policy.orders.alike import alike
from slurm_fair.policy.orders.in_line import gpus_ahead
from slurm_fair.policy.orders.walk import Candidates
from slurm_fair.policy.packing.gang import Pools
from slurm_fair.policy.view import View, first_submitted

_FEW_OF = 8  # to look up one in so many costs less than to match all


@dataclass(frozen=True, slots=True)
class Balances:
    """GPU-seconds that each of the snapshot's tenants has had and was owed."""

    had: Floats
    owed: Floats
    weight: Floats

    @classmethod
    def of(cls, view: View, share: str) -> Balances:
        """The balances of the ledger; `share` is `quota` (eq. 16) or `demand` (eq. 8)."""
        accounts, row = view.tenant_sums, view.tenant_account
        owed = accounts.owed_quota if share == "quota" else accounts.owed_demand
        return cls(take_or(accounts.had, row, 0.0), take_or(owed, row, 0.0), view.snapshot.tenants.weight)

    def charged(self, tenant: Ints, gpu_seconds: Floats) -> Balances:
        """The balances after these grants: what is owed stays (algorithm 1, line 14)."""
        if not len(tenant):
            return self
        more = np.bincount(tenant, weights=gpu_seconds, minlength=len(self.had))
        return Balances(self.had + more, self.owed, self.weight)


@dataclass(frozen=True, slots=True)
class Accounts:
    """The ledger's columns for some rows of the snapshot's jobs."""

    view: View
    rows: Ints
    row: Ints  # of the ledger's jobs, -1 where it has not met the job

    @classmethod
    def of(cls, view: View, rows: Ints) -> Accounts:
        """Accounts of these rows alone where they are few, as mostly they are."""
        met, keys = view.ledger.jobs.key, view.snapshot.jobs.key
        few = len(rows) * _FEW_OF < len(keys)
        return cls(view, rows, find(met, keys[rows]) if few else view.account_row[rows])

    def rho(self, forgiven: Floats | float = 0.0) -> Floats:
        """rho_i for choosing: 0 for a job without a claim yet (eq. 15).

        `forgiven` are GPU-seconds of each that do not count against it.
        """
        jobs = self.view.ledger.jobs
        had = np.maximum(take_or(jobs.had, self.row, 0.0) - forgiven, 0.0)
        return rho_for_choosing(had, take_or(jobs.owed, self.row, 0.0))

    def never_ran(self) -> Bools:
        """Waiting jobs that have not had a GPU yet."""
        ran = take_or(self.view.ledger.jobs.ran, self.row, 0.0)
        new: Bools = (ran == 0) & self.view.waiting[self.rows]
        return new

    def first_submit(self) -> Floats:
        """The instant of each job's first submission."""
        view = self.view
        return first_submitted(view.ledger.jobs, self.row, view.snapshot.jobs.submit[self.rows])


def by_tenant(tenant: Ints, preference: Ints, rho: Floats, submit: Floats) -> Ints:
    """Order in which each tenant offers its jobs (algorithm 2): preferred first, then smallest rho, then age."""
    if len(tenant) < 2:
        return np.arange(len(tenant))
    # One short number sorts many times faster than two long ones.
    least = preference.min()
    group = tenant * (preference.max() - least + 1) + (preference - least)
    if group.max() <= np.iinfo(np.int16).max:
        group = group.astype(np.int16)
    if all_of(submit[1:] >= submit[:-1]):  # mostly they come by age, and what is equal stays as it came
        return np.lexsort((alike(rho), group))
    return np.lexsort((submit, alike(rho), group))


def merged(balances: Balances, tenant: Ints, gpus: Numbers, lease_seconds: float) -> Ints:
    """Order of the picks over jobs that are sorted by tenant and, within a tenant, by its own order.

    `gpus` are by weight. Equal rho goes to the tenant with less per weight (the limit of rho when nobody is owed
    anything yet), then to the heavier one, then by name.
    """
    if len(tenant) < 2:
        return np.arange(len(tenant))
    had = balances.had[tenant] + lease_seconds * gpus_ahead(tenant, gpus)
    rho = alike(rho_for_choosing(had, balances.owed[tenant]))
    # The tenants come in the order of their names, and so do the jobs: what is alike stays so. A tenant's own rho
    # never falls, so that only what is alike among tenants needs more than one number.
    order: Ints = rho.argsort(kind="stable")
    in_order, whose = rho[order], tenant[order]
    if not any_of((in_order[1:] == in_order[:-1]) & (whose[1:] != whose[:-1])):
        return order
    weight = balances.weight[tenant]
    per_weight = np.empty(len(tenant))
    per_weight.fill(np.inf)
    np.divide(had, weight, out=per_weight, where=weight > 0)
    return np.lexsort((-weight, alike(per_weight), rho))


def fits_first_leases(view: View, tenant: Ints, gpus: Numbers, part: float) -> Bools:
    """True for jobs that never ran if they fit this part of their tenant's quota with all its first leases.

    They are sorted by tenant, and who comes earlier counts. A first lease is that of a job that never stopped,
    until it is over.
    """
    jobs = view.snapshot.jobs
    first = (view.leased & (view.renewals == 0) & (jobs.restarts == 0) & ~view.over).nonzero()[0]
    held = np.bincount(jobs.tenant[first], view.weighed_gpus[first], len(view.snapshot.tenants))
    fits: Bools = held[tenant] + gpus_ahead(tenant, gpus) + gpus <= part * view.tenant_quota[tenant]
    return fits


def decided_by(plan: Plan, view: View, share: str = "quota") -> Floats:
    """The tenant's number that gave each job its place in an Astraea plan; nan for one without a place.

    It is the tenant's rho by that share after the leases that the plan gives it before this job: along the
    order it never falls. Who goes before a job has a number that is no greater than its own.
    """
    jobs, numbers = view.snapshot.jobs, np.full(len(plan.verdict), np.nan)
    ranked = (plan.explanation.rank >= 0).nonzero()[0]
    ranked = ranked[plan.explanation.rank[ranked].argsort(kind="stable")]
    stays = (plan.verdict != Verdict.REVOKE) & (plan.explanation.rank < 0)
    before = view.over_rows[stays[view.over_rows]]  # renewed, now or at the next beat
    lease_seconds = view.terms.term
    balances = Balances.of(view, share).charged(
        jobs.tenant[before], view.weighed_gpus[before] * lease_seconds
    )
    by_tenant = ranked[jobs.tenant[ranked].argsort(kind="stable")]
    tenant = jobs.tenant[by_tenant]
    before = gpus_ahead(tenant, view.weighed_gpus[by_tenant])
    had = balances.had[tenant] + lease_seconds * before
    numbers[by_tenant] = alike(rho_for_choosing(had, balances.owed[tenant]))
    return numbers


def expected_winners(view: View, pools: Pools, candidates: Candidates, order: Ints) -> Bools:
    """Candidates that would win if only their numbers of GPUs counted: others are evicted before these."""
    contested = view.flags(candidates.rows[candidates.contest_place >= 0])
    places, numbers = view.lease_places, pools.neighbourhood
    wins = np.zeros(len(candidates.rows), dtype=bool)
    if not any_of(numbers > 0):
        of_use = contested[places.row] & pools.usable[places.node]
        offered = view.free_in_all + int(places.gpus[of_use].sum())
        wins[order] = candidates.gpus[order].cumsum() <= offered
        return wins
    held = places.take(contested[places.row])
    offers = np.where(pools.usable, view.free_gpus + held.per_node(len(pools.region)), 0)
    group = _neighbourhood(view, pools, candidates, held)
    capacity = np.bincount(take_or(numbers, pools.region, 0), weights=offers, minlength=1)
    for number in np.unique(group):
        picks = order[group[order] == number]
        wins[picks] = np.cumsum(candidates.gpus[picks]) <= capacity[number]
    return wins


def _neighbourhood(view: View, pools: Pools, candidates: Candidates, held: Placement) -> Ints:
    """The region in which each candidate competes: where it runs, or where it would lie first if it waits."""
    first_region = np.array(
        [regions[0] if regions else 0 for regions in (*pools.regions, ())], dtype=np.int64
    )
    region = np.zeros(len(candidates.rows), dtype=np.int64)
    asks = candidates.asking >= 0
    region[asks] = first_region[candidates.shapes.first_pool()[candidates.asking[asks]]]
    on_usable = held.take(pools.usable[held.node])
    candidate = ranks(len(view.waiting), candidates.rows)
    region[candidate[on_usable.row]] = pools.region[on_usable.node]
    return take_or(pools.neighbourhood, region, 0)
