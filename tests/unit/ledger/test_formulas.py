"""Each definition of fairness on numbers that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.ledger import formulas


def floats(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)


def test_the_quota_is_the_weighted_part_of_the_cluster() -> None:
    weight = floats(1, 3)
    assert formulas.quota(8, weight, floats(4, 4)).tolist() == [2.0, 6.0]


def test_without_any_weight_nobody_has_a_quota() -> None:
    assert formulas.quota(8, floats(0, 0), floats(0, 0)).tolist() == [0.0, 0.0]


def test_a_tenant_is_owed_no_more_than_it_asks_for() -> None:
    assert formulas.tenant_share(floats(3, 9), floats(4, 4)).tolist() == [3.0, 4.0]


def test_a_job_is_owed_no_more_than_its_gang() -> None:
    share = formulas.job_share(formulas.share_level(floats(6, 6), floats(3, 3)), floats(1, 2))
    assert formulas.job_claim(floats(1, 8), share).tolist() == [1.0, 4.0]


RHO = [
    # had, owed, in a report, when choosing
    (0.0, 0.0, 1.0, 0.0),
    (0.0, 5.0, 0.0, 0.0),
    (3.0, 6.0, 0.5, 0.5),
    (3.0, 0.0, np.inf, np.inf),
]


@pytest.mark.parametrize(("had", "owed", "report", "choosing"), RHO)
def test_no_claim_yet_is_fair_in_a_report_and_most_deserving_when_choosing(
    had: float, owed: float, report: float, choosing: float
) -> None:
    assert formulas.rho_for_reports(floats(had), floats(owed))[0] == report
    assert formulas.rho_for_choosing(floats(had), floats(owed))[0] == choosing


def test_a_job_loses_by_sharing_below_ninety_five_percent() -> None:
    assert formulas.loss_fraction(floats(0.94, 0.95, 1.2, 0.1)) == 0.5
    assert formulas.loss_fraction(floats()) == 0.0


def test_a_tenant_is_unfair_only_in_windows_of_demand() -> None:
    had, owed = np.array([[1.0, 4.0], [0.0, 2.0]]), np.array([[2.0, 4.0], [9.0, 4.0]])
    demanded = np.array([[True, True], [False, True]])
    assert formulas.unfair_fraction(had, owed, demanded) == pytest.approx(2 / 3)
    assert formulas.unfair_fraction(had, owed, np.zeros((2, 2), dtype=bool)) == 0.0


WATER = [
    # gangs, weights, share, what each gets
    ((1, 8), (1, 1), 6, (1, 5)),
    ((1, 2, 8), (1, 1, 1), 6, (1, 2, 3)),
    ((4, 8), (1, 3), 8, (2, 6)),
    ((1, 2), (1, 1), 9, (1, 2)),
    ((4, 4), (0, 1), 3, (0, 3)),
    ((4, 4), (1, 1), 0, (0, 0)),
]


@pytest.mark.parametrize(("gpus", "weight", "share", "expected"), WATER)
def test_water_runs_from_small_jobs_to_their_siblings(
    gpus: tuple[int, ...], weight: tuple[float, ...], share: float, expected: tuple[float, ...]
) -> None:
    group = np.ones(len(gpus), dtype=np.int64)  # group 0 is empty
    level = formulas.water_levels(group, np.array(gpus), floats(*weight), floats(0, share))[1]
    with np.errstate(invalid="ignore"):
        got = np.where(floats(*weight) > 0, np.minimum(gpus, np.array(weight) * level), 0.0)
    assert got == pytest.approx(np.array(expected))
