"""The report on jobs: what each had, and those that live."""

from __future__ import annotations

import math

import pytest

from slurm_fair_accounting import EventFile, JournalReader, Period
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


# -- files and lives ----------------------------------------------------------------------------------------------


class _Exported(months.Month):
    """A journal of which everything that its ledger knows stands in its events too."""

    def __init__(self) -> None:
        super().__init__()
        again = [
            months.event(NOW - 600, "submitted", "41"),
            months.event(NOW - 500, "submitted", "42", 1),
        ]
        self._events = sorted([*self._events, *again], key=lambda event: event.time)
        self._moments = sorted([*self._moments, *months.moments([NOW])], key=lambda moment: moment.time)

    def as_file(self) -> EventFile:
        return EventFile(self._events, self._moments)


def _named(source: JournalReader, period: Period, **choice: str) -> list[tuple[object, ...]]:
    names = ("job", "tenant", "user", "submit", "start", "end", "leases", "restarts")
    return [tuple(row[name] for name in names) for row in rows("jobs", period, source, **choice)]


@pytest.mark.parametrize(
    ("start", "end", "jobs"),
    [
        (T + 2000, T + 4000, []),  # job 17 stopped before, and started again in it
        (T + 5000, T + 6000, []),  # it ran all the time
        (T + 5000, T + 20000, ["17"]),
        (T + 150, T + 20000, ["17", "6_5"]),
        (MAR_1, MAR_1 + DAY, []),
        (MAR_1, NOW - 550, []),
        (MAR_1, NOW, ["40", "41", "42"]),
        (NOW - 10, NOW + DAY, ["40", "41", "42"]),
        (NOW + 10, NOW + DAY, ["40", "41", "42"]),
    ],
)
def test_a_file_tells_of_the_jobs_that_its_journal_tells_of(
    start: float, end: float, jobs: list[str]
) -> None:
    journal, period = _Exported(), Period(start, end)
    told = _named(journal.as_file(), period)
    assert told == _named(journal, period)
    assert [job for job, *_ in told] == jobs


def test_a_job_of_a_file_is_its_users_though_it_was_submitted_before_the_period() -> None:
    source = EventFile(months.lives(), months.moments([NOW]))
    (row,) = rows("jobs", Period(MAR_1 - 2700, NOW), source, user="bob")
    assert (row["submit"], row["state"]) == (MAR_1 - 3700, "RUNNING")


def test_a_job_of_a_file_that_comes_or_ends_as_the_period_ends_is_not_of_it() -> None:
    source = EventFile(
        [
            *months.lives(),
            months.event(NOW, "submitted", "41"),
            months.event(NOW, "finished", "40", 2, user="bob", had=1.0, owed=1.0, waited=1.0, ran=1.0),
        ],
        [],
    )
    assert rows("jobs", Period(MAR_1, NOW), source) == []


def test_a_life_whose_end_nobody_saw_is_not_told_beside_the_next_of_its_number() -> None:
    lost = [
        months.event(T, "submitted", "40", 8, user="bob"),
        months.event(T + 5, "started", "40", 8, user="bob", restarts=0),
    ]
    journal = _Exported()
    journal._events = sorted([*lost, *journal._events], key=lambda event: event.time)
    for source in (journal, journal.as_file()):
        told = [row for row in rows("jobs", WHOLE, source) if row["job"] == "40"]
        assert [row["submit"] for row in told] == [MAR_1 - 3700]


def test_a_life_that_ended_before_the_period_is_not_told_with_the_next_of_its_number() -> None:
    journal = _Exported()
    again = [
        months.event(MAR_1 + DAY, "submitted"),
        months.event(MAR_1 + 2 * DAY, "finished", had=0.0, owed=1.0, waited=DAY, ran=0.0, submit=MAR_1 + DAY),
        # A job that came before that life ended, so that its events are read too.
        months.event(T + 100, "submitted", "18"),
        months.event(
            MAR_1 + 2 * DAY, "finished", "18", had=0.0, owed=1.0, waited=DAY, ran=0.0, submit=T + 100
        ),
    ]
    journal._events = sorted([*again, *journal._events], key=lambda event: event.time)
    period = Period(MAR_1 + DAY + 60, MAR_1 + 3 * DAY)
    for source in (journal, journal.as_file()):
        assert [(row["job"], row["submit"]) for row in rows("jobs", period, source)] == [
            ("18", T + 100),
            ("17", MAR_1 + DAY),
        ]
