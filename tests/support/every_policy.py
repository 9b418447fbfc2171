"""The policies that every property of policies is asked of."""

from __future__ import annotations

from contextlib import suppress

from slurm_fair.errors import PolicyError
from slurm_fair.policy import load, names


def loadable() -> list[str]:
    """The policies that can be loaded; that all of them can is a test of its own."""
    found = []
    for name in names():
        with suppress(PolicyError):
            load(name, {})
            found.append(name)
    return found


# Those that stop a job so that it goes on elsewhere, whoever takes its GPUs.
MOVE_JOBS = ("allox", "fair", "gandiva", "gavel", "gavel-ftf", "hops", "mst", "ossp", "pollux", "sia")
EVERY = loadable()
