"""The profiler on a real Slurm: a job that asks for it has a turn on each GPU type, and is known there."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from slurm_fair.policy.profiling import MOVES
from tests.slurm.harness import REPOSITORY, Site, wait_until
from tests.slurm.stopwatch_jobs import FAIR_SBATCH

pytestmark = pytest.mark.slurm
LEASE = {"term": 600, "interval": 1, "grace": 4, "align": "rolling"}
TURN_SECONDS = 90
EXTRA = f"[profiler]\nenabled = true\ngpus = 2\nseconds = {TURN_SECONDS}\niterations = 30\n"
OF_EACH_TYPE = 1
STEPS = 1500
PACES = {"n1": 20.0, "n2": 10.0}  # steps a second
TRAIN = f"""
import os, sys, time
from pathlib import Path
sys.path.insert(0, {str(REPOSITORY)!r})
from slurm_fair import lease
lease.REPORT_SECONDS = 1.0
pace = {PACES!r}[os.environ["SLURMD_NODENAME"]]
saved = Path("saved")
first = int(saved.read_text()) if saved.exists() else 0
start = time.time()
while True:
    time.sleep(0.2)
    step = first + int(pace * (time.time() - start))
    lease.report(step=step, steps={STEPS}, batch_size=32)
    if step >= {STEPS}:
        break
    if lease.should_stop():
        saved.write_text(str(step))
        lease.acknowledge(step)
        lease.wait_for_requeue()
"""


def rates(site: Site) -> dict[str, float]:
    """Samples a second by GPU type, as the journal keeps them; of several samples the newest."""
    with site.reader() as journal:
        samples = journal.known()[0].samples
    order = np.argsort(samples.time)
    types = (samples.gpu_types[kind] for kind in samples.gpu_type[order].tolist())
    return dict(zip(types, samples.rate[order].tolist(), strict=True))


@pytest.mark.timeout(420)
def test_a_job_that_asks_for_it_has_a_turn_on_each_type_and_is_known_there(site: Site) -> None:
    folder = site.work()
    (folder / "train.py").write_text(TRAIN)
    (folder / "train.sh").write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/train.py\n")
    argv = (*FAIR_SBATCH, "--parsable", "--account=vision", "--gpus=1", "--grace=4", "--profile", "train.sh")
    told = site.lab.run("env", f"SLURM_FAIR_CONFIG={site.config}", *argv, cwd=folder)
    assert told.stderr == ""
    job = site.job(told.stdout.strip())

    wait_until(lambda: len(site.planned(job)) == 2, 200, "it has had a turn, and gets another one")
    (one,), (other,) = site.planned(job)
    assert {one, other} == set(PACES)
    said = [event.detail["why"] for event in site.events("revoked", job=job)]
    assert said == [MOVES.format(gpu_type="a100" if one == "n1" else "v100")]
    wait_until(
        lambda: "its speed on" in site.cli("explain", job.label).stdout, 30, "explain tells of its turn"
    )
    job.ends(seconds=200)

    wait_until(lambda: len(rates(site)) == 2, 90, "what is known is written down")
    assert rates(site) == {
        "a100": pytest.approx(32 * 20.0, rel=0.2),
        "v100": pytest.approx(32 * 10.0, rel=0.2),
    }
    held = [event.detail["held_seconds"] for event in site.events("returned", job=job)]
    assert held[0] < TURN_SECONDS, "its turn ended once it had reported enough"
