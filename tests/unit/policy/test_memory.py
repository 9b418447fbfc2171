"""Numbers that a policy keeps from plan to plan come back for the jobs and tenants that are still there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.policy import View
from slurm_fair.policy.memory import (
    job_columns,
    job_numbers,
    keep_job_numbers,
    keep_tenant_numbers,
    tenant_numbers,
)
from tests.support.accounts import view
from tests.support.builders import job, snapshot


def seen(*bases: int, memory: Mapping[str, Any] | None = None) -> View:
    """Jobs of the tenants a (odd numbers) and b."""
    shown = snapshot(jobs=[job(base, tenant="ba"[base % 2]) for base in bases])
    return replace(view(shown), memory=memory or {})


def test_what_is_kept_of_jobs_is_found_again_by_their_keys() -> None:
    before = seen(1, 2, 3)
    kept = keep_job_numbers(before, np.array([2, 0]), np.array([30.0, 10.0]))
    assert json.loads(json.dumps(kept))["value"] == [10.0, 30.0]  # in the order of keys
    after = seen(3, 4, memory={"price": kept})
    assert job_numbers(after, "price", np.array([0, 1]), default=-1.0).tolist() == [30, -1]
    assert job_numbers(after, "other", np.array([0, 1]), default=-1.0).tolist() == [-1, -1]


def test_several_columns_are_kept_together() -> None:
    rows = np.arange(2)
    kept = keep_job_numbers(seen(1, 2), rows, left=np.array([1.0, 2.0]), done=np.array([3.0, 4.0]))
    left, done = job_columns(seen(2, 5, memory={"both": kept}), "both", rows, ("left", "done"))
    assert (left.tolist(), done.tolist()) == ([2, 0], [4, 0])


@pytest.mark.parametrize("kept", [{}, {"price": {"key": [], "value": []}}])
def test_where_nothing_was_kept_all_have_the_default(kept: Mapping[str, Any]) -> None:
    assert job_numbers(seen(1, 2, memory=kept), "price", np.arange(2), default=7.0).tolist() == [7, 7]


def test_a_fresher_memory_goes_before_the_views() -> None:
    before = seen(1, 2)
    old, fresh = (keep_job_numbers(before, np.arange(2), np.full(2, value)) for value in (1.0, 2.0))
    now = seen(1, 2, memory={"price": old})
    assert job_numbers(now, "price", np.arange(2), memory={"price": fresh}).tolist() == [2, 2]
    assert job_numbers(now, "price", np.arange(2), memory={}).tolist() == [0, 0]


def test_numbers_of_tenants_that_are_away_stay() -> None:
    memory = {"debt": {"b": 5.0, "gone": 9.0}}
    now = seen(1, 2, memory=memory)
    assert tenant_numbers(now, "debt", default=1.0).tolist() == [1, 5]
    assert keep_tenant_numbers(now, "debt", np.array([3.0, 4.0])) == {"a": 3.0, "b": 4.0, "gone": 9.0}
    assert keep_tenant_numbers(seen(2), "debt", np.array([4.0])) == {"b": 4.0}
