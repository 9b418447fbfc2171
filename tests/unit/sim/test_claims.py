"""RunTimeClaims that are not the truth: what policies are told of silent jobs, wrong declarations and liars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from slurm_fair.cli.simulate.repeats import scenario_of_run
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.model import Action, Told, Verb
from slurm_fair.sim import Scenario, VirtualClock, VirtualCluster
from slurm_fair.sim.claims import RunTimeClaims
from slurm_fair.sim.world.load import population
from slurm_fair.trace import read_regimes, read_trace, uniform
from tests.support.simulations import made, written

T0 = 1_000_000.0
JOBS = ("a,x,0,8,1000,2000", "b,y,0,8,1000,2000", "c,y,0,8,500,")


def scenario(folder: Path, claims: RunTimeClaims) -> Scenario:
    """Two jobs declared at twice their run time, and one that nobody declared; two of them fit."""
    header = "job_id,tenant,submit_s,gpus,duration_s,declared_s"
    return Scenario(read_trace(written(folder, *JOBS, header=header)).trace, uniform(16, 8), claims=claims)


def told_after(seconds: float, where: Scenario) -> Told:
    """The claims when the first two jobs have run for so long."""
    clock = VirtualClock(T0)
    cluster = VirtualCluster(where, population(where, T0), clock, 900.0)
    jobs = cluster.observe({}).jobs
    for row, node in ((0, "n1"), (1, "n2")):
        who = jobs.key[row].item(), jobs.record[row].item(), jobs.submit[row].item(), 0
        cluster.actuate([Action(Verb.OPEN, *who, (node,), np.inf)])
    clock.sleep_until(T0 + seconds)
    cluster.catch_up(T0 + seconds)
    told = cluster.observe({}).told
    assert told is not None
    return told


def test_as_a_rule_jobs_report_their_true_progress(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, RunTimeClaims()))
    assert told.declared_seconds.tolist() == [2000, 2000, 500]
    assert (told.left_seconds.tolist(), told.done_seconds.tolist()) == ([1000, 1000, 500], [500, 500, 0])


def test_silent_jobs_say_what_was_declared_and_nothing_else(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, RunTimeClaims(progress="silent")))
    assert told.declared_seconds.tolist() == [2000, 2000, 500]
    for column in (told.left_seconds, told.done_seconds, told.epoch, told.epochs, told.steps_per_second):
        assert np.isnan(column).all()


def test_nobody_hears_of_another_batch_size_of_a_silent_job(tmp_path: Path) -> None:
    regimes = tmp_path / "regimes.jsonl"
    regimes.write_text(
        '{"job_id": "a", "model": "m", "mode": "gns", "gpus": 8, "samples_per_epoch": 1000, '
        '"regimes_epochs_batch_secperepoch": [[4, 16, 100], [6, 32, 100]]}\n'
    )
    known = read_regimes(regimes)
    sizes = [
        told_after(800, replace(scenario(tmp_path, claims), regimes=known)).batch_size[0]
        for claims in (RunTimeClaims(), RunTimeClaims(progress="silent"))
    ]
    assert sizes == [32, 16]


def test_a_liar_declares_times_a_factor_and_the_others_the_truth(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, RunTimeClaims(declares={"y": 0.1})))
    assert told.declared_seconds.tolist() == pytest.approx([2000, 200, 50])
    assert told.left_seconds.tolist() == pytest.approx([1000, 100, 50])


def test_false_progress_begins_with_the_first_run_and_is_that_of_the_liar_alone(tmp_path: Path) -> None:
    told = told_after(500, scenario(tmp_path, RunTimeClaims(reports_left={"y": 0.1})))
    assert told.declared_seconds.tolist() == [2000, 2000, 500]
    assert told.left_seconds.tolist() == pytest.approx([1000, 100, 500]), "the last one has not run yet"
    assert told.done_seconds.tolist() == pytest.approx([500, 1400, 0])
    longer = told_after(500, scenario(tmp_path, RunTimeClaims(reports_left={"y": 10})))
    assert longer.left_seconds.tolist() == pytest.approx([1000, 10000, 500])
    assert longer.done_seconds.tolist() == pytest.approx([500, 0, 0])


# -- errors ---------------------------------------------------------------------------------------------------


def test_errors_follow_from_the_seed_and_not_from_the_order_of_jobs(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=400)).trace
    claims = RunTimeClaims(declared_error=2.0, seed=3)
    told = claims.declared(trace, trace.duration_s)
    assert told.tobytes() == claims.declared(trace, trace.duration_s).tobytes()
    order = np.random.default_rng(1).permutation(len(trace))
    mixed = trace.take(order)
    assert np.array_equal(claims.declared(mixed, mixed.duration_s), told[order])
    other = RunTimeClaims(declared_error=2.0, seed=4).declared(trace, trace.duration_s)
    assert not np.isclose(other, told).any()


def test_errors_are_lognormal_around_the_truth(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=2000)).trace
    error = np.log2(RunTimeClaims(declared_error=2.0).declared(trace, trace.duration_s) / trace.duration_s)
    assert error.mean() == pytest.approx(0.0, abs=0.1)
    assert error.std() == pytest.approx(1.0, abs=0.1)
    assert np.array_equal(RunTimeClaims().declared(trace, trace.duration_s), trace.duration_s)


def test_each_further_run_draws_errors_of_its_own(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=10)).trace
    first = Scenario(trace, uniform(16, 8), claims=RunTimeClaims(declared_error=2.0))
    setup = PolicySetup("fifo", {}, 900.0, 10.0, False, False, 0.0, 0)
    runs = [scenario_of_run(first, setup, number) for number in (0, 1, 1, 2)]
    said = [np.sort(run.declared_seconds_of_jobs).tolist() for run in runs]
    assert said[1] == said[2]
    assert (said[0] != said[1], said[1] != said[3]) == (True, True)
