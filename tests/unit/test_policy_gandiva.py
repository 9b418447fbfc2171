"""Gandiva: turns, affinity, migration."""

from __future__ import annotations

from slurm_fair_plugins.gandiva import Gandiva
from tests.builders import job
from tests.rounds import Play


def test_jobs_take_turns_when_more_is_asked_for_than_there_is() -> None:
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
    play = Play([job(1, gpus=1), job(2, gpus=2, submit=1)], {"n1": 8, "n2": 8})
    play.round(Gandiva(migrate=False))
    assert list(play.on["1"]) != list(play.on["2"])
    play.jobs = [*play.jobs, job(3, gpus=2, submit=1000), job(4, gpus=1, submit=1001)]
    play.round(Gandiva(migrate=False))
    assert (play.on["3"].keys(), play.on["4"].keys()) == (play.on["2"].keys(), play.on["1"].keys())


def test_an_almost_empty_node_is_cleared() -> None:
    """1 GPU alone on n2, and n1 has room: it moves, so that a whole node is free."""
    play = Play([job(1, gpus=7), job(2, gpus=1)], {"n1": 8, "n2": 8})
    play.on = {"1": {"n1": 7}, "2": {"n2": 1}}
    play.since = {"1": 1.0, "2": 1.0}
    assert play.round(Gandiva()) == {"1"}
    play.round(Gandiva())
    assert play.on["2"] == {"n1": 1}
    stays = Play([job(1, gpus=7), job(2, gpus=1)], {"n1": 8, "n2": 8})
    stays.on, stays.since = {"1": {"n1": 7}, "2": {"n2": 1}}, {"1": 1.0, "2": 1.0}
    assert stays.round(Gandiva(migrate=False)) == {"1", "2"}
