"""Reports in jobs' own comments on a real Slurm: the daemon reads them, and a lie costs its own row alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from slurm_fair.lab import Lab, LabSpec, available
from slurm_fair.model import Snapshot
from slurm_fair.model.columns import find
from tests.slurm.harness import REPOSITORY, Job, Site, playing, wait_until
from tests.slurm.stopwatch_jobs import FAIR_SBATCH

pytestmark = pytest.mark.slurm
STEPS, PACE = 50_000, 20.0
TRAIN = f"""
import sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from slurm_fair import lease
lease.REPORT_SECONDS = 1.0
start = time.time()
while True:
    time.sleep(0.2)
    lease.report(step=int({PACE} * (time.time() - start)), steps={STEPS}, batch_size=32, steps_per_s={PACE})
    if lease.should_stop():
        lease.acknowledge(int({PACE} * (time.time() - start)))
        lease.wait_for_requeue()
"""
# What a job writes into its own comment; $NOW, its own id and that of the honest one are filled in.
LIES = {
    "speaks for another": "slurm_fair_report:job=HONEST,restart=0,step=49999,steps=50000,time=$NOW",
    "numbers that cannot be": "slurm_fair_report:job=$SLURM_JOB_ID,restart=0,step=1e300,steps=-1,time=$NOW",
    "no such time": "slurm_fair_report:job=$SLURM_JOB_ID,restart=0,step=5,steps=10,time=9e99",
    "no such run": "slurm_fair_report:job=$SLURM_JOB_ID,restart=7,step=5,steps=10,time=$NOW",
    "rows of its own": "x|9|HONEST|slurm_fair_report:job=HONEST,restart=0,step=1,steps=2,time=$NOW|%k",
    "very long": "slurm_fair_report:job=$SLURM_JOB_ID,restart=0" + ",step=7" * 300 + ",time=$NOW",
}


@pytest.fixture
def site() -> Iterator[Site]:
    """A controller under hops, with room for all jobs of the test in their tenants' own shares."""
    if (reason := available()) is not None:
        pytest.skip(reason)
    lease = {"term": 30, "interval": 1, "grace": 4}
    spec = LabSpec(nodes=2, gpus_per_node=8)
    with Lab(spec=spec) as lab, playing(Site(lab, lease=lease, extra='[policy]\nname = "hops"\n')) as site:
        yield site


def honest_job(site: Site) -> Job:
    """A training job of fair-sbatch in a folder where it may not leave files for us: its reports go by comment."""
    folder = site.work()
    (folder / "elsewhere").mkdir()
    (folder / ".slurm-fair").symlink_to("elsewhere")
    (folder / "train.py").write_text(TRAIN)
    (folder / "train.sh").write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/train.py\n")
    argv = (*FAIR_SBATCH, "--parsable", "--account=vision", "--grace=4", "--gpus=1", "train.sh")
    return site.job(site.lab.run("env", f"SLURM_FAIR_CONFIG={site.config}", *argv, cwd=folder).stdout.strip())


def liar(site: Site, comment: str, honest: Job) -> Job:
    """A job that writes that comment for itself and sleeps."""
    text = comment.replace("HONEST", honest.label)
    update = f'NOW=$(date +%s); scontrol update JobId=$SLURM_JOB_ID Comment="{text}"; sleep 600'
    return site.job(site.sbatch("-A", "nlp", "--gpus=1", "--no-requeue", "--wrap", update))


def last_look(site: Site) -> Snapshot:
    with site.reader() as journal:
        return [tick.snapshot for tick in journal.ticks()][-1]


def told(seen: Snapshot, job: Job) -> tuple[float, float]:
    """A look's knowledge of a job: steps a second, and seconds left; nan = nothing."""
    row = int(find(seen.jobs.key, np.array([job.key])).item())
    if row < 0 or seen.told is None:
        return float("nan"), float("nan")
    return float(seen.told.steps_per_second[row]), float(seen.told.left_seconds[row])


def has_reported(seen: Snapshot, job: Job) -> bool:
    row = int(find(seen.jobs.key, np.array([job.key])).item())
    return seen.reported is not None and row in seen.reported.row.tolist()


@pytest.mark.timeout(300)
def test_the_daemon_reads_reports_in_comments_and_a_lie_costs_its_own_row(site: Site) -> None:
    honest = honest_job(site)
    wait_until(lambda: honest.state == "RUNNING", 60, "it runs")
    liars = [liar(site, comment, honest) for comment in LIES.values()]
    wait_until(lambda: all(job.state == "RUNNING" for job in liars), 60, "all run")
    wait_until(lambda: has_reported(last_look(site), honest), 200, "its comment is read")
    wait_until(
        lambda: np.isfinite(told(last_look(site), honest)[1]), 120, "policies are told what it has left"
    )
    seen = last_look(site)
    rate, left = told(seen, honest)
    assert rate == pytest.approx(PACE, rel=0.2)
    assert left == pytest.approx(STEPS / PACE, rel=0.2)
    assert seen.reported is not None
    of_honest = seen.reported.row.tolist().index(int(find(seen.jobs.key, np.array([honest.key])).item()))
    assert seen.reported.steps[of_honest] == STEPS
    for kind, job in zip(LIES, liars, strict=True):
        assert job.state == "RUNNING", kind
        assert not np.isfinite(told(seen, job)).any(), kind
    by_file = site.work() / ".slurm-fair"
    assert by_file.is_symlink()
    assert "report" not in " ".join(path.name for path in by_file.rglob("*"))
