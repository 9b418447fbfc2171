"""The theory's errors are carried to shapes like those that were measured."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model.columns import Floats
from slurm_fair.throughput import Keeping
from slurm_fair.throughput.aged import aged
from slurm_fair.throughput.observations import observations
from slurm_fair.throughput.residuals import OF_BATCH, OF_SHAPE, Residuals, carried, residuals_of
from tests.support.speed_samples import samples

ERROR = 0.1
ALL = OF_BATCH**2 + OF_SHAPE**2


def residuals(*shapes: tuple[int, int], error: float = ERROR) -> Residuals:
    """The theory is off by the same in all these shapes, each of which was measured well."""
    rows = [
        {"gpus": gpus, "nodes": nodes, "most": gpus // nodes, "batch_size": 32.0 * gpus}
        for gpus, nodes in shapes
    ]
    of = observations(aged(samples(*rows * 100), 0.0, Keeping()))
    return residuals_of(of, np.where(of.there, error, np.nan))


def place(gpus: int, nodes: int, batch: float = 32.0) -> Floats:
    at: Floats = np.log(np.array([[batch, gpus, nodes, gpus / nodes]]))
    return at


def expected(of: Residuals, *where: Floats) -> tuple[list[float], list[float]]:
    places = np.concatenate(where)
    error, left = carried(of, np.zeros(len(places), dtype=np.int64), places)
    return error.tolist(), left.tolist()


def test_the_error_fades_with_the_distance_and_the_doubt_grows() -> None:
    of = residuals((8, 2))
    error, left = expected(of, place(8, 2), place(16, 2), place(64, 16), place(8, 2, batch=4000.0))
    assert ERROR > error[0] > error[1] > error[2] > 0
    assert error[0] > error[3]
    assert error[0] == pytest.approx(ERROR, rel=0.1)
    assert 0 < left[0] < left[1] < left[2] < ALL
    assert left[0] == pytest.approx(0.0, abs=0.1 * ALL)


def test_on_one_gpu_the_theory_has_no_error() -> None:
    assert expected(residuals((8, 2)), place(1, 1)) == ([0.0], [0.0])
    error, left = expected(residuals((1, 1), error=5.0), place(8, 2))
    assert error == [0.0]
    assert left == pytest.approx([ALL])


def test_errors_of_several_shapes_are_joined() -> None:
    one, both = (expected(residuals(*shapes), place(16, 2)) for shapes in ([(8, 2)], [(8, 2), (32, 2)]))
    assert both[0][0] > one[0][0]
    assert both[1][0] < one[1][0]
    assert expected(residuals((8, 2), error=-ERROR), place(8, 2))[0][0] == pytest.approx(-ERROR, rel=0.1)
