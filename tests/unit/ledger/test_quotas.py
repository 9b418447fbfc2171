"""Quotas at one instant: by weight, among the tenants that count."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from slurm_fair.ledger.charging.quotas import quotas_now, who_counts
from slurm_fair.model import TenantAccounts

NOW = 1000.0


def tenants(*last_job: float) -> TenantAccounts:
    """Tenants of the weights 1, 2, 3..., whose last jobs were there at these instants."""
    nothing = np.zeros(len(last_job))
    names, weight = tuple("abc"[: len(last_job)]), np.arange(1.0, len(last_job) + 1)
    return TenantAccounts(names, weight, nothing, nothing, nothing, np.array(last_job))


@pytest.mark.parametrize(
    ("with_jobs", "counts_seconds", "counts"),
    [
        ([], 100.0, [False, True, True]),  # for so long after its last job, to the second
        ([0, -1], 100.0, [True, True, True]),  # -1 = a job of no tenant
        ([], 0.0, [False, False, True]),
        ([], inf, [True, True, True]),
    ],
)
def test_a_tenant_counts_while_it_has_jobs_and_for_a_time_after(
    with_jobs: list[int], counts_seconds: float, counts: list[bool]
) -> None:
    rows = np.array(with_jobs, dtype=np.int64)
    known = tenants(NOW - 101, NOW - 100, NOW)
    assert who_counts(known, rows, NOW, counts_seconds).tolist() == counts


def test_the_gpus_are_shared_by_weight_among_those_who_count() -> None:
    known, nobody = tenants(-inf, NOW, NOW), np.zeros(0, dtype=np.int64)
    assert quotas_now(10.0, known, nobody, NOW, 0.0).tolist() == [0.0, 4.0, 6.0]
    assert quotas_now(12.0, known, np.array([0]), NOW, 0.0).tolist() == [2.0, 4.0, 6.0]
