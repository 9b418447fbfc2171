"""Measured speeds and run times of jobs, as columns: what is learned from, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass

from slurm_fair.model.columns import Codes, Columns, Floats, Ints
from slurm_fair.throughput.job_class import JobClass

ANY_NODE = -1


@dataclass(frozen=True)
class Samples(Columns):
    """One row per report of a run and node of that run; phases are seconds of one step, nan = not said.

    A row with node -1 speaks of no node in particular. `time` is when the report was read, never what it says.
    """

    job_class: Ints  # index into `classes`
    gpu_type: Ints  # index into `gpu_types`
    node: Ints  # index into `node_names`, -1 = no node in particular
    gpus: Ints  # of the whole run
    nodes: Ints  # of the whole run
    most: Ints  # GPUs of the run on the node that has most of them; 0 = as even as can be
    job: Ints  # key of the job
    time: Floats  # epoch seconds
    rate: Floats  # samples a second of the whole run
    batch_size: Floats  # samples of one step of the whole run; nan = not said
    data: Floats  # T_d of Hops 3.5: loading and preparing data
    forward: Floats  # T_f
    backward: Floats  # T_b
    update: Floats  # T_u
    sync: Floats  # communication that nothing hides, and waiting for other processes
    pattern: Codes  # Pattern; 0 = not said
    classes: tuple[JobClass, ...] = ()
    gpu_types: tuple[str, ...] = ()
    node_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ends(Columns):
    """One row per job that ended by itself: nobody killed it and no time limit did."""

    job_class: Ints  # index into `classes`
    gpu_type: Ints  # index into `gpu_types`, -1 = several, or not known
    gpus: Ints
    job: Ints  # key of the job
    time: Floats  # when it ended, epoch seconds
    seconds: Floats  # how long it ran in all, over all its runs
    classes: tuple[JobClass, ...] = ()
    gpu_types: tuple[str, ...] = ()
