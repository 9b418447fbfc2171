"""Configurations of jobs: which sizes on which servers, how fast, and in which shape each runs now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState
from slurm_fair.model.speeds import USUAL_EXPONENT
from slurm_fair.policy import Pools, View
from slurm_fair_plugins.configurations import (
    Configurations,
    Shape,
    configurations,
    freely_placed,
    may_spread,
    regions_of,
    shapes_now,
)
from tests.support.builders import NodeSpec, job, node
from tests.support.hops_views import NOW, sight

NO_JOB = np.zeros(0, dtype=np.int64)
TWO_TYPES: dict[str, int | NodeSpec] = {"n1": node(8, gpu_type="x"), "n2": node(4, gpu_type="y")}


def every(seen: View, *rows: int) -> list[tuple[int, int, int, bool, int]]:
    """Job, region, GPUs, spread or not, and the biggest server of each configuration, in order."""
    asked = np.array(rows or range(len(seen.waiting)), dtype=np.int64)
    ways = configurations(seen, Pools.of(seen.snapshot), asked)
    columns = ways.job, ways.on, ways.gpus, ways.spread, ways.biggest
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def speeds(seen: View) -> dict[tuple[int, int, bool], float]:
    """The speed of each configuration of row 0, by region, GPUs, and spread or not."""
    ways = configurations(seen, Pools.of(seen.snapshot), np.array([0]))
    keys = zip(ways.on.tolist(), ways.gpus.tolist(), ways.spread.tolist(), strict=True)
    return dict(zip(keys, ways.speed.tolist(), strict=True))


# --- who may lie where


def test_places_of_jobs_on_one_node_or_split_by_slurm_may_be_chosen_freely() -> None:
    jobs = [
        job(1, gpus=4),
        job(2, gpus=4, gpus_per_node=4),
        job(3, gpus=4, gpus_per_node=2, nodes=2),
        job(4, gpus=4, nodes=2),
        job(5, gpus=4, wanted=("n2",)),
        job(6, gpus=4, barred=("n1",)),
        job(7, gpus=4, gpus_per_node=2),
    ]
    seen = sight(jobs)
    assert freely_placed(seen, np.arange(7)).tolist() == [True, True, False, False, False, False, False]
    assert freely_placed(seen, np.array([4, 1])).tolist() == [False, True], "in the order of the rows"
    assert freely_placed(seen, NO_JOB).tolist() == []


def test_a_job_that_names_its_gpus_of_a_node_or_one_node_at_most_is_not_spread() -> None:
    jobs = [
        job(1, gpus=4),
        job(2, gpus=4, gpus_per_node=4),
        job(3, gpus=4, most_nodes=1),
        job(4, gpus=4, most_nodes=2),
    ]
    assert may_spread(sight(jobs), np.arange(4)).tolist() == [True, False, False, True]


def test_a_job_may_lie_on_servers_of_its_partition_and_of_the_type_that_it_wants() -> None:
    nodes: dict[str, int | NodeSpec] = {
        "n1": node(8, gpu_type="x"),
        "n2": node(8, gpu_type="y"),
        "n3": node(8, gpu_type="x", partitions=("other",)),
    }
    jobs = [job(1), job(2, gpu_type="y"), job(3, partition="other"), job(4, partition="other", gpu_type="y")]
    seen = sight(jobs, nodes)
    pools = Pools.of(seen.snapshot)
    lies = regions_of(pools, seen, np.arange(4))[:, pools.region]
    assert lies.tolist() == [[True, True, False], [False, True, False], [False, False, True], [False] * 3]


def test_where_no_server_takes_work_nobody_lies_anywhere() -> None:
    seen = sight([job(1), job(2)], {"n1": node(8, usable=False)})
    assert not regions_of(Pools.of(seen.snapshot), seen, np.arange(2)).any()
    assert every(seen) == []


# --- every size on every kind of server


def test_a_size_that_a_server_holds_may_lie_on_one_and_on_several() -> None:
    seen = sight([job(1, gpus=4)], elastic={0: (1, 4, 12)})
    assert every(seen) == [
        (0, 0, 1, False, 8),  # one GPU is never spread
        (0, 0, 4, False, 8),
        (0, 0, 4, True, 8),
        (0, 0, 12, True, 8),  # no server holds it
    ]


def test_a_gang_as_large_as_the_biggest_server_fits_on_it() -> None:
    assert every(sight([job(1, gpus=8, most_nodes=1)])) == [(0, 0, 8, False, 8)]
    assert every(sight([job(1, gpus=9, most_nodes=1)])) == []


def test_each_kind_of_server_has_its_own_biggest_one() -> None:
    seen = sight([job(1, gpus=6, most_nodes=1), job(2, gpus=6)], TWO_TYPES)
    assert every(seen) == [(0, 0, 6, False, 8), (1, 0, 6, False, 8), (1, 0, 6, True, 8), (1, 1, 6, True, 4)]


def test_jobs_are_counted_along_the_rows_that_were_asked_about() -> None:
    seen = sight([job(1, gpus=1), job(2, gpus=2, most_nodes=1), job(3, gpus=3, most_nodes=1)])
    assert every(seen, 2, 0) == [(0, 0, 3, False, 8), (1, 0, 1, False, 8)]


def test_nobody_has_no_configuration_and_no_gain() -> None:
    seen = sight([job(1)])
    ways = configurations(seen, Pools.of(seen.snapshot), NO_JOB)
    assert (len(ways), ways.gain.tolist()) == (0, [])


def test_what_does_not_run_on_a_type_has_no_configuration_there() -> None:
    seen = sight([job(1, gpus=2, most_nodes=1)], TWO_TYPES, rates=[[0.0, 3.0]])
    assert speeds(seen) == {(1, 2, False): 3.0}


def test_who_lies_apart_with_more_servers_than_it_needs_is_slower() -> None:
    """The job runs at 0.5 of its speed apart; twelve GPUs need two servers, and are as fast as twelve can be."""
    found = speeds(sight([job(1, gpus=4)], elastic={0: (12,)}, spread_rate=[[0.5]]))
    assert found[0, 4, False] == 1.0
    assert found[0, 4, True] == 0.5
    assert found[0, 12, True] == pytest.approx(3.0**USUAL_EXPONENT)


# --- gains and shapes


def ways_of(*entries: tuple[int, int, int, bool, float]) -> Configurations:
    """Job, region, GPUs, spread, speed."""
    job, on, gpus, spread, speed = (np.array(column) for column in zip(*entries, strict=True))
    return Configurations(job, on, gpus, spread, speed, np.full(len(job), 8))


def test_a_gain_is_the_speed_over_the_least_of_the_same_job() -> None:
    ways = ways_of((0, 0, 1, False, 2.0), (2, 0, 1, False, 9.0), (0, 0, 2, False, 3.0), (2, 1, 4, True, 4.5))
    assert ways.gain.tolist() == [1.0, 2.0, 1.5, 1.0]


def test_the_configuration_in_which_a_job_runs_has_its_region_its_gpus_and_its_spread() -> None:
    ways = ways_of(
        (0, 1, 4, True, 1.0),
        (0, 0, 4, True, 1.0),
        (0, 1, 2, True, 1.0),
        (0, 1, 4, False, 1.0),
        (1, 1, 4, True, 1.0),
    )
    now = Shape(np.array([1, -1]), np.array([4, 0]), np.array([True, False]))
    assert ways.unchanged(now).tolist() == [True, False, False, False, False]


def test_who_holds_gpus_has_a_shape_and_who_waits_has_none() -> None:
    jobs = [
        job(1, gpus=6, state=JobState.RUNNING, start=NOW - 9, on={"n1": 4, "n2": 2}),
        job(2, gpus=3, state=JobState.RUNNING, start=NOW - 9, on={"n2": 3}),
        job(3, gpus=8),
    ]
    seen = sight(jobs, over={1: {"n1": 4, "n2": 2}, 2: {"n2": 3}})
    now = shapes_now(seen, np.array([5, 7]), np.array([2, 1, 0]))
    assert (now.on.tolist()[:2], now.gpus.tolist(), now.spread.tolist()) == (
        [-1, 7],
        [0, 3, 6],
        [False, False, True],
    )
    assert now.on[2] in (5, 7)


def test_where_nobody_holds_anything_nobody_has_a_shape() -> None:
    seen = sight([job(1), job(2)])
    now = shapes_now(seen, np.array([0, 0]), np.arange(2))
    assert (now.on.tolist(), now.gpus.tolist(), now.spread.tolist()) == ([-1, -1], [0, 0], [False, False])


def test_a_partition_that_is_down_takes_nobody() -> None:
    seen = sight([job(1)])
    down = replace(seen.snapshot.partitions, up=np.zeros(1, dtype=bool))
    assert every(replace(seen, snapshot=replace(seen.snapshot, partitions=down))) == []
