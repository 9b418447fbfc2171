"""The cluster as one look showed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.model.action import Action
from slurm_fair.model.aside import Aside
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.model.job import JobTable
from slurm_fair.model.node import NodeTable, PartitionTable
from slurm_fair.model.placement import Placement
from slurm_fair.model.profiles import Profiles
from slurm_fair.model.reported import Reported
from slurm_fair.model.sizes import Sizes
from slurm_fair.model.speeds import Speeds
from slurm_fair.model.tenant import TenantTable
from slurm_fair.model.told import Told


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A job of a managed partition that is never touched, and why."""

    label: str
    reason: str
    user: str = ""
    unreadable: bool = False  # Slurm's row of it could not be read


@dataclass(frozen=True, slots=True)
class ListInDoubt:
    """A job whose node list was set by its user or by an earlier daemon: nobody can tell which."""

    label: str
    nodes: str
    user: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole, believable view; an incomplete one is a `Blind` instead."""

    time: float
    cluster: str
    nodes: NodeTable
    partitions: PartitionTable
    tenants: TenantTable
    users: tuple[str, ...]
    gpu_types: tuple[str, ...]
    jobs: JobTable
    held: Placement  # GPUs that jobs hold now, by row of `jobs`
    wanted: Placement  # nodes that a user asked for by name (gpus = 0), by row of `jobs`
    barred: Placement  # nodes that a user excluded (gpus = 0), by row of `jobs`
    reasons: tuple[
        str, ...
    ]  # Slurm's own word per row of `jobs`: its reason, or the final state of one that is over
    left_alone: tuple[LeftAlone, ...] = ()
    graces: Mapping[int, float] = field(default_factory=dict)  # seconds that running jobs ask to save, by key
    qos: tuple[str, ...] = ()  # QOS per row of `jobs`, where the cluster knows such a thing
    told: Told | None = None  # what users and jobs say of the work, where anything is said
    racks: Ints | None = None  # rack number of each node, where racks are known
    resized: tuple[
        tuple[float, int], ...
    ] = ()  # M from each instant on that it changed at since the last look
    resized_by_weight: tuple[tuple[float, float], ...] = ()  # the same by weight, where GPUs are weighed
    in_doubt: tuple[ListInDoubt, ...] = ()
    to_free: tuple[Action, ...] = ()  # of jobs that are not managed and carry something of ours
    aside: Aside | None = None  # left alone, and charged; None where nobody is
    gpu_weights: Floats | None = None  # what a GPU of each type counts; None = 1 each
    sizes: Sizes | None = None  # of elastic jobs; None where nobody is elastic
    speeds: Speeds | None = None  # what is known of how fast jobs are in each shape
    rigid: Mapping[int, str] = field(default_factory=dict)  # jobs that name sizes in vain, and why
    reported: Reported | None = None  # by running jobs; None where nobody reports
    profiles: Profiles | None = None  # of jobs whose speed is to be measured; None where nobody asks for it

    @property
    def total_gpus(self) -> int:
        """M of the metrics: GPUs that managed jobs can have now, and those of jobs that are left alone."""
        return self.nodes.total_gpus + (self.aside.total_gpus if self.aside else 0)

    @property
    def weighted_gpus(self) -> float:
        """M by weight: what is shared out."""
        if self.gpu_weights is None:
            return float(self.total_gpus)
        nodes = self.nodes
        gpus = nodes.capacity if self.aside is None else nodes.capacity + self.aside.held.per_node(len(nodes))
        return float((gpus * self.gpu_weights[nodes.gpu_type]).sum())

    @property
    def usual_gpus(self) -> Ints:
        """The size of each job with which declared run times are meant."""
        gpus = self.jobs.gpus
        return gpus if self.sizes is None else self.sizes.usual_gpus(gpus)

    @property
    def must_fit_seconds(self) -> Floats:
        """Seconds that Slurm wants before each job's deadline to start it: its least time, else its limit."""
        limit = self.jobs.time_limit_seconds
        if self.told is None:
            return limit
        least = self.told.must_fit_seconds
        return np.where(np.isnan(least), limit, least)

    @property
    def tenant_gpus_aside(self) -> Ints:
        """GPUs that jobs which are left alone hold now, by tenant."""
        if self.aside is None:
            return np.zeros(len(self.tenants), dtype=np.int64)
        jobs, held = self.aside.jobs, self.aside.held
        return np.bincount(jobs.tenant[held.row], held.gpus, len(self.tenants)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Blind:
    """The cluster could not be seen; nothing may be concluded and nothing done."""

    time: float
    reason: str
