"""Leases: the right of a job to its GPUs until an instant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slurm_fair.model.columns import (
    Bools,
    Code,
    Codes,
    Columns,
    Floats,
    Ints,
    find,
)
from slurm_fair.model.once import once
from slurm_fair.model.placement import Placement


class LeasePhase(Code):
    """The phases of a lease, in order."""

    GRANTED = 0  # GPUs promised; the gate opens when they are free, the job has not been seen running
    RUNNING = 1
    REVOKING = 2  # asked to checkpoint; requeued on its answer or at the end of the grace


USUAL_RENEWALS = 4.0  # in a term: with rolling leases a renewed lease is so much shorter than a new one
_BEATS_IN_A_RENEWAL, _LONGEST_BEAT_SECONDS = 16.0, 15.0
NEVER_ENDS_SECONDS = 10 * 365 * 86400.0  # the term of leases that last until their jobs end


@dataclass(frozen=True)
class LeaseTerms:
    """The site's rules for leases, all in seconds. Values worked out from them are kept with them: no slots."""

    term: float = 900.0
    interval: float = 10.0
    grace: float = 60.0
    min_runtime: float = 0.0
    aligned: bool = True
    start_timeout: float = 60.0
    max_grace: float = 600.0  # of a job that asks for its own
    interval_min: float = 0.0  # looks follow changes, at least so far apart; 0: they keep to the interval
    # Under rolling leases: a gang that stands first and has waited so long has nodes set aside; inf = never.
    reserve_after: float = math.inf
    renewal: float = math.inf  # rolling leases: how long a renewed one lasts; never longer than a new one

    def grace_of(self, asked_for: float) -> float:
        """The grace of a job that asked for so many seconds; 0 = the site's."""
        return min(asked_for, max(self.max_grace, self.grace)) if asked_for > 0 else self.grace

    @property
    def shortest(self) -> float:
        """The length of the shortest leases: of renewed ones, where each ends at a time of its own."""
        return min(self.term, self.renewal) if self._renewals_differ else self.term

    @property
    def _renewals_differ(self) -> bool:
        return not self.aligned and self.term < NEVER_ENDS_SECONDS

    @property
    def follows_changes(self) -> bool:
        """True where a look follows each change; the interval is then the longest time without one."""
        return self.interval_min > 0

    @once
    def _lead(self) -> float:
        """An aligned lease is at least this long, and nothing is granted so shortly before an end."""
        return min(self.interval_min or self.interval, self.term / 4)

    @once
    def beat(self) -> float:
        """Leases that are over are renewed together, so many seconds apart; 0: each when it is over.

        Until then their GPUs are to be had: a job that comes need not wait for the end of a lease.
        """
        shorter = self._renewals_differ and self.renewal < self.term
        beat = min(self.renewal / _BEATS_IN_A_RENEWAL, _LONGEST_BEAT_SECONDS) if shorter else 0.0
        return math.floor(beat) if beat > 1 else beat  # whole seconds, where there are some

    def renewed_at(self, end: Floats) -> Floats:
        """The instants at which leases with these ends are renewed, unless others got their GPUs."""
        return np.maximum((np.floor(end / self.beat) + 1) * self.beat, end) if self.beat else end

    def end_for(self, start: float) -> float:
        """The end of a lease that starts at `start`; aligned leases end together, at multiples of the term."""
        if not self.aligned:
            return start + max(self.term, self.min_runtime)
        return math.ceil((start + max(self.min_runtime, self._lead)) / self.term) * self.term

    def renewed_end(self, now: float) -> float:
        """The end of a lease that is renewed now."""
        end = self.end_for(now)
        return min(end, now + self.renewal) if self._renewals_differ else end

    def said_end(self, end: float) -> float | None:
        """A lease's end as events say it: one that lasts until its job ends has none."""
        return end if self.term < NEVER_ENDS_SECONDS else None

    def grants_at(self, now: float) -> bool:
        """True if leases may be granted now.

        Shortly before a common end they may not. Such a lease would last past it, and a few small ones each time
        would keep a gang that needs whole nodes waiting for ever.
        """
        return not self.aligned or self.next_common_end(now) - now > self._lead

    def next_common_end(self, now: float) -> float:
        """The next common end of aligned leases."""
        return (math.floor(now / self.term) + 1) * self.term


@dataclass(frozen=True)
class Leases(Columns):
    """One row per job that holds or was promised GPUs, sorted by key.

    The snapshot says on which nodes running jobs lie.
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
    promises: Placement  # of those in phase GRANTED: where they are to lie; its rows are keys of jobs
    node_names: tuple[str, ...]  # what the node indices of `promises` mean

    @property
    def promised(self) -> Bools:
        """Leases in phase GRANTED: their jobs have not been seen running."""
        there: Bools = self.phase == LeasePhase.GRANTED.code
        return there

    @property
    def running(self) -> Bools:
        """Leases in phase RUNNING."""
        there: Bools = self.phase == LeasePhase.RUNNING.code
        return there

    @property
    def revoking(self) -> Bools:
        """Leases in phase REVOKING."""
        there: Bools = self.phase == LeasePhase.REVOKING.code
        return there

    def promises_by(self, keys: Ints, node_names: tuple[str, ...]) -> Placement:
        """The promises by row of a table with these sorted keys, in the numbers of these nodes."""
        promises = self.promises.renamed(self.node_names, node_names)
        if not len(promises):
            return promises
        row = find(keys, promises.row)
        there = row >= 0
        return Placement(row[there], promises.node[there], promises.gpus[there])

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows asked for, by index or mask, and what was promised to them."""
        taken = super().take(rows)
        return taken.with_columns(promises=self.promises.only(taken.key)) if len(self.promises) else taken

    def extended(self, count: int, **fields: Any) -> Self:
        """These and so many more, which are sorted by key themselves."""
        rows, at = len(self.key), self.key.searchsorted(fields["key"])
        if at.item(0) == rows:  # as a rule new jobs have the greater ids
            return self._mixed(slice(rows), slice(rows, None), rows + count, fields)
        at += np.arange(count)
        mine = np.ones(rows + count, dtype=bool)
        mine[at] = False
        return self._mixed(mine, at, rows + count, fields)

    @classmethod
    def none(cls, **fields: Any) -> Self:
        return super().none(promises=Placement.none(), **fields)
