"""The house policy: one objective of quota, work left, finish-time claims and the makespan."""

from slurm_fair_plugins.fair.policy import Fair

__all__ = ["Fair"]
