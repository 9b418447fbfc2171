"""Evenness of service (Jain, envy), and the check that a plan leaves no GPU idle that a waiting job could have
had.
"""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints


def jain(values: Floats) -> float:
    """Jain's index: 1 = all alike, 1/n = one has everything; 1 for nobody or when all have nothing."""
    # Scaled by a power of two, which rounds nothing, squares of very large and very small values are numbers.
    scaled = np.ldexp(values, -int(np.frexp(np.max(values, initial=0.0))[1]))
    squares = float(np.sum(np.square(scaled))) * values.size
    return float(np.sum(scaled)) ** 2 / squares if squares > 0 else 1.0


def largest_envy(had: Floats, weight: Floats) -> float:
    """The best-served tenant's weighted service less the worst-served one's, over tenants with a weight."""
    served = had[weight > 0] / weight[weight > 0]
    return float(served.max() - served.min()) if served.size else 0.0


def could_be_added(
    free: Ints, gpus: Ints, nodes: Ints, gpus_per_node: Ints, allowed: Bools | None = None
) -> Bools:
    """The Pareto audit of one plan: each waiting gang that the GPUs left free would hold, taken by itself.

    `free` is per node, after the plan; a gang wants at least `nodes` nodes, and either any split
    (`gpus_per_node` 0) or that many GPUs on each. `allowed` is [job, node]: its partition, its GPU type, the
    nodes its user excluded. CPUs and memory are not looked at: bar nodes that lack them through `allowed`.
    """
    # Many jobs, few shapes: without nodes of their own, jobs of one shape fit or fail together.
    shapes = np.stack([gpus, nodes, gpus_per_node], axis=1)
    if allowed is None:
        kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
        return _fits(free[None, :], kinds)[kind.reshape(-1)]
    return _fits(np.where(allowed, free[None, :], 0), shapes)


def _fits(free: Ints, shapes: Ints) -> Bools:
    """`free` is [job or 1, node]; one shape a row."""
    gpus, nodes, per_node = shapes[:, :1], shapes[:, 1:2], shapes[:, 2:]
    least = np.maximum(nodes, 1)
    any_split = (free.sum(axis=1, keepdims=True) >= gpus) & ((free > 0).sum(axis=1, keepdims=True) >= least)
    share = np.maximum(per_node, 1)
    wanted = np.maximum(-(-gpus // share), least)
    fixed = (free >= share).sum(axis=1, keepdims=True) >= wanted
    fits: Bools = np.where(per_node > 0, fixed, any_split)[:, 0]
    return fits
