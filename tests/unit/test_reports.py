"""The reports say what the journal's events and accounts add up to, in every format."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from slurm_fair.errors import InputError, StoreError
from slurm_fair.model import Standing
from slurm_fair.model.ids import parse_label
from slurm_fair.store import open_journal, open_reader
from slurm_fair_accounting import (
    REPORTS,
    Choice,
    EventFile,
    JournalReader,
    Period,
    build_report_group,
    choose,
    export_lines,
    parse_when,
    read_events,
)
from slurm_fair_accounting.period import days
from slurm_fair_accounting.render import cell, duration, safe
from slurm_fair_accounting.table import Kind
from tests import journals, months
from tests.months import DAY, FEB_1, MAR_1, NOW, T
from tests.schemas import faults

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "reports"
SCHEMAS = ROOT / "docs" / "schema"
FEBRUARY = Period(FEB_1, MAR_1)
WHOLE = Period(FEB_1, NOW)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def rows(
    name: str, period: Period, source: JournalReader | None = None, **choice: Any
) -> list[dict[str, Any]]:
    report = REPORTS[name](source or months.Month(), period, Choice(**choice))
    return [dict(row) for row in report.rows]


def run(*args: str, source: JournalReader | None = None, now: float = NOW) -> Result:
    group = build_report_group(lambda context: source or months.Month(), lambda: now)
    return CliRunner().invoke(group, args, catch_exceptions=False)


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
    assert list(back.moments(0.0, NOW)) == months.moments()
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


# How they are written


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(
    ("suffix", "options"),
    [("txt", []), ("psv", ["-P"]), ("csv", ["--csv"]), ("json", ["--json"]), ("rows.txt", ["-n"])],
)
def test_reports_look_as_recorded(name: str, suffix: str, options: list[str]) -> None:
    result = run(name, "--start", "2026-02-01", "--end", "now", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    recorded = GOLDEN / f"{name}.{suffix}"
    if os.environ.get("SLURM_FAIR_RECORD"):
        recorded.parent.mkdir(exist_ok=True)
        recorded.write_text(result.stdout)
    assert result.stdout == recorded.read_text()


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("period", [[], ["-S", "2026-02-10", "-E", "now"]])
def test_json_keeps_to_its_schema(name: str, period: list[str]) -> None:
    document = json.loads(run(name, "--json", *period).stdout, parse_constant=lambda word: pytest.fail(word))
    assert document["rows"]
    assert faults(document, json.loads((SCHEMAS / f"report-{name}.json").read_text())) == []


@pytest.mark.parametrize("name", REPORTS)
def test_the_schema_notices_a_column_too_many_or_too_few(name: str) -> None:
    schema = json.loads((SCHEMAS / f"report-{name}.json").read_text())
    document = json.loads(run(name, "--json").stdout)
    key = next(iter(document["rows"][0]))
    document["rows"][0]["surprise"] = document["rows"][0].pop(key)
    assert len(faults(document, schema)) == 2


def test_each_exported_line_keeps_to_its_schema() -> None:
    schema = json.loads((SCHEMAS / "events.json").read_text())
    lines = [json.loads(line) for line in export_lines(months.Month(), 0.0, NOW)]
    assert len(lines) > 20
    assert [fault for line in lines for fault in faults(line, schema)] == []
    assert faults({**lines[-1], "kind": "exploded"}, schema)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("options", [[], ["-P"], ["--csv"], ["--json"]])
def test_no_format_lets_control_characters_through(name: str, options: list[str]) -> None:
    shown = run(name, "-S", "2026-02-01", *options).stdout
    assert not [char for char in shown if not char.isprintable() and char != "\n"]


@pytest.mark.parametrize("name", REPORTS)
def test_every_line_of_a_parsable_report_has_the_same_columns(name: str) -> None:
    lines = run(name, "-P", "-S", "2026-02-01").stdout.splitlines()
    assert len({line.count("|") for line in lines}) == 1
    assert run(name, "-P", "-n", "-S", "2026-02-01").stdout.splitlines() == lines[1:]


@pytest.mark.parametrize("name", REPORTS)
def test_csv_has_the_keys_of_the_json(name: str) -> None:
    document = json.loads(run(name, "--json").stdout)
    read = list(csv.DictReader(io.StringIO(run(name, "--csv").stdout)))
    lines = [*document["rows"], *([document["total"]] if "total" in document else [])]
    assert [list(row) for row in read] == [list(row) for row in lines]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)"])
def test_a_spreadsheet_runs_no_name_as_a_formula(text: str) -> None:
    source = EventFile([months.event(T, "finished", user=text, had=1.0, owed=1.0, waited=1.0, ran=1.0)], [])
    assert f",'{text}," in run("jobs", "--csv", source=source).stdout


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "00:00:00"), (59.6, "00:01:00"), (3661, "01:01:01"), (86400, "1-00:00:00"), (-60, "-00:01:00")],
)
def test_durations_read_as_slurm_prints_them(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, Kind.INSTANT, "-"), ("", Kind.TEXT, "-"), (FEB_1, Kind.INSTANT, "2026-02-01T00:00:00"),
        (FEB_1, Kind.DAY, "2026-02-01"), (5400.0, Kind.GPU_HOURS, "1.50"), (math.inf, Kind.RATIO, "inf"),
        (0.12345, Kind.RATIO, "0.123"), (7, Kind.COUNT, "7"), ("\x1b]0;x\x07\x9b", Kind.TEXT, "?]0;x??"),
    ],
)  # fmt: skip
def test_each_kind_of_value_is_written_its_own_way(value: Any, kind: Kind, shown: str) -> None:
    assert cell(value, kind) == shown


def test_long_foreign_text_is_cut() -> None:
    assert len(safe("x" * 100_000)) == 1000


def test_times_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    assert cell(FEB_1, Kind.INSTANT) == "2026-02-01T01:00:00"
    assert parse_when("2026-02-01T01:00", NOW) == FEB_1
    summer = parse_when("2026-03-29", NOW)  # the clock goes forward on that day
    assert [day.seconds for day in days(summer - 3600, summer + 2 * DAY)] == [
        3600.0,
        23 * 3600.0,
        DAY,
        3600.0,
    ]


# How they are asked for


WHEN = {
    "2026-02-01": FEB_1,
    "2026-02-01T10:30": FEB_1 + 37800,
    "2026-02-01T10:30:05": FEB_1 + 37805,
    "2026-02-01t10:30:05": FEB_1 + 37805,
    "now": NOW,
    "now-1days": NOW - DAY,
    "now-1day": NOW - DAY,
    "now-2hours": NOW - 7200,
    "now-90": NOW - 90,
    "now+2weeks": NOW + 14 * DAY,
    "today": NOW - 12 * 3600,
    "midnight": NOW - 12 * 3600,
    "tomorrow": NOW + 12 * 3600,
    "noon": NOW,
    "fika": NOW + 3 * 3600,
    "teatime": NOW + 4 * 3600,
    "0201": FEB_1,
    "020125": FEB_1 - 365 * DAY,
    "1201": FEB_1 - 62 * DAY,
    "2/1": FEB_1,
    "02/01/26": FEB_1,
    "02.01.26": FEB_1,
    "2/1-10:30": FEB_1 + 37800,
    "13:15": NOW + 4500,
    "1:15pm": NOW + 4500,
    "12:00 AM": NOW - 12 * 3600,
}


@pytest.mark.parametrize(("text", "wanted"), WHEN.items(), ids=WHEN)
def test_instants_are_read_as_sreport_reads_them(text: str, wanted: float) -> None:
    assert parse_when(text, NOW) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026-02-30",
        "2026-13-01",
        "25:00",
        "now-",
        "now-1fortnights",
        "02/01.26",
        "99999999",
        "\x1b[m",
    ],
)
def test_what_is_no_time_is_refused_in_one_line(text: str) -> None:
    result = run("jobs", f"--start={text}") if text else run("jobs", "-S", " ")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "is no time" in result.stderr
    assert "\x1b" not in result.stderr


PERIODS = {
    "the last full month": (None, None, FEB_1, Period(FEB_1, MAR_1)),
    "the whole life of a younger journal": (None, None, MAR_1 - 50, Period(MAR_1 - 50, NOW)),
    "the last full month when nothing is known": (None, None, None, Period(FEB_1, MAR_1)),
    "until now": ("2026-02-05", None, FEB_1, Period(FEB_1 + 4 * DAY, NOW)),
    "from the beginning": (None, "2026-02-05", FEB_1 + 9, Period(FEB_1 + 9, FEB_1 + 4 * DAY)),
}


@pytest.mark.parametrize(("start", "end", "began", "wanted"), PERIODS.values(), ids=PERIODS)
def test_periods_have_sensible_defaults(
    start: str | None, end: str | None, began: float | None, wanted: Period
) -> None:
    assert choose(start, end, NOW, lambda: began) == wanted


def test_a_period_that_ends_before_it_starts_is_refused() -> None:
    result = run("jobs", "-S", "2026-03-01", "-E", "2026-02-01")
    assert result.exit_code == 2
    assert result.stderr == "Error: --start 2026-03-01 is not before --end 2026-02-01: swap them\n"


def test_a_journal_that_cannot_be_opened_is_one_line() -> None:
    def refuse(context: click.Context) -> JournalReader:
        raise StoreError("/x: is\nbroken\x1b")

    result = CliRunner().invoke(build_report_group(refuse, lambda: NOW), ["tenants"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "Error: /x: is?broken?\n")


def test_the_journal_is_closed_after_a_report() -> None:
    closed: list[bool] = []

    class Watched(months.Month):
        def close(self) -> None:
            closed.append(True)

    assert run("tenants", source=Watched()).exit_code == 0
    assert run("jobs", "-S", "never", source=Watched()).exit_code == 2
    assert closed == [True, True]


def test_an_export_can_be_made_and_read_by_the_commands(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(run("export").stdout)
    assert len(path.read_text().splitlines()) == len(months.events()) + len(months.moments())
    result = run("leases", "--from", str(path), "-P", "-S", "2026-02-01")
    assert result.stdout == run("leases", "-P", "-S", "2026-02-01").stdout


def test_help_names_every_report_and_every_option() -> None:
    shown = run("--help").stdout
    assert all(name in shown for name in REPORTS)
    options = run("tenants", "--help").stdout
    for option in (
        "--start",
        "--end",
        "--tenant",
        "--user",
        "--parsable2",
        "--csv",
        "--json",
        "--noheader",
        "--from",
    ):
        assert option in options


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
