"""Jobs that fit nowhere even if all who can gave way: they hold no job back.

They claim nothing where no node could take them, and their share where others keep them out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slurm_fair.model import Aside, Blocked, Leases, Snapshot
from slurm_fair.model.columns import Bools, Ints, all_of, any_of, find
from slurm_fair.model.lease import NEVER_ENDS_SECONDS
from slurm_fair.model.sizes import shares
from slurm_fair.policy.packing.gang import Gang, Pools
from slurm_fair.policy.packing.placement import CONSOLIDATED, Placer, placer, spreads
from slurm_fair.policy.packing.room import Room
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.protocol import Policy
from slurm_fair.policy.view import View


class Means(NamedTuple):
    """GPUs, CPUs and memory that each node could give."""

    gpus: Ints
    cpus: Ints
    memory_mb: Ints


def without_the_impossible(snapshot: Snapshot, leases: Leases, policy: Policy) -> Snapshot:
    """The snapshot in which jobs that no usable nodes could take, were they empty, are blocked.

    Their nodes are down, drained, reserved, excluded or too few. Jobs that only others which are left alone keep
    out are blocked too, but are owed their share. What was promised is followed, not blocked.
    """
    jobs, nodes = snapshot.jobs, snapshot.nodes
    if _everybody_could_start(snapshot):
        return snapshot
    rows = (jobs.waiting & jobs.unblocked).nonzero()[0]
    if not rows.size:
        return snapshot
    means = Means(nodes.capacity, nodes.cpus_left, nodes.memory_left_mb)
    lay = placer_of(policy)
    beyond = beyond_means(snapshot, rows, means, lay)
    if not beyond.size:
        return snapshot
    promised = leases.key[leases.promised]
    beyond = beyond[find(promised, jobs.key[beyond]) < 0]
    never = _beyond_even_without_aside(snapshot, beyond, lay)
    kept_out = beyond[find(never, beyond) < 0]
    return _blocked(_blocked(snapshot, never, Blocked.NODES), kept_out, Blocked.KEPT)


def _beyond_even_without_aside(snapshot: Snapshot, beyond: Ints, lay: Placer) -> Ints:
    """The ones of these rows that would find no place either if the jobs which are left alone had ended.

    Jobs of the row's own tenant stay: nobody is owed for what its own `srun` keeps it from.
    """
    aside = snapshot.aside
    if aside is None or not beyond.size:
        return beyond
    whose = snapshot.jobs.tenant[beyond]
    never = [
        _beyond_without(snapshot, aside, tenant, beyond[whose == tenant], lay)
        for tenant in np.unique(whose).tolist()
    ]
    return np.sort(np.concatenate(never))


def _beyond_without(snapshot: Snapshot, aside: Aside, tenant: int, rows: Ints, lay: Placer) -> Ints:
    """The rows of a tenant that would find no place either if others' jobs which are left alone had ended."""
    nodes, jobs = snapshot.nodes, aside.jobs
    held = aside.held.take(jobs.tenant[aside.held.row] != tenant)
    parts = np.maximum(jobs.nodes, 1)[held.row]
    taken = (held.gpus, jobs.cpus[held.row] // parts, jobs.memory_mb[held.row] // parts)
    gpus, cpus, memory_mb = (np.bincount(held.node, of, len(nodes)).astype(np.int64) for of in taken)
    empty = nodes.with_columns(
        gpus_others=np.maximum(nodes.gpus_others - gpus, 0),
        cpus_others=np.maximum(nodes.cpus_others - cpus, 0),
        memory_others_mb=np.maximum(nodes.memory_others_mb - memory_mb, 0),
    )
    means = Means(empty.capacity, empty.cpus_left, empty.memory_left_mb)
    return beyond_means(replace(snapshot, nodes=empty), rows, means, lay)


def without_the_kept_out(view: View, policy: Policy) -> View:
    """The view in which jobs are blocked that would need GPUs of jobs which cannot be asked to give way.

    Where leases never end everybody waits for the ends of managed jobs, and nobody is blocked for it.
    """
    if view.terms.term >= NEVER_ENDS_SECONDS or not view.waiting_rows.size:
        return view
    means = _without_those_who_stay(view)
    if means is None:
        return view
    beyond = beyond_means(view.snapshot, view.waiting_rows, means, placer_of(policy))
    if not beyond.size:
        return view
    return replace(view, snapshot=_blocked(view.snapshot, beyond, Blocked.KEPT))


def placer_of(policy: Policy) -> Placer:
    """The placer that a policy names, else ours."""
    return placer(getattr(policy, "placement", CONSOLIDATED))


def _blocked(snapshot: Snapshot, rows: Ints, why: Blocked) -> Snapshot:
    if not rows.size:
        return snapshot
    blocked = snapshot.jobs.blocked.copy()
    blocked[rows] = why
    return replace(snapshot, jobs=snapshot.jobs.with_columns(blocked=blocked))


def _without_those_who_stay(view: View) -> Means | None:
    """Means of the nodes if all left who can be asked to or leave anyway; None where that is everybody."""
    jobs, nodes = view.snapshot.jobs, view.snapshot.nodes
    leaves = jobs.revocable | jobs.ending
    if all_of(leaves):
        return None
    held = view.holdings
    stays = ~(leaves | view.revoking)[held.row]
    if not any_of(stays):
        return None
    node, amounts = held.node[stays], shares(held, held.row, jobs, view.snapshot.sizes)
    whole = (nodes.capacity, nodes.cpus_left, nodes.memory_left_mb)
    gpus, cpus, memory_mb = (
        have - np.bincount(node, of[stays], len(nodes)).astype(np.int64)
        for have, of in zip(whole, amounts, strict=True)
    )
    return Means(np.maximum(gpus, 0), cpus, memory_mb)


def _everybody_could_start(snapshot: Snapshot) -> bool:
    """True if even a gang as wide, on as many nodes and with as much beside it as any job's would find a place.

    Mostly it would; then nothing need be found out about each job.
    """
    jobs, nodes = snapshot.jobs, snapshot.nodes
    if not len(jobs) or not len(nodes):
        return not len(jobs)
    if len(snapshot.wanted) or len(snapshot.barred) or _most(jobs.gpus_per_node) or _most(jobs.most_nodes):
        return False
    if len(snapshot.gpu_types) > 1 or not all_of(snapshot.partitions.up):
        return False
    pools, widest = Pools.of(snapshot), _most(jobs.gpus)
    biggest = max(pools.most, 1)
    count = max(_most(jobs.nodes), -(-widest // biggest), 1)
    if len(pools.nodes) < len(snapshot.partitions.names):
        return False
    if count > len(pools.tops) or pools.tops[count - 1] < min(widest, biggest):
        return False
    enough_cpus = _most(jobs.cpus) <= nodes.cpus_left.item(nodes.cpus_left.argmin())
    return enough_cpus and _most(jobs.memory_mb) <= nodes.memory_left_mb.item(nodes.memory_left_mb.argmin())


def _most(column: Ints) -> int:
    return column.item(column.argmax())


def beyond_means(snapshot: Snapshot, rows: Ints, means: Means, lay: Placer) -> Ints:
    """The waiting rows that find no place though nobody else has anything of these means."""
    pools = Pools.of(snapshot)
    doubtful = rows[~_surely(pools, snapshot, rows, means)]
    if not doubtful.size:
        return doubtful
    shapes = Shapes.of(pools, snapshot, doubtful, spread=spreads(lay))
    fits = shapes.possible()
    fits &= shapes.fitting(pools, means.gpus)
    unsure = (fits & _needs_a_look(pools, snapshot, doubtful, means)).nonzero()[0]
    if unsure.size:
        room = Room(pools, *means)
        found: dict[Gang, bool] = {}
        for at, ways in zip(unsure.tolist(), shapes.ways(unsure), strict=True):
            for gang in ways:
                if gang not in found:
                    found[gang] = lay(room, gang) is not None
            fits[at] = any(found[gang] for gang in ways)
    return doubtful[~fits]


def _surely(pools: Pools, snapshot: Snapshot, rows: Ints, means: Means) -> Bools:
    """Jobs that take one node and that the best node of their first pool could take: mostly these are all."""
    jobs = snapshot.jobs
    if snapshot.told is not None and pools.types > 1:
        return np.zeros(len(rows), dtype=bool)
    pool = pools.choices_of(jobs.partition[rows], jobs.gpu_type[rows])[0]
    best, there = _best_of(pools, means)
    node, gpus, per_node = best[pool], jobs.gpus[rows], jobs.gpus_per_node[rows]
    sure: Bools = there[pool] & (gpus <= means.gpus[node])
    sure &= (jobs.nodes[rows] <= 1) & ((per_node == 0) | (per_node == gpus))
    sure &= (jobs.cpus[rows] <= means.cpus[node]) & (jobs.memory_mb[rows] <= means.memory_mb[node])
    for named in (snapshot.wanted, snapshot.barred):
        if len(named):
            sure[np.isin(rows, named.row)] = False
    return sure


def _best_of(pools: Pools, means: Means) -> tuple[Ints, Bools]:
    """The node of each pool with the most GPUs, and whether it has a usable one; a last one for no pool."""
    gpus = np.where(pools.nodes, means.gpus, -1)
    best = gpus.argmax(axis=1) if gpus.size else np.zeros(len(gpus), dtype=np.int64)
    there = pools.nodes.any(axis=1) if gpus.size else np.zeros(len(gpus), dtype=bool)
    return np.append(best, 0), np.append(there, np.zeros(1, dtype=bool))


def _needs_a_look(pools: Pools, snapshot: Snapshot, rows: Ints, means: Means) -> Bools:
    """Jobs that name or exclude nodes, or of whose CPUs and memory not every node has enough."""
    jobs, offers = snapshot.jobs, means.gpus > 0
    biggest = max(int(pools.biggest.max(initial=0)), 1)
    per_node = np.where(jobs.gpus_per_node[rows] > 0, jobs.gpus_per_node[rows], biggest)
    parts = np.maximum(np.maximum(jobs.nodes[rows], -(-jobs.gpus[rows] // per_node)), 1)
    cpus, memory_mb = -(-jobs.cpus[rows] // parts), -(-jobs.memory_mb[rows] // parts)
    look: Bools = cpus > means.cpus[offers].min(initial=np.iinfo(np.int64).max)
    look |= memory_mb > means.memory_mb[offers].min(initial=np.iinfo(np.int64).max)
    for named in (snapshot.wanted, snapshot.barred):
        if len(named):
            look |= np.isin(rows, named.row)
    return look
