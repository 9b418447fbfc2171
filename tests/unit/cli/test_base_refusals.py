"""A slip of a person, or a file in another form, is refused with the cure that fits."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.simulate.files import Outputs
from slurm_fair.cli.sweep.grid import seed_list
from slurm_fair.cli.table import takes_style
from slurm_fair.errors import SlurmFairError
from slurm_fair.lab.__main__ import main as lab
from slurm_fair.trace.files import write_with
from tests.support.command_line import call
from tests.support.simulations import made, simulated

HEADER = "job_id,tenant,submit_s,gpus,duration_s"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER.replace(",", "\t") + "\n", ":1: tabs are between its columns: put commas there"),
        (HEADER.replace(",", ";") + "\n", ":1: semicolons are between its columns: put commas there"),
        (f"{HEADER}\n1,a,0,1,10m\n", ":2: duration_s: '10m' is no number: give seconds"),
        (f"{HEADER}\n1,a,1:00:00,1,9\n", ":2: submit_s: '1:00:00' is no number: give seconds"),
        (f"{HEADER}\n1,a,0,x,9\n2,a,0,y,9\n", "(1 more bad row follows; "),
        (
            f"{HEADER},node_count\n1,a,0,4,9,4\n",
            "1 of 1 job wants more GPUs of one type, or more nodes, than the cluster's 16 GPUs on 2 nodes can "
            "give: 1 (4 GPUs on 4 nodes)",
        ),
    ],
)
def test_a_trace_in_another_form_is_told_what_is_expected(text: str, words: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text(text)
    said = call("simulate", str(trace), "--gpus", "16", "--policy", "fifo")
    assert (said.code, words in said.complaint) == (2, True), said.complaint


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "FIFO"], "unknown policy 'FIFO': did you mean 'fifo'?"),
        (["--interval", "Auot"], "'Auot' is no number of seconds above 0; did you mean 'auto'?"),
        (["--renewal", "TREM"], "'TREM' is no number of seconds above 0; did you mean 'term'?"),
        (["--html", ""], "is a directory (the name was empty, or a dot)"),
        (["--html", "-"], "nothing but the result goes to standard output: name a file"),
        (["--jobs-out", "-"], "nothing but the result goes to standard output: name a file"),
        (["--events-out", "-"], "nothing but the result goes to standard output: name a file"),
    ],
)
def test_an_option_that_is_nearly_right_says_what_was_meant(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    said = simulated(made(tmp_path), *arguments)
    assert (said.code, words in said.complaint) == (2, True), said.complaint


def test_a_chart_in_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    said = call("sweep", "plot", str(tmp_path / "sweep.db"), "--out", str(tmp_path / "x.png"))
    assert (said.code, "give a name that ends in .svg" in said.complaint) == (2, True)


def test_a_number_that_is_none_is_shown(tmp_path: Path) -> None:
    said = call("trace", "generate", "--zipf", "nan", "-o", str(tmp_path / "t.csv"))
    assert (said.code, "zipf 0 to 100, not 32 and nan" in said.complaint) == (2, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [("0-1000000000", "is more than 10000 seeds"), ("5000000000", "seeds go up to 999999999")],
)
def test_seeds_beyond_the_limit_are_told_the_limit(text: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        seed_list(text)


@pytest.mark.parametrize(
    "command",
    [("status",), ("report", "tenants"), ("fail-open",), ("run", "--once"), ("run",)],
    ids=" ".join,
)
def test_an_empty_journal_is_called_empty_and_begins_no_new_ledger(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    config = tmp_path / "site.toml"
    config.write_text(f'[storage]\ndir = "{tmp_path}/s"\n[slurm]\nnotice = false\n')
    (tmp_path / "s").mkdir(mode=0o750)
    journal = tmp_path / "s" / "journal.db"
    journal.write_bytes(b"")
    said = call("--config", str(config), *command)
    assert (said.code, said.err.count("\n")) == (2, 1), said.err
    assert (
        "journal.db: is empty, as a copy that was cut short: bring the whole one back, or move it" in said.err
    )
    assert ("`slurm-fair fail-open --stamped`" in said.err) == (command == ("fail-open",))
    assert journal.stat().st_size == 0


@pytest.mark.parametrize(
    ("published", "words"),
    [
        ("", "; users read it when the admin sets [lease] publish_dir"),
        ("{tmp}", "; nothing is published in {tmp}"),
    ],
)
@pytest.mark.parametrize("command", [("status",), ("queue",), ("explain", "66")], ids=" ".join)
def test_a_journal_that_its_reader_may_not_read_is_not_called_empty(
    command: tuple[str, ...], published: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, closed = tmp_path / "site.toml", tmp_path / "s"
    to = published.format(tmp=tmp_path)
    config.write_text(f'[storage]\ndir = "{closed}"\n[lease]\npublish_dir = "{to}"\n')
    _close(closed, monkeypatch)
    said = call("--config", str(config), *command)
    assert (said.code, said.err.count("\n")) == (1, 1), said.err
    assert "journal.db: you may not read it: run as the daemon's account or as root" in said.err
    assert words.format(tmp=tmp_path) in said.err


def test_a_tick_of_a_journal_that_its_reader_may_not_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "site.toml"
    config.write_text(f'[storage]\ndir = "{tmp_path}/s"\n')
    _close(tmp_path / "s", monkeypatch)
    said = call("--config", str(config), "replay-tick", "1")
    assert (said.code, "journal.db: you may not read it" in said.err) == (1, True), said.err


def _close(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Close a folder to everybody, as one of another account is to a user who is not root."""
    stat, access = os.stat, os.access

    def refused(path: Any, *more: Any, **how: Any) -> os.stat_result:
        if str(path).startswith(f"{folder}/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, *more, **how)

    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr(
        os, "access", lambda path, mode: not str(path).startswith(f"{folder}/") and access(path, mode)
    )


@pytest.mark.parametrize("arguments", [["--job-submit", "{tmp}/no.lua"], ["--folder", "{tmp}/file/below"]])
def test_a_lab_that_is_named_a_file_that_cannot_be_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("slurm_fair.lab.__main__.ensure_packages", lambda say: None)
    monkeypatch.setattr("slurm_fair.lab.__main__.signal.signal", lambda number, handler: None)
    (tmp_path / "file").write_text("")
    assert lab([each.format(tmp=tmp_path) for each in arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_init_says_of_no_file_that_it_is_new_where_it_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = call("init", "--dir", str(tmp_path / "file"))
    assert (said.code, said.out, "cannot be" in said.complaint) == (2, "", True)


def test_init_is_told_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("init", "--dir", "")
    assert (said.code, said.out, "--dir is empty" in said.complaint) == (2, "", True)
    assert not list(tmp_path.iterdir())


def test_init_leaves_no_folder_where_one_of_them_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def make(self: Path, mode: int = 0o777) -> None:
        if self.name == "systemd":
            raise OSError(30, "Read-only file system")
        mkdir(self, mode)

    monkeypatch.setattr(Path, "mkdir", make)
    said = call("init", "--dir", str(tmp_path / "site"))
    assert (said.code, said.out, "Read-only file system: name a folder" in said.complaint) == (2, "", True)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_an_error_amid_writing_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "jobs.csv"
    with pytest.raises(SlurmFairError) as told, Outputs([]) as outputs:
        _fail(outputs.will_write(out))
    assert str(told.value) == f"{out}: cannot be written: No space left on device"


def _fail(beside: Path) -> None:
    def full(text: object) -> None:
        raise OSError(28, "No space left on device")

    write_with(beside, full)


def test_a_dumb_terminal_is_shown_no_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Screen())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert takes_style(sys.stdout)
    monkeypatch.setenv("TERM", "dumb")
    assert not takes_style(sys.stdout)
