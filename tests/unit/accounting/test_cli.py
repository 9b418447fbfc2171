"""Questions to reports: instants, periods, and what the commands refuse."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from slurm_fair.errors import InputError, StoreError
from slurm_fair_accounting import (
    REPORTS,
    EventFile,
    JournalReader,
    Period,
    build_report_group,
    choose,
    parse_when,
)
from slurm_fair_accounting.source.period import span_of
from tests.support import months
from tests.support.asked_reports import run
from tests.support.months import DAY, FEB_1, MAR_1, NOW, T

pytestmark = pytest.mark.usefixtures("utc")


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
        "0000-01-01",
        "1969-12-31",
        "\x1b[m",
    ],
)
def test_what_is_no_time_is_refused_in_one_line(text: str) -> None:
    result = run("jobs", f"--start={text}") if text else run("jobs", "-S", " ")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "is no time" in result.stderr
    assert "\x1b" not in result.stderr


@pytest.mark.parametrize(
    "text",
    [
        "now+9999999weeks", "now-9999999weeks", "now-4000weeks", "now+99999999weeks", "9999-12-31T12:00",
        "9999-12-31", "1969-12-31",
    ],
)  # fmt: skip
def test_an_instant_outside_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no time: years go from 1970 to 9998"):
        parse_when(text, NOW)


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


ONE_END = {
    "an end before the beginning": (
        ("-E", "1997-05-01"),
        "--end 1997-05-01 is before the beginning of what is known, 2026-02-01T00:00:00: give a later one",
    ),
    "a start that lies ahead": (
        ("-S", "2099-05-01"),
        "--start 2099-05-01 is not before now: give an earlier one, or --end",
    ),
    "no time at all": (
        ("-S", "now", "-E", "now"),
        "--start now (read as 2026-03-10T12:00:00) is --end now too: a period has a beginning and a "
        "later end",
    ),
    "a year of two digits": (
        ("-S", "05/19/97"),
        "--start 05/19/97 (read as 2097-05-19T00:00:00) is not before now: give an earlier one, or --end",
    ),
    "both ends": (
        ("-S", "noon", "-E", "2026-03-10t10:00"),
        "--start noon (read as 2026-03-10T12:00:00) is not before --end 2026-03-10t10:00: swap them",
    ),
}


@pytest.mark.parametrize(("given", "words"), ONE_END.values(), ids=ONE_END)
def test_of_a_period_that_cannot_be_nothing_is_said_that_was_not_given(
    given: tuple[str, str], words: str
) -> None:
    result = run("tenants", *given)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"Error: {words}\n")


def test_a_journal_that_cannot_be_opened_is_one_line() -> None:
    def refuse(context: click.Context) -> JournalReader:
        raise StoreError("/x: is\nbroken\x1b")

    result = CliRunner().invoke(build_report_group(refuse, lambda: NOW), ["tenants"])
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "Error: /x: is?broken?\n")


def test_two_forms_at_once_are_refused_in_one_line() -> None:
    result = run("tenants", "--json", "--csv")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "--json and --csv are different forms" in result.stderr


OF_TENANTS = [(name, "tenant", "chem, phys") for name in REPORTS]
OF_USERS = [(name, "user", "ann, bob") for name in REPORTS if name != "tenants"]  # which knows no users


@pytest.mark.parametrize(("name", "kind", "known"), [*OF_TENANTS, *OF_USERS])
@pytest.mark.parametrize("exported", [False, True], ids=["a journal", "an export"])
def test_a_tenant_or_user_that_nobody_has_heard_of_is_refused(
    name: str, exported: bool, kind: str, known: str
) -> None:
    source = EventFile(months.events(), months.moments()) if exported else months.Month()
    result = run(name, f"--{kind}", "nope", "-S", "2026-02-01", source=source)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"Error: no {kind} nope; there are {known}\n"


@pytest.mark.parametrize("name", REPORTS)
def test_a_tenant_without_a_row_in_the_period_is_said_to_have_none(name: str) -> None:
    jobs = [
        months.event(T, "submitted"),
        months.event(T + 9, "finished", had=1.0, owed=1.0, waited=1.0, ran=1.0),
    ]
    result = run(name, "--tenant", "phys", "-S", "2026-03-05", source=EventFile(jobs, []))
    assert (result.exit_code, result.stderr) == (
        0,
        "note: no row of tenant phys in this period; "
        "the journal covers 2026-02-10T22:00:00 to 2026-02-10T22:00:09\n",
    )


def test_of_many_tenants_the_first_are_named() -> None:
    jobs = [months.event(T, "submitted")._replace(tenant=f"t{number:02}") for number in range(50)]
    result = run("jobs", "--tenant", "nope", source=EventFile(jobs, []))
    assert result.stderr.endswith("t38, t39 and 10 more\n")


def test_a_user_without_a_row_is_said_to_have_none() -> None:
    result = run("jobs", "--user", "bob", "--tenant", "phys", "-S", "2026-02-01")
    assert (result.exit_code, result.stderr) == (
        0,
        "note: no row of tenant phys and user bob in this period; "
        "the journal covers 2026-02-01T00:00:00 to 2026-03-10T12:00:00\n",
    )


def test_a_tenants_accounts_are_not_a_users() -> None:
    result = run("tenants", "--user", "ann", "-S", "2026-02-01")
    assert result.exit_code == 2
    assert "leave --user out, or ask for the report jobs, usage, leases or fairness" in result.stderr


def test_where_no_user_is_named_nobody_is_unknown() -> None:
    nameless = [each._replace(detail={**each.detail, "user": ""}) for each in months.revoked_once()]
    result = run("jobs", "--user", "ann", source=EventFile(nameless, []))
    assert result.exit_code == 0
    assert result.stderr.startswith("note: no row of user ann in this period; the journal covers 2026-02-10T")


@pytest.mark.parametrize(
    ("content", "words"), [(b"\x1f\x8b\x08\x00", "is gzipped"), (b"job_id,tenant\n", "give a file of events")]
)
def test_a_file_that_holds_no_events_is_refused_with_a_cure(
    content: bytes, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    result = run("tenants", "--from", str(path))
    assert (result.exit_code, result.stderr.count("\n"), words in result.stderr) == (2, 1, True)
    assert "Error(" not in result.stderr


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
    accounts = len(months.moments()) + len(months.moments([FEB_1]))  # and those of the ledger's beginning
    assert len(path.read_text().splitlines()) == len(months.events()) + accounts
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
        "--parsable2",
        "--csv",
        "--json",
        "--noheader",
        "--from",
    ):
        assert option in options
    assert "--user" not in options, "it is refused there"
    assert "--user" in run("jobs", "--help").stdout


@pytest.mark.parametrize(
    ("month", "span"),
    [
        ("2026-02", ("2026-02-01", "2026-03-01")),
        ("2025-12", ("2025-12-01", "2026-01-01")),
        ("2026-03", ("2026-03-01", None)),  # not over yet
    ],
)
def test_a_month_is_a_calendar_month_and_the_present_one_until_now(
    month: str, span: tuple[str, str | None]
) -> None:
    assert span_of(month, None, None, NOW) == span
    first, last = (
        run("jobs", "--month", month, "--csv"),
        run("jobs", "-S", span[0], "-E", span[1] or "now", "--csv"),
    )
    assert first.exit_code == last.exit_code == 0
    assert first.stdout == last.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--month", "2026-13"], "is no month: write YYYY-MM"),
        (["--month", "october"], "is no month: write YYYY-MM"),
        (["--month", "2026-04"], "has not begun"),
        (["--month", "2026-02", "--end", "now"], "leave out --start and --end"),
        (["--month", "9" * 5000], "is no month"),
        (["--month", "0000-01"], "'0000-01' is no month: write YYYY-MM"),
        (["--month", "0001-01"], "'0001-01' is no month: write YYYY-MM"),
    ],
)
def test_a_month_that_is_none_is_refused_in_one_line(words: list[str], told: str) -> None:
    result = run("jobs", *words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert told in result.stderr
    assert len(result.stderr) < 300
