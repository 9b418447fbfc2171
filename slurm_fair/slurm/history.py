"""Past runs from sacct: one row per run, requeued runs too."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Blind, JobState, RunTable
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.slurm import words
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.queue import Names

FIELDS = ("JobID", "Account", "User", "Submit", "Start", "End", "State", "AllocTRES", "ReqTRES")
_JOB = re.compile(r"(\d+)(?:_(\d+))?")
_ON_ITS_WAY = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")


class SlurmHistory:
    """The History port over slurmdbd."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def runs(self, start: float, end: float, partitions: Iterable[str]) -> RunTable | Blind:
        """Runs that overlap the period; Blind when accounting does not answer."""
        listed = ",".join(sorted(partitions))
        where = ("-r", listed) if listed else ()
        answer = self._commands.run(
            "sacct", "-n", "-P", "-X", "-D", "-a", *where, "-S", f"uts{int(start)}", "-E", f"uts{int(end) + 1}",
            "-o", ",".join(FIELDS),
        )  # fmt: skip
        if not answer.whole:
            return Blind(end, answer.complaint)
        try:
            return runs_from(answer.out.splitlines())
        except SlurmTextError as wrong:
            return Blind(end, f"sacct: {wrong}")


def runs_from(lines: Iterable[str]) -> RunTable:
    """The rows of `sacct -P` as columns; records of arrays not yet split have no runs and are left out."""
    tenants, users = Names(), Names()
    rows: list[tuple[int, int, int, int, float, float, float, int, int]] = []
    for line in lines:
        columns = line.split("|")
        if len(columns) != len(FIELDS):
            raise SlurmTextError(f"a row has {len(columns)} columns instead of {len(FIELDS)}")
        job, account, user, submit, start, end, state, alloc, wanted = columns
        match = _JOB.fullmatch(job)
        if match is None:
            continue
        gpus = words.tres_gpus(words.tres(alloc))[0] or words.tres_gpus(words.tres(wanted))[0]
        key = pack(int(match[1]), int(match[2]) if match[2] else NO_TASK)
        word = state.split(" ")[0]
        code = JobState.RUNNING if word in _ON_ITS_WAY[1:] else JobState.DONE
        code = JobState.WAITING if word == "PENDING" else code
        rows.append(
            (key, tenants.number(account), users.number(user), gpus, words.epoch(submit), words.epoch(start),
             words.epoch(end), int(code), int(word in ("REQUEUED", "NODE_FAIL", "PREEMPTED")))
        )  # fmt: skip
    rows.sort(key=lambda row: (row[0], row[5]))
    columns_of = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 9
    key_c, tenant_c, user_c, gpus_c, submit_c, start_c, end_c, state_c, requeued_c = columns_of
    return RunTable(
        key=key_c.astype(np.int64),
        tenant=tenant_c.astype(np.int64),
        tenants=tuple(tenants.texts),
        user=user_c.astype(np.int64),
        users=tuple(users.texts),
        gpus=gpus_c.astype(np.int64),
        submit=submit_c.astype(np.float64),
        start=start_c.astype(np.float64),
        end=end_c.astype(np.float64),
        state=state_c.astype(np.int8),
        requeued=requeued_c.astype(np.int8),
    )
