"""The doctor: what stands in the way of fair leases here, each finding with its cure. It changes nothing."""

from slurm_fair.doctor.examine import Diagnosis, examine
from slurm_fair.doctor.finding import Finding, Level

__all__ = ["Diagnosis", "Finding", "Level", "examine"]
