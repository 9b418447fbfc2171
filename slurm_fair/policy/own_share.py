"""Work that cannot be taken back is granted only within its tenant's own share: the same for every policy.

What can be taken back may use every idle GPU, since its lease ends. What cannot would keep idle GPUs from those to
whom they are owed, for as long as it likes: nobody is to gain by that. (Run:ai and its scheduler KAI have the same
rule for jobs that are not preemptible.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.model import Blocked, JobTable
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of
from slurm_fair.policy.orders.array_limits import over_array_limit
from slurm_fair.policy.orders.in_line import in_line
from slurm_fair.policy.view import View

BEYOND = "it cannot be taken back, and its account's own share is used up by such work"
_ROUNDING = 1e-9


def within_own_share(view: View) -> View:
    """The view in which jobs that cannot be taken back are blocked where their tenant's own share ends.

    GPUs that such jobs of a tenant hold, and those that its oldest waiting ones ask for, are at most its quota. A
    tenant that holds nothing by such jobs may start one whose gang is bigger than its quota.
    """
    if not view.waiting_rows.size:
        return view
    stays = bound(view.snapshot.jobs, view.terms.term)
    waits = view.waiting_rows[stays[view.waiting_rows]]
    if not waits.size:
        return view
    beyond = _beyond(view, waits, bound_gpus(view, stays), view.tenant_quota)
    if not beyond.size:
        return view
    blocked = view.snapshot.jobs.blocked.copy()
    blocked[beyond] = Blocked.OWN_SHARE
    jobs = view.snapshot.jobs.with_columns(blocked=blocked)
    return replace(view, snapshot=replace(view.snapshot, jobs=jobs))


def promised_beyond(view: View) -> Ints:
    """Promised leases by which such jobs of a tenant would have more than its quota; their gates are shut still.

    Their owners have changed them since the grant, or the quota is smaller by now. The latest go first, and a
    tenant's only gang stays.
    """
    leases, jobs = view.leases, view.snapshot.jobs
    at = (leases.promised & (leases.opened <= 0)).nonzero()[0]
    row = view.job_of_lease[at]
    at, row = at[row >= 0], row[row >= 0]
    if not at.size or all_of(jobs.revocable[row]):
        return at[:0]
    stays = bound(jobs, view.terms.term)
    at, row = at[stays[row]], row[stays[row]]
    used, share = bound_gpus(view, stays), view.tenant_quota * (1 + _ROUNDING) + _ROUNDING
    beyond = []
    for place in np.lexsort((at, leases.granted[at]))[::-1].tolist():
        tenant, gpus = jobs.tenant.item(row[place]), float(view.weighed_gpus[row[place]])
        if used[tenant] > share[tenant] and used[tenant] > gpus + _ROUNDING:
            used[tenant] -= gpus
            beyond.append(int(at[place]))
    return np.array(sorted(beyond), dtype=np.int64)


def bound(jobs: JobTable, term: float) -> Bools:
    """Jobs that can be neither taken back when a lease is over nor waited for: their limit is longer."""
    revocable = jobs.revocable
    if all_of(revocable):
        return ~revocable
    return ~revocable & (jobs.time_limit_seconds > term)


def bound_gpus(view: View, stays: Bools) -> Floats:
    """GPUs by weight that each tenant has, or was promised, by jobs that cannot be taken back."""
    snapshot, held = view.snapshot, view.holdings
    mine = stays[held.row]
    tenant, tenants = snapshot.jobs.tenant[held.row[mine]], len(snapshot.tenants)
    gpus = np.bincount(tenant, held.gpus[mine] * view.held_weight[mine], tenants).astype(np.float64)
    if snapshot.aside is None:
        return gpus
    jobs, theirs = snapshot.aside.jobs, snapshot.aside.held
    long = bound(jobs, view.terms.term)[theirs.row]
    theirs = theirs.take(long)
    gpus += np.bincount(jobs.tenant[theirs.row], theirs.gpus * jobs.gpu_weight[theirs.row], tenants)
    return gpus


def _beyond(view: View, waits: Ints, used: Floats, share: Floats) -> Ints:
    """The waiting rows that do not fit; each tenant's rows stand in a line, the oldest first.

    A row does not overtake one of its tenant that does not fit, or a gang would wait for ever. Tasks for which
    their array's own limit has no room stand behind all others.
    """
    jobs = view.snapshot.jobs
    oldest = waits[np.lexsort((jobs.key[waits], view.first_submit[waits], jobs.tenant[waits]))]
    over = over_array_limit(view, oldest)
    if any_of(over):
        oldest = oldest[np.lexsort((over, jobs.tenant[oldest]))]
    tenant, gpus = jobs.tenant[oldest], view.weighed_gpus[oldest]
    first, through = in_line(tenant, gpus)
    fits = used[tenant] + through <= share[tenant] * (1 + _ROUNDING) + _ROUNDING
    alone = (used[tenant] == 0) & first
    beyond: Ints = oldest[~(fits | alone)]
    return beyond
