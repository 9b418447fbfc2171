"""Priorities of jobs by name: Hops' latency ratio and those that it is compared with (3.6, 4.3 to 4.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import numpy as np

from slurm_fair.ledger.formulas import ratio
from slurm_fair.policy import Bools, Floats, Ints, View, alike, oldest_first, sizes_of, speed_in, take_or

Name: TypeAlias = Literal["lr", "ftf", "las", "sjf", "srtf", "ltgf"]
Queue: TypeAlias = Literal[
    "age", "lr"
]  # among those whom a policy takes for equals: oldest first, or as in Hops
_NOBODY_KNOWS = 3600.0  # seconds that jobs run of which nobody said how long, where nobody said it of any


def priorities(view: View, rows: Ints, name: Name) -> Floats:
    """The priority of these rows of the snapshot's jobs; the highest goes first."""
    return _PRIORITIES[name](view, rows)


def by_priority(view: View, rows: Ints, prior: Floats) -> Ints:
    """Places in `rows`, the highest priority first, then whoever was submitted first."""
    order: Ints = np.lexsort((view.first_submit[rows], -alike(prior)))
    return order


def queued(view: View, rows: Ints, queue: Queue) -> Ints:
    """These rows in the order of such a queue."""
    if queue == "age":
        return oldest_first(view, rows)
    return rows[by_priority(view, rows, priorities(view, rows, queue))]


def expected_run_seconds(view: View, rows: Ints) -> Floats:
    """Expected run time without waiting, over GPU types by their part of the cluster (eq. 9).

    The throughput of eq. 9 is that of one GPU; a job asks on average for the mean of its sizes. Types on which a
    job does not run do not count. A job of unknown length is as long as the median of those that are known.
    """
    sizes = sizes_of(view)
    sums = np.bincount(sizes.row, sizes.gpus, len(view.waiting))
    mean_gpus = (sums / np.maximum(np.bincount(sizes.row, minlength=len(view.waiting)), 1))[rows]
    seconds = _run_seconds(view)[rows]
    part = type_parts(view)
    total, weight = np.zeros(len(rows)), np.zeros(len(rows))
    for kind in np.flatnonzero(part > 0).tolist():
        speed = _of_one(view, rows, kind)
        runs = speed > 0
        total[runs] += part[kind] * seconds[runs] / (speed * mean_gpus)[runs]
        weight[runs] += part[kind]
    return np.maximum(np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), seconds), 1.0)


def type_parts(view: View) -> Floats:
    """The part of the cluster's usable GPUs that each GPU type has."""
    nodes = view.snapshot.nodes
    gpus = np.bincount(
        nodes.gpu_type[nodes.usable], nodes.capacity[nodes.usable], len(view.snapshot.gpu_types)
    )
    parts: Floats = gpus / max(float(gpus.sum()), 1.0)
    return parts


def _of_one(view: View, rows: Ints, kind: int) -> Floats:
    """Speed with one GPU of this type."""
    return speed_in(view, rows, np.full(len(rows), kind), np.ones(len(rows), dtype=np.int64), _no(rows))


def _no(rows: Ints) -> Bools:
    return np.zeros(len(rows), dtype=bool)


def _run_seconds(view: View) -> Floats:
    """Run time of every job with its usual size on the reference type.

    It is the declared one, else what the job did and what it has left as it reports or as ended jobs of its class
    tell, else its time limit.
    """
    said, told = view.told_alone, view.told
    foreseen = told.done_seconds + said.left_seconds
    seconds = np.where(np.isnan(said.declared_seconds), foreseen, said.declared_seconds)
    seconds = np.where(np.isnan(seconds), told.declared_seconds, seconds)
    known = np.isfinite(seconds)
    usual = float(np.median(seconds[known])) if known.any() else _NOBODY_KNOWS
    return np.where(known, seconds, np.maximum(usual, view.ran_seconds))


def _latency_ratio(view: View, rows: Ints) -> Floats:
    """wait / age (eq. 8)."""
    return view.waited_seconds[rows] / expected_run_seconds(view, rows)


def _finish_time(view: View, rows: Ints) -> Floats:
    """Finish-time fairness as in Sia: time since submission and what is left, over that on 1/N of all types."""
    gpus = np.maximum(view.snapshot.jobs.gpus[rows], 1)
    alone, part = np.zeros(len(rows)), type_parts(view)
    everyone = max(int(np.count_nonzero(view.claims)), 1)
    share = part * view.snapshot.nodes.capacity[view.snapshot.nodes.usable].sum() / everyone
    scale = 1.0 / np.maximum(share.sum() / gpus, 1.0)  # no more of them than its gang
    for kind in np.flatnonzero(part > 0).tolist():
        there = speed_in(view, rows, np.full(len(rows), kind), view.snapshot.jobs.gpus[rows], _no(rows))
        alone += there * share[kind] / gpus * scale
    declared = _run_seconds(view)[rows]
    left = np.where(np.isfinite(view.told.left_seconds[rows]), view.told.left_seconds[rows], declared)
    shared = view.now - view.first_submit[rows] + left
    return shared / np.maximum(declared / np.maximum(alone, 1e-9), 1.0)


def _least_attained(view: View, rows: Ints) -> Floats:
    return -view.had_gpu_seconds[rows]


def _shortest(view: View, rows: Ints) -> Floats:
    return -_run_seconds(view)[rows]


def _shortest_left(view: View, rows: Ints) -> Floats:
    left = view.told.left_seconds[rows]
    return -np.where(np.isfinite(left), left, _run_seconds(view)[rows])


def _longest_owed(view: View, rows: Ints) -> Floats:
    """Long-term GPU-time fairness: least rho of tenant and job together first (Astraea)."""
    tenants, jobs = view.tenant_sums, view.ledger.jobs
    of_tenant = take_or(ratio(tenants.had, tenants.owed_quota, nothing=0.0), view.tenant_row[rows], 0.0)
    of_job = take_or(ratio(jobs.had, jobs.owed, nothing=0.0), view.account_row[rows], 0.0)
    return -(of_tenant + of_job)


_PRIORITIES: Mapping[Name, Callable[[View, Ints], Floats]] = MappingProxyType(
    {
        "lr": _latency_ratio,
        "ftf": _finish_time,
        "las": _least_attained,
        "sjf": _shortest,
        "srtf": _shortest_left,
        "ltgf": _longest_owed,
    }
)
assert set(_PRIORITIES) == set(get_args(Name))
