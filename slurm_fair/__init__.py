"""A fair share of GPUs over time, beside Slurm."""
