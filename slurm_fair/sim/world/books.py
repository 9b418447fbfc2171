"""The accounting of a virtual cluster: every run of every job, as sacct would tell of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from slurm_fair.model import JobState, RunTable
from slurm_fair.model.end_words import NODE_FAIL
from slurm_fair.sim.world.gpu_map import Sites
from slurm_fair.sim.world.load import Population


class Run(NamedTuple):
    """One run of one job; work in seconds at rate 1, counted from the job's beginning."""

    key: int
    restarts: int
    tenant: str
    user: str
    gpus: int
    submit: float
    start: float
    nodes: tuple[str, ...]
    resumed_from: float  # work that was done when it began
    end: float = 0.0  # 0 = it runs
    reached: float = 0.0  # work that was done when it ended
    saved: float = 0.0  # of that, what the next run begins with
    word: str = "RUNNING"  # how it ended
    lived_on: bool = False  # the job went back into the queue
    gpu_weight: float = 1.0  # what each of its GPUs counts


class Books:
    """A History port; keeps what has ended, and what runs.

    A caller that takes over ended runs looks at the cluster too. A run that a look showed, and that did not end
    with its nodes, holds nothing new for that caller, and is not kept.
    """

    def __init__(
        self, population: Population, node_names: Sequence[str], whole_seconds: bool = False
    ) -> None:
        self._population, self._cells, self._node_names = population, population.jobs.cells, node_names
        self.over: list[Run] = []
        self.ended: list[Run] | None = None  # all that have ended, where somebody wants them
        self._cut = whole_seconds  # instants of runs are told as Slurm tells them
        self._seen_until = -math.inf  # runs that began before were seen
        # Of each run that goes on: restarts and work done when it began, and where it lies. What else is told of
        # it stays in the columns until it is over.
        self._open: dict[int, tuple[int, float, Sites]] = {}

    def begins(self, job: int, sites: Sites) -> None:
        """A job has started."""
        self._open[job] = (self._cells.restarts[job], self._cells.done[job], sites)

    def ends(self, job: int, word: str, lived_on: bool) -> None:
        """Note that a job's GPUs are free again."""
        cells = self._cells
        new = cells.start[job] >= self._seen_until or word == NODE_FAIL
        if new or self.ended is not None:
            run = self._run(job, cells.end[job], cells.done[job], cells.saved[job], word, lived_on)
            self.over += [run] if new else []
            if self.ended is not None:
                self.ended.append(run)
        del self._open[job]

    def _run(
        self,
        job: int,
        end: float = 0.0,
        reached: float = 0.0,
        saved: float = 0.0,
        word: str = "RUNNING",
        lived_on: bool = False,
    ) -> Run:
        """Makes a run from positional values: every run of a simulation passes here."""
        cells, population, names = self._cells, self._population, self._node_names
        restarts, resumed_from, sites = self._open[job]
        return Run(
            cells.key[job], restarts, population.tenants[cells.tenant[job]], population.users[cells.user[job]],
            cells.gpus[job], cells.submit[job], cells.start[job], tuple([names[node] for node, _ in sites]),
            resumed_from, end, reached, saved, word, lived_on, cells.gpu_weight[job],
        )  # fmt: skip

    def hand_over(self, seen_until: float) -> list[Run]:
        """The runs that have ended, at a look at this instant; they are no longer kept here."""
        over, self.over = self.over, []
        self._seen_until = math.floor(seen_until) if self._cut else seen_until
        return over

    def of(self, key: int) -> Iterator[Run]:
        """The runs of one job that have ended, in order."""
        return (run for run in self.over if run.key == key)

    def runs(self, start: float, end: float, partitions: Iterable[str] = ()) -> RunTable:
        """Runs that overlap a period; there is but one partition."""
        del partitions
        shown = [run for run in self.over if run.start <= end and run.end >= start]
        shown += [run for run in map(self._run, self._open) if run.start <= end]
        shown.sort(key=lambda run: (run.key, run.start))
        return self.table(shown)

    def table(self, shown: Sequence[Run]) -> RunTable:
        """These runs as accounting lists them."""
        population = self._population

        def ints(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
            return np.array(values, dtype=np.int64)

        return RunTable(
            key=ints([run.key for run in shown]),
            tenant=ints([population.tenants.index(run.tenant) for run in shown]),
            tenants=population.tenants,
            user=ints([population.users.index(run.user) for run in shown]),
            users=population.users,
            gpus=ints([run.gpus for run in shown]),
            submit=np.array([run.submit for run in shown], dtype=np.float64),
            start=np.array([run.start for run in shown], dtype=np.float64),
            end=np.array([run.end for run in shown], dtype=np.float64),
            state=np.array([JobState.DONE if run.end else JobState.RUNNING for run in shown], dtype=np.int8),
            requeued=np.array([run.lived_on for run in shown], dtype=np.int8),
        )
