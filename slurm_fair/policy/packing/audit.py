"""The Pareto audit of a plan: whether it leaves GPUs idle that a waiting job could have had."""

from __future__ import annotations

import numpy as np

from slurm_fair.ledger.metrics.evenness import could_be_added
from slurm_fair.model import Plan, Verdict
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.policy.view import View


def left_out(plan: Plan, view: View) -> Ints:
    """Rows of jobs that a plan lets wait although the GPUs that it leaves over would hold them, each by itself.

    GPUs of a job that is asked to stop count as held: another one is to have them.
    """
    jobs, nodes = view.snapshot.jobs, view.snapshot.nodes
    rows = np.flatnonzero((plan.verdict == Verdict.WAIT) & view.waiting)
    if not len(rows):
        return rows
    free = np.where(nodes.usable, np.maximum(view.free_gpus - plan.places.per_node(len(nodes)), 0), 0)
    allowed = _allowed(view, rows)
    shape = (jobs.gpus[rows], jobs.nodes[rows], jobs.gpus_per_node[rows])
    fits = np.zeros(len(rows), dtype=bool)
    for kind in range(len(view.snapshot.gpu_types)):  # a gang never lies on several types
        may = (jobs.gpu_type[rows] < 0) | (jobs.gpu_type[rows] == kind)
        fits |= may & could_be_added(free, *shape, allowed & (nodes.gpu_type == kind))
    return rows[fits & ~_too_spread(jobs.most_nodes[rows], shape[0], np.where(allowed, free, 0))]


def _too_spread(most: Ints, gpus: Ints, free: Ints) -> Bools:
    """Gangs that lie on so many nodes at most, which have not so many free GPUs."""
    best = np.cumsum(-np.sort(-free, axis=1), axis=1)
    last = np.clip(most, 1, free.shape[1]) - 1
    return (most > 0) & (np.take_along_axis(best, last[:, None], axis=1)[:, 0] < gpus)


def _allowed(view: View, rows: Ints) -> Bools:
    """[row, node]: its partition, what its user asked for and excluded, and the CPUs and memory that it needs."""
    snapshot, jobs = view.snapshot, view.snapshot.jobs
    partitions = snapshot.partitions
    allowed = partitions.members[jobs.partition[rows]] & partitions.up[jobs.partition[rows], None]
    for at, row in enumerate(rows.tolist()):
        wanted, barred = snapshot.wanted.nodes_of(row), snapshot.barred.nodes_of(row)
        if len(wanted):
            allowed[at] &= np.isin(np.arange(len(snapshot.nodes)), wanted)
        allowed[at, barred] = False
    parts = np.maximum(jobs.nodes[rows], 1)
    cpus, memory = -(-jobs.cpus[rows] // parts), -(-jobs.memory_mb[rows] // parts)
    allowed &= view.spare_cpus >= cpus[:, None]
    allowed &= view.spare_memory_mb >= memory[:, None]
    return allowed
