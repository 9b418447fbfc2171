"""Jobs that report by lease.py, on a real Slurm: seen, explained, and known to the next job of their class."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from slurm_fair.model import Snapshot
from tests.slurm.harness import REPOSITORY, Job, Site, wait_until
from tests.slurm.known_speed import known_speed
from tests.slurm.stopwatch_jobs import FAIR_SBATCH

pytestmark = pytest.mark.slurm
PACE, STEPS, BATCH = 20.0, 50_000, 32
TRAIN = f"""
import sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from slurm_fair import lease
lease.REPORT_SECONDS = 1.0
start = time.time()
while True:
    time.sleep(0.2)
    step = int({PACE} * (time.time() - start))
    lease.report(
        step=step, steps={STEPS}, epoch=step // 1000, epochs={STEPS // 1000}, batch_size={BATCH}, mode="static",
        nothing_we_know="x",
    )
    if lease.should_stop():
        lease.acknowledge(step)
        lease.wait_for_requeue()
"""


def submit(site: Site, name: str, gpus: int = 1) -> Job:
    """A training job that reports, by fair-sbatch."""
    folder = site.work()
    (folder / "train.py").write_text(TRAIN)
    (folder / "train.sh").write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/train.py\n")
    options = ("--parsable", "--account=vision", f"--gpus={gpus}", f"--job-name={name}", "--grace=4")
    argv = (*FAIR_SBATCH, *options, "train.sh")
    told = site.lab.run("env", f"SLURM_FAIR_CONFIG={site.config}", *argv, cwd=folder).stdout
    return site.job(told.strip())


def last_look(site: Site) -> Snapshot:
    """The snapshot of the newest tick."""
    with site.reader() as journal:
        numbers = journal.tick_numbers()
        assert numbers is not None
        (tick,) = journal.ticks(numbers[1])
    return tick.snapshot


def explained(site: Site, job: Job) -> dict[str, Any]:
    """The row of a job as `explain --json` has it."""
    row: dict[str, Any] = json.loads(site.cli("explain", job.label, "--json").stdout)["job"]
    return row


def test_reports_are_seen_explained_and_known_to_the_next_job_and_the_next_daemon(
    new_site: Callable[..., Site],
) -> None:
    site = new_site(lease={"term": 60}).start()
    first = submit(site, "train-1")
    wait_until(lambda: first.state == "RUNNING", 60, "the job runs")
    wait_until(lambda: (explained(site, first) or {}).get("reported") is not None, 40, "its report is read")
    wait_until(lambda: explained(site, first)["left_seconds"] is not None, 60, "its pace is measured")
    row = explained(site, first)
    assert (row["reported"]["steps"], row["reported"]["batch_size"], row["reported"]["clamped"]) == (
        STEPS,
        BATCH,
        False,
    )
    wait_until(lambda: known_speed(last_look(site), first, 0, 1, apart=True) > 0, 40, "its class is known")
    told = last_look(site).told
    assert told is not None
    assert told.steps_per_second.max() == pytest.approx(PACE, rel=0.15)
    assert told.left_seconds.max() == pytest.approx(STEPS / PACE, rel=0.15)
    assert "it reported step" in site.cli("explain", first.label).stdout

    second = submit(site, "train-2", gpus=2)
    site.ticks_pass(2)
    assert known_speed(last_look(site), second, 0, 1, apart=True) == pytest.approx(PACE * BATCH, rel=0.15)
    assert explained(site, second)["job_class"] == "vision: name=train-#"

    assert site.stop() == 0
    site.start()
    third = submit(site, "train-3")
    site.ticks_pass(2)
    assert known_speed(last_look(site), third, 0, 1, apart=True) == pytest.approx(PACE * BATCH, rel=0.15)
    with site.reader() as journal:
        known, beliefs = journal.known()
    assert {each.key for each in known.samples.classes} == {"name=train-#"}
    assert first.key in beliefs.key.tolist()
