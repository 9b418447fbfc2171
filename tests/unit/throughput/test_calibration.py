"""Links that a site measures with jobs of its own."""

from __future__ import annotations

from slurm_fair.throughput import (
    JobClass,
    links_of,
)
from tests.support.speed_samples import asked, knowing, measured


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
