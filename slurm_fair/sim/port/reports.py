"""Declarations of users and reports of virtual jobs, as one look shows them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import JobTable, Told
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of
from slurm_fair.sim.truthfulness import TRUTHFUL, Truthfulness
from slurm_fair.sim.world.columns import Steady
from slurm_fair.sim.world.load import Population
from slurm_fair.sim.world.work import Progress

# The same from a job's submission on.
_DECLARED = ("deadline", "scaling", "model", "mode")
_HIDDEN = ("work", "first_regime", "last_regime")
# The same as long as a job does not change its batch size, but for the epochs that are done.
_OF_REGIMES = ("epoch", "epochs", "steps_per_second", "batch_size")


# Nobody knows of these until a job says so.
_REPORTED = ("left_seconds", "done_seconds", "epoch", "epochs", "steps_per_second")


class Reports:
    """Declarations and reports on the jobs of a population, look by look."""

    def __init__(self, population: Population, truthfulness: Truthfulness = TRUTHFUL) -> None:
        self._population, self._truthfulness = population, truthfulness
        self._count, self._declared, self._hidden = -1, Steady({}), Steady({})

    def at(self, rows: Ints, shown: JobTable, now: float) -> Told:
        """Declarations and reports on these jobs, which a look shows so."""
        population, running = self._population, shown.running
        self._take_in_new_jobs()
        said, truth = self._declared.at(rows), self._hidden.at(rows)
        work, first = truth["work"], truth["first_regime"]
        done = self._done(rows, running, work, now)
        declared = said["declared_seconds"]
        progress = Progress(population.regimes, first, truth["last_regime"], done, work, declared)
        for name in _OF_REGIMES:
            if name not in said:
                said[name] = getattr(progress, name)
        said |= {"left_seconds": progress.left_seconds, "done_seconds": done}
        told = Told.unchecked({**said, "models": population.models})
        if self._truthfulness.silent:
            return self._silent(told, first)
        factor = self._truthfulness.left_factor(population.tenants, shown.tenant)
        return told if factor is None else _lied(told, np.where(running | (done > 0), factor, 1.0))

    def _silent(self, told: Told, first: Ints) -> Told:
        """The words of a submission alone: nobody hears of progress, nor of another batch size."""
        unknown = np.full(len(told), np.nan)
        return told.with_columns(
            **dict.fromkeys(_REPORTED, unknown), batch_size=self._population.regimes.batch_size.take(first)
        )

    def _take_in_new_jobs(self) -> None:
        population, jobs = self._population, self._population.jobs
        if self._count == jobs.count:
            return
        self._count = jobs.count
        columns = {name: getattr(jobs, name) for name in _DECLARED}
        columns |= {"rate": population.rates, "spread_rate": population.spread_rates}
        columns |= {"declared_seconds": jobs.declared, **self._of_one_regime()}
        unknown = np.full(jobs.count, np.nan)
        columns["left_spread"] = unknown  # they say it themselves
        columns["must_fit_seconds"] = unknown  # all of the limit must
        self._declared = Steady({name: column[: jobs.count] for name, column in columns.items()})
        self._hidden = Steady({name: getattr(jobs, name)[: jobs.count] for name in _HIDDEN})

    def _of_one_regime(self) -> dict[str, NDArray[Any]]:
        """Columns that come of regimes, where no job ever changes to another; the epoch where nobody counts."""
        population, jobs = self._population, self._population.jobs
        row = jobs.first_regime[: jobs.count]
        if any_of(row != jobs.last_regime[: jobs.count]):
            return {}
        regimes = population.regimes.take(row)
        columns: dict[str, NDArray[Any]] = {
            "epochs": regimes.epochs_total,
            "steps_per_second": regimes.steps_per_second,
            "batch_size": regimes.batch_size,
        }
        return (
            columns | {"epoch": regimes.epoch_seconds} if all_of(np.isnan(regimes.epoch_seconds)) else columns
        )

    def _done(self, rows: Ints, running: Bools, work: Floats, now: float) -> Floats:
        """Seconds of work done: a run makes progress at its rate from the instant at which its restart is over."""
        done, runs = self._population.jobs.done[rows], running.nonzero()[0]
        if runs.size:
            rate, since = self._population.jobs.progress(rows[runs])
            done[runs] += np.maximum(now - since, 0.0) * rate
        return np.minimum(done, work)


def _lied(told: Told, factor: Floats) -> Told:
    """The same with so many times as much left, and as much less done; epochs alike."""
    left = told.left_seconds * factor
    done = np.maximum(told.done_seconds + told.left_seconds - left, 0.0)
    epoch = np.maximum(told.epochs - (told.epochs - told.epoch) * factor, 0.0)
    return told.with_columns(left_seconds=left, done_seconds=done, epoch=epoch)
