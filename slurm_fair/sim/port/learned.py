"""Speeds of virtual jobs that policies are told only once a job of the class has run on the GPU type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slurm_fair.knowing.beliefs import PACE_SECONDS_LEAST
from slurm_fair.knowing.places import types_of
from slurm_fair.model import Profiles, Snapshot
from slurm_fair.model.columns import Ints
from slurm_fair.sim.scenario import Speeds
from slurm_fair.sim.world.load import Population


class LearnedSpeeds:
    """The classes of jobs, and on which GPU types jobs of each have reported for long enough.

    Jobs of one tenant and model are alike; one that names no model is a class of its own.
    """

    def __init__(self, population: Population, speeds: Speeds) -> None:
        self._population, self._profiled = population, speeds == "profiled"
        self._known = np.zeros((0, len(population.gpu_types)), dtype=bool)
        self._class = np.zeros(0, dtype=np.int64)

    def without_unmeasured(self, seen: Snapshot, shown: Ints) -> Snapshot:
        """The look without speeds that nobody has measured; `shown` are the rows of its jobs in the trace."""
        told = seen.told
        if told is None:
            return seen
        self._sort_new_ones()
        job_class, running = self._class[shown], np.flatnonzero(seen.jobs.running)
        _, since = self._population.jobs.progress(shown[running])
        kind, seconds = types_of(seen, running), seen.time - since
        long = (kind >= 0) & (seconds >= PACE_SECONDS_LEAST)
        self._known[job_class[running[long]], kind[long]] = True
        known = self._known[job_class]
        steps = np.zeros(len(shown))
        each = (
            np.nan_to_num(told.steps_per_second[running], nan=1.0) * told.rate[running, np.maximum(kind, 0)]
        )
        steps[running] = np.maximum(seconds, 0.0) * each
        rate = np.where(known | (told.rate <= 0), told.rate, 1.0)
        rows = np.flatnonzero(~seen.jobs.done)
        profiles = Profiles(rows, job_class[rows], steps[rows], known[rows]) if self._profiled else None
        return replace(seen, told=told.with_columns(rate=rate), profiles=profiles)

    def _sort_new_ones(self) -> None:
        """Put jobs into classes that were not there at the last look."""
        jobs, count = self._population.jobs, self._population.jobs.count
        if len(self._class) == count:
            return
        model, own = jobs.model[:count], np.arange(count)
        alike = np.stack((jobs.tenant[:count], model, np.where(model >= 0, -1, own)))
        _, first, of = np.unique(alike, axis=1, return_index=True, return_inverse=True)
        before, self._class = self._class, first[of.reshape(-1)]
        known = np.zeros((count, len(self._population.gpu_types)), dtype=bool)
        known[: len(before)] = self._known
        self._known = known
