"""Knowledge of jobs: of reporters, of others of their class, of those that ended; and what a liar gains."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slurm_fair.model import Sizes
from slurm_fair.policy import load
from slurm_fair.throughput import Links
from tests.support.accounts import places, view
from tests.support.reporting import Looks, ended, known_rate, row_of, running, told, waiting, with_liar


def test_a_look_at_jobs_that_say_nothing_stays_as_it_was() -> None:
    looks = Looks()
    seen = looks.look(100, [running(1), waiting(2)])
    assert (seen.told, seen.speeds, seen.reported) == (None, None, None)


def test_a_reporter_is_told_by_its_progress() -> None:
    seen = Looks().trains([running(1, gpus=2)], 5.0, 300)
    assert told(seen, "steps_per_second", 1) == pytest.approx(5.0)
    assert told(seen, "done_seconds", 1) == pytest.approx(300)
    assert told(seen, "left_seconds", 1) == pytest.approx(1e5 / 5 - 300)
    assert seen.reported is not None
    assert (seen.reported.believed.tolist(), seen.reported.clamped.tolist()) == ([1500.0], [False])


def test_what_it_says_of_its_speed_counts_until_its_progress_tells() -> None:
    looks, jobs = Looks(), [running(1)]
    seen = looks.look(10, jobs, {1: {"step": 10, "steps": 1000, "steps_per_second": 4.0}})
    assert told(seen, "steps_per_second", 1) == pytest.approx(4.0)
    seen = looks.look(40, jobs, {1: {"step": 70, "steps": 1000, "steps_per_second": 4.0}})
    assert told(seen, "steps_per_second", 1) == pytest.approx(2.0)


def test_words_of_a_report_reach_policies() -> None:
    said = {"step": 10, "steps": 100, "epoch": 1, "epochs": 10, "batch_size": 128, "mode": 2, "model": "bert"}
    seen = Looks().look(30, [running(1)], {1: said})
    assert seen.told is not None
    assert (told(seen, "epoch", 1), told(seen, "epochs", 1)) == (1, 10)
    assert (told(seen, "batch_size", 1), told(seen, "mode", 1)) == (128, 2)
    assert seen.told.models[int(told(seen, "model", 1))] == "bert"


def test_a_second_job_of_the_class_is_known_from_its_first_look_on() -> None:
    looks = Looks()
    first = running(1, gpus=2, name="train-2026-11-01")
    looks.trains([first], 5.0, 120)
    seen = looks.look(150, [first, waiting(2, gpus=4, name="train-2026-11-02"), waiting(3, name="other")])
    assert known_rate(seen, 2, "a100", 2) == pytest.approx(5.0, rel=0.05)
    assert 5.0 < known_rate(seen, 2, "a100", 4) < 11.0, "worked out for another size"
    assert known_rate(seen, 2, "v100", 2) > 0
    assert math.isnan(known_rate(seen, 3, "a100", 2)), "another class"


def test_jobs_of_another_tenant_are_never_of_the_class() -> None:
    looks = Looks()
    looks.trains([running(1, tenant="a")], 5.0, 120)
    seen = looks.look(150, [running(1, tenant="a"), waiting(2, tenant="b")])
    assert math.isnan(known_rate(seen, 2, "a100", 1))


def test_types_are_compared_with_the_first_one() -> None:
    looks = Looks()
    fast, slow = running(1, on={"a1": 1}), running(2, on={"v1": 1})
    for time in range(30, 301, 30):
        said = {1: {"step": 6.0 * time, "steps": 1e5}, 2: {"step": 2.0 * time, "steps": 1e5}}
        seen = looks.look(time, [fast, slow, waiting(3)], said)
    assert seen.told is not None
    assert seen.gpu_types == ("a100", "v100")
    assert seen.told.rate[row_of(seen, 3)].tolist() == pytest.approx([1.0, 1 / 3], rel=0.05)
    assert told(seen, "steps_per_second", 2) == pytest.approx(6.0, rel=0.05), "on the reference type"
    assert told(seen, "done_seconds", 2) == pytest.approx(100, rel=0.05)


def test_given_links_tell_how_fast_a_job_is_on_a_type_and_across_nodes_that_it_never_ran_on() -> None:
    slow_net = {"a100": {"link": 100.0, "net": 1.0}, "v100": {"link": 100.0, "net": 1.0, "speed": 0.25}}
    fast_net = {name: {**rates, "net": 99.0} for name, rates in slow_net.items()}
    found = []
    for links in ({}, slow_net, fast_net):
        looks, first = Looks(links=Links.given(links)), running(1, gpus=4)
        looks.trains([first], 5.0, 300)
        seen = looks.look(400, [first, waiting(2, gpus=4)])
        assert seen.told is not None
        row = row_of(seen, 2)
        found.append((seen.told.rate[row, 1], seen.told.spread_rate[row, 0]))
    unknown, slow, fast = found
    assert (unknown[0], slow[0], fast[0]) == pytest.approx((1.0, 0.25, 0.25), rel=0.1)
    assert slow[1] < fast[1], "across nodes it is slower where the net is slow"


def test_an_elastic_job_is_told_by_its_usual_size() -> None:
    looks = Looks()
    looks.sizes = Sizes(np.array([0, 0]), np.array([2, 4]), np.array([False, True]))
    seen = looks.trains([running(1, gpus=2)], 5.0, 300)
    assert seen.speeds is not None
    row, kind, near = np.array([0]), np.array([0]), np.array([False])
    two, four = (seen.speeds.rates(row, kind, np.array([size]), near).item() for size in (2, 4))
    assert told(seen, "steps_per_second", 1) == pytest.approx(5.0 * four / two)
    assert told(seen, "done_seconds", 1) == pytest.approx(300 * two / four)


# -- what ended -------------------------------------------------------------------------------------------


# -- liars ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lie", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("said", ["progress", "speed"])
def test_a_liar_moves_no_other_tenants_class(said: str, lie: float) -> None:
    before, after = with_liar(lie, said, 600)
    assert known_rate(after, 21, "a100", 1) == pytest.approx(known_rate(before, 21, "a100", 1))
    assert told(after, "steps_per_second", 9) == pytest.approx(told(before, "steps_per_second", 9))


@pytest.mark.parametrize("lie", [10.0, 1000.0])
@pytest.mark.parametrize("said", ["progress", "speed"])
def test_a_liar_moves_its_own_class_by_little(said: str, lie: float) -> None:
    before, after = with_liar(lie, said, 600)
    moved = known_rate(after, 20, "a100", 1) / known_rate(before, 20, "a100", 1)
    assert 0.95 < moved < 1.05
    for number in (1, 2, 3, 4, 5):
        assert told(after, "steps_per_second", number) == pytest.approx(5.0)


def test_a_liar_about_its_end_is_held_to_what_such_jobs_took() -> None:
    looks = Looks()
    looks.look(10, [running(number) for number in (1, 2, 3)])
    looks.knowing.hear([ended(n, 3600 + 10 * n, 20) for n in (1, 2, 3)], looks.standing(20), 20)
    seen = looks.look(50, [running(4, start=20)], {4: {"step": 99, "steps": 100, "steps_per_second": 3.3}})
    assert told(seen, "left_seconds", 4) > 3300


def test_a_job_that_steps_on_its_own_speed_is_held_to_what_it_said_before() -> None:
    looks, jobs = Looks(), [running(1)]
    looks.trains(jobs, 5.0, 600)
    seen = looks.look(630, jobs, {1: {"step": 90_000, "steps": 1e5}})
    assert seen.reported is not None
    assert seen.reported.believed.item() < 4000


# -- the settings and the shelf ---------------------------------------------------------------------------


def test_a_server_on_which_a_class_is_slower_is_told() -> None:
    looks = Looks()
    usual = [running(number, on={"a1": 1}) for number in (1, 2, 3)]
    looks.trains(usual, 10.0, 300.0)
    assert looks.look(301.0, usual).speeds is not None
    slow = [running(4, on={"a2": 1}, start=310.0)]
    seen = looks.trains(slow, 5.0, 600.0, since=310.0)
    assert seen.nodes.names == ("a1", "a2", "v1")
    assert seen.speeds is not None
    on_a1, on_a2, on_v1 = seen.speeds.on_nodes(np.array([0]), 3)[:, 0].tolist()
    assert on_a2 / on_a1 == pytest.approx(0.5, rel=0.15)
    assert on_v1 == 1.0, "of another type nothing is known"


@pytest.mark.parametrize(("slow", "fast"), [("a1", "a2"), ("a2", "a1")])
def test_a_server_on_which_reports_were_slow_is_left_to_others_by_the_plan(slow: str, fast: str) -> None:
    """Jobs of one class report a third of the speed on one server: `hops` gives the next job the other one."""
    looks = Looks()
    for number in range(1, 13):
        where, rate = ((slow, 2.0), (fast, 6.0))[number % 2]
        begin = 100.0 * number
        looks.trains([running(number, gpus=2, start=begin, on={where: 2})], rate, 90, since=begin)
    seen = looks.look(2000, [waiting(20, gpus=2)])
    assert seen.speeds is not None
    assert seen.speeds.nodes is not None
    granted = places(seen, load("hops", {}).plan(view(seen)))
    assert list(granted["20"]) == [fast]
