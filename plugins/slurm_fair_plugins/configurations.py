"""Configurations of jobs: every size on every kind of server, and how fast a job would be so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Columns
from slurm_fair.policy import Bools, Floats, Ints, Pools, View, absent, ranks, sizes_of, speed_in


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape in which each of some jobs runs now."""

    on: Ints  # the region of its servers; -1 = it holds no GPUs
    gpus: Ints
    spread: Bools


@dataclass(frozen=True)
class Configurations(Columns):
    """One entry for each job and configuration; `job` counts along the rows that were asked about."""

    job: Ints
    on: Ints  # the region of its servers
    gpus: Ints
    spread: Bools  # on more than one of them
    speed: Floats
    biggest: Ints  # GPUs of the biggest server of that region

    @property
    def gain(self) -> Floats:
        """Speed over the least speed of the job (Hops, Table 1)."""
        slowest = np.full(1 + int(self.job.max(initial=-1)), np.inf)
        np.minimum.at(slowest, self.job, self.speed)
        gain: Floats = self.speed / slowest[self.job]
        return gain

    def unchanged(self, now: Shape) -> Bools:
        """The configurations in which jobs run already."""
        job = self.job
        alike = now.on[job] == self.on, now.gpus[job] == self.gpus, now.spread[job] == self.spread
        same: Bools = np.logical_and.reduce(alike)
        return same


def freely_placed(view: View, rows: Ints) -> Bools:
    """Jobs whose places may be chosen freely: all on one node, or split as Slurm likes; others have one shape."""
    jobs, snapshot = view.snapshot.jobs, view.snapshot
    each, named = jobs.gpus_per_node[rows], np.union1d(snapshot.wanted.row, snapshot.barred.row)
    free: Bools = (jobs.nodes[rows] <= 1) & ((each == 0) | (each == jobs.gpus[rows]))
    return free & ~np.isin(rows, named)


def may_spread(view: View, rows: Ints) -> Bools:
    """Jobs that Slurm may put on several nodes."""
    jobs = view.snapshot.jobs
    able: Bools = (jobs.gpus_per_node[rows] == 0) & (jobs.most_nodes[rows] != 1)
    return able


def regions_of(pools: Pools, view: View, rows: Ints) -> Bools:
    """[job, region]: where each of these jobs may lie."""
    jobs, regions = view.snapshot.jobs, 1 + int(pools.region.max(initial=-1))
    in_pool = np.zeros((len(pools.regions) + 1, regions), dtype=bool)
    for pool, inside in enumerate(pools.regions):
        in_pool[pool, list(inside)] = True
    choices = pools.choices_of(jobs.partition[rows], jobs.gpu_type[rows])  # -1 = none: the last row, empty
    found: Bools = np.logical_or.reduce(in_pool[choices], axis=0)
    return found


def configurations(view: View, pools: Pools, rows: Ints) -> Configurations:
    """Every size of these jobs on every kind of server on which they run: on one of them, and on several."""
    sizes, regions = sizes_of(view), regions_of(pools, view, rows)
    at = ranks(len(view.waiting), rows)
    mine = at[sizes.row] >= 0
    job, gpus = at[sizes.row[mine]], sizes.gpus[mine]
    entry, on = np.nonzero(regions[job])
    job, gpus = job[entry], gpus[entry]
    biggest = _per_region(pools, pools.size)
    together, apart = gpus <= biggest[on], may_spread(view, rows)[job] & (gpus > 1)
    job, on, gpus = (np.concatenate([each[together], each[apart]]) for each in (job, on, gpus))
    spread = np.arange(len(job)) >= np.count_nonzero(together)
    kind = _per_region(pools, view.snapshot.nodes.gpu_type)[on]
    speed = speed_in(view, rows[job], kind, gpus, spread & (gpus <= biggest[on]))  # more than it needs
    return Configurations(job, on, gpus, spread, speed, biggest[on]).take(speed > 0)


def _per_region(pools: Pools, of_node: Ints) -> Ints:
    """The largest number of each region's nodes."""
    most = np.zeros(1 + int(pools.region.max(initial=-1)), dtype=np.int64)
    inside = pools.region >= 0
    np.maximum.at(most, pools.region[inside], of_node[inside])
    return most


def shapes_now(view: View, region: Ints, rows: Ints) -> Shape:
    """The shapes of those of these jobs that hold GPUs; `region` is that of each node."""
    places, jobs = view.lease_places, len(view.waiting)
    gpus = np.bincount(places.row, places.gpus, jobs).astype(np.int64)[rows]
    nodes = np.bincount(places.row, minlength=jobs)[rows]
    on = absent(jobs)
    on[places.row] = region[places.node]
    return Shape(np.where(nodes > 0, on[rows], -1), gpus, nodes > 1)
