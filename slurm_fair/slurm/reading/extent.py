"""The nodes and GPUs that a row of squeue asks for, and the pieces of which each lies on one node."""

from __future__ import annotations

from collections.abc import Mapping

from slurm_fair.model import JobState
from slurm_fair.slurm.reading import values

_NO_NUMBER = 65_534  # from here on a count of 16 bits is a sign: that it was not given, or has no limit


def gpus_in(f: Mapping[str, str], counts: dict[str, str], nodes: int) -> tuple[int, str, int]:
    """GPUs of a row on so many nodes, their type, and how many on each node where that was asked for."""
    gpus, kind = values.tres_gpus(counts)
    per_node, kind_per_node = values.gres_gpus(f["tres-per-node"])
    per_job, kind_per_job = values.gres_gpus(f["tres-per-job"])
    per_task, kind_per_task = values.gres_gpus(f["tres-per-task"])
    tasks, counted_on = max(values.count(f["NumTasks"]), 1), values.count(counts.get("node", "0"))
    if 0 < counted_on < nodes and gpus == per_node * counted_on:  # slurm-facts: stale-node-count
        gpus = per_node * nodes
    # Slurm counts GPUs only where accounting tracks them (AccountingStorageTRES): else by what was asked.
    gpus = values.gpus(str(gpus or per_job or per_node * nodes or per_task * tasks))
    return gpus, kind or kind_per_node or kind_per_job or kind_per_task, per_node


def nodes_in(f: Mapping[str, str], counts: dict[str, str], state: JobState) -> tuple[int, int]:
    """The least number of nodes as far as the row tells, and the number that Slurm lists.

    After a requeue Slurm lists those of the last run. Its own words may say too few: they do not tell what
    its CPUs or memory come to on the nodes that there are (slurm-facts: stale-node-count).
    """
    listed = max(values.count(f["NumNodes"]), 1)
    asked = values.count(counts.get("node", "0"))
    requeued = state is JobState.WAITING and f["RestartCnt"] not in ("", "0")
    if not requeued or not asked:
        return listed, listed
    each = values.count(f["NTPerNode"])
    by_tasks = -(-values.count(f["NumTasks"]) // each) if 0 < each < _NO_NUMBER else 1
    return min(listed, max(asked, by_tasks)), listed


def pieces_in(f: Mapping[str, str], gpus: int) -> int:
    """The pieces that share the CPUs and the memory evenly, and of which none lies on two nodes."""
    by_gpu = values.gres_gpus(f["cpus-per-tres"])[0] or not values.is_nothing(f["mem-per-tres"])
    return max(gpus if by_gpu else values.count(f["NumTasks"]), 1)
