"""Speeds, progress and run times of jobs: learned from reports and ended jobs, and told at each look."""

from slurm_fair.knowing.classes import WordsOf
from slurm_fair.knowing.cluster import Knowing, KnowingRules, Shelf

__all__ = ["Knowing", "KnowingRules", "Shelf", "WordsOf"]
