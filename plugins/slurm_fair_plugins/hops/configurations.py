"""Configurations of jobs and what they are worth: the columns of Hops' integer program (section 3.6, eq. 11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.policy import Pools, View, sizes_of, speed_in
from slurm_fair.policy.orders.offer import Offer
from slurm_fair.solve.places import PlacesProblem


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape in which each of some jobs runs now: kind of server, GPUs, on several; -1 = it does not run."""

    on: Ints
    gpus: Ints
    spread: Bools


@dataclass(frozen=True, slots=True)
class Configurations:
    """One entry for each job and configuration; `job` counts along the rows that were asked about."""

    job: Ints
    on: Ints  # the region of its servers
    gpus: Ints
    spread: Bools
    gain: Floats  # speed over the least speed of the job (Table 1)

    def worth(self, weight: Floats, now: Shape, inertia: float) -> Floats:
        """(prior + bias)^lambda * G, a little more where the job runs so already."""
        job = self.job
        same: Bools = (
            (now.on[job] == self.on) & (now.gpus[job] == self.gpus) & (now.spread[job] == self.spread)
        )
        return weight[self.job] * self.gain * np.where(same, 1.0 + inertia, 1.0)


def plain(view: View, rows: Ints) -> Bools:
    """Jobs whose places may be chosen freely: all on one node, or split as Slurm likes; others have one shape."""
    jobs, snapshot = view.snapshot.jobs, view.snapshot
    each, named = jobs.gpus_per_node[rows], np.union1d(snapshot.wanted.row, snapshot.barred.row)
    one: Bools = (jobs.nodes[rows] <= 1) & ((each == 0) | (each == jobs.gpus[rows]))
    return one & ~np.isin(rows, named)


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
    found: Bools = in_pool[choices].any(axis=0)
    return found


def configurations(view: View, pools: Pools, rows: Ints, rho: Floats, threshold: float) -> Configurations:
    """Every size on every kind of server: on one of them, and spread where that costs the job little.

    A job that is too sensitive is spread only where its least size is larger than any server of the kind.
    """
    sizes, regions = sizes_of(view), regions_of(pools, view, rows)
    at = np.full(len(view.waiting), -1, dtype=np.int64)
    at[rows] = np.arange(len(rows))
    mine = at[sizes.row] >= 0
    job, gpus = at[sizes.row[mine]], sizes.gpus[mine]
    entry, on = np.nonzero(regions[job])
    job, gpus = job[entry], gpus[entry]
    biggest = _per_region(pools, pools.size)
    least = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(least, job, gpus)
    apart = may_spread(view, rows)[job] & (gpus > 1) & ((rho[job] <= threshold) | (least[job] > biggest[on]))
    together = gpus <= biggest[on]
    job, on, gpus = (np.concatenate([each[together], each[apart]]) for each in (job, on, gpus))
    spread = np.arange(len(job)) >= np.count_nonzero(together)
    speed = speed_in(view, rows[job], _types(pools, view)[on], gpus, spread)
    runs = speed > 0
    slowest = np.full(len(rows), np.inf)
    np.minimum.at(slowest, job[runs], speed[runs])
    gain = speed[runs] / slowest[job[runs]]
    return Configurations(job[runs], on[runs], gpus[runs], spread[runs], gain)


def _per_region(pools: Pools, of_node: Ints) -> Ints:
    """The largest number of each region's nodes."""
    most = np.zeros(1 + int(pools.region.max(initial=-1)), dtype=np.int64)
    inside = pools.region >= 0
    np.maximum.at(most, pools.region[inside], of_node[inside])
    return most


def _types(pools: Pools, view: View) -> Ints:
    """The GPU type of each region."""
    return _per_region(pools, view.snapshot.nodes.gpu_type)


def shapes_now(view: View, pools: Pools, rows: Ints) -> Shape:
    """The shapes of those of these jobs that hold GPUs."""
    places, jobs = view.lease_places, len(view.waiting)
    gpus = np.bincount(places.row, places.gpus, jobs).astype(np.int64)[rows]
    nodes = np.bincount(places.row, minlength=jobs)[rows]
    on = np.full(jobs, -1, dtype=np.int64)
    on[places.row] = pools.region[places.node]
    return Shape(np.where(nodes > 0, on[rows], -1), gpus, nodes > 1)


def problem(offer: Offer, configurations: Configurations, value: Floats, jobs: int) -> PlacesProblem:
    """The integer program over what is free of the offer; racks are blocks."""
    pools, racks = offer.pools, offer.view.snapshot.racks
    usable = pools.usable
    block = np.zeros(len(usable), dtype=np.int64) if racks is None else racks
    free = offer.free
    return PlacesProblem(
        free[usable], pools.region[usable], block[usable], np.maximum(pools.size, free)[usable],
        configurations.job, configurations.on, configurations.gpus, configurations.spread, value, jobs,
    )  # fmt: skip
