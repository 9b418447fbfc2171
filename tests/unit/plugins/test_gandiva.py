"""Gandiva: turns, affinity, migration (OSDI 2018, section 4), and the packing that Themis compares with."""

from __future__ import annotations

from slurm_fair_plugins.gandiva import Gandiva
from tests.support.builders import job
from tests.support.rounds import Play


def test_jobs_take_turns_when_more_is_asked_for_than_there_is() -> None:
    """Time slicing: suspended jobs are resumed round robin."""
    play = Play([job(i, gpus=4, submit=i) for i in (1, 2, 3)], {"n1": 8})
    assert play.play(Gandiva(), 3) == [{"1", "2"}, {"1", "3"}, {"2", "3"}]
    ran = play.play(Gandiva(), 9)
    assert {len(each) for each in ran} == {2}
    turns = [sum(str(i) in each for each in play.rounds) for i in (1, 2, 3)]
    assert max(turns) - min(turns) <= 1


def test_nobody_is_suspended_when_all_fit() -> None:
    play = Play([job(i, gpus=4, submit=i) for i in (1, 2)], {"n1": 8})
    assert play.play(Gandiva(), 3) == [{"1", "2"}] * 3


def test_gangs_lie_beside_gangs_of_their_size_then_on_idle_nodes() -> None:
    """Affinity of a node is the size of its gangs: the same first, then none, then another."""
    play = Play([job(1, gpus=1), job(2, gpus=2, submit=1)], {"n1": 8, "n2": 8})
    play.round(Gandiva(migrate=False))
    assert list(play.on["1"]) != list(play.on["2"])
    play.jobs = [*play.jobs, job(3, gpus=2, submit=1000), job(4, gpus=1, submit=1001)]
    play.round(Gandiva(migrate=False))
    assert (play.on["3"].keys(), play.on["4"].keys()) == (play.on["2"].keys(), play.on["1"].keys())


def test_jobs_are_packed_on_as_few_machines_as_possible() -> None:
    """Themis (NSDI 2020, section 6.1) has Gandiva for its ideal of efficiency: greedy packing."""
    play = Play([job(i, gpus=2, submit=i) for i in range(1, 6)], {"n1": 8, "n2": 8, "n3": 8})
    play.round(Gandiva())
    nodes = [node for on in play.on.values() for node in on]
    assert sorted(nodes.count(node) for node in set(nodes)) == [1, 4]


def test_an_almost_empty_node_is_cleared() -> None:
    """Migration against fragments: of the nodes in use the one with most free GPUs, at least 3 of 4 of them.

    1 GPU alone on n2, and n1 has room: it moves, so that a whole node is free.
    """
    play = Play([job(1, gpus=7), job(2, gpus=1)], {"n1": 8, "n2": 8})
    play.on = {"1": {"n1": 7}, "2": {"n2": 1}}
    play.since = {"1": 1.0, "2": 1.0}
    assert play.round(Gandiva()) == {"1"}
    play.round(Gandiva())
    assert play.on["2"] == {"n1": 1}
    stays = Play([job(1, gpus=7), job(2, gpus=1)], {"n1": 8, "n2": 8})
    stays.on, stays.since = {"1": {"n1": 7}, "2": {"n2": 1}}, {"1": 1.0, "2": 1.0}
    assert stays.round(Gandiva(migrate=False)) == {"1", "2"}
