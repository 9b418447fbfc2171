"""The links between GPUs measured: all-reduces of groups of GPUs, and the rates that explain their times."""

from slurm_fair.bench_links.by_sockets import PretendedRanks
from slurm_fair.bench_links.by_torch import NO_TORCH, joined
from slurm_fair.bench_links.fit import Rates, Timing, rates_of
from slurm_fair.bench_links.groups import Place, Ranks, rank_groups, timed_groups

__all__ = [
    "NO_TORCH",
    "Place",
    "PretendedRanks",
    "Ranks",
    "Rates",
    "Timing",
    "joined",
    "rank_groups",
    "rates_of",
    "timed_groups",
]
