"""Speeds of jobs in other shapes: with more or fewer GPUs, of another type, on more nodes than they need."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.model.sizes import Sizes
from slurm_fair.model.speeds import USUAL_EXPONENT
from slurm_fair.policy.packing.gang import Pools
from slurm_fair.policy.view import View


def sizes_of(view: View) -> Sizes:
    """Every size of every job; a rigid job has one."""
    return Sizes.of(view.snapshot.jobs.gpus, view.snapshot.sizes)


def usual_gpus(view: View) -> Ints:
    """The size of each job with which declared run times are meant."""
    return view.snapshot.usual_gpus


def speed_in(view: View, rows: Ints, gpu_type: Ints, gpus: Ints, apart: Bools) -> Floats:
    """Speed of jobs in these shapes; 1 = the usual size, well placed, on the reference type.

    On each type a job is as fast as `Told` says of its usual size. From there to another size or apart it goes by
    what is known of its class, else by how it was measured to scale, else by a power of its GPUs.
    """
    told, usual = view.told, usual_gpus(view)[rows]
    near, speeds = np.zeros(len(rows), dtype=bool), view.snapshot.speeds
    together, spread = _scaled(told.scaling[rows], usual, gpus), told.spread_rate[rows, gpu_type]
    if speeds is None:
        by_law = together * np.where(apart, spread, 1.0)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            base = speeds.rates(rows, gpu_type, usual, near)
            known, known_apart = (speeds.rates(rows, gpu_type, gpus, each) / base for each in (near, ~near))
        together = np.where(np.isfinite(known), known, together)
        otherwise = np.where(np.isfinite(known_apart), known_apart, together * spread)
        by_law = np.where(apart, otherwise, together)
    return told.rate[rows, gpu_type] * by_law


class ShapeSpeeds(NamedTuple):
    """Jobs in the shapes that they may have: an entry for each size in each pool of partition and GPU type."""

    row: Ints
    gpus: Ints
    speed: Floats  # well placed

    @classmethod
    def of(cls, view: View, room: Ints) -> Self:
        """The shapes of all jobs for which a pool has the GPUs: `room` is that of each node."""
        pools, jobs, sizes = Pools.of(view.snapshot), view.snapshot.jobs, sizes_of(view)
        # [choice, entry], -1 = none
        pool = pools.choices_of(jobs.partition[sizes.row], jobs.gpu_type[sizes.row])
        there = np.append(pools.nodes @ room, 0)
        choice, entry = ((pool >= 0) & (sizes.gpus <= there[pool])).nonzero()
        row, gpus, kind = sizes.row[entry], sizes.gpus[entry], pools.type_of[pool[choice, entry]]
        return cls(row, gpus, speed_in(view, row, kind, gpus, np.zeros(len(row), dtype=bool)))


def _scaled(scaling: Floats, usual: Ints, gpus: Ints) -> Floats:
    """Speed with so many GPUs against that with the usual number, by the measured exponent, else the usual one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.log(scaling) / np.log(usual)
    exponent = np.where(np.isfinite(exponent), np.clip(exponent, 0.0, 1.0), USUAL_EXPONENT)
    return (gpus / usual) ** exponent
