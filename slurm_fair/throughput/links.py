"""The links between GPUs, by GPU type: measured by jobs made for it, or given (Hops eq. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from slurm_fair.model.columns import Columns, Floats, check_lengths


@dataclass(frozen=True)
class Links(Columns):
    """One row per GPU type; rates are parameters a second, nan = not known, inf = it takes no time.

    An all-reduce of P parameters by n GPUs, of which at most k share a node, takes P/link (n-1)/n on one node,
    and P/net (n-1)/n on several: eq. 2, with its ring factor. What the GPUs of a node share, and the paper leaves
    out, adds P/bus (k-1) without end, and P/host (k-1)/k up to a limit. Only the ratios of these rates are used.
    """

    link: Floats  # B_link: between GPUs of one node
    net: Floats  # B_net: between nodes
    bus: Floats
    host: Floats
    speed: Floats  # of one GPU against the reference type, for a class that was never measured on this type
    gpu_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_lengths(self)

    @classmethod
    def unknown(cls, gpu_types: tuple[str, ...] = ()) -> Self:
        """Nobody measured: priors that say little take their place."""
        nan = np.full(len(gpu_types), np.nan)
        return cls(nan, nan, nan, nan, np.ones(len(gpu_types)), gpu_types)
