"""Shapes looked up one by one are those worked out together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.model import Placement
from slurm_fair.policy import Pools, Shapes, View
from tests.support.any_view import views


@given(views(), st.booleans(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_few_jobs_lie_as_they_would_among_many(seen: View, spread: bool, narrowed: bool) -> None:
    snapshot = replace(
        seen.snapshot, wanted=Placement.none(), barred=Placement.none()
    )  # by name each is alone
    pools, rows = Pools.of(snapshot), np.arange(len(seen.waiting))[:8]
    chosen = (rows % (len(snapshot.gpu_types) + 1)) - 1 if narrowed else None
    few = Shapes.of(pools, snapshot, rows, chosen, spread=spread)
    again = None if chosen is None else np.tile(chosen, 9)
    many = Shapes.of(pools, snapshot, np.tile(rows, 9), again, spread=spread)
    at = np.arange(len(rows))
    assert [list(ways) for ways in few.ways(at)] == [list(ways) for ways in many.ways(at)]
    for shapes in (few, many):  # one alone lies as it does beside the others
        assert [list(shapes.ways_of(job)) for job in at.tolist()] == [*map(list, shapes.ways(at))]
    assert few.possible().tolist() == many.possible()[at].tolist()
    assert few.first_pool().tolist() == many.first_pool()[at].tolist()
    fits = few.fitting(pools, seen.spare_gpus)
    assert fits.tolist() == many.fitting(pools, seen.spare_gpus)[at].tolist()
