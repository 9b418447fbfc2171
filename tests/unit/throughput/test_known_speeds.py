"""Speeds as policies see them, and links that a site measures with jobs of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.model.speeds import Spread
from slurm_fair.throughput import (
    JobClass,
    links_of,
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


def test_jobs_of_different_sizes_tell_the_links_of_their_type() -> None:
    shapes = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2), (16, 2), (8, 4), (16, 4)]
    rows = [
        measured(*shape, cls=JobClass("site", f"name={name}"), job=number)
        for name in ("a", "b", "c", "d", "e")
        for number, shape in enumerate(shapes)
    ]
    links = links_of(knowing(*rows))
    assert links.gpu_types == ("a100",)
    assert links.net.tolist() == [1.0]
    assert links.link[0] > 2.0  # in truth 15: what is seen of it is small


def test_measured_links_make_the_first_guess_better() -> None:
    few = [measured(1, 1), measured(8, 2)]
    shapes = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (8, 2), (16, 2), (16, 4)]
    rows = [measured(*shape, cls=JobClass("site", f"name={name}")) for name in "abcdef" for shape in shapes]
    links = links_of(knowing(*rows))
    truth = measured(8, 1)["rate"]
    with_links, without = asked(knowing(*few, links=links), (8, 1)), asked(knowing(*few), (8, 1))
    assert abs(with_links.rate[0] / truth - 1) < abs(without.rate[0] / truth - 1)
    assert with_links.doubt[0] < without.doubt[0]


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
