"""Time and proven gap of Hops' integer program on clusters of 80 to 10,000 GPUs (docs/solvers.md).

python benchmarks/hops.py --seeds 0 1 2 --cases 512 "1,000" --write docs/solvers.md
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

from benchmarks import arguments
from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.solve.places import PlacesAnswer, PlacesLimits, PlacesProblem, classes, fast, violations

MEASURED = "## Measured"

SERVER_GPUS, LARGEST = 8, 16
THRESHOLD = 1.4  # of sensitivity: above it a job is spread only where no server could hold it (Hops 3.6)


@dataclass(frozen=True)
class Cluster:
    """A cluster and a queue: the sizes that jobs can have are any of 1 to 16, or powers of two."""

    gpus: int
    kinds: int = 5
    small: bool = False
    idle: bool = True  # False: what a first plan of the round left, 0 to 8 GPUs free on each server


def made(cluster: Cluster, seed: int) -> PlacesProblem:
    """Servers by kind, and the queue's window: the jobs at its head whose least sizes fill what is free."""
    dice = np.random.default_rng(seed)
    servers = cluster.gpus // SERVER_GPUS
    kind = np.arange(servers) * cluster.kinds // servers
    free = np.full(servers, SERVER_GPUS)
    if not cluster.idle:
        free = dice.integers(0, SERVER_GPUS + 1, servers)
    queue = 4 * cluster.gpus
    wanted = _sizes(dice, queue, cluster.small)
    least = wanted.argmax(axis=1) + 1
    jobs = 1 + int(np.searchsorted(np.cumsum(least), free.sum()))
    prior = np.sort(dice.lognormal(0.0, 1.5, queue))[::-1][:jobs]
    sensitivity = 1.0 + dice.gamma(1.0, 0.5, jobs)
    job, gpus = np.nonzero(wanted[:jobs])
    gpus = gpus + 1
    spread = gpus > SERVER_GPUS
    allowed = ~spread | (sensitivity[job] <= THRESHOLD) | (least[job] > SERVER_GPUS)
    job, gpus, spread = job[allowed], gpus[allowed], spread[allowed]
    gain = _gains(dice, cluster.kinds, jobs, job, gpus, np.where(spread, sensitivity[job], 1.0))
    many = len(job)
    return PlacesProblem(
        free, kind, np.zeros(servers, dtype=np.int64), np.full(servers, SERVER_GPUS),
        np.tile(job, cluster.kinds), np.repeat(np.arange(cluster.kinds), many), np.tile(gpus, cluster.kinds),
        np.tile(spread, cluster.kinds), (prior[job] * gain).ravel(), jobs,
    )  # fmt: skip


def _sizes(dice: np.random.Generator, jobs: int, small: bool) -> Bools:
    """[job, size - 1] True for the sizes that a job can have."""
    wanted = np.zeros((jobs, LARGEST), dtype=bool)
    if small:  # powers of two from 1 (60 %), 2, 4 or 8 on
        first = dice.choice(4, jobs, p=[0.6, 0.2, 0.12, 0.08])
        last = np.minimum(4, first + dice.integers(0, 5, jobs))
        for power in range(5):
            wanted[:, 2**power - 1] = (first <= power) & (power <= last)
        return wanted
    rank = dice.random((jobs, LARGEST)).argsort(axis=1).argsort(axis=1)
    return np.asarray(rank < dice.integers(1, 9, jobs)[:, None])


def _gains(
    dice: np.random.Generator, kinds: int, jobs: int, job: Ints, gpus: Ints, penalty: Floats
) -> Floats:
    """[kind, use] speed of the kind for the job * GPUs^alpha, over the job's least (the paper's G)."""
    speed = np.linspace(1.0, 4.0, kinds)[:, None] * dice.lognormal(0.0, 0.2, (kinds, jobs))
    alpha = dice.uniform(0.6, 1.0, jobs)
    rate = speed[:, job] * gpus ** alpha[job] / penalty
    lowest = np.full(jobs, np.inf)
    np.minimum.at(lowest, job, rate.min(axis=0))
    gain: Floats = rate / lowest[job]
    return gain


