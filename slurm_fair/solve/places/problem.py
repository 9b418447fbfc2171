"""The question of Hops' integer program: jobs, the ways in which each may run, and servers with free GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints, absent
from slurm_fair.solve.answer import How, gap_between


@dataclass(frozen=True, slots=True)
class PlacesProblem:
    """Each job in at most one way, no server over its free GPUs, the sum of values as large as can be.

    Servers stand in the order of adjacency. Neighbours of one kind and one block are adjacent; a spread job
    lies on adjacent servers. A way worth nothing is never taken.
    """

    free: Ints  # [server] GPUs that may be given
    kind: Ints  # [server] its GPU type, or its class of speeds: 0, 1, ...
    block: Ints  # [server] its rack or switch
    size: Ints  # [server] all its GPUs
    job: Ints  # [column] 0 .. jobs - 1
    on: Ints  # [column] the kind of server
    gpus: Ints  # [column]
    several: Bools  # [column] servers: on the least number of adjacent servers; else all on one
    value: Floats  # [column] worth of giving the job this: Hops' (prior + bias)^lambda * G, eq. 11
    jobs: int

    def __post_init__(self) -> None:
        """Refuse what no solver could answer."""
        _equal_lengths("server", self.free, self.kind, self.block, self.size)
        _equal_lengths("column", self.job, self.on, self.gpus, self.several, self.value)
        if (self.free < 0).any() or (self.free > self.size).any():
            raise ValueError("places: a server has from 0 to all of its GPUs free")
        if not np.isfinite(self.value).all() or (self.value < 0).any():
            raise ValueError("places: values are finite and not negative")
        if (self.gpus < 1).any():
            raise ValueError("places: a column asks for at least one GPU")
        if len(self.job) and not 0 <= self.job.min() <= self.job.max() < self.jobs:
            raise ValueError(f"places: columns name jobs from 0 to {self.jobs - 1}")
        if min(self.kind.min(initial=0), self.on.min(initial=0)) < 0:
            raise ValueError("places: kinds are counted from 0")

    @property
    def kinds(self) -> int:
        """Kinds of servers, those that only columns name among them."""
        return 1 + int(max(self.kind.max(initial=-1), self.on.max(initial=-1)))


def _equal_lengths(of: str, *columns: Ints | Floats | Bools) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ValueError(f"places: fields by {of} differ in length: {[len(column) for column in columns]}")


@dataclass(frozen=True, slots=True)
class PlacesLimits:
    """The effort that an answer may take. Counts give the same answer on every machine; seconds do not."""

    nodes: int = 2_000  # of the branch-and-bound tree
    iterations: int = 500_000  # of the simplex method, in each linear program
    prices: int = 60  # steps of the price iteration
    gap: float = 0.01  # `fast` stops at this proven gap
    seconds: float | None = None  # wall clock of HiGHS in all; None = counts alone

    def within(self, seconds: float) -> PlacesLimits:
        """The limits of a plan that has so many seconds in all: half for HiGHS, which may be late.

        A simulation's plan has no deadline (inf), and counts alone bound it.
        """
        clock = None if np.isinf(seconds) else max(seconds, 0.0) / 2.0
        return replace(self, seconds=clock)

    def left(self, spent: float) -> float:
        """Seconds that HiGHS still has."""
        return np.inf if self.seconds is None else self.seconds - spent


@dataclass(frozen=True, slots=True)
class PlacesAnswer:
    """The way that each job got, where its GPUs are, and how far from the best that can be at most."""

    column: Ints  # [job] a column of the problem, -1 = none
    job: Ints  # [place] ascending
    server: Ints  # [place] ascending within a job
    gpus: Ints  # [place]
    objective: float
    bound: float  # proven: no plan is worth more
    how: How

    @property
    def gap(self) -> float:
        """(bound - objective) / bound."""
        return gap_between(self.bound, self.objective) if self.bound > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Picks:
    """A plan before it is spelled out: each job's column and the first of its servers."""

    column: Ints  # [job] -1 = none
    first: Ints  # [job] a server, -1 = none
    servers: Ints  # [job] how many

    @classmethod
    def none(cls, jobs: int) -> Picks:
        nobody = absent(jobs)
        return cls(nobody, nobody.copy(), np.zeros(jobs, dtype=np.int64))

    def worth(self, problem: PlacesProblem) -> float:
        """The objective of eq. 11."""
        return float(problem.value[self.column[self.column >= 0]].sum())

    def answer(self, problem: PlacesProblem, bound: float, how: How) -> PlacesAnswer:
        """The plan spelled out: a spread job fills its servers in their order, the last with the rest."""
        jobs = np.flatnonzero(self.column >= 0)
        many = self.servers[jobs]
        job = np.repeat(jobs, many)
        nth = np.arange(len(job)) - np.repeat(np.cumsum(many) - many, many)
        server = self.first[job] + nth
        wanted, free = problem.gpus[self.column[job]], problem.free[server]
        before = np.cumsum(free) - free
        before = before - before[np.arange(len(job)) - nth]  # of the same job
        objective = self.worth(problem)
        gpus: Ints = np.minimum(free, wanted - before)
        return PlacesAnswer(self.column, job, server, gpus, objective, max(bound, objective), how)


def violations(problem: PlacesProblem, answer: PlacesAnswer) -> list[str]:
    """All that is wrong with a plan, in words; a plan that holds has none."""
    wrong = []
    used = np.bincount(answer.server, weights=answer.gpus, minlength=len(problem.free))
    if (used > problem.free).any():
        wrong.append(f"over their free GPUs: servers {np.flatnonzero(used > problem.free).tolist()}")
    placed = np.flatnonzero(answer.column >= 0)
    if np.unique(answer.job).tolist() != placed.tolist():
        wrong.append("the jobs with places are not those with columns")
        return wrong
    if (answer.gpus < 1).any():
        wrong.append("a place without GPUs")
    for job in placed.tolist():
        wrong += [f"job {job}: {what}" for what in _wrong_with(problem, answer, job)]
    worth = float(problem.value[answer.column[placed]].sum())
    if not np.isclose(worth, answer.objective, rtol=1e-9, atol=1e-12):
        wrong.append(f"worth {worth}, not {answer.objective}")
    if not answer.bound >= answer.objective:
        wrong.append(f"bound {answer.bound} below the objective {answer.objective}")
    return wrong


def _wrong_with(problem: PlacesProblem, answer: PlacesAnswer, job: int) -> list[str]:
    column, mine = int(answer.column[job]), answer.job == job
    server, gpus = answer.server[mine], answer.gpus[mine]
    wrong = []
    if problem.job[column] != job:
        wrong.append("a column of another job")
    if gpus.sum() != problem.gpus[column]:
        wrong.append(f"{gpus.sum()} GPUs, not {problem.gpus[column]}")
    if (problem.kind[server] != problem.on[column]).any():
        wrong.append("servers of another kind")
    if problem.several[column] != (len(server) > 1):
        wrong.append(f"on {len(server)} servers")
    if (np.diff(server) != 1).any() or len(np.unique(problem.block[server])) > 1:
        wrong.append("servers that are not adjacent")
    return wrong
