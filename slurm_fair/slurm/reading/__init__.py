"""Readers of Slurm's output and of users' files; nothing here acts."""
