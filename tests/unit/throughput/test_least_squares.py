"""Many small fits at once, each of which ends by itself."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model.columns import Floats
from slurm_fair.throughput.least_squares import Fits, Normals, fitted

AT = np.array([0.0, 1.0, 2.0, 3.0])


def growth(parameters: Floats) -> Floats:
    """a + exp(b) * x, which is not straight in b."""
    model: Floats = parameters[:, :1] + np.exp(parameters[:, 1:]) * AT
    return model


def slopes(parameters: Floats) -> Floats:
    by_b = np.exp(parameters[:, 1:]) * AT
    return np.stack([np.ones_like(by_b), by_b], axis=-1)


def fit(
    observed: list[list[float]], doubt: float | Floats = 0.01, wide: float = 100.0, mean: float = 0.0
) -> Fits:
    """One fit per row, with priors that say as good as nothing unless they are narrow."""
    values = np.array(observed)
    prior = Normals(np.full((len(values), 2), mean), np.full((len(values), 2), wide))
    return fitted(growth, slopes, values, np.broadcast_to(doubt, values.shape), prior)


def line(a: float, b: float) -> list[float]:
    return [float(value) for value in growth(np.array([[a, b]]))[0]]


def test_the_law_behind_the_observations_is_found_for_each_row() -> None:
    found = fit([line(1.0, 0.5), line(-4.0, 2.0), line(0.0, -3.0)])
    assert found.parameters == pytest.approx(np.array([[1.0, 0.5], [-4.0, 2.0], [0.0, -3.0]]), abs=1e-3)


def test_a_fit_is_the_same_alone_and_among_others() -> None:
    alone, among = fit([line(1.0, 0.5)]), fit([line(-4.0, 2.0), line(1.0, 0.5)])
    assert among.parameters[1].tolist() == alone.parameters[0].tolist()


def test_what_is_not_there_says_nothing_and_an_odd_value_little() -> None:
    doubt = np.array([0.01, 0.01, 0.01, np.inf])
    wild = [*line(1.0, 0.5)[:3], 1e6]
    assert fit([wild], doubt).parameters[0] == pytest.approx([1.0, 0.5], abs=1e-3)
    odd = line(1.0, 0.5)
    odd[1] += 0.5  # fifty times what is expected
    assert fit([odd]).parameters[0] == pytest.approx([1.0, 0.5], abs=0.05)


def test_the_prior_holds_where_nothing_was_observed() -> None:
    found = fit([line(1.0, 0.5)], np.inf, wide=0.5, mean=2.0)
    assert found.parameters.tolist() == [[2.0, 2.0]]
    assert found.covariance[0] == pytest.approx(np.diag([0.25, 0.25]))


def test_the_covariance_is_that_of_least_squares() -> None:
    found = fit([line(1.0, 0.0)], 0.1)
    design = slopes(found.parameters)[0]
    assert found.covariance[0] == pytest.approx(0.01 * np.linalg.inv(design.T @ design), rel=1e-3)
