"""Shares integrated over a window. The integral is exact, because shares are constant between two events.

Within one tenant every active job is owed at the rate w_i * min(D_i / w_i, level(t)), where the level is the
tenant's share per unit of weight. So one timeline of levels per tenant serves all of its jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger import formulas
from slurm_fair.ledger.charging.timeline import ActiveSpans, ClusterInWindow, Timeline, timeline, totals
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model.columns import Floats, Ints

# M from each instant on, in order of time.
Changes: TypeAlias = Sequence[tuple[float, float]]

_FEW = 8  # so few running integrals cost less than to find out which of them are alike
_AT_ONCE = 64  # as many running integrals as memory is taken for at a time


class Owed(NamedTuple):
    """Integrals over the window, and the share levels at its beginning."""

    claims: Floats  # of min(D_i, S_i), per claim
    quota: Floats  # of Q_j, per tenant
    demand: Floats  # of min(D_j, Q_j), per tenant
    first_level: Floats  # per tenant


def integrate(
    claims: ActiveSpans,
    cluster: ClusterInWindow,
    since: float,
    until: float,
    settings: LedgerSettings,
    changing: Ints | None = None,
) -> Owed:
    """Integrate the share of each claim and each tenant between two instants.

    `changing` are the only claims that may begin or end in between, where that is known.
    """
    line = timeline(claims, cluster, settings, since, until, changing)
    share = formulas.tenant_share(line.demand, line.quota)
    if settings.water_filled:
        level = _water_levels(claims, line, share)
    else:
        level = formulas.share_level(share, line.weight_sum)
    quota, demand, first_level = line.seconds * line.quota, line.seconds * share, level
    if not line.uncut:
        tenants = cluster.weight.size
        quota, demand = totals(line.tenant, quota, tenants), totals(line.tenant, demand, tenants)
        first_level = level[line.first[:-1]]
    return Owed(_per_claim(claims, line, level, first_level, until - since), quota, demand, first_level)


def integrate_over_changes(
    claims: ActiveSpans,
    cluster: ClusterInWindow,
    changes: Changes,
    since: float,
    until: float,
    settings: LedgerSettings,
) -> Owed:
    """The same where M changed in between."""
    before = [gpus for instant, gpus in changes if instant <= since]
    within = [(instant, gpus) for instant, gpus in changes if since < instant < until]
    cluster = cluster._replace(total_gpus=float(before[-1])) if before else cluster
    begins, ends = [since, *(at for at, _ in within)], [*(at for at, _ in within), until]
    levels = [cluster.total_gpus, *(float(gpus) for _, gpus in within)]
    parts = [
        integrate(claims, cluster._replace(total_gpus=gpus), begin, end, settings)
        for gpus, begin, end in zip(levels, begins, ends, strict=True)
    ]
    return Owed(
        claims=np.sum([part.claims for part in parts], axis=0),
        quota=np.sum([part.quota for part in parts], axis=0),
        demand=np.sum([part.demand for part in parts], axis=0),
        first_level=parts[0].first_level,
    )


def _per_claim(
    claims: ActiveSpans, line: Timeline, level: Floats, first_level: Floats, seconds: float
) -> Floats:
    """Integral of each claim's rate over its segments."""
    share = formulas.job_share(first_level[claims.tenant], claims.weight)
    owed = formulas.job_claim(claims.gpus, share) * seconds
    if line.uncut:
        return owed
    ceiling = formulas.ceiling(claims.gpus, claims.weight)
    several = (line.first[1:] - line.first[:-1] > 1)[claims.tenant]
    several[line.odd] = False
    many = several.nonzero()[0]
    if many.size:
        owed[many] = _over_whole_window(claims, many, ceiling[many], line, level)
    owed[line.odd] = _over_parts(ceiling[line.odd], line, level) * claims.weight[line.odd]
    return owed


def _over_whole_window(
    claims: ActiveSpans, rows: Ints, ceiling: Floats, line: Timeline, level: Floats
) -> Floats:
    """Jobs active all along: segments sorted by level are below or above the job's ceiling, by bisection."""
    tenant, order = claims.tenant[rows], np.lexsort((level, line.tenant))
    level, seconds = level[order], line.seconds[order]
    integrals = np.zeros((2, level.size + 1))
    integrals[0, 1:], integrals[1, 1:] = level * seconds, seconds
    below, above = integrals.cumsum(axis=1)
    low = _pairs(line.tenant, level).searchsorted(_pairs(tenant, ceiling), side="right")
    owed: Floats = claims.weight[rows] * (below[low] - below[line.first[tenant]])
    owed += claims.gpus[rows] * (above[line.first[tenant + 1]] - above[low])
    return owed


def _pairs(tenant: Ints, level: Floats) -> NDArray[np.complex128]:
    """Complex numbers sort by their real part first."""
    pairs = np.empty(tenant.size, dtype=np.complex128)
    pairs.real, pairs.imag = tenant, level
    return pairs


def _over_parts(ceilings: Floats, line: Timeline, level: Floats) -> Floats:
    """Per unit of weight, jobs that came or went: one running integral per ceiling, read at both ends."""
    kind = np.arange(ceilings.size)
    if ceilings.size > _FEW:
        ceilings, kind = np.unique(ceilings, return_inverse=True)
    if ceilings.size <= _AT_ONCE:
        return _between(ceilings, kind, line.odd_from, line.odd_to, line, level)
    owed = np.empty(kind.size)
    for first in range(0, ceilings.size, _AT_ONCE):
        rows = ((kind >= first) & (kind < first + _AT_ONCE)).nonzero()[0]
        some, low, high = ceilings[first : first + _AT_ONCE], line.odd_from[rows], line.odd_to[rows]
        owed[rows] = _between(some, kind[rows] - first, low, high, line, level)
    return owed


def _between(ceilings: Floats, kind: Ints, low: Ints, high: Ints, line: Timeline, level: Floats) -> Floats:
    """Integral of the level up to a ceiling from segment `low` to before segment `high`; `kind` says which one."""
    integral = np.zeros((ceilings.size, level.size + 1))
    np.multiply(np.minimum(level, ceilings[:, None]), line.seconds, out=integral[:, 1:])
    integral = integral.cumsum(axis=1)
    return integral[kind, high] - integral[kind, low]


def _water_levels(claims: ActiveSpans, line: Timeline, share: Floats) -> Floats:
    """Max-min level of every segment: the n-th segments of all tenants at once, for n = 0, 1, ..."""
    begins = (claims.weight > 0) & (claims.since < np.inf)
    highest = float(np.max(formulas.ceiling(claims.gpus, claims.weight)[begins], initial=0.0))
    level = np.zeros(len(share))
    claim_from, claim_to = line.first[claims.tenant], line.first[claims.tenant + 1]
    claim_from[line.odd], claim_to[line.odd] = line.odd_from, line.odd_to
    for number in range(int(np.diff(line.first).max(initial=0))):
        at = line.first[:-1] + number
        tenants = np.flatnonzero(at < line.first[1:])
        group = np.full(len(line.first) - 1, -1, dtype=np.int64)
        group[tenants] = np.arange(len(tenants))
        row = at[claims.tenant]
        there = (group[claims.tenant] >= 0) & (claim_from <= row) & (row < claim_to)
        some = claims.take(there)
        rows = at[tenants]
        level[rows] = formulas.water_levels(group[some.tenant], some.gpus, some.weight, share[rows])
    return np.minimum(level, highest)
