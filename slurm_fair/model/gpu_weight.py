"""GPUs by weight: one of a weaker type may count less than one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from slurm_fair.model.columns import Floats, Ints, take_or
from slurm_fair.model.node import NodeTable
from slurm_fair.model.placement import Placement
from slurm_fair.suggest import did_you_mean

GpuWeights: TypeAlias = Mapping[str, float]  # by GPU type; a type that is not named counts 1
UNTYPED = "gpu"  # the name of a GPU without a type
_LEAST_WEIGHT = 1e-3  # above 0: no part of a GPU counts as a rounding error
MOST_WEIGHT = 1e6


def named(gpu_type: str) -> str:
    """The name by which a type is weighed."""
    return gpu_type or UNTYPED


def fault_in(given: Mapping[str, object]) -> str:
    """The first fault in weights that somebody wrote, in a few words; "" = none."""
    for name, weight in given.items():
        if not name or not name.isprintable() or any(letter in name for letter in " ,=:"):
            return f"{name[:60]!r} is no GPU type"
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not _is_weight(weight):
            wanted = f"0, or from {_LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
            return f"{name[:60]} must count {wanted}, not {repr(weight)[:60]}"
    return ""


def _is_weight(number: float) -> bool:
    return number == 0 or _LEAST_WEIGHT <= number <= MOST_WEIGHT


def misfit(given: GpuWeights, gpu_types: Iterable[str]) -> str:
    """The first fault in weights for GPUs of these types, in a few words; "" = none."""
    here = sorted({named(name) for name in gpu_types})
    for name in given:
        if name not in here:
            return f"there are no GPUs of type '{name}'; {did_you_mean(name, here)}"
    if given and here and not any(given.get(name, 1.0) for name in here):
        return "all GPUs would count 0: give one type at least more than that"
    return ""


def of_types(given: GpuWeights, gpu_types: Sequence[str]) -> Floats | None:
    """The weight of each type; None where each GPU counts 1."""
    if not given:
        return None
    return np.array([given.get(named(name), 1.0) for name in gpu_types], dtype=np.float64)


def mean_weight(weights: Floats, gpu_type: Ints, gpus: Ints) -> float:
    """The weight of a GPU of these nodes, on average: what counts where nobody knows which GPU it will be."""
    return float((weights[gpu_type] * gpus).sum() / gpus.sum()) if gpus.any() else 1.0


def of_jobs(weights: Floats, nodes: NodeTable, held: Placement, asked_type: Ints) -> Floats:
    """The weight of a GPU of each job: of those that it holds, on average, else of those that it asks for."""
    mean = mean_weight(weights, nodes.gpu_type, nodes.gpus)
    found = take_or(weights, asked_type, mean)
    jobs = len(asked_type)
    gpus = np.bincount(held.row, held.gpus, jobs)
    weighed = np.bincount(held.row, held.gpus * weights[nodes.gpu_type[held.node]], jobs)
    np.divide(weighed, gpus, out=found, where=gpus > 0)
    return found
