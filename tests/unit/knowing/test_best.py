"""The most that is believed of a run: by other jobs of its class, in the nearest size, on its GPU type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from slurm_fair.knowing.best import PacedRuns, best_paces
from slurm_fair.throughput import ANY_NODE, JobClass, Samples

MINE, OTHERS = JobClass("a", "name=train"), JobClass("b", "name=train")
ROOM = math.exp(2 * 0.1)  # two of the least deviations
Row = tuple[JobClass, str, int, int, float, float]


def samples(*rows: Row) -> Samples:
    """Class, GPU type, GPUs, job, samples a second and batch size of each."""
    classes, types = (MINE, OTHERS), ("a100", "v100")
    count, unknown = len(rows), np.full(len(rows), np.nan)
    phases: dict[str, Any] = dict.fromkeys(("data", "forward", "backward", "update", "sync"), unknown)
    return Samples(
        job_class=np.array([classes.index(row[0]) for row in rows], dtype=np.int64),
        gpu_type=np.array([types.index(row[1]) for row in rows], dtype=np.int64),
        node=np.full(count, ANY_NODE),
        gpus=np.array([row[2] for row in rows], dtype=np.int64),
        nodes=np.ones(count, dtype=np.int64),
        most=np.array([row[2] for row in rows], dtype=np.int64),
        job=np.array([row[3] for row in rows], dtype=np.int64),
        time=np.zeros(count),
        rate=np.array([row[4] for row in rows]),
        batch_size=np.array([row[5] for row in rows]),
        pattern=np.zeros(count, dtype=np.int8),
        classes=classes,
        gpu_types=types,
        **phases,
    )


def best(known: Samples, gpus: int = 2, gpu_type: int = 0, job: int = 1) -> float:
    """The most that is believed of one run of MINE."""
    one = {name: np.array([value]) for name, value in (("job", job), ("gpu_type", gpu_type), ("gpus", gpus))}
    runs = PacedRuns(
        job_class=np.zeros(1, dtype=np.int64), classes=(MINE,), gpu_types=("a100", "v100"), **one
    )
    return float(best_paces(known, runs).item())


def test_what_others_of_the_class_did_in_the_same_size_is_the_limit_with_some_room() -> None:
    known = samples((MINE, "a100", 2, 7, 50.0, 10.0), (MINE, "a100", 2, 8, 50.0, 10.0))
    assert best(known) == pytest.approx(5.0 * ROOM), "steps a second: samples a second over the batch"


def test_a_job_is_not_measured_by_itself_where_there_are_others() -> None:
    known = samples((MINE, "a100", 2, 1, 900.0, math.nan), (MINE, "a100", 2, 8, 5.0, math.nan))
    assert best(known) == pytest.approx(5.0 * ROOM)
    assert best(known.take(np.array([0]))) == pytest.approx(900.0 * ROOM), "alone it is held to what it said"


@pytest.mark.parametrize(
    ("gpus", "limit"), [(8, 5.0), (2, 4.0), (16, 1.25 * 10.0), (6, 1.25 * 5.0), (1, 1.25 * 4.0)]
)
def test_the_nearest_size_bounds_every_other_one(gpus: int, limit: float) -> None:
    known = samples((MINE, "a100", 8, 7, 5.0, math.nan), (MINE, "a100", 2, 7, 4.0, math.nan))
    assert best(known, gpus) == pytest.approx(limit * ROOM)


def test_other_classes_and_other_gpu_types_say_nothing() -> None:
    known = samples((OTHERS, "a100", 2, 7, 5.0, math.nan), (MINE, "v100", 2, 7, 5.0, math.nan))
    assert math.isnan(best(known))
    assert math.isnan(best(known, gpu_type=-1)), "a run on several types"
    assert best(known, gpu_type=1) == pytest.approx(5.0 * ROOM)


def test_one_liar_among_five_hardly_moves_the_limit() -> None:
    honest = [(MINE, "a100", 2, number, 5.0, math.nan) for number in range(2, 6)]
    found = best(samples(*honest, (MINE, "a100", 2, 9, 5000.0, math.nan)))
    assert found < 5.0 * ROOM * 1.1


def test_nothing_known_is_no_limit() -> None:
    assert math.isnan(best(samples()))
