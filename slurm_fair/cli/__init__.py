"""The commands: thin click functions over the daemon, the journal and the reports."""

from slurm_fair.cli.alone import load_numpy

load_numpy()

from slurm_fair.cli.main import fair_sbatch_main, main, report_main  # noqa: E402  after numpy

__all__ = ["fair_sbatch_main", "main", "report_main"]
