"""The reports say what the journal's events and accounts add up to, in every format."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.model import Standing
from slurm_fair.model.ids import parse_label
from slurm_fair.store import open_journal, open_reader
from slurm_fair_accounting import (
    REPORTS,
    Choice,
    EventFile,
    Period,
    export_lines,
    read_events,
)
from slurm_fair_accounting.reports.tenants import FROM_JOBS
from tests.support import journals, months
from tests.support.asked_reports import FEBRUARY, WHOLE, rows, run
from tests.support.months import DAY, FEB_1, MAR_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")

# What the numbers are


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


def test_leases_are_told_with_their_ends() -> None:
    told = [
        (row["job"], row["lease"], row["nodes"], row["granted"] - T, row["start"] and row["start"] - T,
         row["end"] and row["end"] - T, row["ended_by"], row["start_delay_seconds"])
        for row in rows("leases", Period(FEB_1, T + DAY))
    ]  # fmt: skip
    assert told == [
        ("17", 1, "n1,n2", 10, 30, 900, "renewed", 20),
        ("6_5", 1, "n1", 70, None, 130, "takenback", None),
        ("17", 2, "n1,n2", 900, 900, 1830, "revoked", 0),
        ("17", 1, "n3", 3600, 3605, 10805, "finished", 5),
    ]


def test_a_lease_that_reaches_over_the_period_keeps_its_nodes_and_its_end() -> None:
    (lease,) = rows("leases", Period(T + 800, T + 1000))
    assert (lease["nodes"], lease["end"], lease["ended_by"]) == ("n1,n2", T + 1830, "revoked")


def test_a_lease_that_slurm_would_not_end_is_told_as_renewed_and_its_job_as_never_preempted() -> None:
    events = [
        months.event(T, "submitted"),
        months.event(T + 10, "granted", nodes=["n1"], until=T + 900, number=1),
        months.event(T + 30, "started", nodes=["n1"], restarts=0),
        months.event(T + 900, "revoked", why="others are owed more", number=1),
        months.event(T + 900, "stays", why="Requested operation is presently disabled", until=T + 1800, number=2),
        months.event(T + 1000, "stopped", start=T + 30, had=3880.0, restarts=0),
        months.event(T + 1000, "returned", why="requeued by somebody else", number=2),
        months.event(T + 1100, "finished", had=3880.0, owed=3880.0, waited=130.0, ran=970.0, rho=1.0, restarts=1,
                     submit=T, end=T + 1100),
    ]  # fmt: skip
    source = EventFile(events, [])
    told = [(row["lease"], row["end"] - T, row["ended_by"]) for row in rows("leases", FEBRUARY, source)]
    assert told == [(1, 900, "renewed"), (2, 1000, "stopped")]
    assert [row["preemptions"] for row in rows("tenants", FEBRUARY, source)] == [0]


def test_an_open_lease_has_no_end() -> None:
    last = rows("leases", WHOLE)[-1]
    assert (last["job"], last["lease"], last["end"], last["ended_by"]) == ("40", 2, None, "")


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


def test_waits_are_told_as_percentiles() -> None:
    ended = [
        months.event(T + wait, "finished", str(wait + 1), waited=float(wait), ran=60.0, had=0.0, owed=0.0)
        for wait in range(101)
    ]
    (row,) = rows("waits", FEBRUARY, EventFile(ended, []))
    assert row == {
        "tenant": "phys", "jobs": 101, "wait_mean_seconds": 50.0, "wait_p50_seconds": 50.0,
        "wait_p95_seconds": 95.0, "wait_p99_seconds": 99.0, "wait_max_seconds": 100.0, "run_mean_seconds": 60.0,
    }  # fmt: skip


@pytest.mark.parametrize("name", REPORTS)
def test_a_tenant_or_a_user_can_be_chosen(name: str) -> None:
    everything = rows(name, WHOLE)
    assert {row["tenant"] for row in everything} == {"chem", "phys"}
    assert {row["tenant"] for row in rows(name, WHOLE, tenant="chem")} == {"chem"}
    if name != "tenants":
        assert {row["tenant"] for row in rows(name, WHOLE, user="bob")} == {"chem"}
    assert rows(name, WHOLE, tenant="nobody") == []


@pytest.mark.parametrize("name", REPORTS)
def test_an_empty_journal_makes_an_empty_report(name: str) -> None:
    assert rows(name, FEBRUARY, EventFile([], [])) == []
    result = run(name, source=EventFile([], []))
    assert result.exit_code == 0


# Where they come from


@pytest.mark.parametrize("name", REPORTS)
def test_the_store_answers_like_the_month_itself(name: str, tmp_path: Path) -> None:
    path = tmp_path / "state" / "journal.db"
    with open_journal(path) as journal:
        tick = journals.tick(1, events=tuple(months.events()), time=NOW)
        journal.append(tick, months.standing())
    with open_reader(path) as reader:
        stored = rows(name, Period(FEB_1, NOW), reader)
    assert stored == rows(name, Period(FEB_1, NOW))


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("period", [FEBRUARY, Period(T + 800, T + 4000)])
def test_an_export_answers_like_the_journal_for_a_past_period(
    name: str, period: Period, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(export_lines(months.Month(), 0.0, NOW)))
    source = read_events(path)
    told = {row["job"] for row in rows("jobs", period)}
    mine, theirs = rows(name, period, source), rows(name, period)
    if name == "jobs":  # an export knows those that live from their events alone
        mine = [row for row in mine if row["job"] in told]
    if name == "tenants":
        mine, theirs = (
            [{**row, "owed_gpu_seconds": 0, "had_gpu_seconds": 0} for row in some] for some in (mine, theirs)
        )
    assert mine == theirs


def test_an_export_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = list(export_lines(months.Month(), 0.0, NOW))
    path.write_text("".join(lines))
    back = read_events(path)
    assert list(back.events()) == months.events()
    began, *kept = (months.moments([time]) for time in (FEB_1, *sorted({m.time for m in months.moments()})))
    assert list(back.moments(0.0, NOW)) == [*began, *(moment for moments in kept for moment in moments)]
    assert [json.loads(line)["time"] for line in lines] == sorted(json.loads(line)["time"] for line in lines)


BAD_LINES = {
    "no JSON": "{",
    "no object": "[1]",
    "a time that is none": '{"time": "noon", "kind": "asked", "job": "1", "tenant": "a", "gpus": 1}',
    "a time that never comes": '{"time": NaN, "kind": "asked", "job": "1", "tenant": "a", "gpus": 1}',
    "no tenant": '{"time": 1, "kind": "asked", "job": "1", "gpus": 1}',
    "a job that is none": '{"time": 1, "kind": "asked", "job": "one", "tenant": "a", "gpus": 1}',
    "an end without its accounts": '{"time": 1, "kind": "finished", "job": "1", "tenant": "a", "gpus": 1}',
    "an account without its numbers": '{"time": 1, "kind": "account", "tenant": "a"}',
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_by_file_and_number(line: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("\n" + line + "\n")
    with pytest.raises(InputError, match=re.escape(f"{path}:2: ")):
        read_events(path)
    result = run("jobs", "--from", str(path))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_a_live_job_without_any_event_is_told_from_the_ledger() -> None:
    source = months.Month()
    source._events = []
    found = {row["job"]: row for row in rows("jobs", WHOLE, source)}
    assert (found["40"]["start"], found["40"]["user"], found["41"]["start"]) == (MAR_1 - 3600, "", None)


def test_a_ledger_of_the_future_tells_nothing_of_a_past_period() -> None:
    class Later(months.Month):
        def latest(self) -> Standing:
            return months.standing(NOW + DAY)

    assert {row["job"] for row in rows("jobs", WHOLE, Later())} == {"17", "6_5"}
    assert parse_label("17") == months.events()[0].key
