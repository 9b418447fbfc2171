"""A lease term is recommended, by what a change of hands costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.cli.simulate.costs import (
    USUAL_CHECKPOINT_SECONDS,
    USUAL_RESTART_SECONDS,
    MeasuredCosts,
    known_costs,
    measured_costs,
)
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.errors import InputError
from slurm_fair.model import Event
from slurm_fair.sim.tune import Tolerances, Trial, advise

NAN = float("nan")
NOTHING = CostOptions(None, None, None)
TERMS = (60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0)


def trial(term: float, unfair: float = 0.1, jct: float = 1000.0, **more: Any) -> Trial:
    """One whose jobs and tenants suffer alike; as many pre-emptions as its leases are short."""
    more = {"preemptions": round(1e6 / term), "overhead": 0.0, **more}
    return Trial(term, more.pop("loss", unfair), unfair, jct, **more)


def best(*trials: Trial, **tolerances: float) -> float:
    return advise(trials, Tolerances(**tolerances)).lease_seconds


def curve(
    unfair: Callable[[float], float], cost_seconds: float, jct: Callable[[float], float]
) -> list[Trial]:
    """A change of hands at the end of every lease; what it costs makes jobs longer."""
    return [
        trial(term, unfair(term), jct(term) / (1 - cost_seconds / term), overhead=cost_seconds / term)
        for term in TERMS
        if term > cost_seconds
    ]


def worse_with_length(term: float) -> float:
    """From next to nothing at a minute to 40 points at two hours."""
    return 0.4 * term / 7200


# -- the rule on curves -------------------------------------------------------------------------------------------


def test_without_costs_the_shortest_term_that_is_fairer_than_the_tolerance_wins() -> None:
    """The fairest is the shortest; what is within one point of it disturbs less, and all else is out."""
    assert best(*curve(worse_with_length, 0.0, lambda term: 1000.0)) == 120
    assert best(*curve(worse_with_length, 0.0, lambda term: 1000.0), jobs=0.0, tenant_hours=0.0) == 60


def test_without_costs_and_without_a_difference_in_fairness_the_term_with_the_fewest_pre_emptions_wins() -> (
    None
):
    assert best(*curve(lambda term: 0.1, 0.0, lambda term: 1000.0)) == 7200
    noise = dict(zip(TERMS, (0.101, 0.1, 0.104, 0.1, 0.102, 0.1, 0.105, 0.101), strict=True))
    assert best(*curve(noise.__getitem__, 0.0, lambda term: 1000.0)) == 7200


def test_where_nothing_at_all_speaks_for_a_term_the_usual_one_is_kept() -> None:
    """Nobody is ever pre-empted on an idle cluster: that is no reason for the longest or the shortest."""
    idle = [trial(term, preemptions=0) for term in TERMS]
    assert best(*idle) == 900
    assert best(*idle[:3]) == 300
    assert best(*idle[5:]) == 1800


def test_a_term_whose_overhead_is_above_the_limit_is_out_however_fair_it_is() -> None:
    trials = curve(worse_with_length, 45.0, lambda term: 1000.0)
    assert best(*trials) == 900  # 45 s of 900 s are 5 %
    assert best(*trials, overhead=0.0501) == 900
    assert best(*trials, overhead=0.16) == 600  # 300 s is fairer, and its jobs take 17 % longer than need be
    assert best(*trials, overhead=0.01) == 7200


def test_where_every_term_costs_too_much_the_cheapest_is_taken() -> None:
    advice = advise(curve(worse_with_length, 1000.0, lambda term: 1000.0))
    assert advice.lease_seconds == 7200
    assert advice.reason.startswith("7200 s, because every term costs more than 5 % of the GPU time")


def test_a_long_term_that_makes_jobs_wait_is_out_by_completion_time() -> None:
    trials = curve(lambda term: 0.1, 0.0, lambda term: 1000.0 + term / 10)
    assert best(*trials) == 300  # 1030 s is within 5 % of 1006 s, 1060 s is not
    assert best(*trials, jct=0.02) == 120
    assert best(*trials, jct=1.0) == 7200


def test_a_gain_in_one_kind_does_not_make_up_for_a_loss_in_another() -> None:
    fair_but_slow, slow_middle, fast = trial(60, 0.0, 1500), trial(900, 0.03, 1150), trial(7200, 0.3, 1000)
    assert best(fair_but_slow, slow_middle, fast) == 900
    for chosen, behind in zip(
        (10.0, 3.0, 30.0), advise([fair_but_slow, slow_middle, fast]).behind, strict=True
    ):
        assert behind is not None
        assert behind.regret == pytest.approx(chosen)


def test_jobs_and_tenants_are_looked_at_each_by_itself() -> None:
    """Their mean is the same under both terms."""
    assert best(trial(60, 0.10, loss=0.12), trial(3600, 0.05, loss=0.17), tenant_hours=0.04) == 60
    assert best(trial(60, 0.10, loss=0.12), trial(3600, 0.05, loss=0.17), jobs=0.06) == 3600


@given(
    st.lists(
        st.tuples(*[st.floats(0, 1)] * 2, st.floats(1, 1e6), st.floats(0, 1), st.integers(0, 10**6)),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_recommended_is_never_worse_in_everything_than_another_bearable_term(
    rows: list[tuple[float, float, float, float, int]],
) -> None:
    trials = [Trial(term, *row) for term, row in zip(TERMS, rows, strict=False)]
    advice = advise(trials)
    chosen = next(trial for trial in trials if trial.lease_seconds == advice.lease_seconds)
    limit = max(Tolerances().overhead, min(trial.overhead for trial in trials))
    assert chosen.overhead <= limit
    for other in trials:
        if other.overhead <= limit:
            assert not (
                other.job_loss < chosen.job_loss
                and other.tenant_unfair < chosen.tenant_unfair
                and other.jct_mean_seconds < chosen.jct_mean_seconds
                and other.preemptions < chosen.preemptions
            )


# -- what is not known --------------------------------------------------------------------------------------------


def test_a_term_under_which_jobs_do_not_end_is_not_recommended() -> None:
    advice = advise([trial(60, 0.0, 10, finished=False), trial(900, 0.5, 1000)])
    assert (advice.lease_seconds, advice.behind[0]) == (900, None)
    with pytest.raises(InputError, match="no term did every job end"):
        advise([trial(60, 0.0, 10, finished=False)])


def test_what_is_not_known_of_every_term_does_not_count() -> None:
    assert best(trial(60, NAN, loss=0.4), trial(900, 0.9, loss=0.1)) == 900
    assert best(trial(60, NAN, 1000), trial(900, NAN, 1500)) == 60
    assert best(trial(60, overhead=NAN), trial(900, overhead=NAN)) == 900


@pytest.mark.parametrize("name", ["jobs", "tenant_hours", "jct", "overhead"])
@pytest.mark.parametrize("value", [-0.01, 1.01, NAN, float("inf")])
def test_a_tolerance_is_a_part(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"tolerance of {name} .*: give a number from 0 to 1"):
        Tolerances(**{name: value})


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([trial(900)], "900 s, because no other term can be chosen"),
        (
            [trial(60, preemptions=3), trial(600, preemptions=3)],
            "600 s, because the term makes no difference",
        ),
        (
            [trial(60, 0.1, 100), trial(900, 0.5, 130)],
            "60 s, because of the terms that cost at most 5 % of the GPU time (this one 0.0 %) none is fairer or "
            "faster",
        ),
        (
            [trial(60, 0.1, 100), trial(900, 0.105, 102), trial(3600, 0.5, 100)],
            "900 s, because of the terms that cost at most 5 % of the GPU time (this one 0.0 %) it is only 0.5 "
            "points of jobs with sharing loss, 0.5 points of unfair tenant hours and 2.0 % of mean JCT behind the "
            "best; of the terms as good (also 60 s) it pre-empts least",
        ),
        (
            [trial(60, 0.1, 200, overhead=NAN), trial(3600, 0.5, 100, overhead=NAN)],
            "60 s, because it is 100.0 % of mean JCT behind the best: no term is good in every respect, and this "
            "one lies least far behind in its worst",
        ),
        (
            [trial(60, 0.1, 100, overhead=0.2), trial(900, 0.15, 100, overhead=0.1)],
            "900 s, because every term costs more than 5 % of the GPU time, this one least (10.0 %), and it is "
            "5.0 points of jobs with sharing loss and 5.0 points of unfair tenant hours behind the best; there "
            "are fairer terms that cost more",
        ),
        (
            [trial(60, 0.1, 100, overhead=0.2), trial(900, 0.1, 100, overhead=0.1)],
            "900 s, because every term costs more than 5 % of the GPU time, this one least (10.0 %), and none is "
            "fairer or faster",
        ),
        (
            [trial(60, 0.1, 90, overhead=0.06), trial(900, 0.15, 100, overhead=0.01)],
            "900 s, because of the terms that cost at most 5 % of the GPU time (this one 1.0 %) none is fairer or "
            "faster; there are fairer or faster terms that cost more",
        ),
        (
            [
                trial(60, 0.1, 100, overhead=0.2),
                trial(900, 0.2, 150, overhead=0.1),
                trial(1800, 0.3, 100, overhead=0.1),
            ],
            "1800 s, because every term costs more than 5 % of the GPU time, this one least (10.0 %), and it is "
            "20.0 points of jobs with sharing loss and 20.0 points of unfair tenant hours behind the best: none "
            "that costs as little is good in every respect, and this one lies least far behind in its worst; "
            "there are fairer terms that cost more",
        ),
    ],
)
def test_the_reason_is_one_sentence(trials: list[Trial], words: str) -> None:
    reason = advise(trials).reason
    assert reason.startswith(words)
    assert "\n" not in reason


# -- costs --------------------------------------------------------------------------------------------------------


def event(time: float, kind: str, key: int = 1, detail: Mapping[str, Any] | None = None) -> Event:
    return Event(time, kind, key, "a", 1, detail or {})


def turn(begin: float, key: int = 1) -> list[Event]:
    """A job is asked, saves for 4 s, waits and comes back within 1.5 s; its start is cut to whole seconds."""
    return [
        event(begin, "asked", key),
        event(begin + 4, "requeued", key),
        event(begin + 100.6, "opened", key),
        event(begin + 102, "started", key, {"restarts": 1}),
    ]


def test_the_journal_tells_how_long_saving_and_starting_take() -> None:
    found = measured_costs([*turn(1000), *turn(2000), *turn(1005, key=2)])
    assert found.saves == (4.0, 4.0, 4.0)
    assert found.starts == pytest.approx((1.4, 1.4, 1.4))


def test_a_start_in_the_second_of_its_opening_took_no_time() -> None:
    found = measured_costs([event(100, "started", detail={"restarts": 1}), event(100.7, "opened")])
    assert found.starts == (0.0,)


def test_requeues_that_nobody_asked_for_measure_nothing_and_first_starts_do() -> None:
    events = [event(10, "opened"), event(11, "started", detail={"restarts": 0}), event(20, "requeued")]
    assert measured_costs(events) == MeasuredCosts((), (1.0,))


def test_what_is_given_goes_before_what_was_measured_and_that_before_what_is_assumed() -> None:
    measured = MeasuredCosts((3.0, 4.0, 90.0), (1.0, 1.0, 2.0))
    given = known_costs(CostOptions(20.0, 50.0, 5.0), measured)
    assert (given.costs.checkpoint, given.costs.restart, given.costs.requeue_delay) == (20.0, 50.0, 5.0)
    assert (given.checkpoint_from, given.restart_from) == ("given", "given")
    assert "--checkpoint-cost" not in given.words
    found = known_costs(NOTHING, measured)
    assert (found.costs.checkpoint, found.checkpoint_from) == (4.0, "measured")
    assert (found.costs.opening, found.costs.start, found.start_from) == (1.0, 0.0, "measured")
    assert (
        known_costs(CostOptions(None, None, None, 2.0), measured).costs.start,
        found.document()["start_s"],
    ) == (2.0, 1.0)
    assert (found.costs.restart, found.restart_from) == (USUAL_RESTART_SECONDS, "assumed")
    assert "measured: median of 3" in found.words
    guessed = known_costs(NOTHING)
    assert (guessed.costs.checkpoint, guessed.costs.restart) == (
        USUAL_CHECKPOINT_SECONDS,
        USUAL_RESTART_SECONDS,
    )
    assert "(assumed)" in guessed.words
    assert "set --checkpoint-cost and --restart-cost" in guessed.words
    assert (guessed.costs.start, guessed.start_from) == (0.0, "unknown")


def test_what_a_journal_measured_stands_alone_where_loading_counts_as_work() -> None:
    measured = MeasuredCosts((0.5, 0.5, 0.5), (0.5, 0.4, 0.6))
    found = known_costs(NOTHING, measured, load_in_work=True)
    assert found.costs.of_one_change == 1.0
    assert (found.start_from, found.restart_from) == ("measured", "unknown")
    assert "set --restart-cost" in found.words
    without = known_costs(NOTHING, MeasuredCosts(), load_in_work=True)
    assert (without.costs.restart, without.restart_from) == (USUAL_RESTART_SECONDS, "assumed")
    given = known_costs(CostOptions(None, 7.0, None, 2.0), measured, load_in_work=True)
    assert (given.costs.start, given.costs.restart) == (2.0, 7.0)
    assert (given.start_from, given.restart_from) == ("given", "given")


def test_two_measurements_say_nothing() -> None:
    assert known_costs(NOTHING, MeasuredCosts((1.0, 1.0), (1.0, 1.0))).checkpoint_from == "assumed"
