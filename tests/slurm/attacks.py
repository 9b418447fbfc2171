"""Submissions of a user who means harm, and rows of a look by user."""

from __future__ import annotations

import numpy as np

from slurm_fair.model import JobState, Snapshot, label
from tests.support.on_slurm import Slurm

HONEST, HOSTILE = "games", "news"
Seen = dict[str, dict[str, object]]
COLUMNS = (
    "submit", "state", "blocked", "gated", "gate_until", "pinned", "gpus", "nodes", "gpus_per_node", "most_nodes",
    "restarts", "checkpoints", "requeueable", "time_limit_seconds", "cpus", "memory_mb", "array_limit",
)  # fmt: skip


def of_user(seen: Snapshot, user: str) -> Seen:
    """Everything that a snapshot says of one user's living jobs."""
    jobs, found = seen.jobs, {}
    for row in np.flatnonzero((jobs.user == seen.users.index(user)) & (jobs.state != JobState.DONE)).tolist():
        told: dict[str, object] = {name: getattr(jobs, name)[row].item() for name in COLUMNS}
        told["partition"] = seen.partitions.names[jobs.partition[row]]
        told["tenant"] = seen.tenants.names[jobs.tenant[row]]
        told["on"] = tuple(
            (seen.nodes.names[node], gpus)
            for at, node, gpus in zip(seen.held.row, seen.held.node, seen.held.gpus, strict=True)
            if at == row
        )
        found[label(int(jobs.key[row]))] = told
    return found


def attack(slurm: Slurm, *options: str, account: str = "speech") -> str:
    """The hostile user submits a job; its id where it was accepted."""
    argv = ("sbatch", "--parsable", "-A", account, "-o", "/dev/null", *options, "--wrap", "sleep 300")
    return slurm.do(*argv, user=HOSTILE).stdout.strip()
