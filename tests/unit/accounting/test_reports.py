"""The reports say what the journal's events and accounts add up to, in every format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.model import Standing
from slurm_fair.model.ids import parse_label
from slurm_fair.store import open_journal, open_reader
from slurm_fair_accounting import (
    REPORTS,
    EventFile,
    Period,
    read_events,
)
from tests.support import journals, months
from tests.support.asked_reports import FEBRUARY, WHOLE, rows, run
from tests.support.months import DAY, FEB_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")

# What the numbers are


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


def test_a_ledger_of_the_future_tells_nothing_of_a_past_period() -> None:
    class Later(months.Month):
        def latest(self) -> Standing:
            return months.standing(NOW + DAY)

    assert {row["job"] for row in rows("jobs", WHOLE, Later())} == {"17", "6_5"}
    assert parse_label("17") == months.events()[0].key
