"""A job's own output over some leases on a real Slurm: who asked for its GPUs, what it saved, where it goes on."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.demo_training import COUNTER
from tests.slurm.harness import Job, Site, wait_until
from tests.slurm.stopwatch_jobs import FAIR_SBATCH

pytestmark = pytest.mark.slurm
ALL_GPUS = 24
LEASE = {"term": 10, "grace": 20, "start_timeout": 8}
SITE = Callable[..., Site]


@pytest.fixture
def site(new_site: SITE, tmp_path: Path) -> Site:
    """A site that publishes, as an installed one does."""
    (tmp_path / "published").mkdir(mode=0o755)
    return new_site(lease={**LEASE, "publish_dir": str(tmp_path / "published")}).start()


def submitted(site: Site) -> Job:
    """A training by fair-sbatch on all GPUs, which counts until it is ended."""
    work = site.work()
    words = f"{sys.executable} {COUNTER} --steps 100000 --step-seconds 0.05 --directory out"
    (work / "train.sh").write_text(f"#!/bin/bash\n#SBATCH -o own.log --open-mode=append\n{words}\n")
    options = ("--parsable", "-A", "vision", f"--gpus={ALL_GPUS}", "train.sh")
    argv = (*FAIR_SBATCH, *options)
    told = ("env", f"SLURM_FAIR_CONFIG={site.config}")
    return site.job(site.lab.run(*told, *argv, cwd=work).stdout.strip())


def said(site: Site) -> list[str]:
    """Our lines in the job's output."""
    text = (site.work() / "own.log").read_text()
    return [line for line in text.splitlines() if line.startswith("slurm_fair: ")]


def starts(site: Site) -> list[list[str]]:
    """The training's own notes: restart, node, epoch, step resumed from."""
    path = site.work() / "out" / "starts.log"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def _trains_again(site: Site, times: int) -> None:
    wait_until(lambda: len(starts(site)) == times + 1, 60, "it trains again")


def seconds_of(clock: str) -> int:
    """Seconds of the day, in local time."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def test_a_jobs_own_output_tells_who_asked_what_was_saved_and_where_it_goes_on(site: Site) -> None:
    job = submitted(site)
    wait_until(lambda: len(starts(site)) == 1, 30, "it trains")
    for turn in (1, 2):
        began = time.time()
        comes = site.submit(ALL_GPUS, tenant="speech", steps=5, user="news").runs(60)
        given = time.time()
        comes.ends(seconds=40)
        _trains_again(site, turn)
        asked, saved, run = said(site)[-3:]
        words = re.fullmatch(
            rf"slurm_fair: asked to save at (\S+) \(its lease is over, for job {comes.label} of speech\)",
            asked,
        )
        assert words, said(site)
        day = seconds_of(time.strftime("%H:%M:%S", time.localtime(began)))
        assert day <= seconds_of(words[1]) <= day + (given - began) + 1
        step = re.fullmatch(r"slurm_fair: saved step (\d+) in [0-9.]+ s, waiting to be requeued", saved)
        assert step, said(site)
        assert starts(site)[turn][3] == step[1], "the step that it goes on from"
        nodes = site.lab.run("squeue", "-h", "-j", job.label, "-o", "%N").stdout.strip()
        assert run == f"slurm_fair: run {turn + 1} begins on {nodes}, step {step[1]} is saved"
    assert len(said(site)) == 6
    told = [line for line in site.cli("explain", job.label).stdout.splitlines() if "asked to save" in line]
    assert len(told) == 2
    assert f"for job {comes.label} (speech)" in told[1]
