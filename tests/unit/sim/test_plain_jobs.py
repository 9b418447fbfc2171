"""Jobs of a trace that cannot save: which they are, and that they stay within their tenant's own share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slurm_fair.cli.simulate.repeats import scenario_of_run
from slurm_fair.cli.simulate.setups import PolicySetup
from slurm_fair.model import JobState, Standing, TickRecord
from slurm_fair.sim import Scenario, rules_for, simulate
from slurm_fair.sim.plain_jobs import PlainJobs
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.trace import Trace, read_trace, uniform
from tests.support.simulations import made, written

QUOTA = 4  # of each of two tenants on 8 GPUs


def rivals(folder: Path) -> Trace:
    """Two tenants alike, each of which could fill 8 GPUs for some hours."""
    rows = [f"{who}{i},{who},{i * 60},1,5400" for i in range(30) for who in ("cheat", "honest")]
    return read_trace(written(folder, *rows)).trace


def test_which_jobs_they_are_follows_from_the_seed_and_not_from_their_order(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=400)).trace
    drawn = PlainJobs(0.25, seed=3).drawn(trace)
    order = np.random.default_rng(1).permutation(len(trace))
    assert np.array_equal(PlainJobs(0.25, seed=3).drawn(trace.take(order)), drawn[order])
    assert not np.array_equal(PlainJobs(0.25, seed=4).drawn(trace), drawn)
    for tenant in range(len(trace.tenants)):
        assert drawn[trace.tenant == tenant].sum() == round((trace.tenant == tenant).sum() / 4)


def test_their_declarations_are_as_wrong_as_those_of_others(tmp_path: Path) -> None:
    """The same seed draws errors and plain jobs: they must not hang together."""
    trace = read_trace(made(tmp_path, jobs=40)).trace
    wrong: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(400):
        plain = PlainJobs(0.1, seed=seed).drawn(trace)
        declared = Truthfulness(declared_error=2.0, seed=seed).declared(trace, trace.duration_s)
        error = np.abs(np.log2(declared / trace.duration_s))
        for flag in wrong:
            wrong[flag] += error[plain == flag].tolist()
    assert np.mean(wrong[True]) == pytest.approx(np.mean(wrong[False]), rel=0.1)


def test_the_part_of_one_tenant_stands_above_that_of_all(tmp_path: Path) -> None:
    trace = read_trace(made(tmp_path, jobs=400)).trace
    mine = trace.tenant == 1
    drawn = PlainJobs(0.0, {trace.tenants[1]: 1.0}).drawn(trace)
    assert np.array_equal(drawn, mine)
    assert np.array_equal(PlainJobs(1.0, {trace.tenants[1]: 0.0}).drawn(trace), ~mine)
    assert not PlainJobs().drawn(trace).any()


def test_each_further_run_has_the_same_ones(tmp_path: Path) -> None:
    first = Scenario(read_trace(made(tmp_path)).trace, uniform(16, 8), plain_jobs=PlainJobs(0.5))
    setup = PolicySetup("fifo", {}, 900.0, 10.0, False, False, 0.0, 0)
    runs = [scenario_of_run(first, setup, number) for number in (0, 1, 2)]
    ids = [set(run.trace.job_id[run.plain_jobs.drawn(run.trace)].tolist()) for run in runs]
    assert ids[0] == ids[1] == ids[2] != set()


@pytest.mark.parametrize("policy", ["astraea", "srtf", "gavel", "hops", "tiresias"])
def test_a_tenant_whose_jobs_cannot_save_holds_its_quota_at_most(policy: str, tmp_path: Path) -> None:
    """Nobody gains by staying out, under any policy; and no such job is ever stopped."""
    most = {"cheat": 0, "honest": 0}

    def watch(tick: TickRecord, _: Standing) -> None:
        jobs = tick.snapshot.jobs
        for row, name in enumerate(tick.snapshot.tenants.names):
            held = jobs.gpus[(jobs.tenant == row) & (jobs.state == JobState.RUNNING)].sum()
            most[name] = max(most[name], int(held))
        assert not jobs.restarts[~jobs.checkpoints].any()

    watch.wants = frozenset()  # type: ignore[attr-defined]
    where = Scenario(
        rivals(tmp_path), uniform(8, 8), plain_jobs=PlainJobs(0.0, {"cheat": 1.0}), until_s=20_000.0
    )
    simulate(where, rules_for(policy, {}, lease=600.0, seed=0, aligned=False), listen=watch, wants=())
    assert most["cheat"] == QUOTA
    assert most["honest"] >= QUOTA


def test_a_job_that_cannot_save_never_changes_its_size(tmp_path: Path) -> None:
    header = "job_id,tenant,submit_s,gpus,duration_s,gpus_choices"
    path = written(tmp_path, "1,a,0,2,6000,1|2|4", "2,a,0,2,6000,1|2|4", header=header)
    trace = read_trace(path).trace
    for part, sizes in ((0.0, {2, 4}), (1.0, {2})):
        seen: set[int] = set()

        def watch(tick: TickRecord, _: Standing, seen: set[int] = seen) -> None:
            seen |= set(tick.snapshot.jobs.gpus.tolist())

        watch.wants = frozenset()  # type: ignore[attr-defined]
        where = Scenario(trace, uniform(8, 8), plain_jobs=PlainJobs(part))
        simulate(where, rules_for("fair", {}, lease=600.0, seed=0, aligned=False), listen=watch, wants=())
        assert seen == sizes
