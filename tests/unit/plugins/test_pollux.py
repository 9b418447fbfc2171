"""Pollux: sizes by speed-ups, blind to GPU types."""

from __future__ import annotations

from slurm_fair_plugins.pollux import Pollux
from tests.support.builders import job
from tests.support.sized_views import TYPES, granted, sight


def test_pollux_takes_all_types_for_alike() -> None:
    """It sees a mean speed only, so the first of equals goes to the first node with room."""
    seen = sight([job(1, gpus=4), job(2, gpus=4)], TYPES, rates=[[1.0, 9.0], [1.0, 9.0]])
    assert granted("pollux", seen) == {"1": {"n1": 4}, "2": {"n2": 4}}


def test_a_job_without_gpus_counts_as_half_as_fast_as_with_its_smallest_size() -> None:
    assert Pollux(power=-1.0).without == 2.0
    assert Pollux(power=-2.0).without == 4.0
