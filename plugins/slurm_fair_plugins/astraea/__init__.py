"""The two-phase policy of the Astraea paper."""

from slurm_fair_plugins.astraea.policy import Astraea

__all__ = ["Astraea"]
