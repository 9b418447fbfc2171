"""A few minutes of a whole cluster: the same jobs under slurm_fair and under plain Slurm, with proof."""
