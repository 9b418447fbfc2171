"""Wait for what Slurm says, and read the record of one job."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from slurm_fair.lab import Lab


def until(true: Callable[[], bool], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)


def record(lab: Lab, job: str) -> dict[str, str]:
    """Slurm's record of a job; times as epoch seconds."""
    line = lab.run("env", "SLURM_TIME_FORMAT=%s", "scontrol", "-o", "show", "job", job).stdout.split("\n")[0]
    found = dict(re.findall(r"(\w+)=(\S*)", line))
    found["Comment"] = lab.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%k").stdout.split("\n")[0]
    return found
