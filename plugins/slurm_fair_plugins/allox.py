"""AlloX: jobs in line for GPU types by a bipartite matching (Le et al., EuroSys 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from slurm_fair.policy import Bools, Ints, Within, find, take_or
from slurm_fair.solve import Table, first_in_line
from slurm_fair_plugins.received import UNKNOWN, Crowd
from slurm_fair_plugins.rounds import InRounds, limit_of


@dataclass(frozen=True, slots=True)
class Allox(InRounds):
    """The mean completion time as small as can be, over the oldest part `alpha` of the jobs (section 4.2).

    A job that is the k-th from the end of its GPU's line costs k times its remaining time there; the cheapest
    matching says who runs first where. On one GPU type that is shortest first. The paper knows jobs of one
    GPU only; the readings are those of the simulator published with Gavel and Shockwave: a gang stands in line
    as one job and its share is 1 / gang; a job of one GPU that was matched keeps its GPU to its end; a gang is
    matched anew each time and keeps its share; shares become leases in Gavel's rounds.
    """

    called: ClassVar[str] = "allox"
    unknown_run_time: ClassVar[str] = UNKNOWN

    alpha: Annotated[float, Within(0, 1, "a part of the jobs")] = 0.2

    def divide(self, crowd: Crowd) -> tuple[Table, Mapping[str, Any]]:
        """The shares: all of its time for a job that is matched, over its gang."""
        was = find(crowd.kinds, crowd.remembered("type", -1.0).astype(np.int64))
        stays = (was >= 0) & (crowd.gang == 1)
        taken = np.bincount(was[stays], minlength=len(crowd.kinds))
        machines = np.maximum(crowd.capacity.astype(np.int64) - taken, 0)
        candidates = self._oldest(crowd, np.flatnonzero(~stays & crowd.rate.any(axis=1)), int(machines.sum()))
        on = was.copy()
        now = _in_line(crowd, candidates, machines)
        on[candidates[now >= 0]] = now[now >= 0]
        share = np.zeros((len(crowd.rows), len(crowd.kinds)))
        runs = np.flatnonzero(on >= 0)
        share[runs, on[runs]] = 1.0 / crowd.gang[runs]
        kept = take_or(crowd.kinds, on, -1).astype(np.float64)
        return share, crowd.to_remember(type=kept)

    def _oldest(self, crowd: Crowd, rows: Ints, machines: int) -> Ints:
        """The oldest jobs, at least as many as there are machines."""
        count = max(int(self.alpha * len(rows)), machines)
        return rows[np.argsort(-crowd.age[rows], kind="stable")[:count]]


def _in_line(crowd: Crowd, rows: Ints, machines: Ints) -> Ints:
    rate = crowd.rate[rows]
    able: Bools = rate > 0
    seconds = np.where(able, crowd.left[rows][:, None] / np.where(able, rate, 1.0), np.inf)
    now, _ = first_in_line(seconds, machines, limit_of(crowd.view))
    return now
