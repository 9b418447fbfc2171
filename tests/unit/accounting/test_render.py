"""Reports are written as tables, rows to parse, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from slurm_fair_accounting import (
    REPORTS,
    EventFile,
    export_lines,
    parse_when,
)
from slurm_fair_accounting.render import as_put_out, cell, duration_text, safe, table
from slurm_fair_accounting.render import width as columns_of
from slurm_fair_accounting.source.period import Period, days
from slurm_fair_accounting.table import Column, Kind, Report
from tests.support import months, recorded
from tests.support.asked_reports import run
from tests.support.months import DAY, FEB_1, NOW, T
from tests.support.schemas import faults

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "reports"
SCHEMAS = ROOT / "docs" / "schema"
pytestmark = pytest.mark.usefixtures("utc")


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(
    ("suffix", "options"),
    [("txt", []), ("psv", ["-P"]), ("csv", ["--csv"]), ("json", ["--json"]), ("rows.txt", ["-n"])],
)
def test_reports_look_as_recorded(name: str, suffix: str, options: list[str]) -> None:
    result = run(name, "--start", "2026-02-01", "--end", "now", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    recorded.same(GOLDEN / f"{name}.{suffix}", result.stdout)


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
    assert duration_text(seconds) == shown


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


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("latin-1", ["gr\u00f6\u00dfe", "\\u65e5\\u672c"]),
        ("utf-8", ["gr\u00f6\u00dfe", "\u65e5\u672c"]),
    ],
)
def test_columns_stand_below_each_other_where_names_are_escaped(encoding: str, shown: list[str]) -> None:
    columns = (Column("tenant", "Tenant", Kind.TEXT), Column("jobs", "Jobs", Kind.COUNT))
    names = ["gr\u00f6\u00dfe", "\u65e5\u672c"]
    period = Period(0.0, 60.0)
    report = Report("x", "X", columns, tuple({"tenant": name, "jobs": 7} for name in names), period, period)
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with redirect_stdout(stream):
        lines = table(report).splitlines()[2:]
    width = max(len("Tenant"), *map(columns_of, shown))
    assert lines == [
        f"{'Tenant':<{width}}  Jobs",
        f"{'-' * width}  ----",
        *(f"{name}{' ' * (width - columns_of(name))}     7" for name in shown),
    ]


def test_where_the_encoding_is_not_known_nothing_is_escaped() -> None:
    with redirect_stdout(io.StringIO()):
        assert as_put_out("\u65e5") == "\u65e5"


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
