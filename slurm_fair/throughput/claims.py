"""Claims of jobs about their progress, held to what can be (a report is a claim, never a fact)."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Floats


def believed_progress(before: Floats, said: Floats, elapsed: Floats, best_rate: Floats) -> Floats:
    """Progress that is believed after a report: never back, and no faster than the best rate of the class.

    `before` is what was believed, `elapsed` the seconds run since, `best_rate` in units of progress a second. nan:
    nothing was said, or the class was never measured, and then what the job says stands.
    """
    most = np.where(np.isnan(best_rate), np.inf, before + np.maximum(elapsed, 0.0) * best_rate)
    claimed = np.where(np.isnan(said), before, said)
    return np.clip(claimed, before, np.maximum(most, before))


def faded(value: Floats, silent_seconds: Floats, half_life_seconds: float) -> Floats:
    """A claim that is not renewed loses half of itself in each half-life."""
    left: Floats = value * np.exp2(-np.maximum(silent_seconds, 0.0) / half_life_seconds)
    return left
