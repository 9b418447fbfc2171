"""OSSP: the shortest makespan, an open shop with preemption (Gavel, OSDI 2020, section 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slurm_fair.solve import Table, least_makespan, whole_makespan
from slurm_fair_plugins.received import UNKNOWN, Crowd
from slurm_fair_plugins.rounds import InRounds, limit_of


@dataclass(frozen=True, slots=True)
class Ossp(InRounds):
    """All jobs there are done as early as can be; when each of them is done plays no part.

    The shares give everybody its remaining time within the least possible T, in Gavel's rounds; what that leaves
    over is indifferent to the makespan, and the reading takes the middle of what is possible (the analytic
    centre, which the published simulator's interior-point solver returns). With `whole`, each job stays on one
    GPU type to its end (a small MILP; longest processing time first where the solver is late).
    """

    called: ClassVar[str] = "ossp"
    unknown_run_time: ClassVar[str] = UNKNOWN

    whole: bool = False

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        return _on_one_type(crowd) if self.whole else _shared(crowd)


def _shared(crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
    limit = limit_of(crowd.view)
    shares = least_makespan(crowd.rate, crowd.gang, crowd.capacity, crowd.left, limit_seconds=limit)
    return shares.fraction, {}


def _on_one_type(crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
    """Shares that end everybody together on the type that was chosen."""
    rate = crowd.rate
    seconds = np.where(rate > 0, crowd.left[:, None] / np.where(rate > 0, rate, 1.0), np.inf)
    matching = whole_makespan(seconds, crowd.gang, crowd.capacity, limit_of(crowd.view))
    placed = np.flatnonzero(matching.column >= 0)
    share = np.zeros(rate.shape)
    chosen = matching.column[placed]
    share[placed, chosen] = np.minimum(seconds[placed, chosen] / max(matching.objective, 1e-12), 1.0)
    return share, {}
