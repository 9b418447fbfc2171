"""Speeds as policies see them."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model.speeds import Spread
from slurm_fair.throughput import (
    JobClass,
    speeds_for,
)
from tests.support.speed_samples import BERT, OTHER, asked, knowing, measured

STRANGER = JobClass("lab", "name=new")


def test_each_job_finds_its_class_in_the_table() -> None:
    known = knowing(measured(1, 1), measured(4, 2), measured(1, 1, cls=OTHER))
    speeds = speeds_for(known, [OTHER, STRANGER, BERT, OTHER], ["a100", "v100"], [4, 1, 16], [8, 4])
    assert speeds.job_class.tolist() == [0, -1, 1, 0]
    assert speeds.classes == ("rival: model=bert", "lab: model=bert")
    assert speeds.sizes.tolist() == [1, 4, 16]
    assert speeds.rate.shape == speeds.doubt.shape == (2, 2, 3, 2)
    assert np.isfinite(speeds.rate).all()
    assert (speeds.doubt > 0).all()


def test_together_is_on_as_few_nodes_as_can_be_and_apart_on_one_more() -> None:
    known = knowing(measured(1, 1), measured(4, 2), measured(4, 1))
    speeds = speeds_for(known, [BERT], ["a100"], [1, 4, 16], [8])
    for size, gpus in enumerate((1, 4, 16)):
        nodes = -(-gpus // 8)
        shapes = ((gpus, nodes), (gpus, min(nodes + 1, gpus)))
        expected = asked(known, *shapes)
        assert speeds.rate[0, 0, size, list(Spread)] == pytest.approx(expected.rate)
        assert speeds.doubt[0, 0, size, list(Spread)] == pytest.approx(expected.doubt)


def test_where_nothing_is_known_no_job_has_a_class() -> None:
    speeds = speeds_for(knowing(), [BERT, STRANGER], ["a100"], [1], [8])
    assert speeds.job_class.tolist() == [-1, -1]
    assert speeds.rate.shape == (0, 1, 1, 2)
    assert speeds_for(knowing(), [], ["a100"], [1], [8]).job_class.tolist() == []
