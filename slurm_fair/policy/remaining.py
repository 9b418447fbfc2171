"""Work that jobs have left: as they report, else as was declared, else as their class took, else what they had."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slurm_fair.model.columns import Bools, Code, Codes, Floats
from slurm_fair.policy.view import View

LEAST_SECONDS = 1.0
_OVERRUN = 4.0  # a job that ran longer than was foretold is taken to need this part of what it ran
_FRESH = 4.0  # one of which nobody knows anything, and that never ran, this part of a lease


class LeftBy(Code):
    """The source of what is known of the work that a job has left."""

    REPORTED = 0
    DECLARED = 1
    CLASS = 2  # ended jobs of its class
    ATTAINED = 3  # nobody knows: what it has run stands for what it has left


class Remaining(NamedTuple):
    """The work that each job of the snapshot has left, in seconds with its usual gang on the reference type."""

    seconds: Floats
    by: Codes  # LeftBy

    @classmethod
    def of(cls, view: View, longer: Floats | None = None) -> Remaining:
        """The work left of all jobs of a view; `longer` is how many times what is said each job takes."""
        said, ran = view.told_alone, view.ran_seconds
        foretold = np.isfinite(said.left_spread)
        reported, declared = ~np.isnan(said.left_seconds), ~np.isnan(said.declared_seconds)
        done = np.where(np.isnan(said.done_seconds), ran, said.done_seconds)
        times = np.ones(len(ran)) if longer is None else longer
        told_left = said.left_seconds * np.where(foretold, 1.0, times)
        known = np.where(reported, told_left, said.declared_seconds * times - done)
        # A report stands; what was foretold otherwise may be over and the job still run.
        over = (foretold | ~reported) & (known <= LEAST_SECONDS)
        known = np.where(over, np.maximum(ran, done) / _OVERRUN, known)
        source = np.where(reported, np.where(foretold, LeftBy.CLASS, LeftBy.REPORTED), LeftBy.DECLARED)
        by = np.where(reported | declared, source, LeftBy.ATTAINED).astype(np.int8)
        left = np.where(by == LeftBy.ATTAINED, attained(view), known)
        return cls(np.maximum(left, LEAST_SECONDS), by)

    @property
    def known(self) -> Bools:
        """Jobs of which somebody said how much is left, or whose class tells it."""
        known: Bools = self.by != LeftBy.ATTAINED
        return known


def attained(view: View, times: float = 1.0) -> Floats:
    """So many times what each job has run, in place of what it has left; no more than its time limit leaves it."""
    ran = np.maximum(view.ran_seconds, view.terms.term / _FRESH)
    return np.minimum(times * ran, limit_leaves(view))


def limit_leaves(view: View) -> Floats:
    """The time that each job may still run by its time limit."""
    return np.maximum(view.snapshot.jobs.time_limit_seconds - view.ran_seconds, LEAST_SECONDS)
