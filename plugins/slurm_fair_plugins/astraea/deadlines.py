"""The reasons that deadlines give for starting, going on and waiting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slurm_fair.policy import MUST_GO_ON, MUST_START, TOO_LATE, Bools, Deadlines, Ints
from slurm_fair.policy.draft import Saying
from slurm_fair_plugins.astraea.walked import Walked


def deadline_reasons(found: Deadlines, rows: Ints, stays: Bools, walked: Walked | None) -> Iterator[Saying]:
    """Reasons for the candidates that have a deadline; `stays` are those that run."""
    waits, starts = ~stays, np.zeros(len(rows), dtype=bool)
    if walked is not None:
        stays[stays.nonzero()[0][walked.evicted]] = False
        starts[walked.granted] = True
    yield rows[starts & found.urgent], MUST_START
    yield rows[stays & found.urgent], MUST_GO_ON
    yield rows[waits & ~starts & found.missed], TOO_LATE
