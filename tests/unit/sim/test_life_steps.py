"""Steps of a job's way to its GPUs and off them: each takes its seconds, and who holds the GPUs meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState, Standing, Verb
from slurm_fair.sim import Costs, Manners, Scenario, rules_for, simulate
from slurm_fair.sim.loop.paces import DaemonsLooks, RecordedLooks
from slurm_fair.sim.scenario import Step
from slurm_fair.trace import uniform
from tests.support.simulated import arrival, trace
from tests.support.virtual_scene import T0, Scene


def test_an_opened_job_starts_after_its_delay_and_nobody_holds_its_gpus_meanwhile() -> None:
    scene = Scene(costs=Costs(opening=3))
    key = scene.runs(seconds=100)
    assert scene.at(2.9).job(key)["state"] == JobState.WAITING
    assert scene.at(3).job(key)["start"] == T0 + 3
    assert scene.at(200).ended(key) == 103
    assert scene.cluster.tally.held_gpu_seconds == 800


def test_one_that_is_gated_again_before_it_started_does_not_start() -> None:
    scene = Scene(costs=Costs(opening=3))
    key = scene.runs(seconds=100)
    scene.at(1).act(Verb.CLOSE, key)
    assert scene.at(50).job(key)["state"] == JobState.WAITING


def test_one_that_is_opened_again_starts_after_the_later_delay() -> None:
    scene = Scene(costs=Costs(opening=3))
    key = scene.runs(seconds=100)
    scene.at(1).act(Verb.CLOSE, key)
    scene.at(2).act(Verb.OPEN, key, "n2")
    assert scene.at(4.9).job(key)["state"] == JobState.WAITING
    assert scene.at(5).job(key)["start"] == T0 + 5


def test_gpus_are_free_only_when_the_job_has_left_and_no_longer_charged_meanwhile() -> None:
    scene = Scene(costs=Costs(leaving=2))
    key = scene.runs(seconds=100)
    assert scene.at(101).job(key)["state"] == JobState.ENDING
    assert scene.at(102).job(key)["state"] == JobState.DONE
    assert scene.ended(key) == 100
    assert scene.cluster.tally.held_gpu_seconds == 800


def test_a_requeued_run_is_over_in_accounting_when_slurm_has_stopped_it() -> None:
    scene = Scene(costs=Costs(stopping=1, returning=2))
    key = scene.runs(seconds=100)
    scene.at(40).act(Verb.REQUEUE, key)
    assert scene.at(42).job(key)["state"] == JobState.WAITING
    assert [run.end - T0 for run in scene.books.of(key)] == [41]


def test_a_job_makes_progress_until_it_hears_that_it_is_to_save() -> None:
    scene = Scene(costs=Costs(hearing=2), manners=Manners(patience_seconds=30))
    key = scene.runs(seconds=100)
    scene.at(40).act(Verb.ASK, key)
    assert scene.at(41.9).job(key)["acknowledged"] == 0
    assert scene.at(42).job(key)["acknowledged"] == 1
    assert scene.at(200).ended(key) == 100 + 30  # 42 s were done


def test_a_job_that_ends_before_it_hears_just_ends() -> None:
    scene = Scene(costs=Costs(hearing=2))
    key = scene.runs(seconds=41)
    scene.at(40).act(Verb.ASK, key)
    assert scene.at(50).ended(key) == 41


def test_all_costs_of_a_change_are_counted() -> None:
    assert Costs(1, 2, 100, 4, 8, 16, 32, 64, 128).of_one_change == 1 + 2 + 4 + 8 + 16 + 64


SCENARIO = Scenario(
    trace([arrival(0.25, gpus=8, seconds=20.5), arrival(1.25, gpus=8, seconds=9)]), uniform(8, 8)
)
RULES = rules_for("fifo", {}, lease=600, interval=1, aligned=False)


def test_steps_take_what_they_are_said_to_take_in_the_place_of_the_usual_cost() -> None:
    heard = []

    def takes(step: Step, job: int, restarts: int, now: float) -> float:
        heard.append((step, job, restarts))
        return {Step.OPENING: 0.5, Step.START: 2.0 + job, Step.LEAVING: 1.0}[step]

    result = simulate(replace(SCENARIO, takes=takes), RULES)
    starts, ends = result.runs.start - result.epoch, result.runs.end - result.epoch
    assert (starts[0], ends[0]) == (1.5, 1.5 + 2.0 + 20.5)
    assert ends[1] - starts[1] == 3.0 + 9
    assert heard == [(step, job, 0) for job in (0, 1) for step in (Step.OPENING, Step.START, Step.LEAVING)]


def test_instants_are_told_in_whole_seconds_where_slurm_does() -> None:
    result = simulate(replace(SCENARIO, whole_seconds=True, costs=Costs(opening=0.5)), RULES)
    told = result.runs.start.tolist() + result.runs.end.tolist() + result.outcomes.submit.tolist()
    assert all(instant == int(instant) for instant in told)
    assert (result.runs.end[0] - result.epoch, result.outcomes.submit[1] - result.epoch) == (22, 1)


def looks_of(looks: RecordedLooks | DaemonsLooks) -> list[float]:
    """The instants of the looks of a simulation."""
    seen: list[float] = []
    simulate(
        SCENARIO, RULES, after_look=lambda s: seen.append(round(s.clock.now() - s.epoch, 3)), looks=looks
    )
    return seen


def test_looks_are_those_of_the_list_and_follow_at_the_interval_after_it() -> None:
    epoch = simulate(SCENARIO, RULES).epoch
    looks = RecordedLooks([epoch + at for at in (0.1, 0.7, 3.0)], 10.0)
    assert looks_of(looks) == [0.7, 3.0, 13.0, 23.0, 33.0]


def test_looks_of_a_daemon_follow_each_other_at_the_interval_and_faster_while_a_job_starts() -> None:
    seen = looks_of(DaemonsLooks(RULES.terms, 0.1, 0.05, 0.2, 0.1))
    apart = np.diff(seen).round(3).tolist()
    assert (seen[0], apart[0]) == (1.25, 0.5)  # it was opened at the first look
    assert set(apart) == {0.5, 1.0}


STANDING = Standing.new(T0)
AUTO = replace(RULES.terms, interval=10.0, interval_min=1.0)


def test_a_daemon_that_follows_changes_asks_for_them_each_second_after_the_first_one() -> None:
    looks = DaemonsLooks(AUTO)
    heard = [looks(STANDING, 0, T0, T0 + change) - T0 for change in (0.2, 1.0, 1.1, 4.7, 40.0)]
    assert heard == pytest.approx([1.0, 1.0, 2.0, 5.0, 10.0])


def test_a_daemon_hears_of_its_own_acts_when_it_asks_for_the_first_time() -> None:
    assert DaemonsLooks(AUTO)(STANDING, 3, T0, T0 + 40.0) == T0 + 1.0


def test_looks_that_cost_slurmctld_much_come_as_seldom_as_it_can_bear() -> None:
    looks, now = DaemonsLooks(AUTO, 0.5, 0.5, 0.5), T0
    instants = [now := looks(STANDING, 0, now, now) for _ in range(200)]
    assert instants[0] == T0 + 1.0, "what was saved up is spent first"
    apart = np.diff(instants)[-20:]
    assert apart.mean() == pytest.approx(10.0, abs=0.6), "half a second each: a twentieth of a core"


@pytest.mark.parametrize("ended", [None, []], ids=["nobody wants them", "somebody does"])
def test_books_keep_every_run_that_ended_only_where_somebody_wants_them(ended: list[object] | None) -> None:
    scene = Scene()
    scene.books.ended = ended  # type: ignore[assignment]
    key = scene.runs(seconds=10)
    scene.books.hand_over(T0 + 5)  # a look saw it run
    scene.at(20)
    assert list(scene.books.of(key)) == []
    assert ended is None or len(ended) == 1
