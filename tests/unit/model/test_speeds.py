"""Speeds of classes of jobs in shapes."""

from dataclasses import replace

import numpy as np

from slurm_fair.model import NodeSpeeds, Speeds

NAN = float("nan")


def some() -> Speeds:
    """One class, one type, sizes 1 and 4; the second job is not known."""
    rate = np.array([[[[10.0, NAN], [36.0, 20.0]]]])
    return Speeds(np.array([0, -1]), np.array([1, 4]), rate, rate / 100, ("vision/resnet",))


def rates(rows: list[int], gpus: list[int], apart: list[bool]) -> list[float]:
    kinds = np.zeros(len(rows), dtype=np.int64)
    found: list[float] = some().rates(np.array(rows), kinds, np.array(gpus), np.array(apart)).tolist()
    return found


def test_a_rate_is_that_of_the_shape() -> None:
    assert rates([0, 0, 0], [1, 4, 4], [False, False, True]) == [10.0, 36.0, 20.0]


def test_what_nobody_measured_is_not_a_number() -> None:
    assert np.isnan(rates([0, 0, 0, 1], [1, 2, 8, 1], [True, False, False, False])).all()


def test_the_doubt_of_a_rate_stands_beside_it() -> None:
    one = np.array([0])
    assert some().doubts(one, one, np.array([4]), np.array([True])).tolist() == [0.2]


def test_jobs_can_be_taken_in_another_order() -> None:
    assert some().for_rows([1, 0]).job_class.tolist() == [-1, 0]


def test_a_node_is_as_fast_as_its_type_where_nothing_else_is_known() -> None:
    slow = replace(some(), nodes=NodeSpeeds(np.array([0]), np.array([2]), np.array([0.5])))
    rows = np.array([0, 1])
    assert slow.on_nodes(rows, 3).tolist() == [[1.0, 1.0], [1.0, 1.0], [0.5, 1.0]]
    assert slow.for_rows([1, 0]).on_nodes(rows, 3)[2].tolist() == [1.0, 0.5]
    assert some().on_nodes(rows, 3).tolist() == [[1.0, 1.0]] * 3
