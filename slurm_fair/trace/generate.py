"""Made-up traces: Poisson arrivals, published size classes, tenants of uneven appetite; dice are an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from slurm_fair.errors import InputError
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.trace.cells import CENTURY
from slurm_fair.trace.classes import HOUR, SHOCKWAVE, Workload
from slurm_fair.trace.collect import Collector, ColumnRules
from slurm_fair.trace.table import REQUIRED, Trace
from slurm_fair.trace.write import number_text

_MOST_JOBS = 1_000_000
_CLASS = "size_class"  # a further column of the trace


@dataclass(frozen=True, slots=True)
class TraceWish:
    """The trace that is wanted; either arrivals per hour or the load that they put on so many GPUs."""

    jobs: int = 500
    rate_per_hour: float | None = None
    load: float | None = None  # GPU-time asked for / GPU-time there is, while jobs arrive
    gpus: int = 32
    tenants: int = 8
    zipf: float = 1.0  # tenant k has 1 / k^zipf of the first one's jobs; 0 = all alike
    workload: Workload = SHOCKWAVE

    def __post_init__(self) -> None:
        if not 0 < self.jobs <= _MOST_JOBS or not 0 < self.tenants <= _MOST_JOBS:
            raise InputError(f"jobs and tenants must be above 0 and at most {_MOST_JOBS}")
        if self.gpus <= 0 or not 0 <= self.zipf <= 100:
            raise InputError(f"gpus must be above 0, zipf 0 to 100, not {self.gpus} and {self.zipf:g}")
        if self.rate_per_hour is not None and self.load is not None:
            raise InputError("a rate and a load cannot both be given: each follows from the other")
        for name, value in (("rate", self.rate_per_hour), ("load", self.load)):
            if value is not None and not 1e-6 <= value <= 1e9:
                raise InputError(f"{name} must be a number from 1e-6 to 1e9, not {value:g}")


def generate(wish: TraceWish, random: np.random.Generator) -> Trace:
    """A trace; the same wish and the same dice make the same one."""
    which, gpu_hours = _sizes(wish, random)
    gpus, choices = _gpus(wish.workload, gpu_hours, random)
    duration = np.maximum(np.round(gpu_hours * HOUR / gpus, 3), 0.001)
    submit = _arrivals(wish, float((gpus * duration).sum()), random)
    tenant = _tenants(wish, random)
    digits = len(str(wish.tenants))
    names = [group.name for group in wish.workload.classes]
    collector = Collector((*REQUIRED, "gpus_choices", _CLASS), ColumnRules())
    columns = (submit.tolist(), gpus.tolist(), duration.tolist(), choices, which.tolist(), tenant.tolist())
    for at, (when, size, seconds, sizes, group, who) in enumerate(zip(*columns, strict=True), start=1):
        row = [
            str(at),
            f"t{who + 1:0{digits}}",
            number_text(when),
            str(size),
            number_text(seconds),
            sizes,
            names[group],
        ]
        collector.add(f" job {at}", row)
    return collector.trace()


def _sizes(wish: TraceWish, random: np.random.Generator) -> tuple[Ints, Floats]:
    """The class of each job, and its GPU-hours: log-uniform within the class."""
    groups = wish.workload.classes
    parts = np.array([group.part for group in groups])
    which = random.choice(len(groups), wish.jobs, p=parts / parts.sum()).astype(np.int64)
    least = np.log([group.least_gpu_hours for group in groups])[which]
    most = np.log([group.most_gpu_hours for group in groups])[which]
    return which, np.exp(random.uniform(least, most))


def _gpus(workload: Workload, gpu_hours: Floats, random: np.random.Generator) -> tuple[Ints, list[str]]:
    """GPUs that each job asks for, and the other numbers that it could run with."""
    sizes = np.array(workload.sizes, dtype=np.int64)
    if workload.choices > 1:
        return _chosen(workload, gpu_hours, random)
    seconds = gpu_hours[:, None] * HOUR / sizes
    fits = (seconds >= workload.least_seconds) & (seconds <= workload.most_seconds)
    fits[~fits.any(axis=1), -1] = True  # too large for any: all GPUs that can be asked for
    weights = np.cumsum(fits * np.array(workload.size_weights), axis=1)
    drawn = random.uniform(0, weights[:, -1])
    picked = (weights <= drawn[:, None]).sum(axis=1)
    return sizes[picked], [""] * len(gpu_hours)


def _chosen(workload: Workload, gpu_hours: Floats, random: np.random.Generator) -> tuple[Ints, list[str]]:
    """Each job names some sizes, of which one at least is short enough, and asks for their lower median."""
    sizes = np.array(workload.sizes, dtype=np.int64)
    counts = random.integers(1, workload.choices + 1, len(gpu_hours))
    sets = [np.sort(random.choice(sizes, count, replace=False)) for count in counts]
    least = np.minimum(gpu_hours * HOUR / workload.most_seconds, sizes[-1])
    for at in np.flatnonzero([named[-1] < size for named, size in zip(sets, least, strict=True)]).tolist():
        sets[at][-1] = random.choice(sizes[sizes >= least[at]])
    medians = np.array([named[(len(named) - 1) // 2] for named in sets], dtype=np.int64)
    return medians, ["|".join(map(str, named)) if len(named) > 1 else "" for named in sets]


def _arrivals(wish: TraceWish, gpu_seconds: float, random: np.random.Generator) -> Floats:
    """A Poisson process; under a wished load it is as dense as the sizes at hand make it."""
    load = wish.load or 1.0
    per_second = (
        wish.rate_per_hour / HOUR if wish.rate_per_hour else wish.jobs * load * wish.gpus / gpu_seconds
    )
    waits = random.exponential(1 / per_second, wish.jobs)
    waits[0] = 0.0
    times: Floats = np.round(np.cumsum(waits), 3).astype(np.float64)
    if times[-1] > CENTURY:
        named = f"--rate {wish.rate_per_hour:g}" if wish.rate_per_hour else f"--load {load:g}"
        cures = "a higher --rate" if wish.rate_per_hour else "a higher --load, more --gpus"
        raise InputError(
            f"{named}: the last of {wish.jobs} jobs would be submitted after {times[-1]:g} s, more than a hundred "
            f"years ({CENTURY:.0f} s): give {cures}, or fewer --jobs"
        )
    return times


def _tenants(wish: TraceWish, random: np.random.Generator) -> Any:
    weights = np.array([math.pow(rank, -wish.zipf) for rank in range(1, wish.tenants + 1)])
    return random.choice(wish.tenants, wish.jobs, p=weights / weights.sum())
