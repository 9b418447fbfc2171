"""Servers put into classes by their speed."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.solve.places import (
    speed_classes,
)


def test_classes_of_speeds_never_mix_gpu_types_and_keep_to_their_number() -> None:
    speed = np.array([[1.0, 2.0], [1.01, 2.0], [1.5, 2.0], [1.0, 2.0], [4.0, 9.0]])
    gpu_type = np.array([0, 0, 0, 1, 1])
    few = speed_classes(speed, gpu_type, 3)
    assert few.of_server.tolist() == [0, 0, 0, 1, 2]  # the furthest apart are told apart first
    more = speed_classes(speed, gpu_type, 10)
    assert more.of_server.tolist() == [0, 0, 1, 2, 3]  # 1 % apart is as good as alike
    assert more.speed[0] == pytest.approx([np.sqrt(1.01), 2.0])
    assert more.error == pytest.approx([np.sqrt(1.01) - 1.0, 0.0, 0.0, 0.0])


def test_classes_of_speeds_of_no_servers_and_of_bad_ones() -> None:
    assert speed_classes(np.ones((0, 3)), np.zeros(0, dtype=np.int64), 4).of_server.tolist() == []
    with pytest.raises(ValueError, match="positive speeds"):
        speed_classes(np.array([[0.0]]), np.zeros(1, dtype=np.int64), 4)
    with pytest.raises(ValueError, match="2 GPU types need at least as many classes, not 1"):
        speed_classes(np.ones((2, 1)), np.arange(2), 1)
