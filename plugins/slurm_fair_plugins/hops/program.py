"""Hops' integer program: which configurations a job may have, and what they are worth (section 3.6, eq. 11)."""

from __future__ import annotations

import numpy as np

from slurm_fair.policy import Bools, Floats, Ints, Offer
from slurm_fair.solve.places import PlacesProblem
from slurm_fair_plugins.configurations import Configurations, Shape


def considered(ways: Configurations, sensitivity: Floats, threshold: float) -> Configurations:
    """A sensitive job lies on several servers only with sizes that are larger than any server of the kind."""
    kept: Bools = ~ways.spread | (sensitivity[ways.job] <= threshold) | (ways.gpus > ways.biggest)
    return ways.take(kept)


def worth(ways: Configurations, weight: Floats, now: Shape, inertia: float) -> Floats:
    """(prior + bias)^lambda * G, a little more where the job runs so already; `weight` is by job."""
    return weight[ways.job] * ways.gain * np.where(ways.unchanged(now), 1.0 + inertia, 1.0)


def program(
    offer: Offer, kind: Ints, on: Ints, ways: Configurations, value: Floats, jobs: int
) -> PlacesProblem:
    """The program over what these servers of the offer have free; racks are blocks; `kind` is by node."""
    pools, racks, free = offer.pools, offer.view.snapshot.racks, offer.free
    block = np.zeros(len(free), dtype=np.int64) if racks is None else racks
    return PlacesProblem(
        free[on], kind[on], block[on], np.maximum(pools.size, free)[on],
        ways.job, ways.on, ways.gpus, ways.spread, value, jobs,
    )  # fmt: skip
