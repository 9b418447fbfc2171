"""Jobs that must run now to end before their deadline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from slurm_fair.policy import (
    Bools,
    Floats,
    Ints,
    View,
)
from slurm_fair.policy.draft import Saying
from slurm_fair_plugins.astraea.walked import Walked
from slurm_fair_plugins.astraea.words import (
    MUST_GO_ON,
    MUST_START,
    TOO_LATE,
)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The candidates that have to run now, as users and progress say it (section 5.2.1, third kind)."""

    spare: Floats  # seconds that it may still wait before it has to start
    urgent: Bools
    missed: Bools  # it has a deadline that it cannot make even if it runs from now on

    @classmethod
    def of(cls, view: View, rows: Ints, urgent: str) -> Deadlines | None:
        """None where no candidate has a deadline, or nobody is to go by them."""
        said = view.snapshot.told
        if said is None or urgent == "off":
            return None
        at = np.isfinite(said.deadline[rows]).nonzero()[0]
        if len(at) == 0:
            return None
        terms, ahead = view.terms, said.deadline[rows[at]] - view.now
        left, again = _needed(view, rows[at], ahead)
        spare, late = ahead - again, np.where(view.waiting[rows[at]], again, left) > ahead
        # A lease later it may take until the job whose GPUs it gets has given them back.
        soon = terms.term + terms.grace + terms.interval if urgent == "tight" else np.inf
        found = cls(np.zeros(len(rows)), np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool))
        found.spare[at], found.urgent[at], found.missed[at] = spare, ~late & (spare < soon), late
        return found

    def why(self, rows: Ints, stays: Bools, walked: Walked | None) -> Iterator[Saying]:
        """The reasons that deadlines give for starting, going on and waiting; `stays` are those that run."""
        waits, starts = ~stays, np.zeros(len(rows), dtype=bool)
        if walked is not None:
            stays[stays.nonzero()[0][walked.evicted]] = False
            starts[walked.granted] = True
        yield rows[starts & self.urgent], MUST_START
        yield rows[stays & self.urgent], MUST_GO_ON
        yield rows[waits & ~starts & self.missed], TOO_LATE


def _needed(view: View, rows: Ints, ahead: Floats) -> tuple[Floats, Floats]:
    """Seconds that each needs if it goes on, and if it starts anew.

    Slurm starts a job only when its whole time limit fits before its deadline, however little of it is left. A job
    of which nobody knows how long it takes needs all the time that there is.
    """
    left, limit = view.told.left_seconds[rows], view.snapshot.jobs.time_limit_seconds[rows]
    left = np.where(np.isfinite(left), left, np.maximum(ahead, 0.0))
    again = np.where(np.isfinite(limit), np.maximum(left, limit), left)
    return left, again
