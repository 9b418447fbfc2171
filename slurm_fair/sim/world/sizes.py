"""The sizes of elastic jobs on a virtual cluster, and how fast they are with each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import NO_ROWS, Bools, Ints, take_or
from slurm_fair.model.sizes import Sizes
from slurm_fair.model.speeds import Speeds
from slurm_fair.trace import Machines, Throughputs, Trace
from slurm_fair.trace.throughputs import CONSOLIDATED, SPREAD


class ElasticJobs:
    """The jobs that can run with other numbers of GPUs than they ask for, by their rows.

    With another size a job is as fast as its model was measured to be with it; where it was not measured, a power
    of the number of GPUs is assumed.
    """

    def __init__(self, exponent: float, speeds: MeasuredSpeeds | None = None) -> None:
        self._exponent, self._speeds = exponent, speeds
        self._sizes: dict[int, tuple[int, ...]] = {}
        self._usual: dict[int, int] = {}
        self._first, self._count, self._gpus = NO_ROWS, NO_ROWS, NO_ROWS
        self._of_classes: Speeds | None = None

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, more: Mapping[int, tuple[int, ...]], usual: Ints) -> None:
        """The sizes of more jobs, ascending, their usual ones among them; `usual` is of all rows."""
        if not more:
            return
        self._of_classes = None
        self._sizes.update(more)
        self._usual.update({job: usual.item(job) for job in more})
        rows = np.array(sorted(self._sizes), dtype=np.int64)
        counts = np.array([len(self._sizes[job]) for job in rows.tolist()], dtype=np.int64)
        self._gpus = np.array([gpus for job in rows.tolist() for gpus in self._sizes[job]], dtype=np.int64)
        self._first, self._count = np.zeros((2, len(usual)), dtype=np.int64)
        self._count[rows], self._first[rows] = counts, np.cumsum(counts) - counts

    def allows(self, job: int, gpus: int) -> bool:
        """True if the job can run with so many."""
        return gpus in self._sizes.get(job, ())

    def shown(self, rows: Ints, usual: Ints) -> Sizes | None:
        """The sizes that a look shows of these jobs; `usual` is of each of them."""
        if not self._sizes:
            return None
        known = rows < len(self._count)
        count = np.where(known, take_or(self._count, np.where(known, rows, -1), 0), 0)
        row = np.arange(len(rows)).repeat(count)
        into = np.arange(len(row)) - (np.cumsum(count) - count)[row]
        gpus = self._gpus[self._first[rows[row]] + into]
        return Sizes(row, gpus, gpus == usual[row])

    def speed(self, job: int, gpus: int, kind: int) -> float:
        """Speed with so many GPUs of one type against that with the usual number of it, both well placed."""
        usual = self._usual[job]
        measured = self._speeds.resized(job, gpus, usual, kind) if self._speeds else math.nan
        return (gpus / usual) ** self._exponent if math.isnan(measured) else measured

    def slowest(self, kinds: int) -> dict[int, tuple[float, int]]:
        """The least speed of a job with any of its sizes on any GPU type, against the usual one, and that size."""
        alike: dict[tuple[str, int, int, tuple[int, ...]], tuple[float, int]] = {}
        found = {}
        for job, sizes in self._sizes.items():
            like = (*(self._speeds.kind_of(job) if self._speeds else ("", 0)), self._usual[job], sizes)
            if like not in alike:
                alike[like] = min(
                    (self.speed(job, gpus, kind), gpus) for gpus in sizes for kind in range(kinds)
                )
            found[job] = alike[like]
        return found

    def known(self, rows: Ints, kinds: int) -> Speeds | None:
        """The speeds of these jobs with other sizes, as policies are told them; `kinds` are all GPU types."""
        if not self._sizes:
            return None
        if self._of_classes is None:
            self._of_classes = self._by_class(kinds)
        of_job = self._of_classes.job_class
        return self._of_classes.for_rows(np.where(rows < len(of_job), rows, len(of_job) - 1))

    def _by_class(self, kinds: int) -> Speeds:
        """Jobs of one model, batch size and usual size are alike; the last row is that of all rigid jobs."""
        sizes, classes = np.unique(self._gpus), dict[tuple[str, int, int], int]()
        job_class = np.full(len(self._count) + 1, -1, dtype=np.int64)
        rates: list[list[list[tuple[float, float]]]] = []
        for job, usual in self._usual.items():
            like = (*(self._speeds.kind_of(job) if self._speeds else ("", 0)), usual)
            if like not in classes:
                classes[like] = len(rates)
                every = sizes.tolist()
                rates.append([[self._rates(job, gpus, kind) for gpus in every] for kind in range(kinds)])
            job_class[job] = classes[like]
        rate = np.array(rates)
        return Speeds(job_class, sizes, rate, np.zeros(rate.shape))

    def _rates(self, job: int, gpus: int, kind: int) -> tuple[float, float]:
        """Speed together and apart; nan for what was not measured apart."""
        together = self.speed(job, gpus, kind)
        return together, together * (self._speeds.spread_ratio(job, gpus, kind) if self._speeds else math.nan)

    def spread_rate(self, job: int, gpus: int, kind: int, usual: float) -> float:
        """Speed on more nodes than so many GPUs need, against well placed; `usual` is that of the usual size."""
        measured = self._speeds.spread_ratio(job, gpus, kind) if self._speeds else math.nan
        return usual if math.isnan(measured) else measured


class MeasuredSpeeds:
    """Throughputs of the jobs of a trace in other shapes; nan where they were not measured."""

    def __init__(self, trace: Trace, types: Sequence[str], throughputs: Throughputs) -> None:
        self._trace, self._types, self._throughputs = trace, types, throughputs

    def kind_of(self, job: int) -> tuple[str, int]:
        """Model and batch size; no model where none is named."""
        trace = self._trace
        if job >= len(trace) or trace.model.item(job) < 0:
            return "", 0
        return trace.models[trace.model.item(job)], trace.batch_size.item(job)

    def resized(self, job: int, gpus: int, usual: int, kind: int) -> float:
        """Speed with so many GPUs against that with the usual number: on that type, else on the reference."""
        for name in (self._types[kind], ""):
            here, there = self._rate(job, gpus, name), self._rate(job, usual, name)
            if here > 0 and there > 0:
                return here / there
        return math.nan

    def spread_ratio(self, job: int, gpus: int, kind: int) -> float:
        """Speed on more nodes than so many GPUs need, against well placed: on that type, else on the reference."""
        for name in (self._types[kind], ""):
            good, apart = self._rate(job, gpus, name), self._rate(job, gpus, name, SPREAD)
            if good > 0 and apart > 0:
                return min(apart / good, 1.0)
        return math.nan

    def never(self, job: int, gpus: int, runs_on: Sequence[int]) -> bool:
        """True if it was measured not to run with so many GPUs of one of these types."""
        return any(self._rate(job, gpus, self._types[kind]) == 0 for kind in runs_on)

    def _rate(self, job: int, gpus: int, name: str, placement: str = CONSOLIDATED) -> float:
        model, batch = self.kind_of(job)
        if not model:
            return math.nan
        rate = self._throughputs.steps_per_second(model, batch, gpus, name, placement)
        return math.nan if rate is None else rate


def elastic_jobs(
    trace: Trace,
    machines: Machines,
    types: Sequence[str],
    rates: NDArray[np.float64],
    throughputs: Throughputs | None,
    exponent: float,
) -> ElasticJobs:
    """The jobs of a trace that name further sizes which the machines could give them.

    A size is left out that no GPU type has so many GPUs for on which the job runs, or with which the job was
    measured not to run on one of those types. The size that is asked for is always one.
    """
    speeds = None if throughputs is None else MeasuredSpeeds(trace, types, throughputs)
    found, usual = ElasticJobs(exponent, speeds), trace.whole_gpus
    total = np.zeros(len(types), dtype=np.int64)
    kinds = np.array([types.index(name) for name in machines.gpu_types], dtype=np.int64)
    np.add.at(total, kinds[machines.gpu_type], machines.gpus)
    sizes: dict[int, tuple[int, ...]] = {}
    for job in np.flatnonzero(trace.choice_set >= 0).tolist():
        runs_on = _runs_on(trace, job, types, rates, total)
        most, mine = max(total[runs_on].tolist(), default=0), usual.item(job)
        given = [
            gpus
            for gpus in trace.choice_sets[trace.choice_set.item(job)]
            if gpus != mine and gpus <= most and not (speeds and speeds.never(job, gpus, runs_on))
        ]
        if given:
            sizes[job] = tuple(sorted({mine, *given}))
    found.add(sizes, usual)
    return found


def _runs_on(
    trace: Trace, job: int, types: Sequence[str], rates: NDArray[np.float64], total: Ints
) -> list[int]:
    """The types of the machines on which a job may run, and does."""
    asked = trace.gpu_type.item(job)
    there: Bools = (total > 0) & (rates[job] > 0)
    return [
        kind for kind in np.flatnonzero(there).tolist() if asked < 0 or trace.gpu_types[asked] == types[kind]
    ]
