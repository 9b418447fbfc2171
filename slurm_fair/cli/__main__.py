"""`python -m slurm_fair.cli`."""

from slurm_fair.cli.main import main

main()
