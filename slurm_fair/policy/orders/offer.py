"""Plans of policies that choose exact places: GPUs on offer, places chosen, and jobs that are stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slurm_fair.model import Placement, Plan, Snapshot, Verdict
from slurm_fair.model.columns import Bools, Floats, Ints, find, ranks
from slurm_fair.model.sizes import shares
from slurm_fair.policy.draft import LOSES_WORK, UNUSABLE_NODES, Draft, placed
from slurm_fair.policy.orders.ordered import WORDS, Words
from slurm_fair.policy.packing.gang import Gang, Pools, Sites
from slurm_fair.policy.packing.placement import consolidated
from slurm_fair.policy.packing.room import Amounts, Room
from slurm_fair.policy.packing.shapes import Shapes
from slurm_fair.policy.view import View

MOVES = "moves"  # in a plan's memory: jobs that stop to go on elsewhere, and where


class Held(NamedTuple):
    """Holdings of contested jobs on usable nodes, one entry for each job and node."""

    row: Ints
    node: Ints
    gpus: Ints
    cpus: Ints
    memory_mb: Ints

    def of(self, chosen: Bools) -> Held:
        """Some of the entries."""
        return Held(*(column[chosen] for column in self))

    def per_node(self, nodes: int) -> tuple[Ints, Ints, Ints]:
        """GPUs, CPUs and memory on each node."""
        gpus, cpus, memory_mb = (
            np.bincount(self.node, weights=column, minlength=nodes).astype(np.int64) for column in self[2:]
        )
        return gpus, cpus, memory_mb


class Offer:
    """Free GPUs and those of contested jobs, whose lease is over, and what was chosen of them so far.

    A policy first keeps jobs where they are, then lays others. A contested job that it neither kept nor moved
    stays too, unless its GPUs were given away. A job that moves is stopped, and its new GPUs are kept for it in
    the plan's memory until it waits for them.
    """

    def __init__(self, view: View) -> None:
        self.view, self.pools = view, Pools.of(view.snapshot)
        self.contested: Bools = view.contested
        self._held = _held(view, self.pools, self.contested)
        self._spare = view.spare_gpus, view.spare_cpus, view.spare_memory_mb
        held = self._held.per_node(len(view.snapshot.nodes))
        gpus, cpus, memory_mb = (have + more for have, more in zip(self._spare, held, strict=True))
        self.room = Room(self.pools, gpus, cpus, memory_mb)
        self.granted: dict[int, Sites] = {}
        self.moved: dict[
            int, Sites
        ] = {}  # contested jobs, and jobs on their way back, by where they are to go on
        self.kept: Bools = np.zeros(len(self.contested), dtype=bool)
        self.stops: list[int] = []
        self._resume()

    def _resume(self) -> None:
        """Jobs that were stopped to go on elsewhere: room for those on their way, GPUs for those that wait."""
        view, kept = self.view, self.view.memory.get(MOVES, ())
        if not kept:
            return
        at = {name: node for node, name in enumerate(view.snapshot.nodes.names)}
        rows = find(view.snapshot.jobs.key, np.array([key for key, _ in kept], dtype=np.int64))
        for row, (_, sites) in zip(rows.tolist(), kept, strict=True):
            if row < 0 or not all(name in at for name, _ in sites):
                continue
            place = [(at[name], int(gpus)) for name, gpus in sites]
            if view.revoking[row]:
                self.move(row, place)
            elif view.waiting[row]:
                self.grant(row, place)

    @property
    def undecided(self) -> Bools:
        """Waiting and contested jobs of which nothing was chosen yet."""
        open_: Bools = (self.view.waiting | self.contested) & ~self.kept
        open_[[*self.granted, *self.moved]] = False
        return open_

    def _memory(self) -> Mapping[str, Any]:
        names, keys = self.view.snapshot.nodes.names, self.view.snapshot.jobs.key
        kept = [
            [int(keys[row]), [[names[node], gpus] for node, gpus in on]] for row, on in self.moved.items()
        ]
        return {MOVES: kept} if kept else {}

    @property
    def free(self) -> Ints:
        """GPUs of each usable node that may still be chosen."""
        free: Ints = np.where(self.pools.usable, np.maximum(self.room.gpus, 0), 0)
        return free

    def keep(self, rows: Ints) -> None:
        """These contested jobs go on where they are, in this order, but for those whose GPUs were given away."""
        first, last = (self._held.row.searchsorted(rows, side) for side in ("left", "right"))
        columns = [column.tolist() for column in self._held[1:]]
        for row, begin, end in zip(rows.tolist(), first.tolist(), last.tolist(), strict=True):
            mine = [tuple(column[at] for column in columns) for at in range(begin, end)]
            if all(self.room.carries(*amounts) for amounts in mine):
                self.kept[row] = True
                for node, gpus, cpus, memory_mb in mine:
                    self.room.add(node, -gpus, -cpus, -memory_mb)

    def grant(self, row: int, sites: Sites) -> bool:
        """Give a waiting job these GPUs; False where they, or its CPUs or memory, are not to be had."""
        if not self._taken(row, sites):
            return False
        self.granted[row] = sites
        return True

    def move(self, row: int, sites: Sites) -> bool:
        """Let a contested job, or one that is giving its GPUs back, go on there; False as for `grant`."""
        if not self._taken(row, sites):
            return False
        self.moved[row] = sites
        return True

    def give(self, row: int, sites: Sites) -> bool:
        """Grant a waiting job these GPUs, or let a contested one go on there; False as for `grant`."""
        return self.move(row, sites) if self.contested[row] else self.grant(row, sites)

    def lay(self, rows: Ints) -> list[int]:
        """Grant waiting jobs their gangs on as few nodes as can be, in this order; returns those that fit."""
        shapes, laid = Shapes.of(self.pools, self.view.snapshot, rows), []
        for row, ways in zip(rows.tolist(), shapes.ways(np.arange(len(rows))), strict=True):
            for gang in ways:
                sites = consolidated(self.room, gang)
                if sites is not None:
                    self.granted[row] = self._claimed(gang, sites)
                    laid.append(row)
                    break
        return laid

    def _claimed(self, gang: Gang, sites: Sites) -> Sites:
        taken = gang.taken(sites, self.pools.size_of, self.room.gpus_of)
        for node, gpus in taken:
            self.room.add(node, -gpus, -gang.cpus, -gang.memory_mb)
        return sites if gang.whole else taken

    def _taken(self, row: int, sites: Sites) -> bool:
        snapshot, places = self.view.snapshot, Placement.of([(0, *site) for site in sites])
        columns = shares(places, np.full(len(places), row), snapshot.jobs, snapshot.sizes)
        needs = list(zip(*(column.tolist() for column in (places.node, *columns)), strict=True))
        if not all(self.room.carries(*need) for need in needs):
            return False
        for node, gpus, cpus, memory_mb in needs:
            self.room.add(node, -gpus, -cpus, -memory_mb)
        return True

    def stop_contested(self, order: Ints) -> None:
        """Contested jobs stop as far as what was chosen needs it, those last in `order` first; all others stay.

        Afterwards the room has what nobody has.
        """
        nodes = len(self.view.snapshot.nodes)
        last = np.full(len(self.contested), len(order), dtype=np.int64)
        last[order] = np.arange(len(order))
        stays = self.contested & ~self.kept
        stays[[row for row in self.moved if self.contested[row]]] = False
        mine = self._held.of(stays[self._held.row])
        room = self.room.gpus, self.room.cpus, self.room.memory_mb
        # All that was chosen has been taken out of the room, and those who stay have not.
        gpus, cpus, memory_mb = (have - held for have, held in zip(room, mine.per_node(nodes), strict=True))
        for node in np.flatnonzero((gpus < 0) | (cpus < 0) | (memory_mb < 0)).tolist():
            short = -int(gpus[node]), -int(cpus[node]), -int(memory_mb[node])
            self.stops += _victims(mine.of(mine.node == node), last, self.stops, short)
        stays[self.stops] = False
        self.keep(np.flatnonzero(stays))

    def finish(
        self,
        order: Ints,
        *,
        score: Floats | None = None,
        words: Words = WORDS,
        waits: Iterable[tuple[Ints, str]] = (),
    ) -> Plan:
        """The plan, once settled; `order` has the jobs by deservingness, `waits` reasons of some that wait."""
        view, sheet = self.view, Draft(self.view)
        sheet.explain_later(lambda: ((view.waiting_rows, words.waits), (view.stranded, UNUSABLE_NODES)))
        sheet.explain_later(lambda: ((view.only_renewable, LOSES_WORK),))
        contested = np.flatnonzero(self.contested)
        sheet.give_reason(contested, words.renewed)
        for rows, reason in waits:
            sheet.give_reason(rows, reason)
        sheet.say(_rows(self.stops), Verdict.REVOKE, words.revoked)
        leaves = [row for row in self.moved if self.contested[row]]
        sheet.say(_rows(leaves), Verdict.REVOKE, words.moved)
        granted = _rows(self.granted)
        sheet.say(granted, Verdict.GRANT, words.granted)
        places = placed(granted, list(self.granted.values())) if len(granted) else Placement.none()
        return sheet.finish(places, ranks(len(view.waiting), order), score, self._memory())


def only_one_shape(snapshot: Snapshot, memory: Mapping[str, Any]) -> bool:
    """For a policy's `rests`: nobody is on the way elsewhere, and who runs could have no other shape."""
    elastic = snapshot.sizes is not None and len(snapshot.sizes) > 0
    return not memory.get(MOVES) and not elastic and len(snapshot.gpu_types) < 2


