"""The links between GPUs, by GPU type: measured once by a micro-benchmark, or given (Hops eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model.columns import Columns, Floats, check_lengths


@dataclass(frozen=True)
class Links(Columns):
    """One row per GPU type; rates are parameters a second, nan = not known.

    An all-reduce of P parameters by n GPUs, of which at most k share a node, takes
    P / link * (n-1)/n + P / bus * (k-1) on one node, and P / net * (n-1)/n + P / bus * (k-1) on several.
    The first terms are eq. 2 with its ring factor; the bus is what GPUs of one node share and the paper leaves out.
    """

    link: Floats  # B_link: between GPUs of one node
    net: Floats  # B_net: between nodes
    bus: Floats  # what all GPUs of a node share; inf = nothing
    speed: Floats  # of one GPU against the reference type, for jobs of which nothing is known
    gpu_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_lengths(self)

    @classmethod
    def unknown(cls, gpu_types: tuple[str, ...]) -> Self:
        """Nobody measured: a prior that says little takes their place."""
        nan = np.full(len(gpu_types), np.nan)
        return cls(nan, nan, nan, np.ones(len(gpu_types)), gpu_types)
