"""Hops on a real Slurm learns how fast jobs are, and gives fragments to those that may well lie apart."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest

from slurm_fair.model import Snapshot
from tests.slurm.harness import REPOSITORY, Job, Site, wait_until
from tests.slurm.known_speed import known_speed
from tests.slurm.stopwatch_jobs import FAIR_SBATCH

pytestmark = pytest.mark.slurm
LEASE = {"term": 8, "interval": 1, "grace": 4, "align": "aligned"}
OF_EACH_TYPE = 2
EXTRA = ""
PACES = (20.0, 10.0)  # steps a second on one GPU of n1 and n2, and of n3 and n4
BATCH, EXPONENT = 32, 0.9
APART = {"tight": 0.3, "loose": 0.95}  # of the pace, on two nodes
TRAIN = f"""
import os, sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from slurm_fair import lease
lease.REPORT_SECONDS = 1.0
nodes = int(os.environ["SLURM_JOB_NUM_NODES"])
gpus = int(os.environ["SLURM_GPUS_ON_NODE"]) * nodes
pace = {PACES[0]} if os.environ["SLURMD_NODENAME"] in ("n1", "n2") else {PACES[1]}
pace *= gpus ** {EXPONENT} * (float(sys.argv[1]) if nodes > 1 else 1.0)
start = time.time()
while True:
    time.sleep(0.2)
    step = int(pace * (time.time() - start))
    lease.report(step=step, steps=50_000, batch_size={BATCH})
    if lease.should_stop():
        lease.acknowledge(step)
        lease.wait_for_requeue()
"""


def train(site: Site, kind: str, number: int, *options: str) -> Job:
    """A training job of that kind, by fair-sbatch."""
    folder = site.work()
    (folder / "train.py").write_text(TRAIN)
    (folder / f"{kind}.sh").write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/train.py {APART[kind]}\n")
    words = ("--parsable", "--account=vision", f"--job-name={kind}-{number}", "--grace=4", *options)
    argv = (*FAIR_SBATCH, *words, f"{kind}.sh")
    told = site.lab.run("env", f"SLURM_FAIR_CONFIG={site.config}", *argv, cwd=folder).stdout
    return site.job(told.strip())


def looks(site: Site) -> list[Snapshot]:
    """The snapshots of all ticks."""
    with site.reader() as journal:
        return [tick.snapshot for tick in journal.ticks()]


def real_speed(kind: str, gpu_type: int, gpus: int, apart: bool) -> float:
    """Samples a second that it makes in that shape."""
    return float(PACES[gpu_type] * gpus**EXPONENT * (APART[kind] if apart else 1.0) * BATCH)


def errors(site: Site, kind: str, job: Job, gpu_type: int, gpus: int, apart: bool = False) -> list[float]:
    """The error of each look that took the job's speed for known, as a part of the real speed."""
    real = real_speed(kind, gpu_type, gpus, apart)
    known = [known_speed(seen, job, gpu_type, gpus, apart) for seen in looks(site)]
    return [abs(speed / real - 1.0) for speed in known if speed > 0]


def runs(job: Job) -> bool:
    return job.state == "RUNNING"


@pytest.mark.timeout(180)
def test_the_estimate_of_a_job_of_known_speed_converges(site: Site) -> None:
    job = train(site, "tight", 1, "--gpus=1", "--gpus-choices=1,2,4")
    wait_until(lambda: runs(job), 60, "it runs")
    on = 0 if site.planned(job)[-1][0] in ("n1", "n2") else 1
    wait_until(lambda: len(errors(site, "tight", job, on, 4)) >= 30, 120, "30 looks know its speed on 4 GPUs")
    measured = errors(site, "tight", job, on, 4)
    assert max(measured[-10:]) < 0.1
    assert np.mean(measured[-10:]) <= np.mean(measured[:10])
    # One GPU was never tried: the estimator tells it from what was measured on four.
    assert errors(site, "tight", job, on, 1)[-1] < 0.3


@pytest.mark.timeout(300)
def test_fragments_go_to_the_job_that_suffers_less_from_lying_apart(site: Site) -> None:
    teachers = [
        train(site, kind, number, *shape)
        for kind in APART
        for number, shape in enumerate((("--gpus=a100:1",), ("--nodes=2", "--gpus-per-node=a100:1")))
    ]
    wait_until(lambda: all(map(runs, teachers)), 120, "jobs of both kinds run on one node and on two")
    for at, job in enumerate(teachers):
        kind, apart = list(APART)[at // 2], bool(at % 2)
        learned = partial(errors, site, kind, job, 0, 1 + apart, apart)
        wait_until(learned, 60, "each is known to be as fast as it is")
    for job in teachers:
        site.lab.run("scancel", job.label)

    assert site.stop() == 0
    fillers = [
        site.sbatch("-A", "nlp", "-w", node, f"--gpus={gpus}", "--no-requeue", "--wrap", "sleep 600")
        for node, gpus in (("n1", 2), ("n2", 2), ("n3", 4), ("n4", 4))
    ]
    tight = train(site, "tight", 7, "--gpus=4", "--ntasks=4")
    loose = train(site, "loose", 7, "--gpus=4", "--ntasks=4")
    site.start()
    wait_until(lambda: runs(loose), 60, "the job that suffers little starts on the fragments")
    assert not runs(tight)
    site.ticks_pass(3)
    assert not runs(tight)
    site.lab.run("scancel", fillers[2])
    wait_until(lambda: runs(tight), 60, "the other one starts where all its GPUs lie together")
