"""Claims about virtual jobs at one look: what users declared, and what the jobs report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import Codes, Floats, Ints
from slurm_fair.model.once import once
from slurm_fair.sim.life import RUNNING
from slurm_fair.sim.load import Population
from slurm_fair.sim.work import Progress

_REPORTED = frozenset({"left_seconds", "epoch", "epochs", "steps_per_second", "batch_size"})


class Reports:
    """The columns of Told, each worked out when it is asked for; how far jobs are was noted at the look."""

    def __init__(
        self,
        people: Population,
        rows: Ints,
        state: Codes,
        progress: tuple[Floats, Floats, Floats],
        now: float,
    ) -> None:
        self._people, self._rows, self._state, self._noted, self._now = people, rows, state, progress, now

    def __getattr__(self, name: str) -> NDArray[Any]:
        """What jobs say, or else what stays the same from their submission on."""
        of: object = self._progress if name in _REPORTED else self._people.jobs
        column: NDArray[Any] = getattr(of, name)
        return column if name in _REPORTED else column.take(self._rows)

    @once
    def _progress(self) -> Progress:
        first, last = self.first_regime, self.last_regime
        return Progress(
            self._people.regimes, first, last, self.done_seconds, self.work, self.declared_seconds
        )

    @once
    def done_seconds(self) -> Floats:
        """A run makes progress at its rate from the instant at which its restart is over."""
        before, rate, since = self._noted
        more = np.where(self._state == RUNNING, np.maximum(self._now - since, 0.0) * rate, 0.0)
        done: Floats = np.minimum(before + more, self.work)
        return done

    @once
    def declared_seconds(self) -> Floats:
        """Run times as users declared them."""
        return self._people.jobs.declared.take(self._rows)

    @once
    def rate(self) -> NDArray[np.float64]:
        """Speed of each job on each GPU type."""
        return self._people.rates[self._rows]

    @once
    def spread_rate(self) -> NDArray[np.float64]:
        """What is left of it on more nodes than the job needs."""
        return self._people.spread_rates[self._rows]
