"""Slurm's words for the end of a run."""

COMPLETED = "COMPLETED"  # neither anybody nor a limit ended it
CANCELLED = "CANCELLED"
TIMEOUT = "TIMEOUT"
NODE_FAIL = "NODE_FAIL"
PREEMPTED = "PREEMPTED"
MAY_GO_ON = (NODE_FAIL, PREEMPTED)  # after these a job may have been requeued, or not
