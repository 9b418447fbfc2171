"""The end states of a trace's jobs, in Slurm's words or those of the public traces."""

from __future__ import annotations

from slurm_fair.model.columns import Code
from slurm_fair.trace.faults import BadCell, nearest_of, shown


class End(Code):
    """The end of a job, to which the many words of traces come down."""

    COMPLETED = 0
    CANCELLED = 1
    FAILED = 2
    TIMEOUT = 3
    RUNNING = 4  # when the trace was taken
    PENDING = 5


BAD_ENDS = (End.CANCELLED, End.FAILED, End.TIMEOUT)
_WORDS: dict[End, tuple[str, ...]] = {
    End.COMPLETED: ("", "completed", "completing", "succeeded", "pass", "passed"),
    End.CANCELLED: ("cancelled", "canceled", "killed", "revoked"),
    End.FAILED: (
        "failed", "boot_fail", "node_fail", "out_of_memory", "preempted", "requeued", "launch_failed",
        "reconfig_fail", "special_exit", "terminated",
    ),
    End.TIMEOUT: ("timeout", "deadline"),
    End.RUNNING: (
        "running", "suspended", "resizing", "signaling", "stage_out", "stopped", "configuring",
        "power_up_node", "expediting",
    ),
    End.PENDING: ("pending", "waiting", "requeue_hold", "requeue_fed", "resv_del_hold"),
}  # fmt: skip
_ENDS = {word: end for end, words in _WORDS.items() for word in words}


def end_of(text: str) -> End:
    """The end that a word means; empty = COMPLETED; `CANCELLED by 1000` is Slurm's."""
    found = _ENDS.get(text.casefold())
    if found is None and text.casefold().startswith("cancelled by "):
        return End.CANCELLED
    if found is None:
        raise BadCell(f"{shown(text)} is no known status; {nearest_of(text.casefold(), list(_ENDS)[1:])}")
    return found
