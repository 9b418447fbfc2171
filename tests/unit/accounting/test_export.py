"""An export of the journal answers as the journal does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair_accounting import (
    REPORTS,
    Period,
    export_lines,
    read_events,
)
from tests.support import months
from tests.support.asked_reports import FEBRUARY, rows
from tests.support.months import FEB_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")


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
