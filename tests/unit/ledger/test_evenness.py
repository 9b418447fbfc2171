"""Jain's index, envy, and the audit of a plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger.metrics import evenness
from tests.support.outcome_rows import floats

JAIN = [((1, 1, 1, 1), 1.0), ((1, 0, 0, 0), 0.25), ((), 1.0), ((0, 0), 1.0), ((1, 3), 0.8)]
JAIN_FAR_OUT = [((1e300, 3e300), 0.8), ((1e-300, 3e-300), 0.8), ((1e300, 0.0), 0.5)]


@pytest.mark.parametrize(("values", "index"), [*JAIN, *JAIN_FAR_OUT])
def test_jains_index(values: tuple[float, ...], index: float) -> None:
    assert evenness.jain(floats(*values)) == pytest.approx(index)


def test_envy_compares_service_per_weight_and_leaves_out_who_has_no_weight() -> None:
    assert evenness.largest_envy(floats(10, 30, 99), floats(1, 2, 0)) == 5.0
    assert evenness.largest_envy(floats(), floats()) == 0.0


FITS = [
    # free per node, gang, nodes at least, GPUs on each node (0 = any), fits
    ((3, 1), 4, 1, 0, True),
    ((3, 1), 5, 1, 0, False),
    ((4, 0), 4, 2, 0, False),
    ((3, 1), 4, 2, 0, True),
    ((2, 2, 1), 4, 1, 2, True),
    ((3, 1), 4, 1, 2, False),
    ((4, 4), 4, 2, 2, True),
    ((4, 0), 4, 2, 2, False),
    ((1, 1, 1), 2, 3, 1, True),
    ((8,), 3, 1, 2, False),  # two nodes, the second for a single GPU
    ((), 1, 1, 0, False),
]


@pytest.mark.parametrize(("free", "gpus", "nodes", "per_node", "fits"), FITS)
def test_a_gang_fits_where_its_shape_does(
    free: tuple[int, ...], gpus: int, nodes: int, per_node: int, fits: bool
) -> None:
    shape = [np.array([number]) for number in (gpus, nodes, per_node)]
    left = np.array(free, dtype=np.int64)
    assert evenness.could_be_added(left, *shape).tolist() == [fits]
    everywhere = np.ones((1, len(free)), dtype=bool)
    assert evenness.could_be_added(left, shape[0], shape[1], shape[2], everywhere).tolist() == [fits]


def test_a_job_is_held_to_the_nodes_that_it_may_use() -> None:
    free, ones = np.array([4, 4]), np.ones(3, dtype=np.int64)
    allowed = np.array([[True, True], [True, False], [False, False]])
    added = evenness.could_be_added(free, ones * 8, ones, ones * 0, allowed)
    assert added.tolist() == [True, False, False]


def test_where_nobody_waits_nobody_could_be_added() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert evenness.could_be_added(np.array([8]), none, none, none).size == 0


@given(
    st.lists(st.integers(0, 8), max_size=6),
    st.lists(st.tuples(st.integers(1, 16), st.integers(1, 3), st.integers(0, 4)), max_size=12),
)
def test_jobs_of_one_shape_fit_or_fail_together(free: list[int], shapes: list[tuple[int, int, int]]) -> None:
    columns = np.array(shapes, dtype=np.int64).reshape(-1, 3).T
    left = np.array(free, dtype=np.int64)
    together = evenness.could_be_added(left, *columns)
    one_by_one = [bool(evenness.could_be_added(left, *columns[:, [at]])[0]) for at in range(len(shapes))]
    assert together.tolist() == one_by_one
