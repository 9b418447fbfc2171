"""Claims about virtual jobs at one look: what users declared, and what the jobs report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Told
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of
from slurm_fair.sim.world.columns import Plain
from slurm_fair.sim.world.load import Population
from slurm_fair.sim.world.work import Progress

# The same from a job's submission on.
_DECLARED = ("deadline", "scaling", "model", "mode")
# The same as long as a job does not change its batch size, but for the epochs that are done.
_OF_REGIMES = ("epoch", "epochs", "steps_per_second", "batch_size")


class Reports:
    """The claims about the jobs of a population, look by look."""

    def __init__(self, people: Population) -> None:
        self._people, self._count, self._plain = people, -1, Plain({})

    def at(self, rows: Ints, running: Bools, now: float) -> Told:
        """The claims of these jobs, of which some run."""
        people, jobs = self._people, self._people.jobs
        claims: dict[str, NDArray[Any]] = {}
        self._never_changing().put(rows, claims)
        declared, work = jobs.declared.take(rows), jobs.work.take(rows)
        done = self._done(rows, running, work, now)
        first, last = jobs.first_regime.take(rows), jobs.last_regime.take(rows)
        progress = Progress(people.regimes, first, last, done, work, declared)
        for name in _OF_REGIMES:
            if name not in claims:
                claims[name] = getattr(progress, name)
        return Told(
            declared_seconds=declared,
            left_seconds=progress.left_seconds,
            done_seconds=done,
            models=people.models,
            **claims,
        )

    def _never_changing(self) -> Plain:
        people, jobs = self._people, self._people.jobs
        if self._count != jobs.count:
            columns = {name: getattr(jobs, name) for name in _DECLARED}
            columns |= {"rate": people.rates, "spread_rate": people.spread_rates}
            columns["left_spread"] = np.full(jobs.count, np.nan)  # they say it themselves
            columns |= self._of_one_regime()
            self._plain = Plain({name: column[: jobs.count] for name, column in columns.items()})
            self._count = jobs.count
        return self._plain

    def _of_one_regime(self) -> dict[str, NDArray[Any]]:
        """The claims that come of regimes, where no job ever changes to another; the epoch where nobody counts."""
        people, jobs = self._people, self._people.jobs
        row = jobs.first_regime[: jobs.count]
        if any_of(row != jobs.last_regime[: jobs.count]):
            return {}
        regimes = people.regimes.take(row)
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
        before, rate, since = self._people.jobs.progress(rows)
        more = np.where(running, np.maximum(now - since, 0.0) * rate, 0.0)
        return np.minimum(before + more, work)
