"""What is known of jobs beside what a look shows: speeds, progress, run times."""

from slurm_fair.knowing.classes import NameOf
from slurm_fair.knowing.cluster import Knowing, KnowingRules, Shelf

__all__ = ["Knowing", "KnowingRules", "NameOf", "Shelf"]
