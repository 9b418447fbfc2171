"""Jobs that must run now to make their deadline change places with others of their tenant.

A place is a worth, and a turn among equals. Urgent jobs come first, and each job then has the place in which its
tenant's jobs had as many GPUs before. So up to no place does a tenant ask for more GPUs than it did, and places of
other tenants stay. A place with the price of a quota goes to an urgent job only where its whole gang finds room in
such places: else its tenant would lose its quota for a gang that does not get it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slurm_fair.policy import Bools, Floats, Ints
from slurm_fair.policy.orders.in_line import gpus_ahead

_SLIVER = 1e-6  # of a GPU


class Asking(NamedTuple):
    """Jobs, and those of them that have to run now."""

    tenant: Ints
    gpus: Floats  # by weight
    priced: Bools  # in its tenant's quota, or nearly done: these have the places that are worth most
    urgent: Bools
    spare: Floats  # seconds that an urgent one may still wait


class SiblingPlaces(NamedTuple):
    """Each job with the place that it has now."""

    taken: Ints  # [job] the job whose place it was
    last: Bools  # [job] of those that share a place now, the last one
    order: Ints  # all jobs, the first one first
    first: Bools  # [job] urgent, and before all others of its tenant
    behind: Bools  # [job] it was before one that has its place now


def changed_places(asking: Asking, order: Ints, takes_part: Bools) -> SiblingPlaces:
    """The places once the urgent jobs come first; only those that take part, of their tenants, change theirs."""
    jobs = len(order)
    place = np.empty(jobs, dtype=np.int64)
    place[order] = np.arange(jobs)
    mine = order[takes_part[order]]
    tenant = asking.tenant[mine]
    # Jobs whose GPUs weigh nothing have no places of their own: where nobody is urgent nothing may move.
    mine = mine[np.isin(tenant, tenant[asking.urgent[mine]])]
    mine = mine[asking.tenant[mine].argsort(kind="stable")]  # tenant by tenant, each in its own order
    first = _first(asking, mine)
    tenant, urgent = asking.tenant[mine], asking.urgent[mine]
    group = np.select([first, asking.priced[mine], urgent], [0, 1, 2], 3)
    now = mine[np.lexsort((np.where(urgent & (group != 1), asking.spare[mine], 0.0), group, tenant))]
    through = asking.gpus[mine].cumsum()
    at = through.searchsorted(asking.gpus[now].cumsum() - _SLIVER)
    at = np.clip(at, tenant.searchsorted(tenant), len(mine) - 1)
    taken, last, turn, goes_first = (
        np.arange(jobs),
        np.ones(jobs, dtype=bool),
        place.copy(),
        np.zeros(jobs, bool),
    )
    taken[now], turn[now], goes_first[mine] = mine[at], np.arange(len(now)), first
    last[now[:-1]] = at[1:] != at[:-1]
    has = place[taken]
    return SiblingPlaces(taken, last, np.lexsort((turn, has)), goes_first, has > place)


def _first(asking: Asking, mine: Ints) -> Bools:
    """Urgent jobs that come before all others of their tenant: they have the price, or find room where it is."""
    tenant, gpus, priced = asking.tenant[mine], asking.gpus[mine], asking.priced[mine]
    room = np.bincount(tenant, np.where(priced, gpus, 0.0))[tenant] + _SLIVER
    able = (asking.urgent[mine] & (priced | (gpus <= room))).nonzero()[0]
    able = able[np.lexsort((asking.spare[mine][able], tenant[able]))]
    through = gpus_ahead(tenant[able], gpus[able]) + gpus[able]
    first = np.zeros(len(mine), dtype=bool)
    first[able] = priced[able] | (through <= room[able])
    return first
