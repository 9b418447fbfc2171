"""Claims held to what can be: the best rate of a class, and progress."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.throughput import JobShapes, believed_progress, best_rates, faded
from tests.support.speed_samples import BERT, OTHER, knowing, measured

ONE = np.zeros(1, dtype=np.int64)


def best(*rows: dict[str, object], gpus: int = 1) -> float:
    """The best rate of BERT with so many GPUs."""
    shapes = JobShapes(ONE, ONE, ONE + gpus, ONE + 1, ONE, np.full(1, np.nan), ONE - 1, (BERT,), ("a100",))
    return float(best_rates(knowing(*rows), shapes)[0])


def test_the_best_rate_is_that_of_the_best_shape_for_each_gpu() -> None:
    rows = [measured(1, 1), measured(8, 2)]
    assert 160 <= best(*rows) < 1.2 * 160
    assert best(*rows, gpus=4) == pytest.approx(4 * best(*rows))


def test_a_class_that_was_never_measured_has_no_best_rate() -> None:
    assert np.isnan(best(measured(1, 1, cls=OTHER)))


def test_one_wild_report_does_not_lift_the_best_rate() -> None:
    honest = [measured(1, 1, job=job) for job in range(7)]
    assert best(*honest, {**measured(1, 1, job=9), "rate": 1e9}) < 1.5 * best(*honest)


def test_a_wild_shape_lifts_the_best_rate_by_a_bounded_factor() -> None:
    honest = [measured(gpus, 1) for gpus in (1, 2, 4)]
    assert best(*honest, {**measured(8, 1), "rate": 1e9}) < 10 * best(*honest)


@pytest.mark.parametrize(
    ("said", "elapsed", "rate", "believed"),
    [
        (150.0, 10.0, 6.0, 150.0),  # possible
        (900.0, 10.0, 6.0, 160.0),  # no job of the class is so fast
        (50.0, 10.0, 6.0, 100.0),  # progress never goes back
        (np.nan, 10.0, 6.0, 100.0),  # nothing said
        (900.0, 10.0, np.nan, 900.0),  # the first job of its class
        (900.0, -5.0, 6.0, 100.0),  # a clock that went back
        (np.inf, 10.0, 6.0, 160.0),
    ],
)
def test_progress_is_monotone_and_no_faster_than_the_class(
    said: float, elapsed: float, rate: float, believed: float
) -> None:
    columns = (np.array([value]) for value in (100.0, said, elapsed, rate))
    assert believed_progress(*columns).tolist() == [believed]


def test_a_claim_that_is_not_renewed_fades() -> None:
    assert faded(np.full(3, 8.0), np.array([-1.0, 0.0, 120.0]), 60.0).tolist() == [8.0, 8.0, 2.0]
