"""A private real Slurm on one machine, for the demo, the tests and the containers."""

from slurm_fair.lab.lab import Lab
from slurm_fair.lab.packages import available, ensure_packages
from slurm_fair.lab.spec import LabSpec, NodeGroup

__all__ = ["Lab", "LabSpec", "NodeGroup", "available", "ensure_packages"]
