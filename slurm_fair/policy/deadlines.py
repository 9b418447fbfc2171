"""Jobs that must run now to end before their deadline: one rule for all policies that mind deadlines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from slurm_fair.model.columns import Bools, Floats, Ints
from slurm_fair.policy.view import View

Urgency: TypeAlias = Literal["tight", "any", "off"]  # the setting: which jobs with a deadline go first
MUST_START = "it must run now to make its deadline"
MUST_GO_ON = "it must go on to make its deadline"
TOO_LATE = "it can no longer make its deadline, so it waits its turn"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The candidates that have to run now, as users and progress say it (Astraea, section 5.2.1, third kind)."""

    spare: Floats  # seconds that it may still wait before it has to start; inf = nobody knows
    urgent: Bools
    missed: Bools  # it has a deadline that it cannot make even if it runs from now on

    @classmethod
    def of(cls, view: View, rows: Ints, urgent: Urgency) -> Self | None:
        """None where no candidate has a deadline, or nobody is to go by them."""
        said = view.snapshot.told
        if said is None or urgent == "off":
            return None
        at = np.isfinite(said.deadline[rows]).nonzero()[0]
        if len(at) == 0:
            return None
        terms, ahead = view.terms, said.deadline[rows[at]] - view.now
        left, again, known = _needed(view, rows[at], ahead)
        spare = np.where(known, ahead - again, np.inf)
        late = np.where(view.waiting[rows[at]], again, left) > ahead
        # A lease later it may take until the job whose GPUs it gets has given them back.
        near = spare < terms.term + terms.grace + terms.interval
        chosen = near if urgent == "tight" else np.ones(len(at), dtype=bool)
        found = cls(np.zeros(len(rows)), np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool))
        found.spare[at], found.urgent[at], found.missed[at] = spare, ~late & chosen, late
        return found


def _needed(view: View, rows: Ints, ahead: Floats) -> tuple[Floats, Floats, Bools]:
    """Seconds that each needs if it goes on, and if it starts anew; and where anybody knows that.

    Slurm starts a job only when its whole time limit, or its least time if it has one, fits before its deadline,
    however little of it is left. Where a limit alone tells how long a job takes, that much is enough. Nobody knows
    how long a job takes that has neither a limit nor a report: it is too late once its deadline is past, and until
    then nothing shows that it must run now. Else a made-up deadline would starve its siblings.
    """
    left, must_fit = view.told.left_seconds[rows], view.snapshot.must_fit_seconds[rows]
    said = view.told_alone
    by_limit = np.isnan(said.left_seconds[rows]) & np.isnan(said.declared_seconds[rows])
    known = np.isfinite(left)
    left = np.where(known, left, np.maximum(ahead, 0.0))
    again = np.where(np.isfinite(must_fit), np.where(by_limit, must_fit, np.maximum(left, must_fit)), left)
    return left, again, known
