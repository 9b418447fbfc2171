"""`make fidelity`: its trace, its job, what it measures of a run, what it calls alike, and its page."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fidelity_compare import Compared, Goal, apart, compared, near
from benchmarks.fidelity_job import SCRIPT, notes
from benchmarks.fidelity_page import Followed, WayResult, page
from benchmarks.fidelity_recording import (
    Grant,
    Look,
    Measured,
    read_log,
    seen_holding,
    threshold,
    with_acts,
)
from benchmarks.fidelity_stage import WAYS, Way
from benchmarks.fidelity_steps import DrawnSteps, RecordedSteps
from benchmarks.fidelity_trace import GPUS_PER_NODE, NODES, WEIGHTS, as_trace, planned
from benchmarks.fidelity_virtual import parted, plain_costs, simulated
from slurm_fair.config.tree import from_tree
from slurm_fair.model.ids import pack
from slurm_fair.sim import Costs
from slurm_fair.sim.scenario import Step

JOBS = planned(60, 50.0, 1.2, 1)
FOUND = Measured(0.4, 0.1, 0.1, 0.4, 0.05, 0.05, 0.1, 0.2, 0.01, 0.3, 0.4, {Step.OPENING: (0.2, 0.6)})


# -- the trace --------------------------------------------------------------------------------------------------


def test_the_same_seed_makes_the_same_jobs_and_another_one_others() -> None:
    assert planned(60, 50.0, 1.2, 1) == JOBS != planned(60, 50.0, 1.2, 2)


def test_jobs_want_the_gpu_time_that_was_asked_for_and_one_wants_every_gpu() -> None:
    assert sum(job.gpus * job.work for job in JOBS) == pytest.approx(
        1.2 * 50 * NODES * GPUS_PER_NODE, rel=0.01
    )
    assert [job.gpus for job in JOBS].count(NODES * GPUS_PER_NODE) == 1
    assert {job.tenant for job in JOBS} == set(WEIGHTS)


def test_a_gang_has_the_nodes_that_sbatch_is_told() -> None:
    trace = as_trace(JOBS)
    assert trace.node_count.tolist() == [-(-job.gpus // GPUS_PER_NODE) for job in JOBS]
    assert trace.submit_s.tolist() == [job.at for job in JOBS]


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_each_configuration_is_one_that_the_daemon_takes(way: Way, tmp_path: Path) -> None:
    text = way.configuration(tmp_path / "slurm.conf", tmp_path / "s", tmp_path / "p")
    lease = from_tree(tomllib.loads(text), "a test").lease.terms()
    assert (lease.term, lease.interval, lease.aligned) == (10.0, 1.0, way.align == "aligned")


# -- the job ----------------------------------------------------------------------------------------------------


def test_a_job_saves_when_it_is_asked_and_goes_on_when_nobody_took_its_gpus(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(SCRIPT)
    named = {"SLURM_JOB_NAME": "j", "SLURM_JOB_ID": "7", "PATH": os.environ["PATH"]}
    run = subprocess.Popen(["bash", "job.sh", "600000", "400000"], cwd=tmp_path, env=named)
    while not (tmp_path / "j.starts").exists():
        time.sleep(0.01)
    for _ in range(2):  # the second one comes while it waits
        time.sleep(0.1)
        run.send_signal(signal.SIGUSR2)
    assert run.wait(20) == 0
    (start,), asked, (end,) = (notes(tmp_path, "j", what) for what in ("starts", "asked", "end"))
    assert asked[0].done == asked[1].done == pytest.approx(asked[0].time - start.time, abs=1e-5)
    assert end.time - asked[1].time >= 0.4 + 0.6 - asked[0].done  # it waited, and then it did the rest
    ack = json.loads((tmp_path / ".slurm-fair" / "7" / "ack.json").read_text())
    assert (ack["request"], ack["saved"]) == (2, True)


def test_a_run_resumes_from_what_was_saved(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(SCRIPT)
    (tmp_path / "j.saved").write_text("500000\n")
    named = {
        "SLURM_JOB_NAME": "j",
        "SLURM_JOB_ID": "7",
        "SLURM_RESTART_COUNT": "1",
        "PATH": os.environ["PATH"],
    }
    subprocess.run(["bash", "job.sh", "600000", "400000"], cwd=tmp_path, env=named, check=True, timeout=20)
    ((start,), (end,)) = (notes(tmp_path, "j", what) for what in ("starts", "end"))
    assert (start.restart, start.done, end.done) == (1, 0.5, 0.6)
    assert end.time - start.time >= 0.1


# -- what a run tells -------------------------------------------------------------------------------------------


def look(time: float, holding: dict[int, dict[int, int]], left: dict[int, int]) -> Look:
    """One that took no time."""
    return Look(time, 0.0, 0.0, 0, frozenset(holding), holding, left, frozenset(), False)


def test_gpus_that_a_look_did_not_see_free_belong_to_those_that_ended_last() -> None:
    first = look(1.0, {1: {0: 2}, 2: {0: 4}, 3: {1: 4}}, {})
    second = look(2.0, {3: {1: 4}}, {0: 4})
    third = look(3.0, {}, {})
    seen = seen_holding([first, second, third], {1: [1.2], 2: [1.9], 3: [2.5]})
    assert [sorted(one) for one in seen] == [[1, 2, 3], [2, 3], []]


def test_a_step_is_the_recorded_one_that_is_near_else_the_usual_one() -> None:
    steps = RecordedSteps(Costs(opening=9.0), {(Step.OPENING, 3): [(10.0, 0.1), (20.0, 0.2)]})
    assert [
        steps(Step.OPENING, job, 0, now) for job, now in ((3, 10.5), (3, 19.5), (3, 15.0), (4, 10.0))
    ] == [0.1, 0.2, 9.0, 9.0]


def test_jobs_of_one_look_start_together_after_a_delay_of_the_real_runs() -> None:
    steps = DrawnSteps(Costs(start=7.0), {Step.OPENING: (0.1, 0.2, 0.3)}, np.random.default_rng(1))
    drawn = [steps(Step.OPENING, job, 0, now) for now in (1.0, 2.0, 3.0, 4.0) for job in (1, 2)]
    assert drawn[::2] == drawn[1::2]
    assert set(drawn) <= {0.1, 0.2, 0.3}
    assert len(set(drawn)) > 1
    assert steps(Step.START, 1, 0, 1.0) == 7.0


def test_the_delay_after_an_end_is_the_one_that_tells_those_still_seen_from_the_others() -> None:
    assert threshold([(0.01, True), (0.04, True), (0.06, False), (0.5, False)]) == 0.06
    assert threshold([]) == 0.0


def test_ticks_take_longer_by_their_acts() -> None:
    assert with_acts([(1, 0.3), (2, 0.4), (4, 0.6)]) == pytest.approx((0.2, 0.1))
    assert with_acts([]) == (0.0, 0.0)


def test_slurms_log_tells_when_it_started_requeued_and_ended_each_run(tmp_path: Path) -> None:
    log = tmp_path / "slurmctld.log"
    log.write_text(
        "[2026-11-24T06:00:01.250] sched: Allocate JobId=7 NodeList=n1 #CPUs=1 Partition=gpu\n"
        "[2026-11-24T06:00:09.500] Requeuing JobId=7\n"
        "[2026-11-24T06:00:10.750] sched/backfill: _start_job: Started JobId=7 in gpu on n1\n"
        "[2026-11-24T06:00:12.000] _job_complete: JobId=7 WEXITSTATUS 0\n"
        "[2026-11-24T06:00:12.000] _job_complete: JobId=7 done\n"
        "nothing that we know\n"
    )
    told = {kind: dict(of_jobs) for kind, of_jobs in read_log(log).items()}
    (first, again), (back,), (over,) = (told[kind][pack(7)] for kind in ("started", "requeued", "ended"))
    assert [again - first, back - first, over - first] == pytest.approx([9.5, 8.25, 10.75])


def test_runs_part_where_other_jobs_or_other_nodes_are_granted() -> None:
    one = [Grant(1.0, "a", ("n1",)), Grant(1.0, "b", ("n2",)), Grant(2.0, "c", ("n1",))]
    assert parted(one, [one[1], one[0], one[2]]) == math.inf
    assert parted(one, one[:2]) == 2.0
    assert parted(one, [one[0], Grant(1.0, "b", ("n3",)), one[2]]) == 1.0


# -- what is called alike ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "real", "simulated", "goal"),
    [
        ("makespan", (100.0, 100.0), (101.0, 102.0), Goal.MET),
        ("makespan", (100.0, 100.0), (103.0, 103.0), Goal.MISSED),
        ("mean JCT", (95.0, 105.0), (104.0, 104.0), Goal.SPREAD),
        ("mean JCT", (95.0, 105.0), (106.0, 106.0), Goal.MISSED),
        ("pre-emptions", (100.0, 100.0), (104.0, 104.0), Goal.MET),
        ("pre-emptions", (0.0, 0.0), (0.0, 0.0), Goal.MET),
        ("pre-emptions", (0.0, 0.0), (1.0, 1.0), Goal.MISSED),
        ("rho nlp", (1.0, 1.0), (0.94, 0.94), Goal.MISSED),
    ],
)
def test_a_mean_is_near_or_inside_what_real_runs_had_or_neither(
    name: str, real: tuple[float, ...], simulated: tuple[float, ...], goal: Goal
) -> None:
    assert Compared(name, real, simulated).goal is goal


def test_differences_are_parts_of_the_real_number() -> None:
    assert (apart(3.0, 2.0), apart(0.0, 0.0), apart(1.0, 0.0)) == (0.5, 0.0, math.inf)
    assert (near("makespan"), near("GPU-hours nlp"), near("rho nlp")) == (0.02, 0.02, 0.05)


# -- simulations and the page -----------------------------------------------------------------------------------


def test_a_simulation_has_every_number_and_the_same_dice_the_same_ones() -> None:
    runs = [simulated(WAYS[0], JOBS, plain_costs(FOUND), np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert list(runs[0]) == [
        "makespan",
        "mean JCT",
        "pre-emptions",
        *(f"GPU-hours {name}" for name in WEIGHTS),
        *(f"rho {name}" for name in WEIGHTS),
    ]


def test_the_page_says_what_was_met_what_only_nearly_and_what_not() -> None:
    names = ("makespan", *(f"{kind} {name}" for kind in ("GPU-hours", "rho") for name in WEIGHTS))
    real = [dict.fromkeys((*names, "mean JCT", "pre-emptions"), value) for value in (100.0, 110.0)]
    virtual = [real[0] | {"makespan": 105.0, "mean JCT": 109.0, "pre-emptions": 150.0}]
    followed = Followed("aligned 1", real[0], real[0] | {"mean JCT": 102.0}, 42.4)
    means = compared(real, virtual)
    result = WayResult(
        WAYS[0],
        means,
        means,
        [followed, Followed("aligned 2", real[1], real[1], math.inf)],
        FOUND,
        [3.4, 16.0],
    )
    text = page({"jobs": 60, "gpus": 32, "nodes": 4, "load": 1.2, "over": 50.0}, [result], tuple(WEIGHTS))
    assert "| makespan, s | 105.0 ± 7.1 | 105.0 ± 0.0 | +0.0 % | 2 % | yes | +0.0 % |" in text
    assert "| mean JCT, s | 105.0 ± 7.1 | 109.0 ± 0.0 | +3.8 % | 2 % | in the real spread | +3.8 % |" in text
    assert "(load 3, 16 on " in text
    assert "| pre-emptions | 105.0 ± 7.1 | 150.0 ± 0.0 | +42.9 % | 5 % | no | +42.9 % |" in text
    assert "| aligned 1 | 42 | +0.00 % | +2.00 % |" in text
    assert "| aligned 2 | its end |" in text
    assert [line[-5:-2] for line in text.splitlines() if line.startswith("| aligned ")][:2] == [" no", "yes"]
