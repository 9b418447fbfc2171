"""The two measured layers: means by shape, on a node and on a GPU type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput import JobShapes, Keeping
from slurm_fair.throughput.aged import AgedSamples, aged
from slurm_fair.throughput.measured import (
    FIRST_GUESS,
    LEAST_COUNT,
    LEAST_DOUBT,
    measured_means,
    rows_of,
)
from tests.support.speed_samples import BERT, DAY, NAN, samples

KEEPING = Keeping(half_life_days=1.0)


def known(*rows: dict[str, Any], now: float = 0.0) -> AgedSamples:
    return aged(samples(*rows), now, KEEPING)


def shape(gpus: int, nodes: int = 1, batch: float = NAN, node: str = "", most: int = 0) -> JobShapes:
    one = np.ones(1, dtype=np.int64)
    names = (node,) if node else ()
    return JobShapes(
        0 * one, 0 * one, gpus * one, nodes * one, most * one, np.full(1, batch), 0 * one - (not node),
        (BERT,), ("a100",), names,
    )  # fmt: skip


def test_there_is_a_mean_of_logarithms_for_each_shape_and_node() -> None:
    means = measured_means(
        known({"rate": 100.0}, {"rate": 400.0}, {"gpus": 2, "rate": 50.0}, {"node": "n1", "rate": 9.0})
    )
    assert list(zip(means.node, means.gpus, strict=True)) == [(-1, 1), (-1, 2), (0, 1)]
    assert np.exp(means.log_rate) == pytest.approx([200.0, 50.0, 9.0])
    assert means.count.tolist() == [2, 1, 1]


def test_doubt_falls_with_the_samples_but_never_below_that_of_another_run() -> None:
    doubts = [measured_means(known(*[{"rate": 100.0}] * count)).doubt[0] for count in (1, 4, 1000)]
    assert doubts[0] > doubts[1] > doubts[2]
    assert doubts[2] == pytest.approx(LEAST_DOUBT, rel=0.01)
    one = measured_means(known({"rate": 100.0})).deviation[0]
    assert one == pytest.approx(FIRST_GUESS, rel=0.2)
    wide = measured_means(known(*[{"rate": rate} for rate in (50.0, 100.0, 200.0)] * 9))
    assert wide.deviation[0] > 10 * one


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (shape(4), True),
        (shape(4, most=4), True),
        (shape(4, most=3), False),
        (shape(2), False),
        (shape(4, nodes=2), False),
        (shape(4, batch=64.0), True),
        (shape(4, batch=16.0), False),
    ],
)
def test_a_question_is_answered_by_the_very_shape(question: JobShapes, found: bool) -> None:
    of = known({"gpus": 4, "most": 4, "batch_size": 256.0})
    row = rows_of(of, measured_means(of), question, np.zeros(1, dtype=np.int64), any_node=True)
    assert row.tolist() == [0 if found else -1]


def test_a_node_answers_for_itself_alone() -> None:
    of = known({"most": 1}, {"most": 1, "node": "n1"})
    means, group = measured_means(of), np.zeros(1, dtype=np.int64)
    nodes = [
        rows_of(of, means, shape(1, node=name), group, any_node=False).tolist() for name in ("n1", "n2", "")
    ]
    assert nodes == [[1], [-1], [-1]]
    anywhere = rows_of(of, means, shape(1, node="n1"), group, any_node=True)
    assert means.node[anywhere].tolist() == [-1]
    assert rows_of(of, means, shape(1), group - 1, any_node=True).tolist() == [-1]


def test_what_is_too_old_is_not_looked_up() -> None:
    for days, found in ((2.0, 0), (2.1, -1)):
        of = known({"most": 1}, now=days * DAY)
        assert (measured_means(of).count[0] >= LEAST_COUNT) == (found == 0)
        assert rows_of(
            of, measured_means(of), shape(1), np.zeros(1, dtype=np.int64), any_node=True
        ).tolist() == [found]
