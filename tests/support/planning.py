"""Views for a planning process, and planners that leave none behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from slurm_fair.model import JobState
from slurm_fair.planner import IsolatedPlanner, PlannerLimits
from slurm_fair.policy import Policy, View
from tests.support.accounts import view
from tests.support.builders import job, lease, leases, snapshot

DROPS = PlannerLimits()
KEEPS = PlannerLimits(keeps_late=True)


def shown(now: float = 1000.0, *waiting: int, nodes: int = 2) -> View:
    """A job that runs on the first node and whose lease is over; others wait, with 4 GPUs each."""
    runs = job(1, gpus=8, on={"n1": 8}, state=JobState.RUNNING, tenant="a", submit=1.0)
    waits = [job(base, gpus=4, tenant="b", submit=float(base)) for base in (waiting or (2, 3, 4))]
    seen = snapshot(time=now, nodes={f"n{number}": 8 for number in range(1, nodes + 1)}, jobs=[runs, *waits])
    return view(seen, leases(lease(1, {"n1": 8}, end=now - 1.0)))


@contextmanager
def planner_of(policy: Policy, limits: PlannerLimits = DROPS) -> Iterator[IsolatedPlanner]:
    """One whose policy is loaded."""
    planner = IsolatedPlanner(policy, limits)
    planner.begin()
    try:
        yield planner
    finally:
        planner.close()
        if planner.process is not None:
            planner.process.close()


def comes_true(what: Callable[[], bool], seconds: float = 10.0) -> bool:
    """True if it is so before the time is up."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def lives(number: int) -> bool:
    """True of a process that is there and no zombie."""
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def files_of(number: int) -> list[str]:
    """The targets of its open files."""
    folder = Path(f"/proc/{number}/fd")
    return sorted(os.readlink(each) for each in folder.iterdir())
