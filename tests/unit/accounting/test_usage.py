"""The report on usage, day by day."""

from __future__ import annotations

import pytest

from slurm_fair.model import Event
from slurm_fair_accounting import EventFile, Period
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


def test_a_job_that_waits_again_when_the_period_begins_uses_nothing_until_it_runs_again() -> None:
    (row,) = rows("usage", Period(T + 2000, T + 3700), EventFile(months.revoked_once(), []))
    assert (row["jobs"], row["gpu_seconds"]) == (1, 4 * 95.0)
    assert rows("usage", Period(T + 1900, T + 3600)) == []


def test_each_run_of_an_elastic_job_counts_the_gpus_that_it_had() -> None:
    events = [
        months.event(T, "submitted", gpus=4),
        months.event(T + 10, "started", gpus=8, restarts=0),
        months.event(T + 110, "stopped", gpus=8, start=T + 10, had=800.0, restarts=0),
        months.event(T + 200, "started", gpus=2, restarts=1),
        months.event(T + 300, "finished", gpus=4, had=1000.0, owed=1.0, waited=1.0, ran=200.0, submit=T),
    ]
    (row,) = rows("usage", FEBRUARY, EventFile(events, []))
    assert row["gpu_seconds"] == 8 * 100 + 2 * 100
    (row,) = rows("usage", Period(T + 250, MAR_1), EventFile(events, []))
    assert row["gpu_seconds"] == 2 * 50


def test_a_job_that_runs_all_the_period_is_its_users() -> None:
    period = Period(NOW - 100, NOW)
    assert [row["user"] for row in rows("usage", period)] == ["bob"]
    assert rows("usage", period, user="bob") == rows("usage", period)
    export = EventFile(months.lives(), months.moments([NOW]))
    assert rows("usage", period, export) == rows("usage", period)


def test_a_run_whose_job_the_ledger_has_no_more_is_not_taken_to_go_on() -> None:
    source = months.Month()
    source._events = [*months.lives(), months.event(MAR_1, "started", "99", restarts=0)]
    assert {row["tenant"] for row in rows("usage", Period(MAR_1, NOW), source)} == {"chem"}


# -- numbers that come again --------------------------------------------------------------------------------------


def _again(*lost: Event) -> tuple[months.Month, EventFile]:
    """A journal and a file with job 40, and before it an earlier life of its number, whose end nobody saw."""
    journal = months.Month()
    journal._events = sorted([*lost, *months.lives()], key=lambda event: event.time)
    return journal, EventFile(journal._events, months.moments([NOW]))


_LOST = (
    months.event(T, "submitted", "40", 8, user="bob"),
    months.event(T + 5, "started", "40", 8, user="bob", restarts=0),
)
_LOST_TO_PHYS = (
    months.event(T, "submitted", "40", 8),
    months.event(T + 5, "started", "40", 8, restarts=0),
)


def test_of_the_lives_of_one_number_only_the_last_goes_on() -> None:
    period = Period(MAR_1, NOW)
    for source in _again(*_LOST):
        assert sum(row["gpu_seconds"] for row in rows("usage", period, source)) == 2 * period.seconds
        assert rows("usage", Period(T, T + DAY), source) == []


@pytest.mark.parametrize("choice", [{}, {"tenant": "phys"}, {"user": "ann"}])
def test_a_number_that_another_tenant_has_now_is_not_the_first_ones(choice: dict[str, str]) -> None:
    for source in _again(*_LOST_TO_PHYS):
        found = rows("usage", Period(MAR_1, NOW), source, **choice)
        assert {row["tenant"] for row in found} == (set() if choice else {"chem"})


def test_a_life_without_a_submission_keeps_its_runs() -> None:
    early = [
        months.event(T, "started", "40", 8, restarts=0),
        months.event(T + 100, "stopped", "40", 8, start=T, restarts=0),
    ]
    for source in _again(*early):
        found = rows("usage", Period(T, MAR_1 + 10), source)
        assert [(row["tenant"], row["gpu_seconds"]) for row in found] == [
            ("phys", 800.0),
            ("chem", 2 * 3600.0),
            ("chem", 20.0),
        ]


def test_a_job_that_ends_while_the_report_is_made_is_counted_once() -> None:
    source = months.Month()
    end = months.event(
        NOW + 5, "finished", "40", 2, user="bob", had=1.0, owed=1.0, waited=0.0, ran=1.0, submit=MAR_1 - 3700
    )
    source._events = [*months.lives(), end]
    (row,) = rows("usage", Period(NOW - 100, NOW + 10), source)
    assert (row["user"], row["jobs"], row["gpu_seconds"]) == ("bob", 1, 2 * 105.0)
