"""Texts of Slurm that more than its adapter reads: lists of nodes, and durations."""
