"""Gandiva: greedy placement by affinity, time-slicing round robin, migration (Xiao et al., OSDI 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

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
    Within,
    Words,
    check_settings,
    consolidated,
    ordered,
)

WORDS = Words(
    granted="it has waited longest since it last ran",
    renewed="its time slice goes on: nobody needs its GPUs",
    revoked="its time slice is over and a job that waits has its turn",
    moved="it moves together with others so that a node comes free",
    waits="others have waited longer since they last ran",
)
MOVING = "moving"  # in memory


@dataclass(frozen=True, slots=True)
class Gandiva:
    """Suspend and resume round robin: who has waited longest since it last ran goes first.

    Reading: GPUs are exclusive, so the paper's packing of several jobs onto one GPU, and its undoing by profiles,
    are left out. A lease is the time slice. Placement is greedy by affinity: nodes that run gangs of the same size
    first, then idle nodes, then any; among equals the fullest. Migration happens where leases are over: of the
    nodes in use the one with most free GPUs, at least `defragment_above` of it, is cleared if all of its jobs fit
    on fuller nodes; what moves is packed.
    """

    score_is: ClassVar[Order] = Order(
        "the seconds since it was submitted or requeued",
        highest_first=True,
        then="the time of its first submission",
    )
    lease_seconds: ClassVar[float] = 60.0  # the paper's time slice

    migrate: bool = True
    defragment_above: Annotated[float, Within(0, 1, "a part of a node", above=True)] = 0.75

    def __post_init__(self) -> None:
        check_settings(self, "gandiva")

    def plan(self, view: View) -> Plan:
        """Grant those first that waited longest. The running jobs that began their slice last stay longest."""
        move = self._movers(view) if self.migrate and view.over.any() else None
        waits = np.flatnonzero(view.waiting)
        if len(waits) == 0 and move is None:
            return ordered(view, waits, memory=_still_moving(view, None), words=WORDS)
        waits = waits[np.lexsort((view.first_submit[waits], view.snapshot.jobs.submit[waits]))]
        runs = np.flatnonzero(view.over)
        runs = runs[np.lexsort((view.first_submit[runs], -view.snapshot.jobs.start[runs]))]
        memory = _still_moving(view, move)
        affinity = _Affinity(view, memory.get(MOVING, ()))
        return ordered(
            view,
            np.append(waits, runs),
            move=move,
            place=affinity.place,
            next_row=affinity.next_row,
            score=lambda: np.where(view.waiting, view.now - view.snapshot.jobs.submit, np.nan),
            memory=memory,
            words=WORDS,
        )

    def _movers(self, view: View) -> Bools | None:
        """The jobs of the emptiest node in use, if all of them may stop and lie on that node alone."""
        nodes = view.snapshot.nodes
        used = nodes.capacity - view.free_gpus
        idle_part = np.where((used > 0) & nodes.usable, view.free_gpus / np.maximum(nodes.gpus, 1), 0.0)
        node = int(np.argmax(idle_part)) if len(idle_part) else -1
        if node < 0 or idle_part[node] < self.defragment_above:
            return None
        rows = view.holdings.row[view.holdings.node == node]
        elsewhere = view.holdings.row[view.holdings.node != node]
        if np.isin(rows, elsewhere).any() or not (view.over & ~view.only_renewable)[rows].all():
            return None
        fuller = view.free_gpus[(used > 0) & (idle_part < idle_part[node])]
        gangs = -np.sort(-view.snapshot.jobs.gpus[rows])
        if not _fit(gangs.tolist(), fuller.tolist()):
            return None
        move = np.zeros(len(view.waiting), dtype=bool)
        move[rows] = True
        return move


def _still_moving(view: View, move: Bools | None) -> dict[str, list[int]]:
    """Keys of jobs that left a node to be packed elsewhere and do not run yet."""
    key, kept = view.snapshot.jobs.key, view.memory.get(MOVING)
    if not kept and move is None:
        return {}
    moving = np.isin(key, np.array(kept or (), dtype=np.int64)) & (view.waiting | view.revoking)
    return {MOVING: key[moving if move is None else moving | move].tolist()}


def _fit(gangs: list[int], free: list[int]) -> bool:
    """True if these gangs, biggest first, each fit on one of these nodes, each time the fullest."""
    free = sorted(free)
    for gang in gangs:
        at = next((i for i, gpus in enumerate(free) if gpus >= gang), None)
        if at is None:
            return False
        free[at] -= gang
        free.sort()
    return True


class _Affinity:
    """The size of the gangs on each node: 0 = none, the biggest where they differ."""

    def __init__(self, view: View, moving: Sequence[int]) -> None:
        held = view.holdings
        self._moving, self._packs = frozenset(moving), False
        self._key = view.snapshot.jobs.key
        self._of: Ints = np.zeros(len(view.snapshot.nodes), dtype=np.int64)
        np.maximum.at(self._of, held.node, view.snapshot.jobs.gpus[held.row])

    def next_row(self, row: int) -> None:
        """Note the row whose gang is placed next."""
        self._packs = bool(self._moving) and int(self._key[row]) in self._moving

    def place(self, room: Room, gang: Gang) -> Sites | None:
        """Beside gangs of the same size, else on an idle node, else anywhere; big gangs consolidated."""
        if self._packs or gang.nodes > 1 or gang.whole or gang.wanted:
            sites = consolidated(room, gang)
        else:
            sites = self._on_one_node(room, gang)
        for node, _ in sites or ():
            self._of[node] = gang.gpus
        return sites

    def _on_one_node(self, room: Room, gang: Gang) -> Sites | None:
        nodes = np.flatnonzero(room.fitting(gang))
        if len(nodes) == 0:
            return None
        of = self._of[nodes]
        liking = np.where(of == gang.gpus, 0, np.where(of == 0, 1, 2))
        best = nodes[np.lexsort((room.gpus[nodes], liking))[0]]
        return [(int(best), gang.gpus)]
