"""Jobs whose steps are longer than the grace, under the controller: they go on from what last store saved."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slurm_fair_templates.demo_counter import verify
from tests.slurm.harness import REPOSITORY, Site, wait_until
from tests.slurm.stopwatch_jobs import FAIR_SBATCH

pytestmark = pytest.mark.slurm
ALL_GPUS = 24
GRACE_SECONDS, STEP_SECONDS, STEPS = 4, 25, 3
COUNTER = REPOSITORY / "sbatch_templates" / "slurm_fair_templates" / "demo_counter.py"


def submit(site: Site) -> str:
    """The counter, with last store, on every GPU."""
    words = f"--steps {STEPS} --step-seconds {STEP_SECONDS} --last-store --directory out"
    folder = site.work()
    (folder / "long.sh").write_text(f"#!/bin/sh\n{sys.executable} {COUNTER} {words}\n")
    options = ("--parsable", "--account=vision", f"--gpus={ALL_GPUS}", f"--grace={GRACE_SECONDS}")
    argv = (*FAIR_SBATCH, *options, "--nodes=3", "long.sh")
    return site.lab.run("env", f"SLURM_FAIR_CONFIG={site.config}", *argv, cwd=folder).stdout.strip()


def lines(path: Path) -> list[list[str]]:
    """One of the counter's logs."""
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_a_job_that_is_revoked_amid_a_long_step_goes_on_from_the_last(
    new_site: Callable[..., Site],
) -> None:
    site = new_site("begin", {"term": 12, "grace": GRACE_SECONDS}).start()
    job = site.job(submit(site))
    out = site.work() / "out"
    wait_until(lambda: len(lines(out / "steps.log")) == 1, 90, "one step is done")
    rival = site.submit(ALL_GPUS, tenant="nlp").runs(60)
    answer = json.loads((site.work() / ".slurm-fair" / job.label / "ack.json").read_text())
    assert (answer["restart"], answer["saved"], answer["step"]) == (0, True, 1)
    assert len(lines(out / "steps.log")) == 1, "it was not waited for"
    rival.cancel()
    wait_until(lambda: len(lines(out / "starts.log")) == 2, 60, "it runs again")
    assert lines(out / "starts.log")[1][3] == "1"
    job.ends(seconds=120)
    result = json.loads((out / "result.json").read_text())
    assert verify(result, STEPS)
    assert (result["executed_steps"], result["lost_steps"]) == (STEPS, 0)
