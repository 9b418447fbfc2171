"""Hops: latency ratios, and an integer program over exact places (SoCC 2024)."""

from slurm_fair_plugins.hops.policy import Hops

__all__ = ["Hops"]
