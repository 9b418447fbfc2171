"""The daemon's process ends when it is told to, whatever hangs; its commands and its Pythons are isolated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm_fair.host.own_python import our_environment, our_program
from slurm_fair.slurm.command import SAFE_PATH, Commands, search_path


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Commands]:
    """Commands over a folder with one program in it."""

    def make(name: str, text: str) -> Commands:
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
        return Commands(None, 30.0, tmp_path)

    return make


# -- commands -------------------------------------------------------------------------------------------------


def test_a_command_sees_nothing_of_our_environment(
    program: Callable[[str, str], Commands], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "HOME", "PATH", "SQUEUE_FORMAT", "SLURM_JWT", "SLURM_CONF"):
        monkeypatch.setenv(name, str(tmp_path))
    answer = program("squeue", "/usr/bin/env; pwd").run("squeue")
    seen = dict(line.split("=", 1) for line in answer.out.splitlines() if "=" in line)
    assert {name: seen[name] for name in seen if name not in ("_", "PWD", "SHLVL", "OLDPWD")} == {
        "PATH": SAFE_PATH,
        "HOME": "/",
        "LC_ALL": "C",
        "TZ": "UTC",
        "SLURM_TIME_FORMAT": "%s",
        "SLURM_BITSTR_LEN": "0",
    }
    assert answer.out.splitlines()[-1] == "/"


def test_a_command_is_told_which_cluster_is_meant(program: Callable[[str, str], Commands]) -> None:
    commands = program("squeue", 'echo "$SLURM_CONF"')
    commands.conf = Path("/etc/slurm/other.conf")
    assert commands.run("squeue").out == "/etc/slurm/other.conf\n"


def test_no_command_is_taken_from_the_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "::.:bin:/opt/slurm/bin:")
    assert search_path() == f"/opt/slurm/bin:{SAFE_PATH}"


def test_an_answer_is_read_as_it_was_said(program: Callable[[str, str], Commands]) -> None:
    answer = program("squeue", r"cat; printf 'a\r\nb\377' ; printf 'odd' >&2; exit 3").run(
        "squeue", stdin="in "
    )
    assert (answer.code, answer.out, answer.err, answer.timed_out) == (3, "in a\nb�", "odd", False)


def test_a_command_that_hangs_is_ended_with_all_that_it_started(
    program: Callable[[str, str], Commands], tmp_path: Path
) -> None:
    commands = program("squeue", f"sleep 61.5 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    answer = commands.run("squeue", timeout_seconds=0.3)
    assert answer.timed_out
    assert time.monotonic() - began < 5
    child = int((tmp_path / "child").read_text())
    wait_until_gone(child)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_given_up_the_command_under_way_ends_and_no_other_begins(
    program: Callable[[str, str], Commands], tmp_path: Path
) -> None:
    commands = program("scontrol", f"echo x >> {tmp_path}/ran; sleep 60")
    threading.Timer(0.3, commands.give_up).start()
    began = time.monotonic()
    first, second = commands.run("scontrol", "ping"), commands.run("scontrol", "ping")
    assert time.monotonic() - began < 10
    for answer in (first, second):
        assert not answer.whole
        assert not answer.timed_out
        assert "the daemon ends" in answer.complaint


# -- the process ----------------------------------------------------------------------------------------------

HANGING = """
import sys, threading, time
from slurm_fair.host.ending import SignalWishes, heed_signals
done = []
reread = lambda: print("reread", flush=True)
heed_signals(SignalWishes(lambda: done.append("stop"), reread, lambda: done.append("give up")))
print("ready", flush=True)
{body}
print(done, flush=True)
"""
ORDERLY = "while not done: time.sleep(0.05)"
COMMAND = "while 'give up' not in done: time.sleep(0.05)"
# A library call that returns to no Python code, a pool whose threads are joined at the exit, a closed-off lock.
LIBRARY = (
    "import sqlite3; a, b = (sqlite3.connect('file.db', timeout=60, isolation_level=None) for _ in 'ab'); "
    "a.execute('BEGIN EXCLUSIVE'); b.execute('BEGIN EXCLUSIVE')"
)
POOL = (
    "from concurrent.futures import ThreadPoolExecutor; ThreadPoolExecutor(1).submit(time.sleep, 60)\n"
    + ORDERLY
)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(body: str) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            [sys.executable, "-I", "-c", HANGING.format(body=body)],
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(run)
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        return run

    yield start
    for run in started:
        run.kill()
        run.communicate()


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (ORDERLY, 0, "['stop']\n"),
        (COMMAND, 0, "['stop', 'give up']\n"),
        (LIBRARY, 1, ""),
        (POOL, 1, "['stop']\n"),
        ("time.sleep(60)", 1, ""),
    ],
    ids=["orderly", "command", "library", "pool", "sleep"],
)
def test_sigterm_ends_the_process_within_five_seconds_whatever_hangs(
    process: Callable[[str], subprocess.Popen[str]], body: str, code: int, said: str
) -> None:
    run = process(body)
    time.sleep(0.1)
    began = time.monotonic()
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=20)
    assert time.monotonic() - began < 5.5
    assert (run.returncode, out, err) == (code, said, "")


def test_sighup_is_heard_while_the_main_thread_sleeps(
    process: Callable[[str], subprocess.Popen[str]],
) -> None:
    run = process(ORDERLY)
    run.send_signal(signal.SIGHUP)
    assert run.stdout is not None
    assert run.stdout.readline() == "reread\n"


# -- our own Python -------------------------------------------------------------------------------------------


def test_our_own_program_imports_nothing_from_where_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("click.py", "json.py", "sitecustomize.py", "slurm_fair.py"):
        (tmp_path / name).write_text("import os; os.close(1); raise SystemExit('hostile')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    done = subprocess.run(
        our_program("--version"),
        cwd=tmp_path,
        env=os.environ | our_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("slurm-fair, version")
    assert not {"LD_LIBRARY_PATH", "PYTHONPATH", "HOME"} & {
        name for name, value in our_environment().items() if value != "/"
    }
