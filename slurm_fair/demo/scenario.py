"""The demo's cluster, tenants and jobs, as plain values; lengths are in leases, so that all of it scales."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from slurm_fair.errors import InputError

STEP_SECONDS = 0.2
NODES, GPUS_PER_NODE, LEASE_SECONDS = 4, 8, 8.0
SHORTEST_LEASE_SECONDS, LONGEST_LEASE_SECONDS = 3.0, 3600.0
MOST_NODES, MOST_GPUS_PER_NODE = 64, 64
_LENGTHS = (1.0, 0.6, 1.3, 0.8, 1.2)  # of the jobs of one tenant, so that they do not end together
FLOOD, SECOND, THIRD = "vision", "nlp", "speech"
POLICY = "fair"
# How far from its end a job may be and still go before those of tenants within their quota; what a stop costs it.
_PRICE_LEASES, _RESTART_LEASES = 2.5, 0.6
WEIGHTS: Mapping[str, int] = MappingProxyType({FLOOD: 1, SECOND: 1, THIRD: 2})


class Scheduler(Enum):
    """The scheduler of one act; the value is its name in tables."""

    SLURM_FAIR = "slurm_fair"
    FAIR_SHARE = "fair share"
    FIFO = "FIFO"

    @property
    def ours(self) -> bool:
        return self is Scheduler.SLURM_FAIR

    @property
    def folder(self) -> str:
        """The name of the act's folder."""
        return self.value.replace(" ", "_").lower()


PLAIN = (Scheduler.FAIR_SHARE, Scheduler.FIFO)  # Slurm alone, as most sites have it and at its plainest


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One submission: a counter that runs for so many steps on its gang."""

    name: str
    tenant: str
    nodes: int
    gpus_per_node: int
    at_seconds: float
    steps: int

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def work_seconds(self) -> float:
        """Seconds that it runs when nobody interrupts it."""
        return self.steps * STEP_SECONDS


@dataclass(frozen=True, slots=True)
class DemoScenario:
    """Everything that both acts of the demo have in common."""

    nodes: int
    gpus_per_node: int
    lease_seconds: float
    grace_seconds: float
    jobs: tuple[DemoJob, ...]
    weights: Mapping[str, int]
    least_rho: float
    interval_seconds: float = 1.0

    @property
    def total_gpus(self) -> int:
        """All GPUs of the cluster."""
        return self.nodes * self.gpus_per_node

    @property
    def biggest_gang(self) -> int:
        """The GPUs of the biggest job."""
        return max(job.gpus for job in self.jobs)

    @property
    def work_gpu_seconds(self) -> float:
        """GPU-seconds of all jobs together."""
        return sum(job.gpus * job.work_seconds for job in self.jobs)

    def begin(self, now: float) -> float:
        """The next instant just after leases have ended: all jobs are there when they end again, in every demo."""
        return (math.floor(now / self.lease_seconds) + 1.05) * self.lease_seconds

    @property
    def policy_settings(self) -> Mapping[str, float]:
        """The settings of `fair`, in the demo's own measure: a site weighs hours, and the demo has seconds.

        What is proven is each tenant's part, so nothing but its quota, what it lacks and work left decide.
        """
        return {
            "price_hours": round(_PRICE_LEASES * self.lease_seconds / 3600.0, 6),
            "debt_hours": 0.0,
            "restart_seconds": round(_RESTART_LEASES * self.lease_seconds, 3),
            "inertia": 0.0,
            "claim_weight": 0.0,
            "makespan_weight": 0.0,
        }

    @property
    def recount_seconds(self) -> float:
        """Seconds between two counts of usage by Slurm's fair share: two leases."""
        return 2 * self.lease_seconds

    @property
    def limit_seconds(self) -> float:
        """Seconds after which an act has gone wrong that is not over: four times what a full cluster needs."""
        return 30.0 + 4 * self.work_gpu_seconds / self.total_gpus


@dataclass(frozen=True, slots=True)
class _Wave:
    """One tenant's submissions: gangs in this order, over and over until they want so many clusters."""

    tenant: str
    gangs: Sequence[int]
    clusters: float
    at_leases: float
    lasts_leases: float  # from its first submission to its last
    work_leases: float


