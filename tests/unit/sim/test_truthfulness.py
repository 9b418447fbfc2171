"""Policies are told of run times by silent jobs, wrong declarations and liars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slurm_fair.cli.simulate.repeats import scenario_of_run
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.sim import Scenario
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.trace import read_trace, uniform
from tests.support.simulations import made
from tests.support.told_after import scenario, told_after


def test_a_liar_declares_times_a_factor_and_the_others_the_truth(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, Truthfulness(declares={"y": 0.1})))
    assert told.declared_seconds.tolist() == pytest.approx([2000, 200, 50])
    assert told.left_seconds.tolist() == pytest.approx([1000, 100, 50])


# -- errors ---------------------------------------------------------------------------------------------------


def test_errors_follow_from_the_seed_and_not_from_the_order_of_jobs(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=400)).trace
    wrong = Truthfulness(declared_error=2.0, seed=3)
    told = wrong.declared(trace, trace.duration_s)
    assert told.tobytes() == wrong.declared(trace, trace.duration_s).tobytes()
    order = np.random.default_rng(1).permutation(len(trace))
    mixed = trace.take(order)
    assert np.array_equal(wrong.declared(mixed, mixed.duration_s), told[order])
    other = Truthfulness(declared_error=2.0, seed=4).declared(trace, trace.duration_s)
    assert not np.isclose(other, told).any()


def test_errors_are_lognormal_around_the_truth(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=2000)).trace
    error = np.log2(Truthfulness(declared_error=2.0).declared(trace, trace.duration_s) / trace.duration_s)
    assert error.mean() == pytest.approx(0.0, abs=0.1)
    assert error.std() == pytest.approx(1.0, abs=0.1)
    assert np.array_equal(Truthfulness().declared(trace, trace.duration_s), trace.duration_s)


def test_each_further_run_draws_errors_of_its_own(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=10)).trace
    first = Scenario(trace, uniform(16, 8), truthfulness=Truthfulness(declared_error=2.0))
    setup = PolicySetup("fifo", {}, 900.0, 10.0, False, False, 0.0, 0)
    runs = [scenario_of_run(first, setup, number) for number in (0, 1, 1, 2)]
    said = [np.sort(run.declared_seconds_of_jobs).tolist() for run in runs]
    assert said[1] == said[2]
    assert (said[0] != said[1], said[1] != said[3]) == (True, True)
