"""The report on usage, day by day."""

from __future__ import annotations

import pytest

from slurm_fair_accounting import (
    Period,
)
from tests.support import months
from tests.support.asked_reports import FEBRUARY, rows
from tests.support.months import DAY, MAR_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")


def test_usage_is_cut_at_midnight_and_at_the_ends_of_the_period() -> None:
    used = {(row["day"], row["tenant"]): row["gpu_seconds"] for row in rows("usage", FEBRUARY)}
    midnight = T + 7200
    assert used == {
        (midnight - DAY, "phys"): 4 * (1800 + 7200 - 3605.0),
        (midnight, "phys"): 4 * 3605.0,
        (MAR_1 - DAY, "chem"): 2 * 3600.0,
    }


@pytest.mark.parametrize("period", [Period(T + 4000, T + 5000), Period(MAR_1, MAR_1 + 1000)])
def test_a_run_that_spans_the_period_is_used_to_the_full(period: Period) -> None:
    (row,) = rows("usage", period)
    assert row["gpu_seconds"] == period.seconds * (4 if period.start < MAR_1 else 2)


def test_a_run_that_no_event_tells_is_taken_from_the_ledger() -> None:
    source = months.Month()
    source._events = months.revoked_once()
    (row,) = rows("usage", Period(NOW - 100, NOW), source)
    assert (row["tenant"], row["gpu_seconds"]) == ("chem", 200.0)


def test_usage_and_had_agree_over_a_whole_job() -> None:
    used = sum(row["gpu_seconds"] for row in rows("usage", FEBRUARY, tenant="phys"))
    had = sum(row["had_gpu_seconds"] for row in rows("jobs", FEBRUARY, tenant="phys"))
    assert used == had == 36000.0
