"""The report on tenants: differences of integrals between known instants."""

from __future__ import annotations

import pytest

from slurm_fair_accounting import (
    REPORTS,
    Choice,
    EventFile,
    Period,
)
from slurm_fair_accounting.reports.tenants import FROM_JOBS
from tests.support import months
from tests.support.asked_reports import FEBRUARY, rows
from tests.support.months import DAY, FEB_1, MAR_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")


def test_tenants_are_told_by_differences_of_integrals_between_the_nearest_known_instants() -> None:
    report = REPORTS["tenants"](months.Month(), FEBRUARY, Choice())
    assert report.covered == Period(FEB_1, MAR_1 - 20)
    seconds = 28 * DAY - 20
    chem, phys = report.rows
    assert chem == {
        "tenant": "chem", "weight": 1.0, "share": 0.25, "jobs": 1, "running": None, "waiting": None,
        "had_gpu_seconds": 0.25 * seconds, "owed_gpu_seconds": 0.5 * seconds, "rho": 0.5, "preemptions": 0,
    }  # fmt: skip
    assert (phys["rho"], phys["share"], phys["preemptions"], phys["jobs"]) == (1.0, 0.75, 1, 1)


def test_of_a_period_before_the_first_account_nothing_is_claimed() -> None:
    before = Period(T - 90 * DAY, T - 60 * DAY)
    report = REPORTS["tenants"](months.Month(), before, Choice())
    assert report.covered == before
    assert report.note == FROM_JOBS
    assert report.rows == ()


def test_tenants_up_to_now_are_told_from_the_ledger_itself() -> None:
    report = REPORTS["tenants"](months.Month(), Period(T + 3600, NOW), Choice())
    assert report.covered == Period(T + 3600, NOW)
    chem, phys = report.rows
    assert chem["had_gpu_seconds"] == pytest.approx(0.25 * (NOW - T - 3600))
    assert (chem["jobs"], chem["running"], chem["waiting"]) == (1, 1, 0)
    assert (phys["jobs"], phys["running"], phys["waiting"]) == (3, 0, 1)


def test_a_tenant_that_came_later_had_nothing_before() -> None:
    source = months.Month()
    source._moments = [row for row in source._moments if row.tenant == "phys" or row.time > T]
    chem, _ = rows("tenants", Period(FEB_1 + 30, T + 3600), source)
    assert chem["had_gpu_seconds"] == 0.25 * (T + 3600 - FEB_1)


def test_without_accounts_of_tenants_the_report_says_that_it_sums_jobs() -> None:
    report = REPORTS["tenants"](EventFile(months.events(), []), FEBRUARY, Choice())
    assert "no accounts of tenants" in report.note
    assert [(row["tenant"], row["had_gpu_seconds"]) for row in report.rows] == [
        ("chem", 0.0),
        ("phys", 36000.0),
    ]
