"""SIGTERM and SIGHUP end long commands as Ctrl-C does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import click
import pytest

from slurm_fair.cli import stopping
from slurm_fair.cli.base import ended_in_one_line
from slurm_fair.cli.simulate import command
from slurm_fair.cli.simulate.case import read_case
from slurm_fair.cli.stopping import SIGNALS, StoppedBySignal, like_ctrl_c
from tests.support.signals import heed_signals
from tests.support.simulations import made, simulated

NAMES = [signal.Signals(number).name for number in SIGNALS]


@pytest.mark.parametrize("number", SIGNALS, ids=NAMES)
def test_a_signal_interrupts_inside_and_has_its_usual_meaning_afterwards(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(StoppedBySignal) as told, like_ctrl_c():
            signal.raise_signal(number)
        assert told.value.number == number
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_one_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with like_ctrl_c():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_one_does_not_disturb_those_who_clear_away() -> None:
    cleared = []

    def clear_away() -> None:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        cleared.append(True)

    stack = contextlib.ExitStack()
    stack.callback(clear_away)
    with pytest.raises(StoppedBySignal), like_ctrl_c(), stack:
        signal.raise_signal(signal.SIGTERM)
    assert cleared == [True]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_one_that_a_library_swallowed_ends_the_simulation_at_its_next_look(
    workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = made(tmp_path)

    def swallowed(*given: Any) -> Any:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        return read_case(*given)

    monkeypatch.setattr(command, "read_case", swallowed)
    said = simulated(
        trace, "--policy", "fifo,srtf", "--workers", workers, "--jobs-out", str(tmp_path / "j.csv")
    )
    assert (said.code, said.err.strip()) == (143, "slurm-fair: stopped by SIGTERM")
    assert list(tmp_path.iterdir()) == [trace]


def test_one_that_comes_long_after_another_counts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "_CLEARED_AWAY_SECONDS", 0.0)
    with like_ctrl_c():
        for _ in range(2):
            with pytest.raises(StoppedBySignal):
                signal.raise_signal(signal.SIGTERM)
    stopping.stop_if_asked()


def test_a_thread_leaves_signals_as_they_are() -> None:
    met: list[BaseException] = []

    def inside() -> None:
        try:
            with like_ctrl_c():
                pass
        except BaseException as error:
            met.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert met == []


@pytest.mark.parametrize("number", SIGNALS, ids=NAMES)
def test_the_exit_code_is_that_of_the_signal(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def stopped() -> None:
        raise StoppedBySignal(number)

    assert ended_in_one_line(lambda: stopped.main([], standalone_mode=False)) == 128 + number
    assert capsys.readouterr().err.strip() == f"slurm-fair: stopped by {number.name}"


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("to_all", [False, True], ids=["the first", "all"])
@pytest.mark.parametrize("number", SIGNALS, ids=NAMES)
def test_a_simulation_that_is_stopped_leaves_nothing(
    number: signal.Signals, to_all: bool, workers: str, tmp_path: Path
) -> None:
    """Scancel and a time limit send the signal to all of the processes."""
    trace = made(tmp_path, jobs=4000)
    words = [
        sys.executable, "-m", "slurm_fair.cli", "simulate", str(trace), "--gpus", "16", "--policy", "fifo,srtf",
        "--workers", workers, "--html", str(tmp_path / "p.html"), "--events-out", str(tmp_path / "e.jsonl"),
    ]  # fmt: skip
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_signals
    ) as process:
        try:
            _wait_for_lines(tmp_path, process)
            (os.killpg if to_all else os.kill)(process.pid, number)
            _, err = process.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, err.strip()) == (128 + number, f"slurm-fair: stopped by {number.name}")
    assert list(tmp_path.iterdir()) == [trace]


def _wait_for_lines(folder: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not any(path.stat().st_size > 10_000 for path in folder.glob(".slurm-fair-*.jsonl")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("seconds", [0.8, 1.5])
def test_a_sweep_that_is_stopped_while_its_processes_start_says_what_is_kept(
    seconds: float, tmp_path: Path
) -> None:
    trace, out = made(tmp_path, jobs=4000), tmp_path / "sweep.db"
    words = [
        sys.executable, "-m", "slurm_fair.cli", "sweep", str(trace), "--gpus", "16", "--policy", "fifo,srtf",
        "--seed", "0-4", "--processes", "2", "--out", str(out),
    ]  # fmt: skip
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_signals
    ) as process:
        deadline = time.monotonic() + 60
        while not out.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    kept, said = (line for line in err.splitlines() if line)
    assert kept.startswith(f"{out}: ")
    assert kept.endswith(" of 10 runs done and kept: the same command goes on")
    assert said == "slurm-fair: stopped by SIGTERM"
