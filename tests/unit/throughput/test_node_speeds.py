"""Servers on which jobs are faster or slower than on others of their type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.throughput import (
    JobClass,
    speeds_for,
)
from tests.support.speed_samples import BERT, OTHER, knowing


def on(node: str, rate: float, count: int = 4, cls: JobClass = BERT, **changed: Any) -> list[dict[str, Any]]:
    """Samples of jobs on one server."""
    first = 1000 * int(node[1:]) + 100 * (cls == OTHER)
    usual = {"node": node, "rate": rate, "cls": cls}
    return [{**usual, "job": first + at, **changed} for at in range(count)]


def told_of(*rows: dict[str, Any], cls: JobClass = BERT) -> dict[str, float]:
    """The servers on which a class is faster or slower than on others of the type, by name."""
    names = ("n3", "n2", "n1")
    speeds = speeds_for(knowing(*rows), [cls], ["a100", "v100"], [1], [8, 8], names)
    ratio = speeds.on_nodes(np.array([0]), len(names))[:, 0].tolist()
    assert (speeds.nodes is None) == (ratio == [1.0] * 3)
    return {name: value for name, value in zip(names, ratio, strict=True) if value != 1.0}


def test_a_server_that_differs_from_others_of_its_type_by_more_than_chance_is_known() -> None:
    slow = told_of(*on("n1", 50.0), *on("n2", 100.0), *on("n3", 100.0), *on("n9", 100.0))
    assert slow["n1"] / slow.get("n2", 1.0) == pytest.approx(0.5, rel=0.1)
    assert slow.get("n2", 1.0) == slow.get("n3", 1.0)
    assert told_of(*on("n1", 95.0), *on("n2", 100.0), *on("n3", 100.0)) == {}, "as much as runs differ"
    assert told_of(*on("n1", 50.0, 1), *on("n2", 100.0), *on("n3", 100.0)) == {}, "one sample is chance"
    assert told_of(*on("n1", 50.0, kind="v100"), *on("n2", 100.0), *on("n3", 100.0)) == {}, "of another type"
    several = on("n1", 50.0, gpus=2, nodes=2) + on("n2", 100.0) + on("n3", 100.0)
    assert told_of(*several) == {}, "of a run on several servers nobody knows which is slow"


def test_what_a_tenant_says_of_a_server_moves_its_own_class_alone() -> None:
    lies = [*on("n1", 1.0, cls=OTHER), *on("n2", 100.0, cls=OTHER), *on("n1", 100.0), *on("n2", 100.0)]
    assert told_of(*lies) == {}
    assert told_of(*lies, cls=OTHER)
    assert min(told_of(*lies, cls=OTHER).values()) >= 1 / 4
