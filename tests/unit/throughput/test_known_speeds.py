"""Speeds as policies see them, sensitivity, and links that a site measures with jobs of its own."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.model.speeds import APART, TOGETHER
from slurm_fair.throughput import (
    SENSITIVE,
    JobClass,
    is_sensitive,
    links_of,
    mixed_rates,
    sensitivities,
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
        assert speeds.rate[0, 0, size, [TOGETHER, APART]] == pytest.approx(expected.rate)
        assert speeds.doubt[0, 0, size, [TOGETHER, APART]] == pytest.approx(expected.doubt)


def test_where_nothing_is_known_no_job_has_a_class() -> None:
    speeds = speeds_for(knowing(), [BERT, STRANGER], ["a100"], [1], [8])
    assert speeds.job_class.tolist() == [-1, -1]
    assert speeds.rate.shape == (0, 1, 1, 2)
    assert speeds_for(knowing(), [], ["a100"], [1], [8]).job_class.tolist() == []


def test_a_job_that_loses_much_on_two_nodes_is_sensitive() -> None:
    calm = [measured(1, 1), measured(2, 2)]
    tense = [{**row, "cls": OTHER} for row in calm]
    tense[1] = {**tense[1], "rate": tense[1]["rate"] / 3}
    found = sensitivities(knowing(*calm, *tense), [BERT, OTHER], ["a100"])
    assert found.shape == (2, 1)
    assert found[0, 0] == pytest.approx(1.1, abs=0.15)
    assert found[1, 0] == pytest.approx(3 * found[0, 0], rel=0.05)
    assert is_sensitive(found).tolist() == [[False], [True]]
    assert is_sensitive(found, threshold=1.0).all()
    assert SENSITIVE == 1.4


def test_a_run_over_mixed_gpus_goes_at_the_pace_of_the_slowest() -> None:
    run = np.array([0, 0, 1])
    rates = mixed_rates(run, np.array([10.0, 4.0, 7.0]), np.array([2, 4, 3]), 2)
    assert rates.tolist() == [6 * 4.0, 21.0]


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