@dataclass(frozen=True)
class Case:
    """A cluster, the solver and what is wanted of it."""

    name: str
    cluster: Cluster
    solve: Callable[[PlacesProblem, PlacesLimits], PlacesAnswer]
    wanted_seconds: float
    wanted_gap: float


def _both(name: str, gpus: int, seconds: float, kinds: int = 5, idle: bool = True) -> list[Case]:
    return [
        Case(f"{name}, {sizes}", Cluster(gpus, kinds, small, idle), fast, seconds, 0.01)
        for sizes, small in (("1-16", False), ("1, 2, 4, ...", True))
    ]


def cases() -> list[Case]:
    """All of them, the smallest first."""
    exact = [
        Case(f"{gpus} GPUs, 1-16", Cluster(gpus), solve, 3.0, gap)
        for gpus in (80, 128, 160)
        for solve, gap in ((classes, 0.0), (fast, 0.0), (fast, 0.01))
    ]
    middle = [case for gpus in (512, 1000, 1504) for case in _both(f"{gpus:,} GPUs", gpus, 0.5)]
    left = [
        case
        for gpus in (1504, 10_000)
        for case in _both(f"{gpus:,} GPUs partly filled", gpus, 1.0, idle=False)
    ]
    large = _both("10,000 GPUs", 10_000, 1.0)
    return [*exact, *middle, *left, *large, *_both("10,000 GPUs, 20 classes", 10_000, 5.0, kinds=20)]


def _measured(case: Case, seed: int) -> dict[str, float]:
    problem = made(case.cluster, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    answer = case.solve(problem, PlacesLimits(gap=case.wanted_gap))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if wrong := violations(problem, answer):
        raise SystemExit(f"{case.name}, seed {seed}: {wrong[0]}")
    return {"jobs": problem.jobs, "columns": len(problem.job), "wall": wall, "cpu": cpu, "gap": answer.gap}


def _row(case: Case, seeds: list[int]) -> tuple[str, bool]:
    runs = [_measured(case, seed) for seed in seeds]
    worst_gap = max(run["gap"] for run in runs)
    kept = max(run["cpu"] for run in runs) <= case.wanted_seconds and worst_gap <= max(case.wanted_gap, 1e-6)
    cells = [
        case.name, case.solve.__name__, f"{runs[0]['jobs']:.0f}", f"{runs[0]['columns']:.0f}",
        " / ".join(f"{run['cpu']:.2f}" for run in runs), " / ".join(f"{run['wall']:.2f}" for run in runs),
        " / ".join(f"{100 * run['gap']:.3f}" for run in runs),
        f"{case.wanted_seconds:g} s, " + ("optimal" if not case.wanted_gap else f"{100 * case.wanted_gap:g} %"),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |", kept


def table(chosen: list[Case], seeds: list[int]) -> tuple[str, bool]:
    """The table, and whether all is as wanted."""
    classes(made(Cluster(80), 0))  # the solver is loaded at its first use
    head = ("case", "solver", "jobs", "columns", "cpu s", "wall s", "proven gap %", "wanted")
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    kept = True
    for case in chosen:
        line, good = _row(case, seeds)
        kept = kept and good
        lines.append(line)
        print(line, flush=True)
    machine = (
        f"{platform.machine()} {platform.system()} Python {platform.python_version()} numpy {np.__version__}"
    )
    load = f"load average {os.getloadavg()[0]:.0f} at the end"
    return "\n".join([*lines, "", f"{machine}, seeds {seeds}, {os.cpu_count()} cores, {load}"]), kept


def main() -> int:
    """Measure, print and write; 1 where something is not as wanted."""
    parser = arguments.Parser(__doc__)
    parser.add_argument("--seeds", type=arguments.whole, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cases", nargs="+", default=[""], help="only cases whose names begin so")
    parser.add_argument(
        "--write", type=arguments.known_page, help="page whose last section the table becomes"
    )
    args = parser.parse_args()
    chosen = [case for case in cases() if case.name.startswith(tuple(args.cases))]
    if not chosen:
        names = "; ".join(case.name for case in cases())
        parser.error(f"argument --cases: no case begins with {' or '.join(args.cases)}; there are: {names}")
    text, kept = table(chosen, args.seeds)
    if args.write:
        page = args.write.read_text().partition(MEASURED)[0]
        args.write.write_text(page + MEASURED + "\n\n" + text + "\n")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
