"""Make up the jobs of `make fidelity`: three tenants, gangs of 1 to 32 GPUs, Poisson arrivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Floats, Ints
from slurm_fair.trace import Trace
from slurm_fair.trace.collect import Collector, ColumnRules

WEIGHTS = {"vision": 1, "nlp": 1, "speech": 2}
GANGS = {1: 0.36, 2: 0.36, 4: 0.16, 8: 0.09, 16: 0.03}  # GPUs and how often they are asked for
NODES, GPUS_PER_NODE = 4, 8
_SHORTEST, _LONGEST = 3.0, 60.0  # seconds of work
_SIGMA = 0.8  # of the logarithm of the work
DECLARED_MINUTES = 10  # of every job, as `sbatch --time` has it


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that is to be submitted; instants and work in seconds."""

    name: str
    tenant: str
    at: float
    gpus: int
    work: float

    @property
    def nodes(self) -> int:
        """The fewest nodes that hold its GPUs."""
        return -(-self.gpus // GPUS_PER_NODE)


def planned(jobs: int, over_seconds: float, load: float, seed: int) -> tuple[PlannedJob, ...]:
    """So many jobs over about so long, which ask for `load` times the GPU time that there is meanwhile."""
    dice = np.random.default_rng(seed)
    gpus = dice.choice(list(GANGS), p=list(GANGS.values()), size=jobs)
    # One, in their midst, wants everything.
    gpus[dice.integers(jobs // 3, 1 + jobs // 2)] = NODES * GPUS_PER_NODE
    at = np.cumsum(dice.exponential(over_seconds / jobs, jobs))
    tenant = dice.choice(list(WEIGHTS), size=jobs)
    work = _work(dice.normal(0.0, _SIGMA, jobs), gpus, load * over_seconds * NODES * GPUS_PER_NODE)
    rows = zip(tenant.tolist(), at.tolist(), gpus.tolist(), work.tolist(), strict=True)
    return tuple(
        PlannedJob(f"j{number:03}", who, round(when, 2), gang, round(seconds, 1))
        for number, (who, when, gang, seconds) in enumerate(rows, start=1)
    )


def _work(logarithm: Floats, gpus: Ints, gpu_seconds: float) -> Floats:
    """Log-normal within bounds; scaled until all of it comes to the GPU time that is wanted."""
    scale = gpu_seconds / float((gpus * np.exp(logarithm)).sum())
    work: Floats = scale * np.exp(logarithm)
    for _ in range(50):
        work = np.clip(scale * np.exp(logarithm), _SHORTEST, _LONGEST)
        scale *= gpu_seconds / float((gpus * work).sum())
    return work


def as_trace(jobs: tuple[PlannedJob, ...]) -> Trace:
    """The trace of these jobs for the simulator."""
    columns = ("job_id", "tenant", "submit_s", "gpus", "duration_s", "declared_s", "node_count")
    collector = Collector(columns, ColumnRules())
    for job in sorted(jobs, key=lambda job: job.at):
        declared = f"{60 * DECLARED_MINUTES}"
        row = [
            job.name,
            job.tenant,
            f"{job.at:.3f}",
            str(job.gpus),
            f"{job.work:.3f}",
            declared,
            str(job.nodes),
        ]
        collector.add(f" job {job.name}", row)
    return collector.trace()
