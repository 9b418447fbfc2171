"""No output replaces what its command reads, the configuration, or a database; each is tried before any work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_fair.store import open_journal
from tests.support import journals, months
from tests.support.command_line import call
from tests.support.months import NOW
from tests.support.simulations import made

READ_TOO = "is read here too: name another file"
DATABASE = "is a database or belongs to one: name another file"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A configuration whose journal has a month in it."""
    with open_journal(tmp_path / "state" / "journal.db") as store:
        store.append(journals.tick(1, events=tuple(months.events()), time=NOW), months.standing())
    path = tmp_path / "site.toml"
    path.write_text(f'[storage]\ndir = "{tmp_path}/state"\n')
    return path


@pytest.mark.parametrize(
    "name",
    ["journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock", "journal.db.epoch", "heartbeat.json",
     "paused", "plans.json"],
)  # fmt: skip
def test_a_report_is_not_written_over_its_journal_or_what_lies_beside_it(name: str, site: Path) -> None:
    journal = site.parent / "state" / name
    before = journal.read_bytes() if journal.exists() else None
    said = call("--config", str(site), "report", "tenants", "--html", str(journal))
    assert (said.code, said.out) == (2, "")
    assert READ_TOO in said.complaint
    assert (journal.read_bytes() if journal.exists() else None) == before


def test_a_report_is_not_written_over_the_configuration(site: Path) -> None:
    before = site.read_text()
    link = site.with_name("link.toml")
    link.symlink_to(site)
    for named in (site, link):
        said = call("--config", str(named), "report", "tenants", "--html", str(site))
        assert (said.code, READ_TOO in said.complaint, site.read_text()) == (2, True, before)


def test_a_report_of_a_file_asks_for_no_configuration_that_is_sound(tmp_path: Path) -> None:
    """Only its own name is kept from being written over."""
    config = tmp_path / "broken.toml"
    config.write_text("no toml\n")
    events, trace = tmp_path / "events.jsonl", made(tmp_path)
    assert (
        call("simulate", str(trace), "--gpus", "8", "--policy", "fifo", "--events-out", str(events)).code == 0
    )
    report = ("--config", str(config), "report", "tenants", "--from", str(events), "--html")
    assert call(*report, str(tmp_path / "page.html")).code == 0
    said = call(*report, str(config))
    assert (said.code, READ_TOO in said.complaint, config.read_text()) == (2, True, "no toml\n")


@pytest.mark.parametrize("option", ["--html", "--jobs-out", "--events-out"])
def test_a_simulation_is_written_over_neither_configuration_nor_journal(option: str, site: Path) -> None:
    trace, config = made(site.parent), site.read_text()
    start = ("--config", str(site), "simulate", str(trace), "--gpus", "8", "--policy", "fifo", option)
    said = call(*start, str(site))
    assert (said.code, READ_TOO in said.complaint, site.read_text()) == (2, True, config)
    for name in ("journal.db", "journal.db-wal", "journal.db.lock", "journal.db.epoch"):
        said = call(*start, str(site.parent / "state" / name))
        assert (said.code, DATABASE in said.complaint) == (2, True)
    assert (site.parent / "state" / "journal.db").read_bytes().startswith(b"SQLite")


def test_the_configuration_of_the_environment_counts_as_well(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_FAIR_CONFIG", str(site))
    said = call("simulate", str(made(site.parent)), "--gpus", "8", "--policy", "fifo", "--html", str(site))
    assert (said.code, READ_TOO in said.complaint) == (2, True)


def test_a_sweep_is_written_into_neither_its_trace_nor_an_empty_configuration(tmp_path: Path) -> None:
    config, trace = tmp_path / "empty.toml", made(tmp_path)
    config.write_text("")
    for out in (config, trace):
        start = ("--config", str(config), "sweep", str(trace), "--gpus", "8", "--policy", "fifo")
        said = call(*start, "--out", str(out))
        assert (said.code, READ_TOO in said.complaint) == (2, True)
    assert config.read_bytes() == b""


def test_a_conversion_is_not_written_over_its_input(tmp_path: Path) -> None:
    source = tmp_path / "sacct.csv"
    source.write_text(
        "JobID|Account|Submit|ReqTRES|ElapsedRaw|State\n1|a|2026-01-01T00:00:00|gres/gpu=1|9|X\n"
    )
    before = source.read_text()
    said = call("trace", "convert", "sacct", str(source), "-o", str(source))
    assert (said.code, READ_TOO in said.complaint, source.read_text()) == (2, True, before)


def test_a_folder_that_may_not_be_written_to_has_one_code_and_one_cure_everywhere(tmp_path: Path) -> None:
    trace = made(tmp_path)
    if os.geteuid() == 0:
        folder = Path("/sys")  # root may write nearly anywhere else
    else:
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
    simulated = ("simulate", str(trace), "--gpus", "8", "--policy", "fifo", "--jobs-out")
    for command in (simulated, ("trace", "generate", "--jobs", "5", "-o")):
        said = call(*command, str(folder / "out.csv"))
        assert said.code == 2
        assert "cannot be written: " in said.complaint
        assert "name a file in a directory that you may write to" in said.complaint


@pytest.mark.parametrize("where", ["/dev/null", "/dev/stdout"])
def test_what_is_no_file_is_refused_in_the_same_words_everywhere(where: str, tmp_path: Path) -> None:
    start = (str(made(tmp_path)), "--gpus", "8", "--policy", "fifo")
    for command in (("simulate", *start, "--html"), ("sweep", *start, "--out")):
        said = call(*command, where)
        assert (said.code, f"{where}: is no plain file: name one" in said.complaint) == (2, True)
