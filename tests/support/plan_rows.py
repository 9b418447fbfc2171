"""A plan read row by row: nodes of a job, rows of a verdict, GPUs that stay free."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slurm_fair.model import Placement, Plan, Sizes, Snapshot, Verdict
from slurm_fair.model.sizes import shares
from slurm_fair.policy import View
from tests.support.conservation import left_waiting


def sites_of(plan: Plan, row: int) -> dict[int, int]:
    """GPUs by node of one granted row."""
    mine = plan.places.row == row
    return dict(zip(plan.places.node[mine].tolist(), plan.places.gpus[mine].tolist(), strict=True))


def rows_of(plan: Plan, verdict: Verdict) -> list[int]:
    """Rows with this verdict."""
    return [int(row) for row in np.flatnonzero(plan.verdict == verdict)]


def free_after(seen: View, plan: Plan, what: str) -> list[int]:
    """GPUs, CPUs or memory of each node that nobody has when the plan is carried out."""
    nodes, jobs = seen.snapshot.nodes, seen.snapshot.jobs
    others = {"gpus": nodes.gpus_others, "cpus": nodes.cpus_others, "memory_mb": nodes.memory_others_mb}[what]
    free: list[int] = (getattr(nodes, what) - others).tolist()
    stays = [(*each, True) for each in _held_or_promised(seen) if plan.verdict[each[0]] != Verdict.REVOKE]
    placed = zip(plan.places.row.tolist(), plan.places.node.tolist(), plan.places.gpus.tolist(), strict=True)
    taken = Placement.of([(row, node, gpus) for row, node, gpus, *_ in [*stays, *placed]])
    of_each = dict(
        zip(("gpus", "cpus", "memory_mb"), shares(taken, taken.row, jobs, seen.snapshot.sizes), strict=True)
    )
    for node, amount in zip(taken.node.tolist(), of_each[what].tolist(), strict=True):
        free[node] -= amount
    return free


def has_a_size(snap: Snapshot, row: int, gpus: int) -> bool:
    """True where so many GPUs are the gang of a job, or one of its sizes."""
    sizes = snap.sizes if snap.sizes is not None else Sizes.none()
    return gpus == snap.jobs.gpus[row] or bool(sizes.allow(np.array([row]), np.array([gpus])).item())


def _held_or_promised(seen: View) -> Iterator[tuple[int, int, int]]:
    held = seen.snapshot.held
    yield from zip(held.row.tolist(), held.node.tolist(), held.gpus.tolist(), strict=True)
    row_of = {key: row for row, key in enumerate(seen.snapshot.jobs.key.tolist())}
    node_of = {name: node for node, name in enumerate(seen.snapshot.nodes.names)}
    table = seen.leases
    for key, node, gpus in zip(*table.promises._arrays().values(), strict=True):
        yield row_of[int(key)], node_of[table.node_names[int(node)]], int(gpus)


def left_idle(seen: View, plan: Plan) -> list[int]:
    """Rows that wait though their gangs fit what nobody has when the plan is carried out."""
    free = [np.array(free_after(seen, plan, what)) for what in ("gpus", "cpus", "memory_mb")]
    return left_waiting(seen.snapshot, plan, *free)


def runs_on(seen: View, row: int, gpu_type: int) -> bool:
    """True where a job runs on GPUs of this type at all; where there is but one type, all jobs do."""
    told, types = seen.snapshot.told, seen.snapshot.gpu_types
    return told is None or len(types) < 2 or bool(told.rate[row, gpu_type] > 0)
