"""Finish-time fairness: each denominator on examples that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger import Outcomes
from slurm_fair.ledger.metrics import finish_time
from tests.support.outcome_rows import NAN, floats, row, table


def three() -> Outcomes:
    """Alone for 10 s, two for 20 s, three for 10 s, and the last alone for 20 s; 2 GPUs in the cluster."""
    return table(
        row(0, 40, exclusive_seconds=30, spread_seconds=20),
        row(10, 40, gpus=2, exclusive_seconds=10, spread_seconds=30),
        row(30, 60, exclusive_seconds=30, spread_seconds=NAN),
    )


def test_active_jobs_are_averaged_over_each_jobs_life() -> None:
    # (10*1 + 20*2 + 10*3) / 40, (20*2 + 10*3) / 30, (10*3 + 20*1) / 30
    assert finish_time.mean_active(three()).tolist() == pytest.approx([2.0, 7 / 3, 5 / 3])


RHO = [
    # name, M, rho by hand
    ("shockwave", 2, [40 / 30, 30 / (10 * 7 / 6), 30 / 30]),
    ("shockwave", 1, [40 / 60, 30 / (10 * 7 / 3), 30 / (30 * 5 / 3)]),
    ("static", 2, [40 / (30 * 1.5), 30 / (10 * 1.5), 30 / (30 * 1.5)]),
    ("static", 4, [40 / 30, 3.0, 1.0]),
    # N of 2, 7/3, 5/3: slower on the share; the last is not known, 30 / 2 on all GPUs: no faster than alone
    ("sia", 2, [40 / 40, 30 / 70, 30 / 30]),
    # T_cluster = serial work / min(M, gang): 30/1, 20/2, 30/1
    ("themis", 2, [40 / (30 * 2), 30 / (10 * 7 / 3), 30 / (30 * 5 / 3)]),
    ("themis", 1, [40 / (30 * 2), 30 / (20 * 7 / 3), 30 / (30 * 5 / 3)]),
]


@pytest.mark.parametrize(("name", "total_gpus", "expected"), RHO)
def test_each_denominator(name: str, total_gpus: float, expected: list[float]) -> None:
    assert finish_time.ratio_of(three(), name, total_gpus).tolist() == pytest.approx(expected, nan_ok=True)


def test_the_papers_app_of_four_jobs_in_a_cluster_of_sixteen_gpus() -> None:
    """Themis 4.3.3: 10,000 s of GPU time, demand up to 8 GPUs a job, 4 apps: T_id = 2500 s, rho(5000 s) = 2."""
    budget = 10_000 / 4 / 8  # seconds of each of its four jobs on eight GPUs
    mine = [row(0, end, gpus=8, app=1, exclusive_seconds=budget) for end in (1600, 3200, 4000, 5000)]
    others = [row(0, 5000, gpus=16, app=-1, exclusive_seconds=1) for _ in range(3)]
    rho = finish_time.ratio_of(table(*mine, *others), "themis", 16)
    assert finish_time.themis_seconds(table(*mine, *others), 16)[:4].tolist() == [2500.0] * 4
    assert rho[:4].tolist() == [2.0] * 4


def test_jobs_of_one_app_count_once_and_share_its_end() -> None:
    app = table(
        row(0, 10, gpus=2, app=5, exclusive_seconds=10),
        row(5, 30, gpus=2, app=5, exclusive_seconds=20),
        row(0, 30, gpus=1, app=-1, exclusive_seconds=15),
    )
    # The app: 60 GPU-seconds on min(3, 4) GPUs = 20 s, two apps all along: 30 / 40.
    assert finish_time.ratio_of(app, "themis", 3).tolist() == pytest.approx([0.75, 0.75, 1.0])


def test_a_job_that_is_not_over_has_no_rho_but_is_active() -> None:
    rows = row(0, 10, exclusive_seconds=10), row(0, NAN, exclusive_seconds=10)
    for name in ("shockwave", "themis"):
        rho = finish_time.ratio_of(table(*rows, until=10), name, 1)
        assert rho.tolist() == pytest.approx([0.5, NAN], nan_ok=True)


def test_an_app_is_not_over_while_one_of_its_jobs_lives() -> None:
    rows = row(0, 10, app=1, exclusive_seconds=10), row(0, NAN, app=1, exclusive_seconds=10)
    assert np.isnan(finish_time.ratio_of(table(*rows, until=20), "themis", 4)).all()


def test_an_unknown_isolated_run_time_makes_an_unknown_rho() -> None:
    job = table(row(0, 10, exclusive_seconds=NAN))
    assert all(np.isnan(finish_time.ratio_of(job, name, 4)).all() for name in finish_time.INDEPENDENT)


def test_a_job_without_a_known_submission_has_no_rho() -> None:
    jobs = table(row(NAN, 10, exclusive_seconds=5), row(0, 10, exclusive_seconds=10))
    assert finish_time.ratio_of(jobs, "shockwave", 1).tolist() == pytest.approx([NAN, 1.0], nan_ok=True)


def test_an_app_of_which_one_job_began_at_an_unknown_time_has_no_rho() -> None:
    rows = row(NAN, 10, app=1, exclusive_seconds=10), row(0, 20, app=1, exclusive_seconds=10)
    others = row(0, 20, app=-1, exclusive_seconds=10)
    found = finish_time.ratio_of(table(*rows, others), "themis", 4)
    assert np.isnan(found[:2]).all()


def test_nobody_knows_how_crowded_a_life_of_unknown_beginning_was() -> None:
    assert finish_time.mean_active(table(row(NAN, 10), row(0, 10))).tolist() == pytest.approx(
        [NAN, 1.0], nan_ok=True
    )


def test_without_gpus_nobody_has_a_rho() -> None:
    job = table(row(0, 10, exclusive_seconds=10))
    assert all(np.isnan(finish_time.ratio_of(job, name, 0)).all() for name in finish_time.INDEPENDENT)


def test_a_gang_that_nobody_timed_on_all_gpus_has_its_whole_work_to_do_there() -> None:
    """Two gangs of four that take 10 s alone: half of four GPUs take 20 s."""
    gangs = [row(0, 40, gpus=4, exclusive_seconds=10, spread_seconds=NAN) for _ in range(2)]
    assert finish_time.ratio_of(table(*gangs), "sia", 4).tolist() == [2.0, 2.0]


def test_lives_without_length_count_those_that_they_meet() -> None:
    jobs = table(row(0, 10), row(10, 10), row(10, 10), row(10, 20), row(11, 11), row(30, 30))
    assert finish_time.mean_active(jobs)[[1, 2, 4, 5]].tolist() == [4.0, 4.0, 2.0, 1.0]


def test_no_time_needed_and_none_taken_is_fair_and_any_wait_for_it_is_not() -> None:
    rho = finish_time.finish_time_ratio(floats(0, 5, NAN, 5), floats(0, 0, 5, NAN))
    assert rho.tolist() == pytest.approx([1.0, np.inf, NAN, NAN], nan_ok=True)


def test_worst_and_unfair_leave_out_what_is_unknown() -> None:
    rho = floats(0.5, NAN, 1.0, 1.0 + 1e-12, 2.0)
    assert finish_time.worst(rho) == 2.0
    assert finish_time.unfair(rho) == 0.25
    assert np.isnan([finish_time.worst(floats(NAN)), finish_time.unfair(floats())]).all()


@pytest.mark.parametrize("name", finish_time.INDEPENDENT)
def test_nobody_has_no_rho(name: str) -> None:
    assert finish_time.ratio_of(table(), name, 4).size == 0


_LIVES = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(1, 4), st.integers(1, 30)),
    min_size=1,
    max_size=15,
)


def of(lives: list[tuple[int, int, int, int]]) -> Outcomes:
    return table(*(row(s, s + length, gpus, exclusive_seconds=alone) for s, length, gpus, alone in lives))


@given(_LIVES)
def test_the_mean_equals_that_of_counting_every_second(lives: list[tuple[int, int, int, int]]) -> None:
    means = finish_time.mean_active(of(lives))
    for (submit, length, *_), mean in zip(lives, means.tolist(), strict=True):
        counts = [
            sum(other <= second < other + long for other, long, *_ in lives)
            for second in range(submit, submit + length)
        ]
        assert not counts or mean == pytest.approx(np.mean(counts))


@given(_LIVES, st.integers(1, 8))
def test_no_life_is_as_crowded_as_the_whole_trace(lives: list[tuple[int, int, int, int]], gpus: int) -> None:
    static = finish_time.ratio_of(of(lives), "static", gpus)
    shockwave = finish_time.ratio_of(of(lives), "shockwave", gpus)
    assert (static <= shockwave + 1e-9).all()
    # With GPUs for everybody the two are the slowdown against running alone.
    alone = finish_time.ratio_of(of(lives), "static", len(lives))
    assert finish_time.ratio_of(of(lives), "shockwave", len(lives)) == pytest.approx(alone)


@given(_LIVES, st.randoms(use_true_random=False))
def test_the_order_of_the_jobs_does_not_matter(lives: list[tuple[int, int, int, int]], dice: object) -> None:
    order = list(range(len(lives)))
    dice.shuffle(order)  # type: ignore[attr-defined]
    for name in finish_time.INDEPENDENT:
        straight = finish_time.ratio_of(of(lives), name, 3)
        shuffled = finish_time.ratio_of(of([lives[at] for at in order]), name, 3)
        assert shuffled == pytest.approx(straight[order], nan_ok=True)
