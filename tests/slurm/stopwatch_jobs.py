"""Jobs that write down when they begin and end, and what is measured of them: the way from sbatch to RUNNING."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.slurm.harness import Site, wait_until

FAIR_SBATCH = (sys.executable, "-c", "from slurm_fair.cli import fair_sbatch_main; fair_sbatch_main()")
_SCRIPT = """#!/bin/sh
date +%s.%N > begin.$SLURM_JOB_ID
sleep "$1"
date +%s.%N > end.$SLURM_JOB_ID
"""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from one event to another, of many jobs."""

    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        """The least value that no more than a twentieth exceed."""
        return sorted(self.seconds)[-(-95 * len(self.seconds) // 100) - 1]

    def __str__(self) -> str:
        return f"median {self.median:.2f} s, p95 {self.p95:.2f} s, max {max(self.seconds):.2f} s"


class StopwatchJobs:
    """Submits them on one site."""

    def __init__(self, site: Site) -> None:
        self.site, self.work = site, site.work()
        self.script = self.work / "stopwatch.sh"
        self.script.write_text(_SCRIPT)

    def submit(self, *words: str, program: tuple[str, ...] = ("sbatch",), seconds: float = 0.2) -> str:
        """One job of one GPU, unless the words say otherwise; its id."""
        gpus = () if any(word.startswith("--gpus") for word in words) else ("--gpus=1",)
        argv = [
            *program,
            "--parsable",
            "-A",
            "vision",
            "--requeue",
            *gpus,
            *words,
            str(self.script),
            f"{seconds}",
        ]
        env = {**self.site.lab.env, "SLURM_FAIR_CONFIG": str(self.site.config)}
        done = subprocess.run(argv, cwd=self.work, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def time_of(self, what: str, job: str, seconds: float = 40) -> float:
        """The instant at which a job began or ended, by its own clock."""
        note = self.work / f"{what}.{job}"
        wait_until(lambda: _said(note), seconds, f"job {job} writes its {what}")
        return float(_said(note))

    def delay(self, *words: str, program: tuple[str, ...] = ("sbatch",)) -> tuple[float, float]:
        """Seconds until it ran, from the moment that sbatch had accepted it, and from the command's beginning."""
        began = time.time()
        job = self.submit(*words, program=program)
        accepted = time.time()
        runs = self.time_of("begin", job)
        self.time_of("end", job)
        return runs - accepted, runs - began

    def chain(self, count: int, *words: str, hold: float = 2.3) -> Delays:
        """Jobs of which only one has room: seconds from the end of each to the beginning of the next."""
        jobs = [self.submit(*words, seconds=hold + 0.17 * (at % 7)) for at in range(count)]
        ends = [self.time_of("end", job, 30 + count * (hold + 6)) for job in jobs]
        begins = [self.time_of("begin", job) for job in jobs]
        turns = sorted(zip(begins, ends, strict=True))
        return Delays([later[0] - earlier[1] for earlier, later in pairwise(turns)])


def _said(note: Path) -> str:
    return note.read_text().strip() if note.exists() else ""
