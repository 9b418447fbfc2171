"""Claims about virtual jobs at one look: what users declared, and what the jobs report."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model import Told
from slurm_fair.model.columns import Codes, Floats, Ints
from slurm_fair.model.once import once
from slurm_fair.sim.world.life import RUNNING
from slurm_fair.sim.world.load import Population
from slurm_fair.sim.world.work import Progress

_REPORTED = frozenset({"left_seconds", "epoch", "epochs", "steps_per_second", "batch_size"})
_OWN = frozenset({"done_seconds", "declared_seconds", "rate", "spread_rate"})


class Reports(Told):
    """Columns, each worked out when it is read, from the progress that was noted at the look."""

    def __init__(
        self,
        people: Population,
        rows: Ints,
        state: Codes,
        progress: tuple[Floats, Floats, Floats],
        now: float,
    ) -> None:
        self.__dict__.update(models=people.models, _source=_Source(people, rows, state, progress, now))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy for elsewhere is a plain table."""
        return Told, tuple(getattr(self, name) for name in self._names)

    def _copied(self) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy


def _worked_out(name: str) -> once[Reports, NDArray[Any]]:
    column: once[Reports, NDArray[Any]] = once(lambda reports: reports.__dict__["_source"].column(name))
    column.__set_name__(Reports, name)
    return column


for _name in Told._columns:
    setattr(Reports, _name, _worked_out(_name))


class _Source:
    """The values that columns are worked out from."""

    def __init__(
        self,
        people: Population,
        rows: Ints,
        state: Codes,
        progress: tuple[Floats, Floats, Floats],
        now: float,
    ) -> None:
        self._people, self._rows, self._state, self._noted, self._now = people, rows, state, progress, now

    def column(self, name: str) -> NDArray[Any]:
        """What jobs say, or else what stays the same from their submission on."""
        if name in _OWN:
            column: NDArray[Any] = getattr(self, name)
        elif name in _REPORTED:
            column = getattr(self._progress, name)
        else:
            column = getattr(self._people.jobs, name).take(self._rows)
        return column

    @once
    def _progress(self) -> Progress:
        jobs, rows = self._people.jobs, self._rows
        first, last, work = jobs.first_regime.take(rows), jobs.last_regime.take(rows), jobs.work.take(rows)
        return Progress(self._people.regimes, first, last, self.done_seconds, work, self.declared_seconds)

    @once
    def done_seconds(self) -> Floats:
        """A run makes progress at its rate from the instant at which its restart is over."""
        before, rate, since = self._noted
        more = np.where(self._state == RUNNING, np.maximum(self._now - since, 0.0) * rate, 0.0)
        done: Floats = np.minimum(before + more, self._people.jobs.work.take(self._rows))
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
