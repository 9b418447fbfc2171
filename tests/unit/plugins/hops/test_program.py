"""Hops' program: which configurations are considered, what they are worth, and the servers that it is given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model.columns import Ints
from slurm_fair.policy import Offer, View
from slurm_fair.solve.places import PlacesProblem, fast
from slurm_fair_plugins.configurations import Configurations, Shape
from slurm_fair_plugins.hops.program import considered, program, worth
from tests.support.builders import NodeSpec, job, node
from tests.support.hops_views import sight


def ways_of(*entries: tuple[int, int, bool, float]) -> Configurations:
    """Job, GPUs, spread and speed, on the one kind of server, the biggest of which has 8 GPUs."""
    job, gpus, spread, speed = (np.array(column) for column in zip(*entries, strict=True))
    return Configurations(job, np.zeros_like(job), gpus, spread, speed, np.full(len(job), 8))


WAYS = ways_of((0, 4, False, 1.0), (0, 4, True, 1.0), (0, 8, True, 1.0), (0, 9, True, 1.0), (1, 4, True, 1.0))


@pytest.mark.parametrize(
    ("sensitivity", "threshold", "kept"),
    [
        ((1.4, 1.0), 1.4, [True, True, True, True, True]),  # at the threshold a job is not sensitive
        ((1.41, 1.0), 1.4, [True, False, False, True, True]),
        ((1.41, 1.41), 1.4, [True, False, False, True, False]),
        ((9.0, np.inf), np.inf, [True, True, True, True, True]),
    ],
)
def test_a_sensitive_job_is_spread_only_in_sizes_that_no_server_holds(
    sensitivity: tuple[float, float], threshold: float, kept: list[bool]
) -> None:
    left = considered(WAYS, np.array(sensitivity), threshold)
    assert left.gpus.tolist() == WAYS.gpus[kept].tolist()
    assert left.job.tolist() == WAYS.job[kept].tolist()


NOWHERE = Shape(np.array([-1, -1]), np.array([0, 0]), np.array([False, False]))


def test_a_way_is_worth_the_weight_of_its_job_times_its_gain() -> None:
    ways = ways_of((1, 1, False, 2.0), (0, 1, False, 1.0), (1, 2, False, 3.0), (0, 2, False, 4.0))
    assert worth(ways, np.array([10.0, 100.0]), NOWHERE, 0.5).tolist() == [100.0, 10.0, 150.0, 40.0]


def test_who_runs_in_a_shape_values_it_a_little_more() -> None:
    ways = ways_of((0, 4, False, 1.0), (0, 4, True, 1.0), (1, 4, False, 1.0))
    now = Shape(np.array([0, -1]), np.array([4, 0]), np.array([False, False]))
    assert worth(ways, np.array([10.0, 10.0]), now, 0.1).tolist() == pytest.approx([11.0, 10.0, 10.0])
    assert worth(ways, np.array([10.0, 10.0]), now, 0.0).tolist() == [10.0, 10.0, 10.0]


def test_a_job_without_weight_is_worth_nothing_however_it_gains() -> None:
    assert worth(ways_of((0, 4, False, 9.0)), np.zeros(1), NOWHERE, 0.5).tolist() == [0.0]


# --- the servers of an offer


def asked(seen: View, kind: tuple[int, ...], on: Ints, ways: Configurations) -> PlacesProblem:
    """The program over these servers, where each way is worth its GPUs."""
    value = ways.gpus.astype(np.float64)
    return program(Offer(seen), np.array(kind), on, ways, value, len(seen.waiting))


def test_the_program_has_what_the_chosen_servers_have_free_in_their_order() -> None:
    nodes: dict[str, int | NodeSpec] = {"n1": node(8, gpus_others=3), "n2": 8, "n3": node(8, usable=False)}
    seen = sight([job(1, gpus=4)], nodes)
    problem = asked(seen, (0, 1, 0), np.array([1, 0, 2]), ways_of((0, 4, False, 1.0)))
    assert problem.free.tolist() == [8, 5, 0]
    assert problem.size.tolist() == [8, 8, 8]
    assert problem.kind.tolist() == [1, 0, 0]
    assert problem.block.tolist() == [0, 0, 0], "no racks are known"
    assert (problem.jobs, problem.gpus.tolist(), problem.value.tolist()) == (1, [4], [4.0])


def test_a_gang_does_not_lie_across_racks() -> None:
    seen = sight([job(1, gpus=12)], {f"n{at}": 8 for at in range(1, 5)})
    racked = replace(seen, snapshot=replace(seen.snapshot, racks=np.array([3, 0, 0, 3])))
    problem = asked(racked, (0,) * 4, np.arange(4), ways_of((0, 12, True, 1.0)))
    assert problem.block.tolist() == [3, 0, 0, 3]
    assert fast(problem).server.tolist() == [1, 2]


def test_without_servers_or_ways_the_program_gives_nothing() -> None:
    seen = sight([job(1, gpus=4)])
    no_server = asked(seen, (0, 0), np.zeros(0, dtype=np.int64), ways_of((0, 4, False, 1.0)))
    no_way = asked(seen, (0, 0), np.arange(2), ways_of((0, 4, False, 1.0)).take(np.zeros(0, dtype=np.int64)))
    for problem in (no_server, no_way):
        assert fast(problem).column.tolist() == [-1]
