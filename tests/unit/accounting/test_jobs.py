"""The report on jobs: what each had, and those that live."""

from __future__ import annotations

import math

import pytest

from slurm_fair_accounting import (
    EventFile,
    Period,
)
from tests.support import months
from tests.support.asked_reports import FEBRUARY, WHOLE, rows
from tests.support.months import DAY, MAR_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")


def test_jobs_of_a_past_month_are_those_that_ended_in_it() -> None:
    first, second = rows("jobs", FEBRUARY)
    assert first == {
        "job": "17", "tenant": "phys", "user": "ann", "state": "ENDED", "gpus": 4, "submit": T, "start": T + 30,
        "end": T + 10805, "run_seconds": 9000.0, "wait_seconds": 1805.0, "leases": 3, "restarts": 1,
        "had_gpu_seconds": 36000.0, "owed_gpu_seconds": 40000.0, "rho": 0.9,
    }  # fmt: skip
    assert (second["job"], second["start"], second["leases"], second["rho"]) == ("6_5", None, 0, 1.0)


def test_jobs_up_to_now_include_those_that_live_with_the_ledgers_accounts() -> None:
    found = {row["job"]: row for row in rows("jobs", WHOLE)}
    assert [found[job]["state"] for job in ("40", "41", "42")] == ["RUNNING", "WAITING", "HELD"]
    runs = found["40"]
    assert (runs["start"], runs["end"], runs["leases"], runs["user"]) == (MAR_1 - 3600, None, 2, "bob")
    assert runs["had_gpu_seconds"] == 2 * (NOW - MAR_1 + 3600)
    assert runs["rho"] == math.inf
    assert (found["41"]["rho"], found["42"]["rho"]) == (0.0, 1.0)


def test_a_job_that_began_before_the_period_is_told_whole() -> None:
    (row,) = rows("jobs", Period(T + 4000, T + 20000))
    assert (row["submit"], row["start"], row["leases"]) == (T, T + 30, 3)


def test_a_job_that_ends_while_the_report_is_made_is_told_once_as_ended() -> None:
    source = months.Month()
    source._events.append(
        months.event(NOW - 1, "finished", "40", 2, user="bob", had=1.0, owed=1.0, waited=0.0, ran=1.0,
                     submit=MAR_1 - 3700, end=NOW - 1)
    )  # fmt: skip
    assert [row["state"] for row in rows("jobs", WHOLE, source) if row["job"] == "40"] == ["ENDED"]


def test_a_number_that_slurm_uses_again_is_another_job() -> None:
    again = [
        months.event(T + DAY, "submitted"),
        months.event(T + DAY + 5, "started", nodes=["n1"], restarts=0),
        months.event(T + DAY + 65, "finished", had=240.0, owed=240.0, waited=5.0, ran=60.0, restarts=0,
                     submit=T + DAY, end=T + DAY + 65),
    ]  # fmt: skip
    source = EventFile([*months.events(), *again], [])
    found = [row for row in rows("jobs", FEBRUARY, source) if row["job"] == "17"]
    assert [(row["submit"], row["run_seconds"]) for row in found] == [(T, 9000.0), (T + DAY, 60.0)]


def test_a_live_job_without_any_event_is_told_from_the_ledger() -> None:
    source = months.Month()
    source._events = []
    found = {row["job"]: row for row in rows("jobs", WHOLE, source)}
    assert (found["40"]["start"], found["40"]["user"], found["41"]["start"]) == (MAR_1 - 3600, "", None)
