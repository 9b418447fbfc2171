"""Simulations leave the process that they run in as it was."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.simulate import one_run
from slurm_fair.sim.result import SimulationResult
from slurm_fair.sim.run import simulate
from tests.support import strange_policies as strange
from tests.support.simulations import made, only, simulated


def test_cycles_are_looked_for_seldom_during_a_simulation_and_as_usual_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, during = gc.get_threshold(), []

    def watched(*given: Any, **options: Any) -> SimulationResult:
        during.append(gc.get_threshold())
        return simulate(*given, **options)

    monkeypatch.setattr(one_run, "simulate", watched)
    only(made(tmp_path), "--policy", "fifo")
    assert [young > usual[0] for young, *_ in during] == [True]
    assert gc.get_threshold() == usual


def test_a_policy_that_exits_has_failed_and_is_named_with_its_line(tmp_path: Path) -> None:
    with strange.installed(mine=strange.Exits):
        said = simulated(made(tmp_path), "--policy", "mine")
    assert (said.code, said.out) == (1, "")
    assert re.search(
        r"strange_policies\.py:\d+: policy mine failed at second 0 .*: SystemExit: 0$", said.complaint
    )


def test_what_a_policy_prints_goes_to_standard_error(tmp_path: Path) -> None:
    with strange.installed(mine=strange.Talks):
        said = simulated(made(tmp_path), "--policy", "mine", "--json")
    assert json.loads(said.out)["results"][0]["policy"] == "mine"
    assert {"here I am", "hello from plan"} <= set(said.err.splitlines())
