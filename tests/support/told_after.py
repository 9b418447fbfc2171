"""A simulation of users and jobs that do not tell the truth, and what is told of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slurm_fair.model import Action, Told, Verb
from slurm_fair.sim import Scenario, VirtualClock, VirtualCluster
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.sim.world.load import population
from slurm_fair.trace import read_trace, uniform
from tests.support.simulations import written

T0 = 1_000_000.0
JOBS = ("a,x,0,8,1000,2000", "b,y,0,8,1000,2000", "c,y,0,8,500,")


def scenario(folder: Path, truthfulness: Truthfulness) -> Scenario:
    """Two jobs declared at twice their run time, and one that nobody declared; two of them fit."""
    header = "job_id,tenant,submit_s,gpus,duration_s,declared_s"
    return Scenario(
        read_trace(written(folder, *JOBS, header=header)).trace, uniform(16, 8), truthfulness=truthfulness
    )


def told_after(seconds: float, where: Scenario) -> Told:
    """Declarations and reports when the first two jobs have run for so long."""
    clock = VirtualClock(T0)
    cluster = VirtualCluster(where, population(where, T0), clock, 900.0)
    jobs = cluster.observe({}).jobs
    for row, node in ((0, "n1"), (1, "n2")):
        who = jobs.key[row].item(), jobs.record[row].item(), jobs.submit[row].item(), 0
        cluster.actuate([Action(Verb.OPEN, *who, (node,), np.inf)])
    clock.sleep_until(T0 + seconds)
    cluster.catch_up(T0 + seconds)
    told = cluster.observe({}).told
    assert told is not None
    return told
