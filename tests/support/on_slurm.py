"""A handle on a lab for tests that state what Slurm does: submit, look, wait."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.lab import Lab
from slurm_fair.slurm.reading.values import task_list

_FIELDS = (
    "JobID", "ArrayJobID", "ArrayTaskID", "State", "Reason", "PriorityLong", "Nice", "RestartCnt",
    "SubmitTime", "EligibleTime", "ReqNodes", "NodeList",
)  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """One row of squeue."""

    record: str
    array: str
    task: str
    state: str
    reason: str
    priority: int
    nice: int
    restarts: int
    submit: int
    eligible: int
    pinned: str
    nodes: str


@dataclass(frozen=True)
class Slurm:
    """One lab, in the words of these tests."""

    lab: Lab

    def sbatch(self, *options: str, body: str = "sleep 300", user: str | None = None) -> str:
        """The id of a new one-GPU job."""
        argv = ("sbatch", "--parsable", "-A", "vision", "--gpus=1", "-o", "/dev/null", *options)
        return self.lab.run(*argv, "--wrap", body, user=user).stdout.strip()

    def sbatch_waiting(self, *options: str, user: str | None = None) -> str:
        """A job behind a begin time far ahead."""
        return self.sbatch("--begin=now+600", *options, user=user)

    def sbatch_running(self, *options: str, body: str = "sleep 300", user: str | None = None) -> str:
        """A job that runs already."""
        job = self.sbatch(*options, body=body, user=user)
        self.wait(job, lambda seen: seen.state == "RUNNING")
        return job

    def do(self, *argv: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Any command, whatever comes of it."""
        return self.lab.run(*argv, check=False, user=user)

    def update(self, job: str, *assignments: str) -> subprocess.CompletedProcess[str]:
        return self.do("scontrol", "update", f"jobid={job}", *assignments)

    @property
    def release(self) -> tuple[int, int]:
        """Such as (22, 5)."""
        major, minor = self.lab.run("squeue", "--version").stdout.split()[-1].split(".")[:2]
        return int(major), int(minor)

    @property
    def lists_by_record(self) -> bool:
        """True where squeue can list an array record by record (22.05) and not only task by task (24.11 on)."""
        return self.release < (24, 11)

    def rows(self, job: str) -> list[Seen]:
        """Every record of a job or array, one row each."""
        layout = "".join(f"{name}:|," for name in _FIELDS)[:-1]
        option = "--array-unique" if self.lists_by_record else "--array"
        argv = ("squeue", "-h", "-a", "-t", "all", option, "-j", job, "-O", layout)
        env = ("env", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0")
        seen = [_seen(line) for line in self.lab.run(*env, *argv).stdout.splitlines()]
        return seen if self.lists_by_record else _by_record(seen)

    def look(self, job: str) -> Seen:
        """The one row of a job or array task."""
        (row,) = self.rows(job)
        return row

    def wait(self, job: str, what: Callable[[Seen], bool], seconds: float = 15.0) -> Seen:
        """Poll until the job is as wanted."""
        deadline = time.monotonic() + seconds
        while not what(seen := self.look(job)):
            assert time.monotonic() < deadline, f"job {job} after {seconds:g} s: {seen}"
            time.sleep(0.05)
        return seen

    def wait_state(self, job: str, *states: str, seconds: float = 15.0) -> Seen:
        """Poll until the job is in one of these states."""
        return self.wait(job, lambda seen: seen.state in states, seconds)

    def clear(self) -> None:
        self.do("scancel", "-u", "root")
        self.do("scancel", "-u", "games")


def _by_record(tasks: list[Seen]) -> list[Seen]:
    """Rows of tasks that share a record as the one row that a record has."""
    records: dict[str, list[Seen]] = {}
    for task in tasks:
        records.setdefault(task.record, []).append(task)
    for shared in records.values():
        assert len({replace(task, task="") for task in shared}) == 1, shared
    return [
        shared[0]
        if len(shared) == 1
        else replace(shared[0], task=task_list(np.array([int(task.task) for task in shared])))
        for shared in records.values()
    ]


def _seen(line: str) -> Seen:
    f = line.split("|")
    priority, nice, restarts, submit, eligible = (
        int(text) if re.fullmatch(r"-?\d+", text) else 0 for text in f[5:10]
    )
    record, array, task, state, reason = f[:5]
    return Seen(record, array, task, state, reason, priority, nice, restarts, submit, eligible, f[10], f[11])
