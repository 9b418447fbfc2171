"""The queue as squeue lists it, and waiting for what it shall show."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from slurm_fair.lab import Lab
from slurm_fair.slurm_text import hostlist

BETWEEN = "\x1f"
_FIELDS = (
    "JobArrayID", "State", "Reason", "NodeList", "ReqNodes", "PriorityLong", "Nice", "EligibleTime",
    "RestartCnt", "StartTime", "JobID", "UserName",
)  # fmt: skip
FORMAT = ",".join(f"{name}:{BETWEEN}" for name in _FIELDS)


def wait_until(true: Callable[[], object], seconds: float = 15, what: str = "") -> None:
    """Poll until it is so; say what never came."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what or true}"
        time.sleep(0.1)


def stays(true: Callable[[], object], seconds: float, what: str = "") -> None:
    """Poll all the while: it must be so every time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert true(), f"it did not stay so: {what or true}"
        time.sleep(0.2)


@dataclass(frozen=True, slots=True)
class Row:
    """A job as squeue lists it now."""

    label: str
    record: int
    state: str
    reason: str
    nodes: tuple[str, ...]
    pinned: tuple[str, ...]  # its ReqNodeList
    priority: int
    nice: int
    eligible: float
    restarts: int
    start: float
    user: str

    @property
    def free(self) -> bool:
        """Waits, but nothing of ours keeps it back: no pin, no begin time ahead, no hold."""
        return not self.pinned and self.priority > 0 and self.eligible <= time.time() + 1


def listed(lab: Lab) -> dict[str, Row]:
    """The whole queue, one row per job and array task."""
    env = ("env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
    done = lab.run(*env, "squeue", "-h", "-a", "-r", "-t", "all", "-O", FORMAT, check=False)
    rows = [_row(line.split(BETWEEN)) for line in done.stdout.splitlines() if line.strip()]
    return {row.label: row for row in rows}


def _row(columns: list[str]) -> Row:
    f = dict(zip(_FIELDS, columns, strict=False))
    return Row(
        label=f["JobArrayID"],
        record=int(f["JobID"]),
        state=f["State"],
        reason=f["Reason"],
        nodes=expand(f["NodeList"]),
        pinned=expand(f["ReqNodes"]),
        priority=int(f["PriorityLong"]),
        nice=int(f["Nice"]),
        eligible=_epoch(f["EligibleTime"]),
        restarts=int(f["RestartCnt"]),
        start=_epoch(f["StartTime"]),
        user=f["UserName"],
    )


def expand(nodes: str) -> tuple[str, ...]:
    """Names of a node list, sorted; none of Slurm's words for nothing."""
    return () if nodes in ("", "(null)", "None", "N/A") else tuple(sorted(hostlist.expand(nodes)))


def _epoch(text: str) -> float:
    return float(text) if text.isdigit() else 0.0
