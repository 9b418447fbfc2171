"""The lots of one period: each job that runs may stay or go elsewhere, each that waits may have some nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slurm_fair.model import Placement, Plan, Verdict
from slurm_fair.model.sizes import shares
from slurm_fair.policy import (
    Bools,
    Floats,
    Ints,
    Pools,
    View,
    absent,
    any_of,
    ranks,
    sizes_of,
    speed_in,
    usual_gpus,
)
from slurm_fair.solve.lots import LotsProblem
from slurm_fair_plugins.fair.period import Stock
from slurm_fair_plugins.fair.worth import Worth, has_shapes

_MOST_LOTS = 2_500  # of those that wait, and as many of those that run
_MOST_JOBS = 200  # of either: far more than a period can serve
_MOST_WINDOWS = 12  # sets of nodes for one size of a gang on several nodes


class Lots(NamedTuple):
    """To stay, or one or more nodes and a size; those to stay come first."""

    problem: LotsProblem
    rows: Ints  # of each of the problem's jobs
    gpus: Ints  # [lot]
    stays: int
    whole: bool  # whether every way of every job that could get something is among them
    can_win: bool  # whether gangs, GPU types or sizes leave anything to choose

    @classmethod
    def of(cls, view: View, worth: Worth, stock: Stock, able: Bools, restart_seconds: float) -> Lots:
        """Each job that runs has the lot of staying. The jobs that are worth most may go to any node too."""
        contested = stock.contested[worth.rows]
        freely = _names_no_node(view, worth.rows)
        free = freely & able & ~contested
        open_nodes = (view.snapshot.nodes.usable & (stock.gpus > 0)).nonzero()[0]
        most = min(_MOST_JOBS, max(_MOST_LOTS // max(len(open_nodes), 1), 1))
        best = (-worth.total).argsort(kind="stable")
        waits = best[free[best]][:most]
        runs = best[contested[best]]
        at = np.concatenate((runs, waits))
        rows, stays = worth.rows[at], len(runs)
        staying = _stays(view, rows[:stays], worth.own[runs])
        goes = np.concatenate((np.arange(min(stays, most)), np.arange(stays, len(rows))))
        asked = _Asked.of(view, rows[goes], Pools.of(view.snapshot))
        going = _Goes.of(view, rows[goes], worth.own[at[goes]], asked, stock, open_nodes)
        going = going._replace(job=goes[going.job])
        going = going.kept(freely[at][going.job] & _in_other_shape(view, rows, going))
        going = going.kept(_has_the_rest(view, rows, going, stock))
        terms = view.terms
        lost = (restart_seconds + terms.grace + terms.interval) / terms.term
        going = going._replace(value=going.value * np.where(contested[at][going.job], 1.0 - lost, 1.0))
        going = going.kept(going.value > 0)
        problem = LotsProblem(
            free=stock.gpus,
            jobs=len(rows),
            job=np.concatenate((np.arange(stays), going.job)),
            value=np.concatenate((staying.value, going.value)),
            lot=np.concatenate((staying.lot, stays + going.lot)),
            node=np.concatenate((staying.node, going.node)),
            gpus=np.concatenate((staying.gpus, going.of_node)),
            payers=worth.payers.take(at),
        )
        gpus = np.concatenate((view.snapshot.jobs.gpus[rows[:stays]], going.gpus))
        served = stays + len(np.unique(going.job[going.job >= stays]))
        whole = stays <= most and int(np.count_nonzero(able)) == served and not any_of(asked.nodes > 1)
        fragments = any_of((going.gpus > 1) & (going.nodes == 1))
        return cls(
            problem, rows, gpus, stays, whole, len(going.job) > 0 and (has_shapes(view.snapshot) or fragments)
        )

    def taken_by(self, plan: Plan) -> Ints:
        """The lot that each job has under a plan; -1 where it has none, or is given several nodes."""
        problem, given = self.problem, plan.places
        taken, number = absent(problem.jobs), ranks(len(plan.verdict), self.rows)
        stays = (plan.verdict[self.rows[: self.stays]] == Verdict.RENEW.code).nonzero()[0]
        taken[stays] = stays
        alone = (number[given.row] >= 0) & (np.bincount(given.row)[given.row] == 1)
        granted = _OnOneNode(number[given.row[alone]], given.node[alone], given.gpus[alone])
        single = (problem.lot >= self.stays) & (np.bincount(problem.lot)[problem.lot] == 1)
        lot = problem.lot[single]
        offered = _OnOneNode(problem.job[lot], problem.node[single], problem.gpus[single])
        _, at, part = np.intersect1d(granted.key, offered.key, return_indices=True)
        taken[granted.job[at]] = lot[part]
        return taken

    def nodes_of(self, lots: Ints, rows: Ints) -> Placement:
        """The nodes of these lots, for the row of each."""
        part, row = self.problem.lot, absent(len(self.problem.job))
        row[lots] = rows
        mine = (row[part] >= 0).nonzero()[0]
        return Placement(row[part[mine]], self.problem.node[mine], self.problem.gpus[mine])


def lies_apart(view: View, rows: Ints, kind: Ints, gpus: Ints, nodes: Ints) -> Bools:
    """Jobs that lie on more nodes than so many GPUs of this type need, and than their users asked for."""
    biggest = np.ones(len(view.snapshot.gpu_types), dtype=np.int64)
    np.maximum.at(biggest, view.snapshot.nodes.gpu_type, view.snapshot.nodes.gpus)
    apart: Bools = nodes > np.maximum(-(-gpus // biggest[kind]), view.snapshot.jobs.nodes[rows])
    return apart


def _names_no_node(view: View, rows: Ints) -> Bools:
    """Jobs whose users ask for no node by name, and bar none."""
    snapshot = view.snapshot
    freely: Bools = ~view.flags(np.union1d(snapshot.wanted.row, snapshot.barred.row))[rows]
    return freely


class _OnOneNode(NamedTuple):
    """Jobs with GPUs of one node each."""

    job: Ints
    node: Ints
    gpus: Ints

    @property
    def key(self) -> Ints:
        """One number for each, alike for the same job, node and GPUs."""
        return (self.job << 40) + (self.node << 20) + self.gpus


class _Stays(NamedTuple):
    """The lots of those who go on where they are, and the parts of these."""

    value: Floats
    lot: Ints
    node: Ints
    gpus: Ints


def _stays(view: View, rows: Ints, worth: Floats) -> _Stays:
    """The lot of each job that runs: where it is."""
    number = ranks(len(view.waiting), rows)
    places = view.lease_places
    mine = (number[places.row] >= 0).nonzero()[0]
    lot, node = number[places.row[mine]], places.node[mine]
    kind = np.zeros(len(rows), dtype=np.int64)
    kind[lot] = view.snapshot.nodes.gpu_type[node]
    held = np.bincount(lot, places.gpus[mine], len(rows)).astype(np.int64)
    apart = lies_apart(view, rows, kind, held, np.bincount(lot, minlength=len(rows)))
    speed = speed_in(view, rows, kind, held, apart)
    return _Stays(usual_gpus(view)[rows] * speed * worth, lot, node, places.gpus[mine])


class _Asked(NamedTuple):
    """Sizes of jobs in pools, one entry each."""

    job: Ints
    gpus: Ints
    pool: Ints
    nodes: Ints  # on which it lies there
    even: Bools  # its user says how many GPUs each node gives

    @classmethod
    def of(cls, view: View, rows: Ints, pools: Pools) -> _Asked:
        """Every size of each job in every pool of its partition and type."""
        jobs, sizes, number = view.snapshot.jobs, sizes_of(view), ranks(len(view.waiting), rows)
        entry = (number[sizes.row] >= 0).nonzero()[0]
        row, size = sizes.row[entry], sizes.gpus[entry]
        pool = pools.choices_of(jobs.partition[row], jobs.gpu_type[row])  # [choice, entry]
        biggest = np.append(pools.biggest, 0)[pool]
        usual, each = size == jobs.gpus[row], jobs.gpus_per_node[row]
        even = usual & (each > 0)
        nodes = np.maximum(-(-size // np.maximum(biggest, 1)), np.where(usual, jobs.nodes[row], 1))
        nodes = np.where(even, size // np.maximum(each, 1), nodes)
        most = jobs.most_nodes[row]
        as_asked = usual | ((jobs.nodes[row] <= 1) & ((each == 0) | (each == jobs.gpus[row])))
        fits = (pool >= 0) & (biggest > 0) & as_asked & (nodes <= size) & ((most == 0) | (nodes <= most))
        choice, at = fits.nonzero()
        return cls(number[row[at]], size[at], pool[choice, at], nodes[choice, at], even[at])

    def kept(self, which: Bools) -> _Asked:
        """Some of the entries."""
        job, gpus, pool, nodes = (column[which] for column in (self.job, self.gpus, self.pool, self.nodes))
        return _Asked(job, gpus, pool, nodes, self.even[which])


class _Goes(NamedTuple):
    """The lots of jobs that get nodes: for those who wait, and for those who would go on elsewhere."""

    job: Ints
    gpus: Ints
    value: Floats
    nodes: Ints  # how many
    node: Ints  # [part], lot after lot
    of_node: Ints  # [part] GPUs

    @property
    def lot(self) -> Ints:
        """The lot of each part."""
        return np.arange(len(self.job)).repeat(self.nodes)

    def kept(self, which: Bools) -> _Goes:
        """Some of the lots."""
        parts = which.repeat(self.nodes)
        job, gpus, nodes = self.job[which], self.gpus[which], self.nodes[which]
        return _Goes(job, gpus, self.value[which], nodes, self.node[parts], self.of_node[parts])

    @classmethod
    def of(cls, view: View, rows: Ints, worth: Floats, asked: _Asked, stock: Stock, nodes: Ints) -> _Goes:
        """Every size of each job on every node that could take it, and on some sets of several nodes."""
        pools = Pools.of(view.snapshot)
        one, several = asked.kept(asked.nodes == 1), asked.kept(asked.nodes > 1)
        which, at = (pools.nodes[one.pool][:, nodes] & (stock.gpus[nodes] >= one.gpus[:, None])).nonzero()
        lots = [
            (one.job[which], one.gpus[which], np.ones(len(which), dtype=np.int64), nodes[at], one.gpus[which])
        ]
        alike = np.stack((several.pool, several.nodes, several.gpus, several.even), axis=1)
        for kind in np.unique(alike, axis=0):
            there = nodes[pools.nodes[kind[0], nodes]]
            node, gpus = _windows(there, stock.gpus, int(kind[1]), int(kind[2]), even=bool(kind[3]))
            job = several.job[(alike == kind).all(axis=1)].repeat(len(node))
            times = len(job) // max(len(node), 1)
            size, count = np.full(len(job), kind[2]), np.full(len(job), kind[1])
            lots.append((job, size, count, np.tile(node.ravel(), times), np.tile(gpus.ravel(), times)))
        job, size, count, node, of_node = (np.concatenate(column) for column in zip(*lots, strict=True))
        first = node[count.cumsum() - count]
        kind = view.snapshot.nodes.gpu_type[first]
        speed = speed_in(view, rows[job], kind, size, np.zeros(len(job), dtype=bool))
        return cls(job, size, usual_gpus(view)[rows[job]] * speed * worth[job], count, node, of_node)


def _has_the_rest(view: View, rows: Ints, going: _Goes, stock: Stock) -> Bools:
    """Lots whose nodes have the CPUs and the memory too, once all whose lease is over have left."""
    jobs = view.snapshot.jobs
    fits = np.ones(len(going.job), dtype=bool)
    if not len(going.job) or not view.wants_more_than_gpus:
        return fits
    # What a job takes of each of so many nodes with so many GPUs is worked out once.
    alike = np.stack((going.job, going.gpus, going.nodes), axis=1)
    kinds, kind_of = np.unique(alike, axis=0, return_inverse=True)
    job, gpus, count = kinds.T
    part = np.arange(len(kinds)).repeat(count)
    places = Placement(part, np.zeros(len(part), dtype=np.int64), (-(-gpus // count)).repeat(count))
    _, cpus, memory_mb = shares(places, rows[job][part], jobs, view.snapshot.sizes)
    kind_of_part = kind_of.reshape(-1)[going.lot]
    first = count.cumsum() - count
    for need, there in ((cpus, stock.cpus), (memory_mb, stock.memory_mb)):
        fits[going.lot[need[first][kind_of_part] > there[going.node]]] = False
    return fits


def _windows(nodes: Ints, free: Ints, count: int, gpus: int, *, even: bool) -> tuple[Ints, Ints]:
    """Sets of so many nodes that could take a gang, and the GPUs that it may need of each.

    Slurm fills one node after the other where a user leaves it to Slurm; before that each must have an even part
    free. So each node counts with the larger one of both. Neighbours are those with about as much to give.
    """
    least, more = divmod(gpus, count)
    part = least + (np.arange(count) < more)
    able = nodes[free[nodes] >= part[0]]
    if len(able) < count:
        return np.zeros((0, count), dtype=np.int64), np.zeros((0, count), dtype=np.int64)
    able = able[np.argsort(-free[able], kind="stable")]
    starts = np.arange(len(able) if len(able) > count else 1)
    starts = starts[:: -(-len(starts) // _MOST_WINDOWS)]
    sets = np.sort(able[(starts[:, None] + np.arange(count)) % len(able)], axis=1)
    if even:
        return sets, np.broadcast_to(part, sets.shape)
    have = free[sets]
    filled = np.clip(gpus - (have.cumsum(axis=1) - have), 0, have)
    return sets, np.maximum(filled, part)


def _in_other_shape(view: View, rows: Ints, lots: _Goes) -> Bools:
    """The lots that have another number of GPUs than their jobs run with, or no node on which they run."""
    places, nodes = view.lease_places, len(view.snapshot.nodes)
    job = lots.job.repeat(lots.nodes)
    home = np.isin(rows[job] * nodes + lots.node, places.row * nodes + places.node)
    away = np.bincount(lots.lot, home, len(lots.job)) == 0
    held = np.bincount(places.row, places.gpus, len(view.waiting)).astype(np.int64)
    other: Bools = away | (held[rows[lots.job]] != lots.gpus)
    return other
