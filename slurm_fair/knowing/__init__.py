"""What is known of jobs beside what a look shows: speeds, progress and run times, learned from what they report."""

from slurm_fair.knowing.cluster import Knowing, KnowingRules, Shelf
from slurm_fair.knowing.classes import NameOf

__all__ = ["Knowing", "KnowingRules", "NameOf", "Shelf"]
