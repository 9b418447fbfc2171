"""Gavel: its example, its rounds, and the policies over fractions of time."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.errors import ConfigError
from slurm_fair.solve import LIMIT_SECONDS, equal_rate, max_min
from slurm_fair.trace import Throughputs
from slurm_fair_plugins.gavel import Gavel, GavelFtf, MaxSumThroughput
from slurm_fair_plugins.rounds import InRounds, limit_of
from tests.support.any_scenario import FAST, SLOW, machines
from tests.support.builders import job, node
from tests.support.simulated import arrival, simulated
from tests.support.told_play import ToldPlay
from tests.support.witness import Witness

TWO_TYPES = {"v": node(1, gpu_type="a100"), "k": node(1, gpu_type="k80")}
PAPER_RATES = {"1": (40.0, 10.0), "2": (12.0, 4.0), "3": (100.0, 50.0)}


def leases_had(play: ToldPlay) -> Counter[str]:
    """The number of rounds in which each job ran."""
    return Counter(label for ran in play.rounds for label in ran)


def test_the_papers_example_of_three_jobs_on_two_types() -> None:
    """Section 4.1: every job gets about a tenth more than a third of both types would give it."""
    rate = np.array(list(PAPER_RATES.values()))
    answer = max_min(rate, np.ones(3), np.ones(2))
    assert answer.fraction == pytest.approx(np.array([[0.45, 0.0], [0.45, 0.09], [0.09, 0.91]]), abs=0.01)
    got, isolated = (answer.fraction * rate).sum(axis=1), rate.sum(axis=1) / 3
    assert got / isolated == pytest.approx([1.09, 1.09, 1.09], abs=0.01)
    assert answer.objective == pytest.approx((got / equal_rate(rate, np.ones(2))).min(), rel=1e-6)


def test_rounds_of_the_papers_example_come_near_to_its_shares() -> None:
    jobs = [job(1), job(2), job(3)]
    play = ToldPlay(jobs, TWO_TYPES, rates=PAPER_RATES, left=dict.fromkeys(PAPER_RATES, 1e9))
    where: Counter[tuple[str, str]] = Counter()
    for _ in range(100):
        play.round(Gavel(reset_seconds=1e9, received="run"))
        where.update((label, next(iter(on))) for label, on in play.on.items())
    assert where["3", "k"] == pytest.approx(91, abs=4)
    assert where["1", "v"] == pytest.approx(45, abs=4)
    assert where["2", "v"] == pytest.approx(45, abs=4)


def test_on_one_type_gangs_get_the_same_gpu_time() -> None:
    """Jobs of all sizes evenly partition the GPUs, as Shockwave (NSDI 2023, section 8.4) saw it."""
    jobs = [job(1, gpus=4), job(2, gpus=2), *(job(base) for base in range(3, 9))]
    play = ToldPlay(jobs, {"n1": 4}, left={str(j.base): 1e9 for j in jobs})
    play.play(Gavel(), 120)
    had = leases_had(play)
    gpu_time = {str(j.base): j.gpus * had[str(j.base)] for j in jobs}
    assert max(gpu_time.values()) - min(gpu_time.values()) <= 8
    assert sum(gpu_time.values()) >= 0.9 * 4 * 120


def test_a_job_of_twice_the_weight_gets_twice_the_time() -> None:
    """Weighted max-min (section 4.1)."""
    jobs = [job(base) for base in range(1, 4)]
    left = {str(base): 1e9 for base in range(1, 4)}
    play = ToldPlay(jobs, {"n1": 1}, left=left, gpu_weights={"1": 2.0})
    play.play(Gavel(), 80)
    had = leases_had(play)
    assert had["1"] == pytest.approx(40, abs=2)
    assert had["2"] == pytest.approx(20, abs=2)


def test_who_is_not_picked_by_numbers_gets_what_gangs_that_do_not_fit_leave() -> None:
    """The first three make eight GPUs; once two of them lie, the third finds one GPU on each node, and no two."""
    jobs = [job(1, gpus=3), job(2, gpus=3), job(3, gpus=2), job(4)]
    weights = {"1": 30.0, "2": 30.0, "3": 20.0, "4": 1.0}
    play = ToldPlay(jobs, {"n1": 4, "n2": 4}, left=dict.fromkeys("1234", 1e9), gpu_weights=weights)
    assert play.play(Gavel(), 1) == [{"1", "2", "4"}]


def test_a_newcomer_waits_for_its_share_though_gpus_are_idle() -> None:
    jobs = [job(1), job(2, submit=950), job(3, submit=2000)]
    play = ToldPlay(jobs, {"n1": 4}, left=dict.fromkeys("123", 1e9))
    runs = play.play(Gavel(reset_seconds=4000, newcomers="wait"), 7)
    # The first computation, at 900 s, does not count; the second is at 1800 s; the third not before 5800 s.
    assert runs[:3] == [{"1"}, {"1", "2"}, {"1", "2"}]
    assert runs[3:] == [*[{"1", "2"}] * 3, {"1", "2", "3"}]


def test_a_newcomer_may_fill_what_nobody_uses() -> None:
    jobs = [job(1), job(2, submit=950), job(3, submit=2000)]
    play = ToldPlay(jobs, {"n1": 4}, left=dict.fromkeys("123", 1e9))
    assert play.play(Gavel(reset_seconds=4000, newcomers="fill"), 4)[-1] == {"1", "2", "3"}


def test_shares_are_forgotten_at_a_reset_and_debts_are_not() -> None:
    play = ToldPlay([job(1), job(2)], {"n1": 1}, left=dict.fromkeys("12", 1e9))
    play.play(Gavel(reset_seconds=0), 1)
    assert play.rounds == [{"1"}]
    play.jobs = [*play.jobs, job(3, submit=play.now)]
    play.left = dict.fromkeys("123", 1e9)
    play.play(Gavel(reset_seconds=0), 1)
    assert play.rounds[-1] == {"2"}  # all three have the same share and no time yet; the second is owed most
    memory = play.memory["rounds"]
    owed = dict(zip(memory["key"], memory["deficit"], strict=True))
    assert sorted(owed.values()) == [-450.0, 0.0, 450.0]


def test_the_memory_is_plain_data() -> None:
    play = ToldPlay([job(1), job(2)], TWO_TYPES, left=dict.fromkeys("12", 1e3))
    play.play(GavelFtf(), 3)
    assert json.loads(json.dumps(play.memory)) == play.memory


def test_finish_time_fairness_gives_more_to_those_who_waited_longer() -> None:
    """Two jobs are alike; the one that was submitted long ago has the higher rho, so it gets more of the time."""
    jobs = [job(1), job(2, submit=36_000)]
    play = ToldPlay(jobs, {"n1": 1}, now=36_900, left=dict.fromkeys("12", 36_000.0))
    play.play(GavelFtf(), 30)
    had = leases_had(play)
    assert had["1"] > 1.2 * had["2"] > 0


def test_jobs_alike_get_the_same_under_finish_time_fairness() -> None:
    jobs = [job(base) for base in range(1, 5)]
    play = ToldPlay(jobs, {"n1": 2}, left={str(base): 90_000.0 for base in range(1, 5)})
    play.play(GavelFtf(), 40)
    assert set(leases_had(play).values()) == {20}


def test_the_most_steps_a_second_for_each_gpu_win() -> None:
    """MST: the sum of throughputs and nothing else (Gavel, section 4.4 with equal costs)."""
    jobs = [job(1), job(2, gpus=2), job(3), job(4)]
    steps = {"1": 1.0, "2": 8.0, "3": 3.0}  # the fourth tells nothing: 3.0, as the median of the others
    play = ToldPlay(jobs, {"n1": 4}, left=dict.fromkeys("1234", 1e9), steps=steps)
    assert play.play(MaxSumThroughput(), 10) == [{"2", "3", "4"}] * 10


@pytest.mark.parametrize("policy", [Gavel, GavelFtf, MaxSumThroughput])
def test_a_job_without_any_gpu_of_its_type_never_stops_the_others(policy: type[InRounds]) -> None:
    jobs = [job(1, gpu_type="k80", gpus=3), job(2)]
    play = ToldPlay(jobs, TWO_TYPES, left=dict.fromkeys("12", 1e3))
    assert play.play(policy(), 3) == [{"2"}] * 3


@pytest.mark.parametrize("policy", [Gavel, GavelFtf, MaxSumThroughput])
def test_a_gang_has_no_share_on_a_type_on_whose_nodes_it_could_not_lie(policy: type[InRounds]) -> None:
    nodes = {"f1": node(4, gpu_type="fast"), "f2": node(2, gpu_type="fast"), "s1": node(3), "s2": node(3)}
    wide = job(1, gpus=5, nodes=2)  # three GPUs on one node, two on the other: the slow ones have room
    play = ToldPlay([wide, job(2)], nodes, left=dict.fromkeys("12", 1e9), rates={"1": (9.0, 1.0)})
    assert play.play(policy(), 2) == [{"1", "2"}] * 2


SETTINGS = [
    ({"reset_seconds": -1.0}, "policy.gavel.reset_seconds"),
    ({"newcomers": "push"}, "policy.gavel.newcomers"),
    ({"received": "love"}, "policy.gavel.received"),
]


@pytest.mark.parametrize(("settings", "said"), SETTINGS)
def test_settings_that_cannot_be_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Gavel(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["allox", "gavel", "gavel-ftf", "mst", "ossp"])
def test_who_has_no_choice_of_types_does_not_wait_for_another(policy: str) -> None:
    # Model b runs on the slow type only.
    speeds = {SLOW: {"a": 10.0, "b": 4.0, "c": 8.0}, FAST: {"a": 30.0, "b": 0.0, "c": 8.0}}
    rates = {
        (kind, "consolidated", model, 16, gpus): steps * gpus
        for kind, of_models in speeds.items()
        for model, steps in of_models.items()
        for gpus in (1, 2, 3)
    }
    measured = Throughputs("made", ("made",), SLOW, rates)
    wishes = ({"model": "b"}, {"gpu_type": FAST}, {"gpu_type": SLOW}, {"model": "a"}, {"model": "c"})
    jobs = [
        arrival(at=60.0 * (at % 7), gpus=1 + at % 3, seconds=300.0 + 60 * at, batch_size=16, **wishes[at % 5])
        for at in range(15)
    ]
    floor = machines((4, 4, 4), "fss")
    result = simulated(
        jobs, policy, machines=floor, throughputs=measured, listen=Witness(), wants=Witness.wants
    )
    assert result.outcomes.completed.all()


def test_a_simulation_has_no_limit_of_wall_clock() -> None:
    seen = ToldPlay([job(1)], {"n1": 1}, left={"1": 1e9}).seen()
    assert limit_of(replace(seen, deadline=math.inf)) == math.inf
    assert limit_of(replace(seen, deadline=seen.now + 4.0)) == 2.0
    assert limit_of(replace(seen, deadline=seen.now + 900.0)) == LIMIT_SECONDS
    assert limit_of(replace(seen, deadline=seen.now)) == 0.0
