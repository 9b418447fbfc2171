"""The machines of a virtual cluster: who holds which GPUs, kept as a sorted placement."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from slurm_fair.model import NodeTable, PartitionTable
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.model.placement import slurm_fill
from slurm_fair.trace import Machines

PARTITION = "gpu"
_PLENTY = 1_000_000  # CPUs and MiB of a node that does not say
Sites = list[tuple[int, int]]  # (node, GPUs)


class Floor:
    """Nodes, their state, and the GPUs that jobs hold on them."""

    def __init__(self, machines: Machines, gpu_types: tuple[str, ...]) -> None:
        self.machines = machines
        self.size: list[int] = machines.gpus.tolist()
        self.free = array("q", machines.gpus.tolist())
        self.racks = machines.rack
        self.usable = np.ones(len(machines), dtype=bool)
        self.others = np.zeros(len(machines), dtype=np.int64)  # GPUs that somebody else's jobs hold
        self.names = {name: node for node, name in enumerate(machines.names)}
        self.type_of: list[int] = [gpu_types.index(machines.gpu_types[k]) for k in machines.gpu_type.tolist()]
        sizes = [machines.gpus[np.array(self.type_of) == kind] for kind in range(len(gpu_types))]
        self._sums = [np.cumsum(np.sort(each)[::-1]) for each in sizes]  # of the biggest nodes of each type
        self._why = [""] * len(machines)
        # Job, node, GPUs; sorted by job. And the same as a look shows it, until somebody comes or goes.
        self._held: tuple[array[int], array[int], array[int]] = (array("q"), array("q"), array("q"))
        self._shown: tuple[Ints, Ints, Ints] | None = None
        self._sites: dict[int, Sites] = {}
        self._partitions = PartitionTable(
            (PARTITION,), np.ones(1, dtype=bool), np.ones((1, len(machines)), dtype=bool)
        )
        self._nodes = self._table()

    @property
    def nodes(self) -> NodeTable:
        """The nodes of a look; the same value until something about them changes."""
        return self._nodes

    @property
    def total_gpus(self) -> int:
        """M, the number of GPUs."""
        return int(self._nodes.capacity.sum())

    def weighed(self, weights: Floats | None) -> float:
        """M by weight: the weights of all GPUs that can be had, together."""
        if weights is None:
            return float(self.total_gpus)
        return float((self._nodes.capacity * weights[self._nodes.gpu_type]).sum())

    def weight_of(self, sites: Sites, weights: Floats) -> float:
        """The weight of each GPU of a gang, on average."""
        counted = sum(gpus * weights.item(self.type_of[node]) for node, gpus in sites)
        return counted / sum(gpus for _, gpus in sites)

    @property
    def partitions(self) -> PartitionTable:
        """The one partition, with every node."""
        return self._partitions

    def _table(self) -> NodeTable:
        machines, zeros = self.machines, np.zeros(len(self.machines), dtype=np.int64)
        memory = np.where(machines.memory_gb > 0, machines.memory_gb * 1024, _PLENTY)
        return NodeTable(
            names=machines.names,
            gpus=machines.gpus,
            gpus_others=self.others.copy(),
            gpu_type=np.array(self.type_of, dtype=np.int64),
            cpus=np.where(machines.cpus > 0, machines.cpus, _PLENTY),
            cpus_others=zeros,
            memory_mb=memory.astype(np.int64),
            memory_others_mb=zeros,
            usable=self.usable.copy(),
            why=tuple(self._why),
        )

    def set_state(self, node: int, usable: bool, why: str) -> None:
        """Note that a node takes new work, or why it takes none."""
        self.usable[node], self._why[node] = usable, why
        self._nodes = self._table()

    def lend(self, node: int, gpus: int) -> None:
        """Somebody else's jobs take free GPUs of a node; negative = give some back."""
        taken = max(min(gpus, self.free[node]), -int(self.others[node]))
        self.others[node] += taken
        self.free[node] -= taken
        self._nodes = self._table()

    def fewest_nodes(self, kind: int, gpus: int) -> int:
        """The fewest idle nodes of one GPU type that hold so many GPUs."""
        return int(self._sums[kind].searchsorted(gpus)) + 1

    def anywhere(self, gpus: int, per_node: int, at_least: int, gpu_type: int) -> Sites | None:
        """The sites of a gang on the nodes that suit it best: as few as possible, of those the fullest."""
        fit = [n for n, ok in enumerate(self.usable.tolist()) if ok and gpu_type in (-1, self.type_of[n])]
        fit = sorted((n for n in fit if self.free[n] > 0), key=lambda n: self.free[n])
        if per_node:
            nodes = [n for n in fit if self.free[n] >= per_node][: gpus // per_node]
            return self.sites(nodes, gpus, per_node) if nodes else None
        for count in range(max(at_least, 1), len(fit) + 1):
            roomy = [n for n in fit if self.free[n] * count >= gpus] if count == 1 else fit[-count:]
            if roomy and sum(self.free[n] for n in roomy[:count]) >= gpus:
                return self.sites(sorted(roomy[:count]), gpus, per_node)
        return None

    def sites(self, nodes: Sequence[int], gpus: int, per_node: int) -> Sites | None:
        """The sites of a gang on these nodes, or None when it does not fit there now."""
        if len(nodes) == 1:
            node = nodes[0]
            return [(node, gpus)] if self.usable[node] and self.free[node] >= gpus else None
        if per_node:
            shares = [min(per_node, max(gpus - at * per_node, 0)) for at in range(len(nodes))]
            sites = list(zip(nodes, shares, strict=True))
        else:
            sites = slurm_fill(nodes, map(self.free.__getitem__, nodes), gpus)
        if sum(here for _, here in sites) != gpus:
            return None
        fits = all(self.usable[n] and (here >= 1 or per_node) and self.free[n] >= here for n, here in sites)
        return [site for site in sites if site[1]] if fits else None

    def take(self, job: int, sites: Sites) -> None:
        """Give these GPUs to the job from now on."""
        holder, where, taken = self._held
        at, self._shown = bisect_left(holder, job), None
        for row, (node, gpus) in enumerate(sites, at):
            holder.insert(row, job)
            where.insert(row, node)
            taken.insert(row, gpus)
            self.free[node] -= gpus
        self._sites[job] = sites

    def leave(self, job: int) -> None:
        """Free the GPUs of a job that leaves."""
        sites = self._sites.pop(job)
        at, self._shown = bisect_left(self._held[0], job), None
        for column in self._held:
            del column[at : at + len(sites)]
        for node, gpus in sites:
            self.free[node] += gpus

    def holders(self) -> tuple[Ints, Ints, Ints]:
        """(job, node, GPUs), sorted by job: as they are now, whatever happens later."""
        if self._shown is None:
            job, node, gpus = [np.frombuffer(column.tobytes(), np.int64) for column in self._held]
            self._shown = job, node, gpus
        return self._shown

    def taken(self) -> Ints:
        """GPUs of each node that jobs hold."""
        free: Ints = np.frombuffer(self.free.tobytes(), np.int64)
        return self.machines.gpus - self.others - free

    def on(self, node: int) -> list[int]:
        """Jobs that hold GPUs of a node."""
        job, where, _ = self.holders()
        there: list[int] = job[where == node].tolist()
        return there
