"""Leases: the right of a job to its GPUs until an instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from slurm_fair.model.columns import (
    Bools,
    Codes,
    Columns,
    Floats,
    Ints,
    among,
    check_lengths,
    code,
    find,
)
from slurm_fair.model.once import once
from slurm_fair.model.placement import Placement


class LeasePhase(IntEnum):
    """Where a lease stands."""

    GRANTED = 0  # GPUs promised; the gate opens when they are free, the job has not been seen running
    RUNNING = 1
    REVOKING = 2  # asked to checkpoint; requeued on its answer or at the end of the grace


_set = object.__setattr__
_GRANTED, _RUNNING, _REVOKING = map(code, LeasePhase)
_NOWHERE = Placement.none()
NEVER_ENDS_SECONDS = 10 * 365 * 86400.0  # the term of leases that last until their jobs end


@dataclass(frozen=True)
class LeaseTerms:
    """The site's rules for leases, all in seconds. What follows from them is kept with them: no slots."""

    term: float = 900.0
    interval: float = 10.0
    grace: float = 60.0
    min_runtime: float = 0.0
    aligned: bool = True
    start_timeout: float = 60.0
    max_grace: float = 600.0  # of a job that asks for its own

    def grace_of(self, asked_for: float) -> float:
        """The grace of a job that asked for so many seconds; 0 = the site's."""
        return min(asked_for, max(self.max_grace, self.grace)) if asked_for > 0 else self.grace

    @once
    def _lead(self) -> float:
        """An aligned lease is at least this long, and nothing is granted so shortly before an end."""
        return min(self.interval, self.term / 4)

    def end_for(self, start: float) -> float:
        """When a lease that starts now ends; aligned leases end together, at multiples of the term."""
        if not self.aligned:
            return start + max(self.term, self.min_runtime)
        return math.ceil((start + max(self.min_runtime, self._lead)) / self.term) * self.term

    def said_end(self, end: float) -> float | None:
        """A lease's end as events say it: one that lasts until its job ends has none."""
        return end if self.term < NEVER_ENDS_SECONDS else None

    def grants_at(self, now: float) -> bool:
        """Whether leases may be granted now. Shortly before a common end they may not: such a lease would last
        past it, and a few small ones each time would keep a gang that needs whole nodes waiting for ever."""
        return not self.aligned or self.next_end(now) - now > self._lead

    def next_end(self, now: float) -> float:
        """The next common end of aligned leases."""
        return (math.floor(now / self.term) + 1) * self.term


class Whereabouts(NamedTuple):
    """Where leases lie, by row of the jobs with these keys; worked out for each when somebody asks."""

    keys: Ints
    held: Placement  # what jobs hold
    promised: Placement  # to those that have not been seen running, at least

    def by(self, keys: Ints) -> Whereabouts:
        """By row of other jobs."""
        if keys is self.keys:
            return self
        row = find(keys, self.keys)
        return Whereabouts(keys, self.held.renumber(row), self.promised.renumber(row))

    def of(self, leases: Leases) -> Placement:
        """By row of the leases: Slurm's own for what runs, the promise for what waits."""
        row = find(leases.key, self.keys)
        promised = self.promised.renumber(row)
        row[among(row, leases.promised.nonzero()[0])] = -1
        return self.held.renumber(row).plus(promised)


@dataclass(frozen=True)
class Leases(Columns):
    """One row per job that holds or was promised GPUs, sorted by key.

    Most of them lie where the snapshot says, and hardly anybody asks: their places may be left to be read later.
    """

    key: Ints
    phase: Codes
    restarts: Ints  # restart count of the run that holds it
    gpus: Ints
    granted: Floats  # when this lease was granted or last renewed
    start: Floats  # Slurm's start of the run; 0 until seen
    end: Floats
    renewals: Ints
    asked: Floats  # when the job was asked to checkpoint; 0 = not
    opened: Floats  # when the gate was opened; 0 = not yet
    adopted: Bools  # it ran before we granted anything
    places: Placement  # row = row of this table
    node_names: tuple[str, ...]  # what the node indices of `places` mean
    _kept = ("places",)

    def __post_init__(self) -> None:
        check_lengths(self)
        _set(self, "_source", Whereabouts(self.key, _NOWHERE, self.places))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The places that were left to be read later."""
            if name != "places":
                raise AttributeError(f"Leases has no {name}")
            places = self._source.of(self)
            _set(self, "places", places)
            return places

    @property
    def promised(self) -> Bools:
        """Leases in phase GRANTED: their jobs have not been seen running."""
        return self._in(_GRANTED)

    @property
    def running(self) -> Bools:
        """Leases in phase RUNNING."""
        return self._in(_RUNNING)

    @property
    def revoking(self) -> Bools:
        """Leases in phase REVOKING."""
        return self._in(_REVOKING)

    def _in(self, phase: Codes) -> Bools:
        there: Bools = self.phase == phase
        return there

    @property
    def whereabouts(self) -> Whereabouts:
        """What their places are worked out from."""
        source: Whereabouts = self._source
        return source

    def lying(
        self, where: Whereabouts, node_names: tuple[str, ...], rows: Ints | None = None, **columns: Any
    ) -> Self:
        """These rows, or all, where they lie now, with some columns replaced."""
        if rows is None:
            return self.with_columns(_source=where, node_names=node_names, **columns)
        return self._picked(rows, _source=where, node_names=node_names, **columns)

    def extended(self, count: int, **fields: Any) -> Self:
        """These and so many more, which are sorted by key themselves, and lie where `whereabouts` says by now."""
        rows, at = len(self.key), self.key.searchsorted(fields["key"])
        fields["_source"] = fields.pop("whereabouts", self._source)
        if at.item(0) == rows:  # as a rule new jobs have the greater ids
            return self._mixed(slice(rows), slice(rows, None), rows + count, fields)
        at += np.arange(count)
        mine = np.ones(rows + count, dtype=bool)
        mine[at] = False
        return self._mixed(mine, at, rows + count, fields)

    @classmethod
    def none(cls) -> Self:
        ints, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(
            ints, np.zeros(0, dtype=np.int8), ints, ints, floats, floats, floats, ints, floats, floats,
            np.zeros(0, dtype=bool), Placement.none(), (),
        )  # fmt: skip
