"""Which lease term is recommended, and what a change of hands costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_fair.cli.tune_costs import (
    USUAL_CHECKPOINT_SECONDS,
    USUAL_RESTART_SECONDS,
    Given,
    Measured,
    known_costs,
    measure,
)
from slurm_fair.errors import InputError
from slurm_fair.model import Event
from slurm_fair.sim.tune import Trial, advise

NAN = float("nan")
NOTHING = Given(None, None, None)


def trial(term: float, unfair: float, jct: float, **more: Any) -> Trial:
    """One whose jobs and tenants suffer alike."""
    return Trial(term, more.pop("loss", unfair), unfair, jct, **more)


def best(*trials: Trial, weight: float = 2 / 3) -> float:
    return advise(trials, weight).lease_seconds


def test_the_fairest_term_wins_where_jobs_take_as_long() -> None:
    assert best(trial(60, 0.05, 1000), trial(600, 0.2, 1000), trial(3600, 0.4, 1000)) == 60


def test_the_fastest_term_wins_where_all_are_as_fair() -> None:
    assert best(trial(60, 0.1, 4000), trial(600, 0.1, 1500), trial(3600, 0.1, 1000)) == 3600


def test_of_terms_alike_within_the_tolerance_the_longest_is_taken() -> None:
    alike = (trial(60, 0.1, 1000), trial(600, 0.11, 1000), trial(900, 0.112, 1001), trial(3600, 0.3, 1000))
    assert best(*alike) == 900
    assert advise(alike, tolerance=0.0).lease_seconds == 60


def test_a_term_in_the_middle_wins_where_both_ends_are_bad() -> None:
    assert best(trial(60, 0.05, 3000), trial(900, 0.08, 1020), trial(7200, 0.4, 1000)) == 900


def test_the_weight_moves_the_choice() -> None:
    trials = (trial(60, 0.05, 1500), trial(7200, 0.4, 1000))
    assert (best(*trials, weight=0.9), best(*trials, weight=0.1)) == (60, 7200)
    assert (best(*trials, weight=1.0), best(*trials, weight=0.0)) == (60, 7200)


def test_noise_is_not_blown_up() -> None:
    """From best to worst all differ by next to nothing, so that the longest is as good as any."""
    assert best(trial(60, 0.1, 1000), trial(900, 0.101, 999), trial(7200, 0.102, 1001)) == 7200


def test_a_term_under_which_jobs_do_not_end_is_not_recommended() -> None:
    advice = advise([trial(60, 0.0, 10, finished=False), trial(900, 0.5, 1000)])
    assert (advice.lease_seconds, advice.scores[0]) == (900, None)
    with pytest.raises(InputError, match="no term did every job end"):
        advise([trial(60, 0.0, 10, finished=False)])


def test_what_is_not_known_of_every_term_does_not_count() -> None:
    trials = (trial(60, NAN, 1000, loss=0.4), trial(900, 0.9, 1000, loss=0.1))
    assert best(*trials) == 900
    assert best(trial(60, NAN, 1000), trial(900, NAN, 1500)) == 60


def test_the_score_is_the_weighted_sum() -> None:
    first, second = advise([trial(60, 0.1, 1500), trial(900, 0.3, 1000)], 0.25).scores
    assert first is not None
    assert second is not None
    assert (first.unfairness, first.slowness, first.total) == pytest.approx((0.0, 0.5, 0.375))
    assert (second.unfairness, second.slowness, second.total) == pytest.approx((0.2, 0.0, 0.05))


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([trial(900, 0.1, 100)], "900 s, because no other term can be chosen"),
        ([trial(60, 0.1, 100), trial(900, 0.1, 100)], "900 s, because the term makes no difference"),
        ([trial(60, 0.1, 100), trial(900, 0.5, 130)], "60 s, because jobs end soonest and it is the fairest"),
        (
            [trial(60, 0.1, 400), trial(900, 0.15, 102), trial(3600, 0.5, 100)],
            "900 s, because the mean JCT is 2.0 % above that of the fastest term (3600 s) and unfairness is 5.0 "
            "points above that of the fairest term (60 s): the best balance at a fairness weight of 0.667",
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


def test_the_journal_tells_how_long_saving_and_coming_back_take() -> None:
    found = measure([*turn(1000), *turn(2000), *turn(1005, key=2)])
    assert found.saves == (4.0, 4.0, 4.0)
    assert found.returns == pytest.approx((1.4, 1.4, 1.4))


def test_a_start_in_the_second_of_its_opening_took_no_time() -> None:
    found = measure([event(100, "started", detail={"restarts": 1}), event(100.7, "opened")])
    assert found.returns == (0.0,)


def test_first_starts_and_requeues_that_nobody_asked_for_measure_nothing() -> None:
    events = [event(10, "opened"), event(11, "started", detail={"restarts": 0}), event(20, "requeued")]
    assert measure(events) == Measured()


def test_what_is_given_goes_before_what_was_measured_and_that_before_what_is_assumed() -> None:
    measured = Measured((3.0, 4.0, 90.0), (1.0, 1.0, 2.0))
    given = known_costs(Given(20.0, 50.0, 5.0), measured)
    assert (given.costs.checkpoint, given.costs.restart, given.costs.requeue_delay) == (20.0, 50.0, 5.0)
    assert (given.checkpoint_from, given.restart_from) == ("given", "given")
    assert "--checkpoint-cost" not in given.words
    found = known_costs(NOTHING, measured)
    assert (found.costs.checkpoint, found.checkpoint_from) == (4.0, "measured")
    assert (found.costs.restart, found.restart_from) == (1.0 + USUAL_RESTART_SECONDS, "assumed")
    assert "measured: median of 3" in found.words
    guessed = known_costs(NOTHING)
    assert (guessed.costs.checkpoint, guessed.costs.restart) == (
        USUAL_CHECKPOINT_SECONDS,
        USUAL_RESTART_SECONDS,
    )
    assert "(assumed)" in guessed.words
    assert "set --checkpoint-cost and --restart-cost" in guessed.words


def test_two_measurements_say_nothing() -> None:
    assert known_costs(NOTHING, Measured((1.0, 1.0), (1.0, 1.0))).checkpoint_from == "assumed"
