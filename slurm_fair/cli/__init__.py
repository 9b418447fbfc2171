"""The commands: thin click functions over the daemon, the journal and the reports."""

from slurm_fair.cli.main import fair_sbatch_main, main, report_main

__all__ = ["fair_sbatch_main", "main", "report_main"]
