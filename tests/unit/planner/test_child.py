"""The program of the planning process, spoken to through its two pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.planner.frames import HEAD, framed, unframed
from slurm_fair.planner.messages import FAILED, PLAN, QUICK, RAISED, READY
from tests.support.planning import shown
from tests.support.solving_policies import Solving, SolvingQuick

ROOT = Path(__file__).parents[3]


class Program:
    """The program, and what it says."""

    def __init__(self, parent: int | None = None, errors: int = subprocess.DEVNULL) -> None:
        argv = (sys.executable, "-m", "slurm_fair.planner", "4096", str(parent or os.getpid()))
        self.process = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )

    def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(framed(message))
        self.process.stdin.flush()

    def hear(self) -> Any:
        assert self.process.stdout is not None
        head = self.process.stdout.read(HEAD.size)
        return unframed(self.process.stdout.read(HEAD.unpack(head)[0])) if head else None

    def hello(self, policy: Any) -> Any:
        """The first answer to a policy."""
        pickled = framed(policy)[HEAD.size :] if not isinstance(policy, bytes) else policy
        self.say((sys.path, pickled))
        return self.hear()


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    with made.process:
        yield made
        made.process.kill()


def test_it_plans_each_view_until_its_parent_closes_the_pipe(program: Program) -> None:
    assert program.hello(Solving()) == (READY, 0)
    for number in (3, 4):
        program.say((number, shown()))
        word, of, parts = program.hear()
        assert (word, of, parts["memory"]) == (PLAN, number, {"by": "plan"})
    assert program.process.stdin is not None
    program.process.stdin.close()
    assert program.process.wait(timeout=20) == 0


def test_it_says_the_quick_plan_first(program: Program) -> None:
    program.hello(SolvingQuick())
    program.say((1, shown()))
    first, second = program.hear(), program.hear()
    assert (first[:2], first[2]["memory"]) == ((QUICK, 1), {"by": "quick"})
    assert (second[:2], second[2]["memory"]) == ((PLAN, 1), {"by": "plan"})


def test_a_quick_plan_that_fails_is_none(program: Program) -> None:
    program.hello(SolvingQuick(quick="raises"))
    program.say((1, shown()))
    assert program.hear()[0] == PLAN


def test_a_policy_that_raises_is_told_with_its_place_and_asked_again(program: Program) -> None:
    program.hello(Solving("raises", every=100))
    program.say((1, shown(1000.0)))
    word, number, what, trace = program.hear()
    assert (word, number) == (RAISED, 1)
    assert "solving_policies.py:" in what
    assert trace.endswith("KeyError: 'no such tenant'")
    program.say((2, shown(1010.0)))
    assert program.hear()[0] == PLAN


def test_a_policy_that_cannot_be_read_is_told(program: Program) -> None:
    word, number, what = program.hello(b"no pickle")
    assert (word, number) == (FAILED, 0)
    assert what.startswith("UnpicklingError: ")


def test_what_a_policy_prints_goes_to_standard_error(tmp_path: Path) -> None:
    path = tmp_path / "errors"
    with path.open("wb") as errors:
        program = Program(errors=errors.fileno())
    with program.process:
        program.hello(Solving("prints"))
        program.say((1, shown()))
        assert program.hear()[0] == PLAN
        program.process.kill()
    assert b"\x07" * 64 in path.read_bytes()


def test_it_ends_where_its_parent_is_gone_already() -> None:
    with Program(parent=1).process as orphan:
        assert orphan.wait(timeout=20) == 0
