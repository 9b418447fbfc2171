"""Past runs from sacct: one row per run, requeued runs too."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Blind, JobState, RunTable
from slurm_fair.model.end_words import MAY_GO_ON
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.queue import BETWEEN, Names

FIELDS = ("JobID", "Account", "User", "Submit", "Start", "End", "State", "AllocTRES", "ReqTRES")
JOB_ID = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,7}))?")
_log = logging.getLogger(__name__)
_ON_ITS_WAY = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING")


# Key, numbers of tenant and user, GPUs, submission, start, end, state, whether it was requeued.
_Row: TypeAlias = tuple[int, int, int, int, float, float, float, int, int]


class SlurmHistory:
    """The History port over slurmdbd."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._said: frozenset[str] = frozenset()  # rows that were complained of at the last reading

    def runs(self, start: float, end: float, partitions: Iterable[str]) -> RunTable | Blind:
        """Runs that overlap the period; Blind when accounting does not answer."""
        rows = ask_sacct(self._commands, (start, end), FIELDS, {"-r": partitions})
        if isinstance(rows, str):
            return Blind(end, rows)
        wrong: list[str] = []
        runs = runs_from(rows, wrong.append)
        if wrong and not len(runs):
            return Blind(end, f"sacct: {wrong[0]}")
        for why in sorted(set(wrong) - self._said):
            _log.warning("a row of accounting is left out: %s", why)
        self._said = frozenset(wrong)
        return runs


def ask_sacct(
    commands: Commands,
    period: tuple[float, float],
    fields: Sequence[str],
    only: Mapping[str, Iterable[str]],
    timeout_seconds: float | None = None,
) -> list[list[str]] | str:
    """The cells of every run that lived in a period, or why accounting does not tell.

    `only` = the names that an option of sacct allows. An account's name that holds the separator makes up no row.
    """
    listed = {option: ",".join(sorted(names)) for option, names in only.items()}
    where = [word for option, names in listed.items() if names for word in (option, names)]
    between, (start, end) = f"{BETWEEN}{commands.draw()}", period
    answer = commands.run(
        "sacct", "-n", "-P", "-X", "-D", "-a", *where, "-S", f"uts{int(start)}", "-E", f"uts{int(end) + 1}",
        f"--delimiter={between}", "-o", ",".join(fields), timeout_seconds=timeout_seconds,
    )  # fmt: skip
    if not answer.whole:
        return answer.complaint
    return [line.split(between) for line in answer.out.split("\n") if line]


def runs_from(rows: Iterable[Sequence[str]], complain: Callable[[str], object] | None = None) -> RunTable:
    """The rows of `sacct -P` as columns; records of arrays not yet split have no runs and are left out.

    A row that cannot be read is complained of and left out, or raises where nobody hears complaints.
    """
    tenants, users = Names(), Names()
    read: list[_Row] = []
    for columns in rows:
        try:
            read += _run(columns, tenants, users)
        except SlurmTextError as wrong:
            if complain is None:
                raise
            complain(str(wrong))
    return _table(sorted(read, key=lambda row: (row[0], row[5])), tenants, users)


def check_names(account: str, user: str) -> None:
    """Refuse names with characters that do not print: reports and tables repeat names."""
    if not (account + user).isprintable():
        raise SlurmTextError("its account's name is no name")


def _run(columns: Sequence[str], tenants: Names, users: Names) -> list[_Row]:
    if len(columns) != len(FIELDS):
        raise SlurmTextError(f"it has {len(columns)} columns instead of {len(FIELDS)}")
    job, account, user, submit, start, end, state, alloc, wanted = columns
    match = JOB_ID.fullmatch(job)
    if match is None:
        return []
    try:
        gpus = values.tres_gpus(values.tres(alloc))[0] or values.tres_gpus(values.tres(wanted))[0]
        times = [values.epoch(text) for text in (submit, start, end)]
        check_names(account, user)
    except SlurmTextError as wrong:
        raise SlurmTextError(f"job {job} of {user[:40]!r}: {wrong}") from None
    word = state.split(" ")[0]
    if word == "FAILED" and not alloc and times[0] == times[1] == times[2]:
        return []  # a submission that Slurm refused
    code = JobState.RUNNING if word in _ON_ITS_WAY[1:] else JobState.DONE
    code = JobState.WAITING if word == "PENDING" else code
    key = pack(int(match[1]), int(match[2]) if match[2] else NO_TASK)
    requeued = int(word in ("REQUEUED", *MAY_GO_ON))
    return [
        (
            key,
            tenants.number(account),
            users.number(user),
            gpus,
            times[0],
            times[1],
            times[2],
            int(code),
            requeued,
        )
    ]


def _table(rows: list[_Row], tenants: Names, users: Names) -> RunTable:
    columns_of = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 9
    key, tenant, user, gpus, submit, start, end, state, requeued = columns_of
    return RunTable(
        key=key.astype(np.int64),
        tenant=tenant.astype(np.int64),
        tenants=tuple(tenants.texts),
        user=user.astype(np.int64),
        users=tuple(users.texts),
        gpus=gpus.astype(np.int64),
        submit=submit.astype(np.float64),
        start=start.astype(np.float64),
        end=end.astype(np.float64),
        state=state.astype(np.int8),
        requeued=requeued.astype(np.int8),
    )
