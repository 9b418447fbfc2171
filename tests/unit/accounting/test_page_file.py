"""The page of `report --html` is written whole, beside what is printed, or refused before any work is done."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

from slurm_fair.store import open_journal, open_reader
from slurm_fair_accounting import REPORTS, JournalReader, build_report_group, export_lines
from tests.support import journals, months
from tests.support.command_line import call
from tests.support.months import NOW
from tests.support.report_pages import WHOLE, figures, page, run
from tests.support.simulations import COSTS, made, simulated


@pytest.mark.parametrize("form", [[], ["-n"], ["-P"], ["--csv"], ["--json"]])
def test_what_is_printed_stays_as_it_is(form: list[str], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    both = run("jobs", *WHOLE, *form, "--html", str(path))
    assert both.stdout == run("jobs", *WHOLE, *form).stdout
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("name", REPORTS)
def test_a_journal_and_an_export_make_a_page(name: str, tmp_path: Path) -> None:
    journal, events = tmp_path / "state" / "journal.db", tmp_path / "events.jsonl"
    with open_journal(journal) as store:
        store.append(journals.tick(1, events=tuple(months.events()), time=NOW), months.standing())
    with open_reader(journal) as reader:
        assert figures(page(tmp_path, name, source=reader)).keys() == figures(page(tmp_path, name)).keys()
    events.write_text("".join(export_lines(months.Month(), 0.0, NOW)))
    assert len(figures(page(tmp_path, name, "--from", str(events)))) >= 2


@pytest.mark.parametrize("name", REPORTS)
def test_the_events_of_a_simulation_make_a_page(name: str, tmp_path: Path) -> None:
    events, path = tmp_path / "events.jsonl", tmp_path / "page.html"
    assert simulated(made(tmp_path), *COSTS, "--events-out", str(events)).code == 0
    said = call("report", name, "--from", str(events), "--html", str(path))
    assert (said.code, said.err) == (0, "")
    assert len(figures(ElementTree.fromstring(path.read_text()))) >= 2
    first = path.read_bytes()
    call("report", name, "--from", str(events), "--html", str(path), "--json")
    assert path.read_bytes() == first


REFUSED = {
    "a directory that is not there": ("none/page.html", "No such file or directory"),
    "a directory": (".", "is a directory"),
    "a file as directory": ("events.jsonl/page.html", "Not a directory"),
    "the file that is read": ("events.jsonl", "is read here too"),
    "a link to the file that is read": ("link", "is read here too"),
    "no plain file": ("/dev/null", "is no plain file"),
    "a name that is too long": ("x" * 300, "File name too long"),
}


@pytest.mark.parametrize(("where", "why"), REFUSED.values(), ids=REFUSED)
def test_a_path_that_cannot_be_written_is_refused_before_anything_is_read(
    where: str, why: str, tmp_path: Path
) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("this is no event\n")
    (tmp_path / "link").symlink_to(events)
    result = run("jobs", "--from", str(events), "--html", str(tmp_path / where))
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert why in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.jsonl", "link"]


def test_the_journal_is_not_opened_for_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    def never(context: click.Context) -> JournalReader:
        raise AssertionError("it was opened")

    group = build_report_group(never, lambda: NOW)
    result = CliRunner().invoke(
        group, ["waits", "--html", str(tmp_path / "none" / "x")], catch_exceptions=False
    )
    assert (result.exit_code, result.stdout) == (2, "")


def test_an_older_page_stays_when_there_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("older")
    assert run("jobs", "-S", "never", "--html", str(path)).exit_code == 2
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("page.html", "older")]


def test_a_page_replaces_an_older_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path, link = tmp_path / "page.html", tmp_path / "newest.html"
    path.write_text("older")
    link.symlink_to(path)
    assert run("jobs", *WHOLE, "--html", str(link)).exit_code == 0
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert link.is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["newest.html", "page.html"]


def test_a_directory_that_goes_away_meanwhile_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()

    class Leaves(months.Month):
        def close(self) -> None:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    result = run("jobs", *WHOLE, "--html", str(folder / "page.html"), source=Leaves())
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "page.html: cannot be written" in result.stderr


def test_the_page_is_named_by_help() -> None:
    assert all("--html FILE" in run(name, "--help").stdout for name in REPORTS)
    assert "--html" in run("--help").stdout
