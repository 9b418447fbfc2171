"""GPUs of rows that stand in one line for each tenant."""

from __future__ import annotations

import numpy as np

from slurm_fair.policy.orders.in_line import gpus_ahead, in_line

TENANT, GPUS = np.array([0, 0, 0, 2, 2, 3]), np.array([4, 1, 2, 8, 1, 5])
NOBODY = np.zeros(0, dtype=np.int64)


def test_ahead_of_a_row_are_the_rows_of_its_own_tenant() -> None:
    assert gpus_ahead(TENANT, GPUS).tolist() == [0, 4, 5, 0, 8, 0]
    assert gpus_ahead(NOBODY, NOBODY).tolist() == []


def test_the_first_of_each_tenant_and_the_gpus_with_each_row() -> None:
    first, through = in_line(TENANT, GPUS)
    assert first.tolist() == [True, False, False, True, False, True]
    assert through.tolist() == [4, 5, 7, 8, 9, 5]
    first, through = in_line(NOBODY, NOBODY)
    assert (first.tolist(), through.tolist()) == ([], [])
