"""The size classes of published workloads, by name."""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class SizeClass:
    """Jobs alike in GPU-time: a part of all jobs, log-uniform between two sizes."""

    name: str
    part: float
    least_gpu_hours: float
    most_gpu_hours: float


@dataclass(frozen=True, slots=True)
class Workload:
    """Classes, and how many GPUs the jobs ask for."""

    name: str
    classes: tuple[SizeClass, ...]
    sizes: tuple[int, ...]
    size_weights: tuple[float, ...]  # how often each is asked for where a job's length allows several
    least_seconds: float  # a job takes a number of GPUs with which it runs this long, if there is one
    most_seconds: float  # of an elastic job: with its largest size
    choices: int  # how many numbers of GPUs a job can run with at most; 1 = only the one asked for


# Shockwave, section 8.1: parts and bounds in GPU-hours; 0.2 to 5 hours on 1, 2, 4 or 8 GPUs. The paper ends the
# largest class nowhere: twice its lower bound here, and such jobs run longer than 5 hours (72 / 8 = 9 already).
# How often each number of GPUs is asked for is that of Gavel's generator, with which the paper made its traces.
SHOCKWAVE = Workload(
    "shockwave",
    (
        SizeClass("small", 0.72, 0.2, 8.0),
        SizeClass("medium", 0.20, 8.0, 16.0),
        SizeClass("large", 0.05, 16.0, 72.0),
        SizeClass("extra-large", 0.03, 72.0, 144.0),
    ),
    sizes=(1, 2, 4, 8),
    size_weights=(0.70, 0.10, 0.15, 0.05),
    least_seconds=0.2 * HOUR,
    most_seconds=5.0 * HOUR,
    choices=1,
)

# Hops, section 4.2: bounds in GPU-hours, and 1 to 16 GPUs of which each user names up to 8; the median is asked
# for. The parts are the entries S, M, L, XL of its table 2 (5, 5, 6, 1 of 17): figure 8 has them without numbers.
# Its smallest class begins at 0 and its largest ends nowhere: one GPU-minute and twice its lower bound here.
# All its jobs were over after 10.5 hours: with the largest of its sizes no job runs longer than 10 here.
HOPS = Workload(
    "hops",
    (
        SizeClass("small", 5 / 17, 1 / 60, 1.0),
        SizeClass("medium", 5 / 17, 1.0, 10.0),
        SizeClass("large", 6 / 17, 10.0, 50.0),
        SizeClass("extra-large", 1 / 17, 50.0, 100.0),
    ),
    sizes=tuple(range(1, 17)),
    size_weights=(1 / 16,) * 16,
    least_seconds=0.0,
    most_seconds=10.0 * HOUR,
    choices=8,
)

WORKLOADS = {workload.name: workload for workload in (SHOCKWAVE, HOPS)}
