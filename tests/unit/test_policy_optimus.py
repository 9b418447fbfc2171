"""Optimus: GPUs where each of them brings most."""

from __future__ import annotations

from slurm_fair_plugins.optimus import Optimus, gain_per_gpu
from tests.builders import job, node
from tests.told_play import ToldPlay


def test_small_gangs_first_and_of_those_the_shortest() -> None:
    left = {"1": 1e3, "2": 9e3, "3": 2e3, "4": 5e3}
    play = ToldPlay([job(1, gpus=4), job(2), job(3), job(4, gpus=2)], {"n1": 4}, left=left)
    assert play.round(Optimus()) == {"2", "3", "4"}
    assert ToldPlay(play.jobs, {"n1": 1}, left=left).round(Optimus()) == {"3"}


def test_a_running_gang_gives_way_to_a_job_that_makes_more_of_each_gpu() -> None:
    jobs = [job(1, gpus=4), job(2, submit=1500)]
    play = ToldPlay(jobs, {"n1": 4}, left={"1": 1e5, "2": 1e5})
    assert play.play(Optimus(), 2) == [{"1"}, {"2"}]


def test_the_gain_is_that_on_the_best_type_that_there_is() -> None:
    nodes = {"f": node(1, gpu_type="fast"), "s": node(4, gpu_type="slow")}
    rates = {"1": (1.0, 0.4), "2": (0.2, 0.6), "3": (1.0, 0.5)}
    jobs = [job(1), job(2, gpus=2), job(3, gpu_type="slow")]
    play = ToldPlay(jobs, nodes, left=dict.fromkeys("123", 1e3), rates=rates)
    assert gain_per_gpu(play.seen()).tolist() == [1.0, 0.3, 0.5]
