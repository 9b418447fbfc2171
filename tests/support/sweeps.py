"""Sweeps for tests: run in this process, and tasks that fail or take their process along."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.simulate.crew import OrderEnd
from slurm_fair.cli.simulate.one_run import Beat
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.cli.sweep import command
from slurm_fair.cli.sweep.grid import SweepRun
from slurm_fair.cli.sweep.task import Row, SweepTask, simulated_metrics
from slurm_fair.errors import PolicyError, SlurmFairError
from slurm_fair.sim.scenario import Scenario
from tests.support.command_line import Said, call
from tests.support.signals import heed_signals

UNLUCKY = 1  # the seed of runs that go wrong


class Here:
    """In the place of processes: everything in this one."""

    def __init__(
        self, orders: Sequence[Any], most: int, work: Callable[[Any, Beat], Any], beat: Beat, option: str
    ) -> None:
        self._orders, self._work, self._beat = orders, work, beat

    def ends(self) -> Iterator[OrderEnd[Any]]:
        for at, order in enumerate(self._orders):
            try:
                yield OrderEnd(at, self._work(order, self._beat))
            except SlurmFairError as problem:
                yield OrderEnd(at, None, problem)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started in this test."""
    monkeypatch.setattr(command, "Crew", Here)


def refuses(task: SweepTask, beat: Beat) -> Row:
    """A policy that goes wrong under one seed."""
    if task.cell.seed == UNLUCKY:
        raise PolicyError("the dice fell\nbadly")
    return simulated_metrics(task, beat)


def dies(task: SweepTask, beat: Beat) -> Row:
    """A process that the machine kills under one seed."""
    if task.cell.seed == UNLUCKY:
        os.kill(os.getpid(), signal.SIGKILL)
    return simulated_metrics(task, beat)


def dies_there(cell: SweepRun, setup: PolicySetup, scenario: Scenario, version: str) -> Row:
    """The same on a Dask cluster."""
    return dies(SweepTask(cell, setup, scenario), lambda policy, ended, seconds: None)


def swept(trace: Path, *arguments: str) -> Said:
    """`slurm-fair sweep TRACE --gpus 16 --out sweep.db ARGUMENTS`, the file beside the trace."""
    return call("sweep", str(trace), "--gpus", "16", "--out", str(file_of(trace)), *arguments)


def file_of(trace: Path) -> Path:
    """The file of the results of `swept`."""
    return trace.with_name("sweep.db")


def asked(file: Path, question: str) -> list[tuple[Any, ...]]:
    """The answer to an SQL question."""
    connection = sqlite3.connect(file)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()


def interrupted(trace: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a sweep in a process of its own, and its complaints, after Ctrl-C once a run is over."""
    words = [sys.executable, "-m", "slurm_fair.cli", "sweep", str(trace), "--gpus", "16", *arguments]
    process = subprocess.Popen(
        [*words, "--out", str(file_of(trace))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heed_signals,
    )
    _wait_for_a_run(file_of(trace), process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def _wait_for_a_run(file: Path, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        try:
            if asked(file, "select count(*) from runs")[0][0]:
                return
        except sqlite3.Error:  # it is being made
            pass
        time.sleep(0.02)
    pytest.fail("no run ended within a minute")
