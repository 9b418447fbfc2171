"""Free GPUs, CPUs and memory of each node, indexed so that the fullest node that fits is found in a few steps."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from slurm_fair.model.columns import Bools, Ints
from slurm_fair.policy.packing.gang import Gang, Pools

Amounts: TypeAlias = tuple[int, int, int]  # GPUs, CPUs, memory in MB


class Loss(NamedTuple):
    """The cost of a node to others who would use it; placers prefer the nodes that cost least."""

    spared: Ints  # GPUs of each node that can be had without loss
    rank: Ints  # of the job owed most that may lose its GPUs there, in the order of deservingness


UNSURE = -1
POOR_NODES = 8  # nodes with GPUs but too few CPUs or too little memory that are looked at one by one


class Room:
    """Free GPUs, CPUs and memory of every node; the arrays may be read by any placer.

    Invariant: a usable node with f > 0 free GPUs stands in the stack of its region's level f at least once.
    Entries whose node has moved on are stale and are dropped when they are met, so every change costs one push.
    What stood in a stack at first is put under what came since when the stack is first asked for.
    """

    __slots__ = (
        "_at_first",
        "_cpus",
        "_gpus",
        "_levels_of",
        "_memory",
        "_stacks",
        "_unasked",
        "cpus",
        "gpus",
        "loss",
        "memory_mb",
        "pools",
    )

    def __init__(
        self, pools: Pools, gpus: Ints, cpus: Ints, memory_mb: Ints, loss: Loss | None = None
    ) -> None:
        self.pools, self._levels_of = pools, pools.levels_of
        self.gpus, self.cpus, self.memory_mb = gpus.copy(), cpus.copy(), memory_mb.copy()
        self.loss = loss  # None = all of it can be had without loss
        # Scalar access through memoryviews costs half of what the arrays cost.
        self._gpus: memoryview[int] = self.gpus.data
        self._cpus: memoryview[int] = self.cpus.data
        self._memory: memoryview[int] = self.memory_mb.data
        had = np.maximum(gpus, 0) if gpus.size and gpus.item(gpus.argmin()) < 0 else gpus
        self._at_first = pools.levels + had
        # How many nodes stood at each level at first: at most levels none.
        self._unasked: list[int] = np.bincount(self._at_first, minlength=pools.level_count).tolist()
        self._stacks: dict[int, list[int]] = {}

    def _stack(self, level: int) -> list[int]:
        stack = self._stacks.get(level, [])
        if self._unasked[level]:
            self._unasked[level] = 0
            stack[:0] = (self._at_first == level).nonzero()[0][::-1].tolist()
            self._stacks[level] = stack
        return stack

    def add(self, node: int, gpus: int, cpus: int, memory_mb: int) -> None:
        """Give back to a node, or take from it with negative numbers."""
        free = self._gpus[node] + gpus
        self._gpus[node] = free
        self._cpus[node] += cpus
        self._memory[node] += memory_mb
        if free > 0:
            stack = self._stacks.get(level := self._levels_of[node] + free)
            if stack is None:
                self._stacks[level] = [node]
            else:
                stack.append(node)

    def amounts(self, node: int) -> Amounts:
        """GPUs, CPUs and memory that one node has free."""
        return self._gpus[node], self._cpus[node], self._memory[node]

    def gpus_of(self, node: int) -> int:
        """GPUs that one node has free."""
        return self._gpus[node]

    def carries(self, node: int, gpus: int, cpus: int, memory_mb: int) -> bool:
        """Does this node have that much?"""
        return self._gpus[node] >= gpus and self._cpus[node] >= cpus and self._memory[node] >= memory_mb

    def fullest(self, gang: Gang) -> list[int] | None:
        """The fullest nodes that have the gang's GPUs; None when too few have, empty when that needs a search.

        A single node also has its CPUs and memory; several may not.
        """
        stacks, unasked, count = self._stacks, self._unasked, gang.nodes
        found: list[int] = []
        for free, levels in enumerate(self.pools.ladders[gang.pool][gang.share :], gang.share):
            for level in levels:
                if not unasked[level] and level not in stacks:
                    continue
                stack = self._stack(level)
                if count > 1:
                    found += self._tops(stack, free, count - len(found))
                    if len(found) == count:
                        return found
                elif (node := self._top(stack, free, gang)) is not None:
                    return [node] if node != UNSURE else []
        return None

    def whole(self, gang: Gang) -> list[int] | None:
        """The fewest nodes that are free altogether and together have the gang's GPUs."""
        found: list[int] = []
        missing = gang.gpus
        for free in range(self.pools.most, 0, -1):
            for level in self.pools.ladders[gang.pool][free]:
                idle = self._tops(self._stack(level), free, -(-missing // free), idle_only=True)
                found += idle
                missing -= free * len(idle)
                if missing <= 0:
                    return found
        return None

    def _top(self, stack: list[int], free: int, gang: Gang) -> int | None:
        """The first node of one stack that carries the gang; stale entries go for good."""
        poor = 0
        for at in range(len(stack) - 1, -1, -1):
            node = stack[at]
            if self._gpus[node] != free:
                del stack[at]
            elif self._cpus[node] >= gang.cpus and self._memory[node] >= gang.memory_mb:
                return node
            else:
                poor += 1
                if poor == POOR_NODES:
                    # Let the next gang begin with other nodes.
                    stack[:0] = stack[at:]
                    del stack[-poor:]
                    return UNSURE
        return None

    def _tops(self, stack: list[int], free: int, count: int, idle_only: bool = False) -> list[int]:
        """Up to so many nodes of one stack, which keeps them; stale entries and doubles go for good."""
        found: list[int] = []
        passed: dict[int, None] = {}
        while stack and len(found) < count:
            node = stack.pop()
            if self._gpus[node] == free and node not in passed:
                passed[node] = None
                if not idle_only or self.pools.size_of[node] == free:
                    found.append(node)
        stack.extend(reversed(passed))
        return found

    def fitting(self, gang: Gang) -> Bools:
        """Nodes that could each carry a part of the gang, looked at one and all."""
        fits: Bools = self.pools.nodes[gang.pool] & (self.gpus >= gang.share)
        if gang.whole:
            fits = self.pools.nodes[gang.pool] & (self.gpus == self.pools.size) & (self.gpus > 0)
        fits &= (self.cpus >= gang.cpus) & (self.memory_mb >= gang.memory_mb)
        if gang.barred:
            fits[list(gang.barred)] = False
        return fits
