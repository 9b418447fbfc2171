"""Long-term GPU-time fairness (LTGF), each definition once; equation numbers are those of Astraea (TPDS 2022).

Everything is element-wise over arrays; GPUs are counts, integrals are GPU-seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import ZERO, Bools, Floats, Ints, all_of

Numbers = NDArray[np.int64] | NDArray[np.float64]

# A job that got less than this part of its fair service time lost by sharing (section 6).
LOSS_BELOW = 0.95


def quota(total_gpus: float, weight: Floats, weight_sum: Floats | float) -> Floats:
    """Q_j of eq. 6: the tenant's part of the cluster; nothing where nobody has a weight."""
    return ratio(total_gpus * weight, weight_sum, nothing=0.0)


def tenant_share(demand: Numbers, tenant_quota: Floats) -> Floats:
    """S_j of eq. 8, for reports: a tenant is not owed more than its jobs could use."""
    return np.minimum(demand, tenant_quota)


def share_level(share: Floats, weight_sum: Floats) -> Floats:
    """Part of the tenant's share for each unit of job weight: S_j / sum of w (eq. 13 without w_i)."""
    return ratio(share, weight_sum, nothing=0.0)


def job_share(level: Floats, weight: Floats) -> Floats:
    """S_i of eq. 13."""
    return level * weight


def job_claim(gpus: Numbers, share: Floats) -> Floats:
    """min(D_i, S_i) of eq. 14: a job is not owed more than its gang."""
    return np.minimum(gpus, share)


def ceiling(gpus: Numbers, weight: Floats) -> Floats:
    """The share level from which on a job's claim is its whole gang."""
    return ratio(gpus, weight, nothing=np.inf)


def water_levels(group: Ints, gpus: Numbers, weight: Floats, share: Floats) -> Floats:
    """Max-min variant of `share_level`: what small jobs cannot use goes to their siblings.

    Per group the level L with sum of min(D_i, L * w_i) = share; inf where all of its jobs get their gangs.
    """
    ceilings = ceiling(gpus, weight)
    order = np.lexsort((ceilings, group))
    group, full, weight = group[order], np.where(weight[order] > 0, gpus[order], 0), weight[order]
    first = np.searchsorted(group, np.arange(len(share) + 1))
    filled, unfilled = _sums_before(full, first, group), _sums_from(weight, first, group)
    # Jobs up to k have their gangs and the others share the rest: the first k whose own ceiling lies above.
    level = ratio(share[group] - filled, unfilled, nothing=np.inf)
    bound = np.flatnonzero(level < ceilings[order])
    levels = np.full(len(share), np.inf)
    levels[group[bound][::-1]] = level[bound][::-1]
    result: Floats = np.maximum(levels, 0.0)
    return result


def rho(had: Floats, owed: Floats, *, nothing_owed: float) -> Floats:
    """Eq. 5, 12 and 15. 0/0 is `nothing_owed`; who had something and was owed nothing has inf."""
    result = ratio(had, owed, nothing=np.inf)
    result[(had <= ZERO) & (owed <= ZERO)] = nothing_owed
    return result


def rho_for_reports(had: Floats, owed: Floats) -> Floats:
    """No claim yet reads as fair."""
    return rho(had, owed, nothing_owed=1.0)


def rho_for_choosing(had: Floats, owed: Floats) -> Floats:
    """No claim yet reads as most deserving."""
    return rho(had, owed, nothing_owed=0.0)


def loss_fraction(rho_at_end: Floats) -> float:
    """Sharing-loss jobs: the part of jobs whose rho at their end is below 0.95; 0 without jobs."""
    return float(np.mean(rho_at_end < LOSS_BELOW)) if rho_at_end.size else 0.0


def unfair_fraction(had: Floats, owed: Floats, demanded: Bools) -> float:
    """Tenant unfairness: the part of (tenant, window) pairs with demand all along and rho_j < 1.

    The arrays are [tenant, window]; a rounding error is no unfairness.
    """
    if not demanded.any():
        return 0.0
    served = rho_for_reports(had[demanded], owed[demanded])
    return float(np.mean(served < 1.0 - 1e-9))


def faded_parts(elapsed: float, half_life_seconds: float) -> tuple[float, float]:
    """The part that is left of an older sum, and the part of an amount that came since then at an even rate."""
    if half_life_seconds <= 0 or elapsed <= 0:
        return 1.0, 1.0
    rate = np.log(2.0) * elapsed / half_life_seconds
    return float(np.exp(-rate)), float(-np.expm1(-rate) / rate)


def ratio(above: Numbers, below: Floats | float, *, nothing: float) -> Floats:
    """above / below; `nothing` where there is nothing to divide by, or it is not known."""
    if isinstance(below, float):
        return above / below if below > 0 else np.full(above.shape, nothing)
    real = below > ZERO
    if all_of(real):
        return np.asarray(above / below)
    result = np.empty(real.shape if above.shape == real.shape else np.broadcast(above, below).shape)
    result.fill(nothing)
    np.divide(above, below, out=result, where=real)
    return result


def _sums_before(values: Numbers, first: Ints, group: Ints) -> Floats:
    """Sum of the earlier values of the same group, for sorted groups that begin at `first`."""
    running = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    result: Floats = running[:-1] - running[first[group]]
    return result


def _sums_from(values: Numbers, first: Ints, group: Ints) -> Floats:
    """Sum of this and the later values of the same group."""
    running = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    result: Floats = running[first[group + 1]] - running[:-1]
    return result
