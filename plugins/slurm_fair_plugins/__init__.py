"""The policies that come with slurm_fair, one module each; found by entry point like anybody else's."""
