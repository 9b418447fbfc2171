"""The demonstration training: stopped, killed, doubled, it counts every step once."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair import lease
from slurm_fair_templates import Options
from slurm_fair_templates.demo_counter import FENCED_EXIT, chain, verify
from tests.support.job_runs import Run, starting


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs in the test's folder."""
    with starting(tmp_path) as begin:
        yield begin


def counter(*more: str) -> str:
    """The demonstration training as a job script; options given again stand."""
    program = (
        Path(lease.__file__).parents[1] / "sbatch_templates" / "slurm_fair_templates" / "demo_counter.py"
    )
    words = " ".join(["--steps", "80", "--step-seconds", "0.02", "--directory", "out", *more])
    return f"#!/bin/bash\nexec {sys.executable} {program} {words}\n"


def result(run: Run) -> dict[str, Any]:
    """The result that the demonstration wrote."""
    document: dict[str, Any] = json.loads((run.folder / "out" / "result.json").read_text())
    return document


def executed(run: Run) -> int:
    """Steps that the demonstration has executed so far."""
    log = run.folder / "out" / "steps.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


OPTIONS = Options(grace_seconds=1, lease_py=lease.__file__)


def test_the_counter_stopped_on_request_loses_no_step(start: Callable[..., Run]) -> None:
    first = start(counter(), options=Options(lease_py=lease.__file__))
    first.until(lambda: executed(first) > 10)
    first.ask()
    first.until(lambda: first.read("ack.json").get("saved") is True)
    at = executed(first)
    assert first.read("ack.json")["step"] == at
    first.ask(signal.SIGTERM)
    assert first.ends() == 143
    second = start(counter(), options=OPTIONS, SLURM_RESTART_COUNT="1")
    assert second.ends() == 0
    starts = [line.split() for line in (second.folder / "out" / "starts.log").read_text().splitlines()]
    assert [(line[0], line[3]) for line in starts] == [("0", "0"), ("1", str(at))]
    assert verify(result(second), 80)
    assert (result(second)["executed_steps"], result(second)["lost_steps"]) == (80, 0)


def test_the_counter_with_long_steps_stores_what_it_has_amid_one(start: Callable[..., Run]) -> None:
    long_steps = ("--steps", "3", "--step-seconds", "2", "--last-store")
    first = start(counter(*long_steps), options=OPTIONS)
    first.until(lambda: executed(first) == 1)
    first.ask()
    first.until(lambda: first.read("ack.json").get("saved") is True)
    assert (first.read("ack.json")["step"], executed(first)) == (1, 1)
    first.kill()
    second = start(counter(*long_steps), options=OPTIONS, SLURM_RESTART_COUNT="1")
    assert second.ends() == 0
    assert verify(result(second), 3)
    assert result(second)["lost_steps"] == 0


def test_the_counter_goes_on_when_nobody_takes_the_gpus_and_answers_again(start: Callable[..., Run]) -> None:
    run = start(counter(), options=OPTIONS)
    run.until(lambda: executed(run) > 5)
    for number in (1, 2):
        run.ask()
        run.until(lambda number=number: run.read("ack.json").get("request") == number)  # type: ignore[misc]
        at = executed(run)
        run.until(lambda at=at: executed(run) > at)  # type: ignore[misc]
    assert run.ends() == 0
    assert verify(result(run), 80)
    assert result(run)["lost_steps"] == 0


def test_the_counter_killed_without_notice_repeats_steps_but_counts_none_twice(
    start: Callable[..., Run],
) -> None:
    first = start(counter("--checkpoint-every", "10"), options=OPTIONS)
    first.until(lambda: executed(first) % 10 == 5)
    first.kill()
    at = executed(first)
    second = start(counter("--checkpoint-every", "10"), options=OPTIONS, SLURM_RESTART_COUNT="1")
    assert second.ends() == 0
    assert verify(result(second), 80)
    assert result(second)["lost_steps"] == at % 10


def test_of_two_runs_that_are_alive_the_earlier_one_ends_without_harm(start: Callable[..., Run]) -> None:
    # It must not be over before the second has begun, on however busy a machine.
    script = counter("--checkpoint-every", "10", "--steps", "250")
    first = start(script, options=OPTIONS)
    first.until(lambda: executed(first) > 12)
    second = start(script, options=OPTIONS, SLURM_RESTART_COUNT="1")
    assert first.ends() == FENCED_EXIT
    assert second.ends() == 0
    assert verify(result(second), 250)
    assert result(second)["restarts"] == 1


@pytest.mark.parametrize("change", [{"steps": 79}, {"hash": "0" * 64}, {"hash": None}])
def test_verify_refuses_any_other_result(change: dict[str, Any]) -> None:
    right = {"steps": 80, "hash": chain(80)}
    assert verify(right, 80)
    assert not verify({**right, **change}, 80)