def full(
    nodes: int = NODES, gpus_per_node: int = GPUS_PER_NODE, lease_seconds: float = LEASE_SECONDS
) -> DemoScenario:
    """About 30 jobs: one tenant floods, the others come half a lease later, one job wants the whole cluster."""
    _check(nodes, gpus_per_node, lease_seconds)
    node, half, quarter = gpus_per_node, max(1, gpus_per_node // 2), max(1, gpus_per_node // 4)
    pair = min(2, nodes) * node
    waves = (
        _Wave(FLOOD, (half, node, quarter, quarter, half, quarter, quarter), 1.5, 0.0, 0.0, 3.0),
        _Wave(SECOND, (half, quarter, node, 1, half, quarter, 1, node), 0.9, 0.55, 0.3, 1.3),
        _Wave(THIRD, (half, pair, quarter, node, half, node), 1.3, 0.6, 0.25, 1.2),
    )
    return _scenario(nodes, gpus_per_node, lease_seconds, waves, 2.0, 0.6)


def quick(lease_seconds: float = 5.0) -> DemoScenario:
    """The same in small: two nodes with four GPUs each, about ten jobs, half a minute."""
    _check(2, 4, lease_seconds)
    waves = (
        _Wave(FLOOD, (2, 4, 2, 2, 2), 1.5, 0.0, 0.0, 1.3),
        _Wave(SECOND, (1, 2, 1, 2), 0.7, 0.5, 0.2, 1.2),
        _Wave(THIRD, (4, 2, 2), 0.9, 0.55, 0.2, 1.2),
    )
    # One lease is a good part of the whole, so the bound is lower; plain Slurm is below it all the same.
    return _scenario(2, 4, lease_seconds, waves, 0.6, 0.5)


def _scenario(
    nodes: int,
    gpus_per_node: int,
    lease_seconds: float,
    waves: Sequence[_Wave],
    whole_cluster_leases: float,
    least_rho: float,
) -> DemoScenario:
    last = max(wave.at_leases + wave.lasts_leases for wave in waves)
    at, lasts = (last + 0.05) * lease_seconds, whole_cluster_leases * lease_seconds
    long = _job(f"{THIRD}-whole", THIRD, nodes, gpus_per_node, at, lasts)
    jobs = [job for wave in waves for job in _jobs(wave, nodes, gpus_per_node, lease_seconds)]
    ordered = sorted([*jobs, long], key=lambda job: job.at_seconds)
    grace = min(5.0, max(2.0, lease_seconds / 2))
    return DemoScenario(nodes, gpus_per_node, lease_seconds, grace, tuple(ordered), WEIGHTS, least_rho)


def _jobs(wave: _Wave, nodes: int, gpus_per_node: int, lease_seconds: float) -> Iterator[DemoJob]:
    gangs = list(_gangs(wave, nodes * gpus_per_node))
    for number, gang in enumerate(gangs):
        across = -(-gang // gpus_per_node)
        at = wave.at_leases + wave.lasts_leases * number / len(gangs)
        work = wave.work_leases * _LENGTHS[number % len(_LENGTHS)]
        name = f"{wave.tenant}-{number + 1:02}"
        yield _job(name, wave.tenant, across, gang // across, at * lease_seconds, work * lease_seconds)


def _gangs(wave: _Wave, total_gpus: int) -> Iterator[int]:
    wanted = 0
    for gang in itertools.cycle(wave.gangs):
        if wanted >= wave.clusters * total_gpus:
            return
        wanted += gang
        yield gang


def _job(name: str, tenant: str, nodes: int, gpus: int, at_seconds: float, work_seconds: float) -> DemoJob:
    return DemoJob(
        name, tenant, nodes, gpus, round(at_seconds, 2), max(1, round(work_seconds / STEP_SECONDS))
    )


def _check(nodes: int, gpus_per_node: int, lease_seconds: float) -> None:
    if nodes < 1 or gpus_per_node < 1:
        raise InputError("the demo needs at least one node with one GPU: see --nodes and --gpus-per-node")
    if nodes > MOST_NODES or gpus_per_node > MOST_GPUS_PER_NODE:
        raise InputError(
            f"the demo shows at most {MOST_NODES} nodes with {MOST_GPUS_PER_NODE} GPUs: see --nodes and "
            "--gpus-per-node"
        )
    if not SHORTEST_LEASE_SECONDS <= lease_seconds <= LONGEST_LEASE_SECONDS:
        raise InputError(
            f"--lease {lease_seconds:g}: starting a job takes about a second and people watch, so give "
            f"{SHORTEST_LEASE_SECONDS:g} to {LONGEST_LEASE_SECONDS:g}"
        )