def _rows(rows: Iterable[int]) -> Ints:
    return np.array(list(rows), dtype=np.int64)


def _held(view: View, pools: Pools, contested: Bools) -> Held:
    snapshot, places = view.snapshot, view.lease_places
    places = places.take(contested[places.row]) if places.row.size else places
    columns = shares(places, places.row, snapshot.jobs, snapshot.sizes)
    return Held(places.row, places.node, *columns).of(pools.usable[places.node])


def _victims(here: Held, last: Ints, already: Sequence[int], short: Amounts) -> list[int]:
    """Jobs on one node that stop so that it lacks no more so much, none of them in vain.

    A job among `already` gives back what it has here too.
    """
    gone = np.isin(here.row, already)
    need = [lack - int(column[gone].sum()) for lack, column in zip(short, here[2:], strict=True)]
    chosen: list[tuple[int, Amounts]] = []
    for at in np.argsort(-last[here.row], kind="stable").tolist():
        if max(need) <= 0:
            break
        if not gone[at]:
            amounts = int(here.gpus[at]), int(here.cpus[at]), int(here.memory_mb[at])
            chosen.append((int(here.row[at]), amounts))
            need = [left - each for left, each in zip(need, amounts, strict=True)]
    spare = [-left for left in need]
    kept: list[int] = []
    for row, amounts in reversed(chosen):
        if all(each <= left for each, left in zip(amounts, spare, strict=True)):
            spare = [left - each for left, each in zip(spare, amounts, strict=True)]
        else:
            kept.append(row)
    return kept
