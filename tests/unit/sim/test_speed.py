"""The virtual cluster, worked out by hand: how fast jobs are on what they got."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import InputError
from slurm_fair.model import Result, Verb
from slurm_fair.sim import Costs
from slurm_fair.trace import Machines, Throughputs, uniform
from tests.support.simulated import Rounds, arrival, simulated
from tests.support.virtual_scene import Scene


def two_kinds() -> Machines:
    """n1 is twice as fast as n2 and n3; n3 lies in another rack."""
    machines = uniform(24, 8)
    return replace(
        machines,
        gpu_type=np.array([0, 1, 1]),
        gpu_types=("a100", "v100"),
        speed=np.array([2.0, 1.0, 1.0]),
        rack=np.array([0, 0, 1]),
        racks=("r1", "r2"),
    )


@pytest.mark.parametrize(
    ("nodes", "seconds"),
    [(("n1",), 50), (("n2",), 100), (("n1", "n2"), 100 * 1.25), (("n2", "n3"), 100 * 1.75)],
    ids=["the fast type", "the slow type", "over two nodes, the slowest counts", "over two racks"],
)
def test_a_job_is_as_fast_as_its_slowest_gpu_and_slower_apart(nodes: tuple[str, ...], seconds: float) -> None:
    scene = Scene(machines=two_kinds())
    key = scene.submit(gpus=8, seconds=100, gpus_per_node=4 if len(nodes) > 1 else 0)
    scene.cluster.population.spread_rates[0] = 1 / 1.25
    if len(nodes) > 1:
        blockers = [scene.runs(gpus=4, seconds=1e6, node=node) for node in nodes]
        assert blockers
    assert scene.act(Verb.OPEN, key, *nodes).result is Result.DONE
    assert scene.at(1000).ended(key) == pytest.approx(seconds)


def test_a_gang_that_does_not_divide_by_its_nodes_has_a_part_on_each() -> None:
    scene = Scene(machines=two_kinds())
    key = scene.submit(gpus=4, nodes=3)
    scene.act(Verb.OPEN, key, "n1", "n2", "n3")
    assert scene.look().held.gpus.tolist() == [2, 1, 1]


def test_what_a_job_reports_is_its_progress() -> None:
    scene = Scene(machines=two_kinds())
    scene.runs(seconds=100)
    told = scene.at(20).look().told
    assert told is not None
    assert (told.done_seconds[0], told.left_seconds[0]) == (40, 60)
    assert told.rate.tolist() == [[2.0, 1.0]]


SPEEDS = Throughputs(
    "made",
    ("made",),
    "v100",
    {("v100", "consolidated", "m", 0, 8): 5.0, ("a100", "consolidated", "m", 0, 8): 0.0},
)


def test_no_job_is_put_on_gpus_on_which_it_was_measured_not_to_run() -> None:
    jobs = [arrival(0, gpus=8, seconds=100, model="m"), arrival(0, gpus=8, seconds=100)]
    result = simulated(jobs, "fifo", machines=two_kinds(), throughputs=SPEEDS)
    assert (result.runs.end - result.epoch).tolist() == [100, 50]


def test_a_job_that_runs_on_no_gpus_there_are_is_refused_by_name() -> None:
    only_fast = two_kinds().take(np.array([0]))
    with pytest.raises(InputError, match=r"1 of 1 job wants .*, or runs on none .* measured: 0 \(8 GPUs\)"):
        simulated([arrival(0, gpus=8, model="m")], "fifo", machines=only_fast, throughputs=SPEEDS)


def test_gpus_of_a_job_that_ended_stay_idle_until_gavels_round_is_over() -> None:
    jobs = [arrival(0, gpus=8, seconds=90), arrival(0, gpus=8, seconds=50)]
    how = Rounds(lease=120.0, rounds="gavel", costs=Costs(restart=20.0))
    result = simulated(jobs, "fifo", gpus=8, how=how)
    # The first loses 20 s of its round to its start and ends at 110; the next one starts when the round is over.
    assert (result.runs.start - result.epoch).tolist() == [0, 120]
    assert result.outcomes.ended_or_now.max() - result.epoch == pytest.approx(120 + 20 + 50)
