"""Slurm behind the Cluster and History ports: the command line in, scontrol out; nothing else knows Slurm."""
