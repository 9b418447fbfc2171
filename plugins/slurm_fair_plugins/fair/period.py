"""The GPUs that a plan is about, what it gives out of them, and what no plan could give out more of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from slurm_fair.model import Plan, Verdict
from slurm_fair.policy import Bools, Floats, Ints, View
from slurm_fair.policy.orders.in_line import gpus_ahead
from slurm_fair.solve.filling import densest_first
from slurm_fair.solve.lots import Payers


@dataclass(frozen=True, slots=True)
class Stock:
    """GPUs that this plan is about: free ones and those of leases that are over, node by node."""

    contested: Bools  # rows of jobs whose lease is over and who may have to give way
    gpus: Ints  # [node] of one that takes no new work those with which jobs may stay there
    cpus: Ints  # [node]
    memory_mb: Ints  # [node]

    @classmethod
    def of(cls, view: View) -> Self:
        """The amounts that are free or under leases that are over."""
        contested = view.contested
        places, nodes = view.lease_places, view.snapshot.nodes
        theirs = contested[places.row].nonzero()[0]
        amounts = view.lease_amounts if view.wants_more_than_gpus else (places.gpus,) * 3
        gpus, cpus, memory_mb = (
            np.bincount(places.node[theirs], each[theirs], len(nodes)).astype(np.int64) for each in amounts
        )
        free = np.maximum(np.where(nodes.usable, view.spare_gpus + gpus, gpus), 0)
        return cls(contested, free, view.spare_cpus + cpus, view.spare_memory_mb + memory_mb)


def given_by(plan: Plan, stock: Stock) -> Bools:
    """Rows that a plan gives GPUs of the stock."""
    given: Bools = (plan.verdict == Verdict.GRANT) | ((plan.verdict == Verdict.RENEW) & stock.contested)
    return given


class Slices(NamedTuple):
    """GPUs that jobs may get, and what one is worth to them beside the price of a quota."""

    gpus: Floats
    own: Floats  # of a GPU
    payers: Payers

    def priced(self) -> Floats:
        """GPUs of each slice that have the price of a quota: those worth most by themselves come first."""
        order = np.lexsort((-self.own, self.payers.tenant))
        tenant, gpus = self.payers.tenant[order], self.gpus[order]
        left = np.append(self.payers.room(), 0.0)[tenant] - gpus_ahead(tenant + 1, gpus)
        part = np.empty(len(gpus))
        part[order] = np.clip(left, 0.0, gpus)
        return part


def bound_of(slices: Slices, stock: Stock) -> float:
    """No plan is worth more: GPUs go to where one is worth most, and the last gets a part of its gang."""
    priced = slices.priced()
    gpus = np.concatenate((priced, slices.gpus - priced))
    price = np.append(slices.payers.quotas.price, 0.0)[slices.payers.tenant]
    value = gpus * np.concatenate((slices.own + price, slices.own))
    some = gpus > 0
    return float((value[some] * densest_first(value[some], gpus[some], float(stock.gpus.sum()))).sum())
