"""HiveD: virtual clusters of buddy cells, idle ones lent until their owner comes back (Zhao et al., OSDI 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from slurm_fair.model import Plan
from slurm_fair.policy import (
    Bools,
    Gang,
    Ints,
    Order,
    Room,
    Sites,
    View,
    Words,
    consolidated,
    find,
    never_stopped,
    oldest_first,
    only_renews,
    ordered,
    over_array_limit,
    whole_parts,
    with_never_stopped,
)

WORDS = Words(
    granted="its virtual cluster has a cell for it, or an idle one is lent to it",
    renewed="its cell is its tenant's own",
    revoked="the owner of the cell that was lent to it has come back",
    waits="its virtual cluster is full and no cell is idle",
)


@dataclass(frozen=True, slots=True)
class Hived:
    """A tenant's virtual cluster is its weight's part of the GPUs; whoever finds it full borrows idle cells.

    A guaranteed job takes a cell of its own virtual cluster (FIFO) and is never stopped. Others run in idle cells
    opportunistically and give way when a guaranteed job needs them, here when their lease is over. Guaranteed jobs
    are packed by the buddy rule as if lent cells were empty: the smallest free cell that holds the gang is split,
    so that whole nodes stay whole for those to whom they are guaranteed.

    Reading: a cell is 1, 2, 4, 8, ... GPUs of a node, then whole nodes; Slurm chooses the GPUs inside a node, so
    cells below a node are counted there, not addressed. A virtual cluster is counted in GPUs, shared out by
    weight. A job stays guaranteed or opportunistic for as long as it runs. A gang bigger than its tenant's virtual
    cluster, and all behind the first that finds no room in it, can only borrow.
    """

    score_is: ClassVar[Order] = Order("whether it must borrow (1) or its tenant's own cells have room (0)")

    rests = only_renews

    def plan(self, view: View) -> Plan:
        """Guaranteed jobs first, on lent cells where they must; then those that borrow, on what is idle."""
        owners = _owners(view)
        waits = np.flatnonzero(view.waiting)
        if len(waits) == 0:
            return ordered(view, waits, keep=owners, memory=_memory(view, owners), words=WORDS)
        waits = waits[np.lexsort((view.first_submit[waits], view.snapshot.jobs.tenant[waits]))]
        over = over_array_limit(view, waits)
        first = waits[~over][_in_own_cells(view, waits[~over], owners)]
        first = oldest_first(view, first)
        others = np.setdiff1d(waits, first)
        others = oldest_first(view, others)
        lent = oldest_first(view, np.flatnonzero(view.over & ~owners))
        order = np.concatenate([first, lent, others])
        buddies = _Buddies(view, owners, first)
        borrows = np.where(view.waiting, 1.0, np.nan)
        borrows[first] = 0.0
        plan = ordered(
            view,
            order,
            keep=owners,
            place=buddies.place,
            next_row=buddies.next_row,
            on_laid=buddies.laid,
            score=borrows,
            words=WORDS,
        )
        owners[first[np.isin(first, plan.places.row)]] = True
        return replace(plan, memory=_memory(view, owners))


def cells(gpus: Ints, node_gpus: int) -> Ints:
    """GPUs of the cell that a gang takes: the next power of two inside a node, else whole nodes."""
    inside = 2 ** np.ceil(np.log2(np.maximum(gpus, 1))).astype(np.int64)
    whole = -(-gpus // max(node_gpus, 1)) * node_gpus
    return np.where(gpus >= node_gpus, whole, np.minimum(inside, max(node_gpus, 1)))


def _owners(view: View) -> Bools:
    """Jobs that were guaranteed their cells and still have them."""
    kept = never_stopped(view.memory)
    return (find(kept, view.snapshot.jobs.key) >= 0) & (view.lease_row >= 0) & ~view.revoking


def _memory(view: View, owners: Bools) -> Mapping[str, Any]:
    return with_never_stopped({}, view.snapshot.jobs.key[owners])


def _in_own_cells(view: View, waits: Ints, owners: Bools) -> Ints:
    """Places in `waits` of the jobs for which their virtual cluster has room, sorted by tenant and age."""
    jobs, tenants = view.snapshot.jobs, view.snapshot.tenants
    node_gpus = int(view.snapshot.nodes.gpus.max(initial=1))
    part = whole_parts(view.snapshot.total_gpus, tenants.weight)
    taken = cells(jobs.gpus, node_gpus)
    used = np.bincount(jobs.tenant[owners], weights=taken[owners], minlength=len(tenants)).astype(np.int64)
    places = np.flatnonzero(taken[waits] <= part[jobs.tenant[waits]])
    tenant, mine = jobs.tenant[waits[places]], taken[waits[places]]
    before = np.cumsum(mine) - mine
    line = before - before[np.searchsorted(tenant, tenant, side="left")] + mine
    return places[used[tenant] + line <= part[tenant]]


class _Buddies:
    """The buddy rule for guaranteed gangs, over what guaranteed jobs have; plain packing for the others."""

    def __init__(self, view: View, owners: Bools, guaranteed: Ints) -> None:
        nodes, held = view.snapshot.nodes, view.holdings
        mine = owners[held.row]
        stays = mine | ~(view.over & ~view.only_renewable)[held.row]
        self._guaranteed = frozenset(guaranteed.tolist())
        self._own = np.bincount(held.node[mine], held.gpus[mine], len(nodes)).astype(np.int64)
        self._to_be_had = nodes.capacity - np.bincount(held.node[stays], held.gpus[stays], len(nodes)).astype(
            np.int64
        )
        self._owner = self._whole = False
        self._sizes: Sequence[int] = ()

    def next_row(self, row: int) -> None:
        """Note the row whose gang is placed next."""
        self._owner = row in self._guaranteed

    def place(self, room: Room, gang: Gang) -> Sites | None:
        """Sites of the gang in this room; None also where a better node takes it once lent cells are back."""
        alone = gang.nodes == 1 and not gang.whole and not gang.wanted
        sites = self._split(room, gang) if self._owner and alone else consolidated(room, gang)
        self._whole, self._sizes = gang.whole, room.pools.size_of
        return sites

    def laid(self, sites: Sites) -> None:
        """Count the GPUs of the gang that was placed last, as Slurm splits them; nobody shares whole nodes."""
        for node, gpus in sites:
            taken = self._sizes[node] if self._whole else gpus
            self._own[node] += taken if self._owner else 0
            self._to_be_had[node] -= taken

    def _split(self, room: Room, gang: Gang) -> Sites | None:
        """The node with most guaranteed GPUs that has the gang's, those that are lent included."""
        fits = room.fitting(gang)
        able = room.pools.nodes[gang.pool] & (self._to_be_had >= gang.share)
        able[list(gang.barred)] = False
        able &= fits | (room.gpus < self._to_be_had)  # else it lacks CPUs or memory
        if not able.any():
            return None
        best = np.flatnonzero(able & fits & (self._own == self._own[able].max()))
        if len(best) == 0:
            return None
        return [(int(best[np.argmax(room.gpus[best])]), gang.gpus)]
