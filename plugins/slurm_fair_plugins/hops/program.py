"""Hops' integer program: which configurations a job may have, and what they are worth (section 3.6, eq. 11)."""

from __future__ import annotations

import numpy as np

from slurm_fair.model.columns import Bools, Floats
from slurm_fair.policy.orders.offer import Offer
from slurm_fair.solve.places import PlacesProblem
from slurm_fair_plugins.configurations import Configurations, Shape


def considered(ways: Configurations, rho: Floats, threshold: float) -> Configurations:
    """A sensitive job lies on several servers only where its least size is larger than any server of the kind."""
    least = ways.least(len(rho))[ways.job]
    kept: Bools = ~ways.spread | (rho[ways.job] <= threshold) | (least > ways.biggest)
    return ways.take(kept)


def worth(ways: Configurations, weight: Floats, now: Shape, inertia: float) -> Floats:
    """(prior + bias)^lambda * G, a little more where the job runs so already; `weight` is by job."""
    return weight[ways.job] * ways.gain * np.where(ways.unchanged(now), 1.0 + inertia, 1.0)


def program(offer: Offer, ways: Configurations, value: Floats, jobs: int) -> PlacesProblem:
    """The program over what is free of the offer; racks are blocks."""
    pools, racks = offer.pools, offer.view.snapshot.racks
    usable, free = pools.usable, offer.free
    block = np.zeros(len(usable), dtype=np.int64) if racks is None else racks
    return PlacesProblem(
        free[usable], pools.region[usable], block[usable], np.maximum(pools.size, free)[usable],
        ways.job, ways.on, ways.gpus, ways.spread, value, jobs,
    )  # fmt: skip
