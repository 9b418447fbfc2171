"""The GPUs that a plan is about, what it gives out of them, and what no plan could give out more of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model import Plan, Verdict
from slurm_fair.policy import Bools, Floats, Ints, View
from slurm_fair.solve.filling import densest_first


@dataclass(frozen=True, slots=True)
class Stock:
    """GPUs that this plan is about: free ones and those of leases that are over, node by node."""

    contested: Bools  # rows of jobs whose lease is over and who may have to give way
    gpus: Ints  # [node]

    @classmethod
    def of(cls, view: View) -> Self:
        """The GPUs on nodes that can start work."""
        contested = view.expired & ~view.pinned_down & ~view.stranded
        places, nodes = view.lease_places, view.snapshot.nodes
        theirs = contested[places.row].nonzero()[0]
        back = np.bincount(places.node[theirs], places.gpus[theirs], len(nodes)).astype(np.int64)
        return cls(contested, np.where(nodes.usable, np.maximum(view.spare_gpus + back, 0), 0))


def given_by(plan: Plan, stock: Stock) -> Bools:
    """Rows that a plan gives GPUs of the stock."""
    given: Bools = (plan.verdict == Verdict.GRANT) | ((plan.verdict == Verdict.RENEW) & stock.contested)
    return given


def bound_of(a_gpu: Floats, gpus: Floats, able: Bools, stock: Stock) -> float:
    """No plan is worth more: GPUs go to those to whom one is worth most, and the last gets a part of its gang."""
    asks = (able & (gpus > 0)).nonzero()[0]
    value = a_gpu[asks] * gpus[asks]
    return float((value * densest_first(value, gpus[asks], float(stock.gpus.sum()))).sum())
