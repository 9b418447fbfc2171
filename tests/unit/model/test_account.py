"""A ledger tells what is shared out and what a GPU counts on average, before and after the first look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.model import Ledger

CASES = {
    # GPUs, the same by weight (-1 = each counts 1): what is shared out, weight of one
    "before the first look": (-1.0, -1.0, 0.0, 1.0),
    "each counts one": (8.0, -1.0, 8.0, 1.0),
    "by weight": (8.0, 2.0, 2.0, 0.25),
    "all count nothing": (8.0, 0.0, 0.0, 0.0),
    "there are none": (0.0, 0.0, 0.0, 1.0),
    "there are none, and none is weighed": (0.0, -1.0, 0.0, 1.0),
}


@pytest.mark.parametrize(("gpus", "weighed", "shared", "mean"), CASES.values(), ids=CASES)
def test_gpus_are_shared_by_weight(gpus: float, weighed: float, shared: float, mean: float) -> None:
    ledger = replace(Ledger.new(50.0), total_gpus=gpus, weighted_gpus=weighed)
    assert (ledger.shared_gpus, ledger.mean_gpu_weight) == (shared, mean)


def test_a_new_ledger_has_seen_nothing_and_remembers_no_run_from_before() -> None:
    ledger = Ledger.new(50.0)
    assert (ledger.time, ledger.began, ledger.shared_gpus) == (50.0, 50.0, 0.0)
    assert (len(ledger.tenants), len(ledger.jobs), len(ledger.closed)) == (0, 0, 0)
    assert (ledger.tenants.names, ledger.closed.since) == ((), 50.0)
