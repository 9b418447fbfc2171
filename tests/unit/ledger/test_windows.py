"""Step functions of time, and what tenants had and were owed in windows of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger import (
    ActiveSpans,
    ClusterInWindow,
    LedgerSettings,
    Outcomes,
    Runs,
    Steps,
    edges_of,
    exact_windows,
    integrate,
    rho_for_reports,
    sampled_windows,
)
from slurm_fair.ledger.metrics.windows import windows_of_moments
from slurm_fair.model.tenant_moment import TenantMoment
from tests.support.outcome_rows import NAN, floats, row, table


def test_steps_add_up_what_is_there_and_forget_what_has_no_length() -> None:
    steps = Steps.of(floats(0, 10, 5, NAN), floats(20, 30, 5, 9), np.array([2, 3, 9, 9]))
    assert steps.time.tolist() == [0, 10, 20, 30]
    assert steps.level.tolist() == [2, 5, 3, 0]
    assert steps.at(floats(-1, 0, 9, 10, 29, 30)).tolist() == [0, 2, 2, 5, 3, 0]


@given(spans=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.sampled_from((0.1, 0.3, 0.7, 1.1)))))
def test_nothing_is_left_where_no_amount_lasts(spans: list[tuple[int, int, float]]) -> None:
    since, lasts, amounts = (
        np.array(column, dtype=np.float64) for column in zip(*[(0, 1, 0.1), *spans], strict=True)
    )
    steps = Steps.of(since, since + lasts, amounts)
    there = (since[:, None] <= steps.time) & (steps.time < (since + lasts)[:, None])
    assert (steps.level == 0.0).tolist() == (~there.any(axis=0)).tolist()


def test_an_integral_is_exact_between_any_two_instants() -> None:
    steps = Steps.of(floats(0, 10), floats(20, 30), np.array([2, 3]))
    assert steps.integral(floats(-5, 5, 15, 40), floats(5, 15, 100, 50)).tolist() == [10, 35, 55, 0]
    assert steps.mean(floats(5, 10), floats(15, 10)).tolist() == [3.5, 5.0]


def test_a_level_may_be_steady_or_nothing() -> None:
    assert Steps.steady(4.0, 10.0).integral(floats(0), floats(20)).tolist() == [40.0]
    assert Steps.of(floats(), floats()).integral(floats(0), floats(20)).tolist() == [0.0]


def test_what_was_seen_first_was_there_before_and_the_order_of_the_sights_does_not_matter() -> None:
    assert Steps.seen([(20.0, 8.0), (10.0, 4.0)], 0.0).at(floats(5, 15, 25)).tolist() == [4, 4, 8]
    assert Steps.seen([(10.0, 4.0)], 15.0).at(floats(12)).tolist() == [4]


def test_the_least_of_two_is_taken_at_every_instant() -> None:
    least = Steps.of(floats(0), floats(20), floats(4)).least(Steps(floats(5, 15), floats(6, 1)))
    assert least.at(floats(0, 5, 15, 20)).tolist() == [0, 4, 1, 0]


def test_windows_have_one_length_and_the_rest_is_none() -> None:
    assert edges_of(100, 8000).tolist() == [100, 3700, 7300]
    assert edges_of(0, 10, 20).tolist() == [0]
    assert edges_of(10, 0).tolist() == [10]


def two_tenants() -> tuple[Outcomes, Runs]:
    """4 GPUs; `a` wants all of them for 40 s and has them for 20; `b` wants 2 from 20 to 40 and gets them."""
    jobs = table(row(0, 40, gpus=4) | {"tenant": 0}, row(20, 40, gpus=2) | {"tenant": 1}, tenants=("a", "b"))
    return jobs, Runs.given(np.array([0, 1]), np.array([4, 2]), floats(0, 20), floats(20, 40))


def test_windows_are_exact_from_jobs_and_runs() -> None:
    windows = exact_windows(*two_tenants(), floats(1, 1), 4.0, floats(0, 10, 30, 40))
    assert windows.had.tolist() == [[40, 40, 0], [0, 20, 20]]
    assert windows.owed.tolist() == [[20, 40, 20], [0, 20, 20]]
    # b had no job in the first half of the second window.
    assert windows.demanded.tolist() == [[True, True, True], [False, False, True]]
    assert windows.unfair == 1 / 4
    assert rho_for_reports(windows.had, windows.owed)[0].tolist() == [2.0, 1.0, 0.0]


def test_a_cluster_that_shrinks_owes_less() -> None:
    shrinking = Steps(floats(0, 30), floats(4, 2))
    windows = exact_windows(*two_tenants(), floats(1, 1), shrinking, floats(0, 20, 40))
    assert windows.owed.tolist() == [[40, 30], [0, 30]]


def test_a_tenant_without_weight_is_owed_nothing() -> None:
    windows = exact_windows(*two_tenants(), floats(1, 0), 4.0, floats(20, 40))
    assert windows.owed.tolist() == [[80], [0]]
    assert windows.unfair == 0.5


def test_without_windows_or_jobs_nobody_is_unfair() -> None:
    ints, none = np.zeros(0, dtype=np.int64), floats()
    empty = exact_windows(table(tenants=()), Runs.given(ints, ints, none, none), none, 4.0, floats(0, 10))
    assert empty.unfair == 0.0
    assert exact_windows(*two_tenants(), floats(1, 1), 4.0, floats(0)).unfair == 0.0


def test_samples_give_windows_between_the_first_ones_after_each_edge() -> None:
    time = floats(1, 31, 62, 200)
    had = np.array([[0.0, 0.0], [10.0, 0.0], [30.0, 5.0], [90.0, 9.0]])
    demand = np.array([[2.0, 0.0], [2.0, 3.0], [0.0, 3.0], [1.0, 1.0]])
    windows = sampled_windows(time, had, had * 2, demand, floats(0, 30, 60, 90), late_seconds=5)
    assert windows.edges.tolist() == [1, 31, 62, 90]
    assert windows.had[:, :2].tolist() == [[10, 20], [0, 5]]
    assert windows.owed[:, :2].tolist() == [[20, 40], [0, 10]]
    assert windows.demanded.tolist() == [[True, True, False], [False, True, False]]
    assert windows.unfair == 1.0


@pytest.mark.parametrize(
    ("edge", "counts"),
    [(30.0, True), (29.9, False), (35.0, True), (40.0, False)],
    ids=["just near enough", "too late", "at the edge", "none after it"],
)
def test_a_window_counts_if_there_is_a_sample_soon_after_its_end(edge: float, counts: bool) -> None:
    had, demand = np.array([[0.0], [7.0]]), np.ones((2, 1))
    windows = sampled_windows(floats(0, 35), had, had, demand, floats(0, edge), late_seconds=5)
    assert windows.demanded.tolist() == [[counts]]


def test_two_edges_that_share_a_sample_enclose_no_window() -> None:
    had, demand = np.array([[0.0], [7.0]]), np.ones((2, 1))
    windows = sampled_windows(floats(3, 35), had, had, demand, floats(0, 2, 34), late_seconds=5)
    assert windows.demanded.tolist() == [[False, True]]


def test_without_samples_no_window_counts() -> None:
    nothing = np.zeros((0, 2))
    windows = sampled_windows(floats(), nothing, nothing, nothing, floats(0, 10, 20))
    assert windows.demanded.shape == (2, 2)
    assert windows.unfair == 0.0


def test_tenants_accounts_are_samples_too() -> None:
    moments = [
        TenantMoment(0.0, "b", 1.0, 0.0, 0.0, 0.0, 0.0, 4.0),
        TenantMoment(10.0, "a", 1.0, 7.0, 0.0, 5.0, 0.0, 4.0),
        TenantMoment(10.0, "b", 1.0, 20.0, 0.0, 40.0, 0.0, 4.0),
    ]
    names, windows = windows_of_moments(moments, floats(0, 10))
    assert names == ("a", "b")
    assert rho_for_reports(windows.had, windows.owed).tolist() == [[1.4], [0.5]]
    assert windows.demanded.tolist() == [[False], [True]]  # nobody knows of `a` at the beginning
    assert windows_of_moments([], floats(0, 10))[1].unfair == 0.0


_SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 5)), max_size=12)


@given(_SPANS, st.integers(-5, 30), st.integers(0, 30))
def test_integrals_equal_those_of_counting_seconds(
    spans: list[tuple[int, int, int]], since: int, length: int
) -> None:
    columns = np.array(spans, dtype=np.float64).reshape(-1, 3).T
    steps = Steps.of(columns[0], columns[0] + columns[1], columns[2])
    by_hand = sum(
        amount
        for second in range(since, since + length)
        for begin, long, amount in spans
        if begin <= second < begin + long
    )
    assert steps.integral(floats(since), floats(since + length))[0] == pytest.approx(by_hand)


_JOBS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 40), st.integers(1, 6)),
    min_size=1,
    max_size=12,
)


@given(_JOBS, st.integers(1, 8))
def test_what_windows_owe_is_what_the_ledger_owes(jobs: list[tuple[int, int, int, int]], gpus: int) -> None:
    rows = (row(s, s + long, gpus=gang) | {"tenant": tenant} for tenant, s, long, gang in jobs)
    outcomes = table(*rows, tenants=("a", "b", "c"))
    weight, ints = floats(1, 2, 3), np.zeros(0, dtype=np.int64)
    edges = floats(0, 7, 20, 33, 90)
    windows = exact_windows(outcomes, Runs.given(ints, ints, floats(), floats()), weight, gpus, edges)
    claims = ActiveSpans(
        outcomes.tenant, outcomes.gpus, np.ones(len(outcomes)), outcomes.submit, outcomes.end
    )
    # All three tenants count all the time.
    cluster, settings = (
        ClusterInWindow(gpus, weight, np.zeros(3)),
        LedgerSettings(tenant_memory_seconds=math.inf),
    )
    for at in range(4):
        owed = integrate(claims, cluster, edges[at], edges[at + 1], settings)
        assert windows.owed[:, at] == pytest.approx(owed.demand)
