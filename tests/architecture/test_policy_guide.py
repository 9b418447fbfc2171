"""docs/policy-guide.md does what it says: its files are written and its commands typed, in their order."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest

import slurm_fair.policy
from slurm_fair.model import JobTable, Plan, Told, Verdict
from slurm_fair.policy import LeaseEnds, View
from slurm_fair.policy.trial import RULES

PAGE = (Path(__file__).parents[2] / "docs" / "policy-guide.md").read_text()
_BLOCK = re.compile(r"^(?:File `([^`]+)`:\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SECONDS = 240


class Typed(NamedTuple):
    """A command and what the page says that it prints."""

    command: str
    prints: str


def steps() -> Iterator[tuple[str, str] | Typed]:
    """The page's files and commands, from top to bottom."""
    for file, kind, text in _BLOCK.findall(PAGE):
        if file:
            yield file, text
            continue
        assert kind == "console", f"a block that is neither a file nor typed: {text[:40]!r}"
        for part in re.split(r"(?m)^\$ ", text)[1:]:
            command, _, prints = part.partition("\n")
            yield Typed(command, prints)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python environment of its own, in which slurm_fair is installed and nothing else."""
    here = tmp_path_factory.mktemp("guide")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(here / "env")], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(here / "env")}))
    installed = sysconfig.get_path("purelib")
    (site / "beside.pth").write_text(f"import site; site.addsitedir({installed!r})\n")
    command = here / "env" / "bin" / "slurm-fair"
    command.write_text(f'#!/bin/sh\nexec {here / "env" / "bin" / "python"} -m slurm_fair.cli "$@"\n')
    command.chmod(0o755)
    return here


def typed(command: str, machine: Path) -> tuple[int, str]:
    """The answer of a shell in the machine's folder."""
    strange = ("PYTEST", "SLURM", "PYTHON", "COVERAGE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
    path = f"{machine / 'env' / 'bin'}:{os.environ['PATH']}"
    found = subprocess.run(
        ["bash", "-c", command], cwd=machine, env={**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
    return found.returncode, found.stdout


def test_everything_on_the_page_works_in_the_order_in_which_it_stands(machine: Path) -> None:
    checker = doctest.OutputChecker()
    for step in steps():
        if not isinstance(step, Typed):
            (machine / step[0]).parent.mkdir(exist_ok=True)
            (machine / step[0]).write_text(step[1])
            continue
        code, said = typed(step.command, machine)
        assert code == 0, f"{step.command}: {said}"
        shown = checker.check_output(step.prints, said, _FLAGS) if step.prints else True
        assert shown, f"$ {step.command}\n{step.prints}\n-- but it says --\n{said}"


def test_the_page_has_what_a_stranger_needs() -> None:
    found = list(steps())
    commands = " ".join(step.command for step in found if isinstance(step, Typed))
    assert all(
        word in commands for word in ("pip install", "policies check", "simulate", "pytest", "--config")
    )
    assert {step[0] for step in found if not isinstance(step, Typed)} >= {
        "my-policies/pyproject.toml",
        "my-policies/my_policies.py",
        "my-policies/test_my_policies.py",
    }


def public(kind: type) -> set[str]:
    """The fields and properties of a class that it does not keep to itself."""
    own = {name for base in kind.__mro__[:1] for name in vars(base)} | {field.name for field in fields(kind)}
    return {name for name in own if not name.startswith("_")}


def chapter(name: str) -> set[str]:
    """The words in code of one chapter of the reference, with what stands before a bracket or behind a point."""
    text = re.split(r"(?m)^##? ", PAGE)
    (mine,) = [part for part in text if part.startswith(f"{name}\n")]
    spans = re.findall(r"`([^`\n]+)`", mine)
    return {re.split(r"[(=]", span)[0].rpartition(".")[2] for span in spans}


@pytest.mark.parametrize(
    ("name", "kind", "untold"),
    [
        ("View", View, set()),
        ("Jobs", JobTable, set()),
        ("Told", Told, {"nothing"}),
        ("Plan", Plan, set()),
    ],
)
def test_every_name_of_a_table_is_told(name: str, kind: type, untold: set[str]) -> None:
    assert public(kind) - chapter(name) == untold


def test_every_verdict_rule_and_column_of_leases_is_told() -> None:
    assert {each.name for each in Verdict} <= chapter("Plan")
    assert set(RULES) <= chapter("Rules")
    assert set(LeaseEnds._fields) <= chapter("View")


def test_every_name_that_policies_may_use_is_told() -> None:
    told = set().union(*(chapter(name) for name in ("Bricks", "Memory", "View")))
    assert set(slurm_fair.policy.__all__) - told == set()
