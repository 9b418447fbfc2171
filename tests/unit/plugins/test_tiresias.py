"""Tiresias: attained service, continuous and in queues (NSDI 2019, section 3; Themis, NSDI 2020, section 6.1)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from slurm_fair.errors import ConfigError
from slurm_fair_plugins.tiresias import Las, Tiresias
from tests.support.accounts import Account, places, view
from tests.support.builders import job, snapshot
from tests.support.rounds import Play


def changes(rounds: list[set[str]]) -> int:
    """The number of rounds in which other jobs run than in the round before."""
    return sum(before != after for before, after in pairwise(rounds))


def test_continuous_priorities_make_equal_jobs_take_turns_and_queues_do_not() -> None:
    """The paper's reason for queues (section 3.3): two alike jobs would pre-empt each other for ever."""
    jobs = [job(1, gpus=8), job(2, gpus=8, submit=1)]
    continuous = Play(jobs, {"n1": 8}).play(Las(), 8)
    assert continuous == [{"1"}, {"2"}] * 4
    # A lease of 8 GPUs is 7,200 GPU-seconds: two of them fill the first queue.
    discrete = Play(jobs, {"n1": 8}).play(Tiresias(thresholds_gpu_seconds=(14_000.0,)), 8)
    assert discrete == [{"1"}, {"1"}, {"2"}, {"2"}, {"1"}, {"1"}, {"1"}, {"1"}]
    assert changes(discrete) < changes(continuous)


def test_all_jobs_obtain_equal_service_over_time() -> None:
    """Themis (section 6.1) has it for this, its ideal of fairness: the least GPU service first."""
    jobs = [job(1, gpus=4), job(2, gpus=2), job(3, gpus=2), job(4, gpus=1)]
    play = Play(jobs, {"n1": 4})
    play.play(Las(), 40)
    served = [each.gpus * sum(str(each.base) in ran for ran in play.rounds) for each in jobs]
    assert max(served) - min(served) <= 4  # a lease of the largest gang


def test_service_has_two_dimensions() -> None:
    """2DAS, GPUs times time (section 3.2).

    Equal times, but the wide job has had eight times as much: the narrow one and the new one go on.
    """
    play = Play([job(1, gpus=7), job(2, gpus=1), job(3, gpus=7, submit=1000)], {"n1": 8})
    assert play.play(Las(), 2) == [{"1", "2"}, {"2", "3"}]


def test_a_new_job_stops_one_that_has_left_the_first_queue() -> None:
    play = Play([job(1, gpus=8), job(2, gpus=8, submit=1000)], {"n1": 8})
    assert play.play(Tiresias(), 3) == [{"1"}, {"2"}, {"1"}]


def test_inside_a_queue_the_first_to_start_goes_first() -> None:
    """3 was submitted first but is too wide beside 1; 2 starts before it and keeps that lead."""
    jobs = [job(1, gpus=4, submit=1), job(2, gpus=4, submit=2), job(3, gpus=8, submit=0)]
    never_full = Tiresias(thresholds_gpu_seconds=(1e9,))
    play = Play(jobs[:2], {"n1": 8})
    play.round(never_full)
    play.jobs = jobs
    assert play.play(never_full, 3) == [{"1", "2"}] * 3


def test_a_starved_job_is_lifted_to_the_first_queue() -> None:
    """PROMOTEKNOB (section 3.3).

    1 ran one lease and has waited one: with a knob of 1 it is as new, its count begun anew.
    """
    jobs = [job(1, gpus=8), job(2, gpus=8, submit=1000), job(3, gpus=8, submit=1900)]
    lifting = Tiresias(promote_knob=1.0)
    assert Play(jobs, {"n1": 8}).play(Tiresias(), 4) == [{"1"}, {"2"}, {"3"}, {"1"}]
    assert Play(jobs, {"n1": 8}).play(lifting, 4) == [{"1"}, {"2"}, {"1"}, {"2"}]


def test_what_is_known_of_jobs_that_are_gone_is_forgotten() -> None:
    play = Play([job(base, submit=base) for base in range(1, 9)], {"n1": 8})
    play.round(Tiresias())
    play.round(Tiresias())
    assert len(play.memory["runs"]["key"]) == 8
    play.finish(1, 2, 3, 4, 5, 6, 7)
    play.round(Tiresias())
    assert play.memory["runs"]["key"] == [int(play.seen().snapshot.jobs.key[0])]


@pytest.mark.parametrize(
    "settings", [{"thresholds_gpu_seconds": (5.0, 5.0)}, {"promote_knob": -1.0}], ids=["thresholds", "knob"]
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"policy\.tiresias\."):
        Tiresias(**settings)  # type: ignore[arg-type]


def test_a_job_that_has_had_the_threshold_itself_is_in_the_second_queue() -> None:
    seen = snapshot(
        time=100.0, nodes={"n1": 8}, jobs=[job(1, gpus=8), job(2, gpus=8, submit=1), job(3, gpus=8)]
    )
    had = {"1": Account(3250.0), "2": Account(3249.0), "3": Account(3251.0)}
    plan = Tiresias().plan(view(seen, jobs=had))
    assert plan.explanation.score.tolist() == [1.0, 0.0, 1.0]
    assert places(seen, plan) == {"2": {"n1": 8}}
