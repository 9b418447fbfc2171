"""The commands: thin click functions over the daemon, the journal and the reports."""

import sys

from slurm_fair.cli.alone import load_numpy

try:
    load_numpy()

    from slurm_fair.cli.main import fair_sbatch_main, main, report_main
except KeyboardInterrupt:  # nothing is begun yet
    print(f"{sys.argv[0].rpartition('/')[2]}: stopped", file=sys.stderr)
    raise SystemExit(130) from None

__all__ = ["fair_sbatch_main", "main", "report_main"]
