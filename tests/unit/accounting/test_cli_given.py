"""Values of options that are empty or given twice, and reports of a period of which nothing is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_fair_accounting import REPORTS, EventFile
from tests.support.asked_reports import run

pytestmark = pytest.mark.usefixtures("utc")

OPTIONS = ("--tenant", "--user", "--start", "--end", "--month")
MONTH = "2026-02-01T00:00:00 to 2026-03-10T12:00:00"


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", REPORTS)
def test_an_empty_value_is_refused_in_one_line(name: str, option: str) -> None:
    result = run(name, option, "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {option} is empty: give a value, or leave it out\n"


@pytest.mark.parametrize("option", ["--start", "--end", "--month"])
def test_an_export_refuses_an_empty_value_too(option: str) -> None:
    assert (run("export", option, "").exit_code, run("export", option, "").stdout) == (2, "")


@pytest.mark.parametrize("option", [*OPTIONS, "--html"])
def test_a_value_that_is_given_twice_is_refused_and_none_wins_in_silence(option: str) -> None:
    result = run("jobs", option, "chem", option, "phys")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: {option} is given 2 times: give it once a report\n"


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "tenants"])
def test_a_period_of_which_nothing_is_known_is_said_with_what_the_journal_covers(name: str) -> None:
    result = run(name, "-S", "2025-01-01", "-E", "2025-02-01", "--csv")
    assert (result.exit_code, result.stdout.count("\n") <= 2) == (0, True)
    assert result.stderr == f"note: nothing in this period; the journal covers {MONTH}\n"


def test_the_note_of_an_empty_report_stands_in_json_and_on_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("jobs", "-S", "2025-01-01", "-E", "2025-02-01", "--json", "--html", str(page))
    words = f"nothing in this period; the journal covers {MONTH}"
    assert json.loads(result.stdout)["note"] == words
    assert words in page.read_text()


def test_a_file_without_jobs_says_what_it_covers(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(run("export").stdout.splitlines()[0] + "\n")
    result = run("jobs", "--from", str(path))
    known = "2026-02-01T00:00:00 to 2026-02-01T00:00:00"
    assert (result.exit_code, result.stderr) == (
        0,
        f"note: nothing in this period; this file covers {known}\n",
    )


def test_a_journal_that_tells_of_nothing_says_so() -> None:
    result = run("jobs", source=EventFile([], []))
    assert result.stderr == "note: nothing in this period; the journal tells of nothing yet\n"


def test_a_report_with_rows_has_no_note() -> None:
    assert run("jobs", "-S", "2026-02-01").stderr == ""
