"""The numbers of GPUs with which elastic jobs can run, and what they take of nodes with each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Self

import numpy as np

from slurm_fair.model.columns import Bools, Code, Codes, Columns, Ints
from slurm_fair.model.job import JobTable
from slurm_fair.model.placement import Placement


class Per(Code):
    """The unit in which a user asked for CPUs or memory; the amount of one stays when the job has another size."""

    JOB = 0  # the whole, which Slurm splits evenly over its nodes
    GPU = 1
    NODE = 2


class Resource(IntEnum):
    """Places of the amounts that a job takes of a node."""

    GPUS = 0
    CPUS = 1
    MEMORY = 2


def _as_asked_for_the_job() -> Codes:
    return np.zeros(0, dtype=np.int8)


@dataclass(frozen=True)
class Sizes(Columns):
    """One row per elastic job and size, sorted by both. A job that is not among them has the size of its gang."""

    row: Ints  # row of the snapshot's jobs
    gpus: Ints
    usual: Bools  # the size that its user asked for first; declared run times are meant with it
    cpus_per: Codes = field(default_factory=_as_asked_for_the_job)  # Per
    memory_per: Codes = field(default_factory=_as_asked_for_the_job)  # Per

    def __post_init__(self) -> None:
        for name in ("cpus_per", "memory_per"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(len(self.row), Per.JOB, dtype=np.int8))
        super().__post_init__()

    @classmethod
    def of(cls, gpus: Ints, elastic: Self | None) -> Self:
        """The sizes of all jobs: of gangs with so many GPUs, of which some are elastic."""
        rows = np.arange(len(gpus))
        if elastic is None or not len(elastic):
            return cls(rows, gpus, np.ones(len(gpus), dtype=bool))
        rigid = np.setdiff1d(rows, elastic.row)
        row = np.concatenate([rigid, elastic.row])
        order = np.argsort(row, kind="stable")
        every = np.concatenate([gpus[rigid], elastic.gpus])[order]
        usual = np.concatenate([np.ones(len(rigid), dtype=bool), elastic.usual])[order]
        return cls(row[order], every, usual)

    def allow(self, rows: Ints, gpus: Ints) -> Bools:
        """True for each of these jobs that is elastic and can run with so many GPUs."""
        if not len(self):
            return np.zeros(len(rows), dtype=bool)
        most = 1 + int(max(self.gpus.max(), gpus.max(initial=0)))
        return np.isin(rows * most + gpus, self.row * most + self.gpus)

    def for_rows(self, rows: Ints) -> Self:
        """The sizes of some of the jobs, renumbered in this order."""
        order = np.argsort(rows, kind="stable")
        some = self.take(np.isin(self.row, rows))
        some = some.with_columns(row=order[rows[order].searchsorted(some.row)])
        return some.take(np.lexsort((some.gpus, some.row)))

    def usual_gpus(self, gpus: Ints) -> Ints:
        """The usual size of each job; `gpus` = the gang of each, which is that of a rigid job."""
        usual = gpus.copy()
        usual[self.row[self.usual]] = self.gpus[self.usual]
        return usual


def gangs_in(places: Placement, gpus: Ints, sizes: Sizes | None) -> Ints:
    """[row]: the gang of each job, of an elastic one the size that it has in these places; `gpus` = their gangs.

    A place may be larger than the gang, as Slurm may fill its nodes otherwise.
    """
    if sizes is None:
        return gpus
    placed = np.bincount(places.row, places.gpus, len(gpus)).astype(np.int64)
    return np.where(sizes.allow(np.arange(len(gpus)), placed), placed, gpus)


def shares(places: Placement, job: Ints, jobs: JobTable, sizes: Sizes | None) -> tuple[Ints, Ints, Ints]:
    """GPUs, CPUs and memory of each triple; Slurm splits a job's CPUs and memory evenly over its nodes.

    `job` = the row of each triple's job. What an elastic job takes with another size than it has now goes by
    what its user asked for: so much a GPU, a node, or for the whole job.
    """
    parts = np.bincount(places.row)[places.row]
    cpus, memory_mb = -(-jobs.cpus[job] // parts), -(-jobs.memory_mb[job] // parts)
    if sizes is None or not len(sizes):
        return places.gpus, cpus, memory_mb
    other = np.bincount(places.row, places.gpus)[places.row] != jobs.gpus[job]
    for at in np.flatnonzero(other & np.isin(job, sizes.row)).tolist():
        row, here = job.item(at), places.gpus.item(at)
        first = int(sizes.row.searchsorted(row))
        gpus, nodes = max(jobs.gpus.item(row), 1), max(jobs.nodes.item(row), 1)
        cpus[at] = _share(
            Per(sizes.cpus_per.item(first)), jobs.cpus.item(row), here, gpus, nodes, cpus.item(at)
        )
        memory_mb[at] = _share(
            Per(sizes.memory_per.item(first)), jobs.memory_mb.item(row), here, gpus, nodes, memory_mb.item(at)
        )
    return places.gpus, cpus, memory_mb


def _share(per: Per, whole: int, here: int, gpus: int, nodes: int, evenly: int) -> int:
    """The part that a job takes of a node with so many GPUs there; with `gpus` on `nodes` it takes the whole."""
    if per is Per.GPU:
        return -(-whole * here // gpus)
    return -(-whole // nodes) if per is Per.NODE else evenly


def with_gangs(jobs: JobTable, sizes: Sizes, gpus: Ints) -> JobTable:
    """The jobs with these gangs, of which only those of elastic ones differ; what goes by the GPU goes along."""
    elastic = np.zeros(len(jobs), dtype=bool)
    elastic[sizes.row] = True
    gpus = np.where(elastic, gpus, jobs.gpus)
    columns = {"cpus": jobs.cpus.copy(), "memory_mb": jobs.memory_mb.copy()}
    for name, per in (("cpus", sizes.cpus_per), ("memory_mb", sizes.memory_per)):
        rows = np.unique(sizes.row[per == Per.GPU])
        columns[name][rows] = -(-columns[name][rows] * gpus[rows] // np.maximum(jobs.gpus[rows], 1))
    return jobs.with_columns(gpus=gpus, **columns)
