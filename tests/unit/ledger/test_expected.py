"""Expected run times where numbers are odd: nan, endless, negative, and very many jobs of one group."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.ledger.outcomes.expected import expected_seconds, is_estimate, user_and_name, usual_seconds
from slurm_fair.model.columns import Ints
from tests.support.outcome_rows import NAN, floats

INF = float("inf")


def ints(*numbers: int) -> Ints:
    return np.array(numbers, dtype=np.int64)


def usual(*jobs: tuple[int, float, float, float]) -> list[float]:
    """The usual run times of jobs, each with its group, its submission, its end and the seconds that it ran."""
    group, submit, end, ran = zip(*jobs, strict=True)
    found: list[float] = usual_seconds(ints(*group), floats(*submit), floats(*end), floats(*ran)).tolist()
    return found


def same(found: list[float], expected: list[float]) -> bool:
    return np.array_equal(found, expected, equal_nan=True)


def test_an_estimate_is_a_finite_time_above_nothing() -> None:
    numbers = floats(NAN, INF, -INF, -1.0, 0.0, 5e-324, 1.0, 1e300)
    assert is_estimate(numbers).tolist() == [False] * 5 + [True] * 3


def test_each_job_has_its_own_best_estimate() -> None:
    """Each source tells one of four jobs; the last job has none at all."""
    found = expected_seconds(
        floats(1.0, -1.0, 0.0, INF, NAN),
        floats(20.0, 2.0, NAN, -INF, 0.0),
        floats(30.0, 30.0, 3.0, NAN, -3.0),
        floats(40.0, 40.0, 40.0, 4.0, INF),
    )
    assert same(found.tolist(), [1.0, 2.0, 3.0, 4.0, NAN])


def test_estimates_that_were_given_stay_as_they_are() -> None:
    limit = floats(NAN, 9.0)
    expected_seconds(floats(1.0, 2.0), floats(1.0, 2.0), floats(1.0, 2.0), limit)
    assert same(limit.tolist(), [NAN, 9.0])


def test_nobody_has_no_estimate() -> None:
    assert expected_seconds(*(floats(),) * 4).tolist() == []
    assert is_estimate(floats()).tolist() == []


def test_of_an_even_number_of_runs_the_usual_one_is_in_the_middle_of_the_two_in_the_middle() -> None:
    past = [(0, 0.0, 5.0, ran) for ran in (100.0, 1.0, 4.0, 2.0)]
    assert usual(*past, (0, 9.0, NAN, 0.0))[-1] == 3.0


def test_an_end_at_the_instant_of_a_submission_is_known_and_one_after_it_is_not() -> None:
    runs = [(0, 0.0, 10.0, 7.0), (0, 0.0, 10.5, 9.0)]
    assert usual(*runs, (0, 10.0, NAN, 0.0))[-1] == 7.0
    assert np.isnan(usual(*runs, (0, 9.999, NAN, 0.0))[-1])


def test_a_jobs_own_run_is_no_example_of_it() -> None:
    assert np.isnan(usual((0, 5.0, 25.0, 20.0))[0])


@pytest.mark.parametrize("end", [NAN, INF, -INF])
def test_a_run_that_has_no_instant_of_its_end_is_no_example(end: float) -> None:
    assert np.isnan(usual((0, 0.0, end, 7.0), (0, 50.0, NAN, 0.0))[-1])


@pytest.mark.parametrize("ran", [0.0, -5.0, NAN])
def test_a_run_of_no_length_is_no_example(ran: float) -> None:
    assert usual((0, 0.0, 9.0, ran), (0, 0.0, 9.0, 7.0), (0, 50.0, NAN, 0.0))[-1] == 7.0


@pytest.mark.parametrize("submit", [NAN, INF])
def test_a_job_that_was_submitted_at_no_instant_has_no_usual_run_time(submit: float) -> None:
    assert np.isnan(usual((0, 0.0, 9.0, 7.0), (0, submit, NAN, 0.0))[-1])


def test_groups_know_nothing_of_each_other_whatever_their_numbers_and_the_order_of_rows() -> None:
    jobs = [
        (9, 99.0, NAN, 0.0),
        (3, 99.0, NAN, 0.0),
        (9, 0.0, 1.0, 90.0),
        (3, 0.0, 1.0, 30.0),
        (4, 99.0, NAN, 0.0),
    ]
    assert same(usual(*jobs), [90.0, 30.0, NAN, NAN, NAN])


def test_without_a_name_a_job_has_no_past_though_others_without_one_ran() -> None:
    assert same(usual((-1, 0.0, 1.0, 8.0), (-1, 9.0, NAN, 0.0)), [NAN, NAN])


def test_thousands_of_runs_of_one_group_have_the_median_that_numpy_has() -> None:
    dice = np.random.default_rng(2)
    count = 5000
    submit = np.sort(dice.integers(0, 10_000, count)).astype(np.float64)
    ran = dice.integers(1, 100, count).astype(np.float64)
    found = usual_seconds(np.zeros(count, dtype=np.int64), submit, submit + ran, ran)
    for at in (17, 2500, count - 1):
        assert found[at] == np.median(ran[submit + ran <= submit[at]])


# --- groups


def test_jobs_are_in_one_group_where_both_user_and_name_are_the_same() -> None:
    group = user_and_name(ints(5, 0, 5, 0, 5), ints(1, 9, 0, 9, 1)).tolist()
    assert (group[0], group[1]) == (group[4], group[3])
    assert len(set(group)) == 3
    assert min(group) >= 0


def test_pairs_that_could_be_taken_for_each_other_are_two_groups() -> None:
    """User 0 with name 2, user 1 with name 0, user 2 with name 1."""
    assert len(set(user_and_name(ints(0, 1, 2, 1), ints(2, 0, 1, 2)).tolist())) == 4


@pytest.mark.parametrize(("user", "name"), [((-1, -1), (0, 3)), ((0, 3), (-1, -1)), ((-1, -1), (-1, -1))])
def test_where_users_or_names_are_unknown_nobody_is_in_a_group(
    user: tuple[int, int], name: tuple[int, int]
) -> None:
    assert user_and_name(ints(*user), ints(*name)).tolist() == [-1, -1]
