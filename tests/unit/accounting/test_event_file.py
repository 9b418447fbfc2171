"""A file of events is read right in whatever order its lines stand, and refused where they are of several runs."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair.errors import InputError
from slurm_fair.model.tenant_moment import TenantMoment
from slurm_fair_accounting import REPORTS, Choice, Period, export_lines, read_events
from slurm_fair_accounting.source.event_file import EventFile
from tests.support import months
from tests.support.asked_reports import run
from tests.support.command_line import call
from tests.support.months import FEB_1, NOW, T
from tests.support.simulations import made, simulated

OUTAGES = "time_s,node,event\n1000,n2,down\n4000,n2,up\n6000,n1,drain\n9000,n1,up\n"
CASES = {
    "leases that end together": ("astraea", "--restart-cost", "20", "--outages", "OUTAGES"),
    "leases on their own, and costs": (
        "tiresias", "--align", "rolling", "--lease", "60", "--checkpoint-cost", "5", "--requeue-delay", "30",
    ),
    "rounds whose ends are told late": ("gandiva", "--rounds", "gavel", "--lease", "120"),
    "leases without end": ("fifo",),
}  # fmt: skip


def events_of(folder: Path, name: str, policy: str, *arguments: str, seed: int = 1) -> Path:
    """The events that a simulation tells."""
    outages, path = folder / "outages.csv", folder / f"{name}.jsonl"
    outages.write_text(OUTAGES)
    given = (str(outages) if part == "OUTAGES" else part for part in arguments)
    trace = made(folder, seed=seed)
    assert simulated(trace, "--policy", policy, *given, "--events-out", str(path)).code == 0
    return path


def month(folder: Path) -> Path:
    """The export of a month of a journal."""
    path = folder / "month.jsonl"
    path.write_text("".join(export_lines(months.Month(), 0.0, NOW)))
    return path


def reports(path: Path) -> dict[str, str]:
    """Every report on it."""
    said = {name: call("report", name, "--from", str(path), "--json") for name in REPORTS}
    assert {(each.code, each.err) for each in said.values()} == {(0, "")}
    return {name: each.out for name, each in said.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_shuffled_lines_say_the_same(case: tuple[str, ...], tmp_path: Path) -> None:
    path = events_of(tmp_path, "events", *case)
    wanted, lines = reports(path), path.read_text().splitlines(keepends=True)
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        path.write_text("".join(lines))
        assert reports(path) == wanted


def test_exports_of_one_journal_can_be_joined_in_any_order(tmp_path: Path) -> None:
    whole, half = month(tmp_path), NOW - (NOW - FEB_1) / 2
    parts = ["".join(export_lines(months.Month(), *period)) for period in ((half, NOW), (0.0, half))]
    joined = tmp_path / "joined.jsonl"
    joined.write_text("".join(parts))
    assert reports(joined) == reports(whole)


def other_policy(folder: Path) -> list[str]:
    """The same trace once more."""
    return events_of(folder, "other", "fifo").read_text().splitlines(keepends=True)


def other_leases(folder: Path) -> list[str]:
    """The same, its leases beginning at the same instants."""
    path = events_of(folder, "other", "astraea", "--restart-cost", "100")
    return [line for line in path.read_text().splitlines(keepends=True) if '"granted"' in line]


def other_term(folder: Path) -> list[str]:
    """Ends that differ by little: it begins at another instant."""
    path = events_of(folder, "other", "astraea", "--lease", "650", "--align", "aligned")
    return [line for line in path.read_text().splitlines(keepends=True) if '"finished"' in line]


def another_site(folder: Path) -> list[str]:
    """Accounts that begin anew later."""
    lines = [json.loads(line) for line in other_policy(folder) if '"account"' in line]
    return [json.dumps({**line, "time": line["time"] + 1e6}) + "\n" for line in lines]


def other_tenants(folder: Path) -> list[str]:
    """Another trace, years later, of tenants of other names."""
    lines = [json.loads(line) for line in other_policy(folder)]
    later = ({**line, "time": line["time"] + 1e9} for line in lines)
    return [
        json.dumps(line | ({"tenant": f"x{line['tenant']}"} if "tenant" in line else {})) + "\n"
        for line in later
        if line["kind"] != "finished"
    ]


def jobs_of_others(folder: Path) -> list[str]:
    """The same without accounts."""
    return [line for line in other_tenants(folder) if '"account"' not in line]


def a_short_run(folder: Path) -> list[str]:
    """Accounts that fall to nothing, though they held little."""
    account = {"kind": "account", "tenant": "small", "weight": 1, "gpus": 0, "demand": 0}
    return [
        json.dumps(account | {"time": time, "had": much, "owed_quota": much, "owed_demand": much}) + "\n"
        for time, much in ((2e9, 0.0), (2e9 + 60, 60.0), (2e9 + 120, 0.0))
    ]


def itself(folder: Path) -> list[str]:
    return (folder / "events.jsonl").read_text().splitlines(keepends=True)


SEVERAL = {
    "another policy": (other_policy, "less than in line"),
    "another term": (other_term, " ends, and in line "),
    "other leases": (other_leases, " granted, which line "),
    "another ledger": (another_site, "less than in line"),
    "other tenants": (other_tenants, "no account of tenant "),
    "jobs of tenants without accounts": (jobs_of_others, " has no account, and others have"),
    "a short one": (a_short_run, "the account of tenant small is less than in line "),
    "itself": (itself, "of the same instant"),
}


@pytest.mark.parametrize(("more", "words"), SEVERAL.values(), ids=SEVERAL)
def test_a_file_of_several_runs_is_refused(
    more: Callable[[Path], list[str]], words: str, tmp_path: Path
) -> None:
    path = events_of(tmp_path, "events", "astraea")
    count = len(path.read_text().splitlines())
    path.write_text("".join([*path.read_text().splitlines(keepends=True), *more(tmp_path)]))
    for name in REPORTS:
        said = call("report", name, "--from", str(path))
        assert (said.code, said.out) == (2, "")
        assert words in said.complaint
        assert "are several runs in one file? give the events of one run" in said.complaint
        number = int(said.complaint.partition(f"{path}:")[2].partition(":")[0])
        assert number > count


def test_a_grant_that_is_told_twice_is_refused_even_without_accounts(tmp_path: Path) -> None:
    path = events_of(tmp_path, "events", "astraea")
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"granted"' in line]
    path.write_text("".join([*lines, lines[0]]))
    with pytest.raises(
        InputError, match=rf":{len(lines) + 1}: job \S+ granted, which line 1 tells of the same"
    ):
        read_events(path)


def test_tenants_come_later_and_their_newest_accounts_may_not_be_written_yet(tmp_path: Path) -> None:
    path, last = month(tmp_path), max(moment.time for moment in months.moments())
    newcomer = {"kind": "account", "tenant": "new", "weight": 1, "gpus": 0, "demand": 0, "had": 0}
    lines = [
        newcomer | {"time": last, "owed_quota": 0, "owed_demand": 0},
        {"time": last + 50, "kind": "granted", "job": "90", "tenant": "newest", "gpus": 1},
    ]
    path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in lines))
    said = call("report", "tenants", "--from", str(path), "--json")
    assert (said.code, said.err) == (0, "")
    assert [row["tenant"] for row in json.loads(said.out)["rows"]] == ["chem", "new", "phys"]


@pytest.mark.parametrize("text", ["", "\n \n"])
@pytest.mark.parametrize("name", REPORTS)
def test_a_file_without_a_line_is_refused(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    result = run(name, "--from", str(path))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert f"{path}: no event in it: give what" in result.stderr


def test_a_period_in_which_nothing_was_says_so_and_nobody_is_fair(tmp_path: Path) -> None:
    path = month(tmp_path)
    result = run("fairness", "--from", str(path), "--json", "-S", "2020-01-01", "-E", "2020-02-01")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: nothing in this period; this file covers 2026-02-01T00:00:00 to ")
    document = json.loads(result.stdout)
    total = document["total"]
    assert (document["rows"], total.pop("tenant"), total.pop("jobs")) == ([], "(all)", 0)
    assert set(total.values()) == {None}


@pytest.mark.parametrize(
    ("near", "wanted"),
    [(-math.inf, 0.0), (0.0, 0.0), (49.0, 0.0), (50.0, 0.0), (51.0, 100.0), (106.0, 110.0), (1e18, 110.0)],
)
def test_the_account_nearest_to_an_instant_is_found_however_far_it_is(near: float, wanted: float) -> None:
    moments = [TenantMoment(time, "x", 1.0, 0.0, 0.0, 0.0, 0.0, 0.0) for time in (110.0, 100.0, 0.0)]
    assert EventFile((), moments).moment_time(near) == wanted


def test_a_file_without_accounts_knows_no_instant() -> None:
    assert EventFile((), ()).moment_time(1e18) is None


@pytest.mark.parametrize("start", [FEB_1, FEB_1 + 30, T])
def test_an_export_says_of_tenants_what_the_live_report_says(start: float, tmp_path: Path) -> None:
    """The accounts that were kept end before the last look, and begin after the ledger did."""
    journal, period = months.Month(), Period(start, NOW + 10)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(export_lines(journal, period.start, period.end)))
    live, told = (REPORTS["tenants"](source, period, Choice()) for source in (journal, read_events(path)))
    told_columns = ("tenant", "weight", "share", "had_gpu_seconds", "owed_gpu_seconds", "rho")
    rows = [[tuple(row[name] for name in told_columns) for row in report.rows] for report in (live, told)]
    assert rows[0] == rows[1]
    assert live.covered == told.covered
    again = "".join(export_lines(read_events(path), 0.0, period.end))
    assert sorted(again.splitlines()) == sorted(path.read_text().splitlines())
