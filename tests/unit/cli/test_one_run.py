"""Simulations leave the process that they run in as it was."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from slurm_fair.cli.simulate import one_run
from slurm_fair.sim.result import SimulationResult
from slurm_fair.sim.run import simulate
from tests.support.simulations import made, only


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
