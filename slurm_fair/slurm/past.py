"""The past as sacct lists it, and beside the runs what a replay needs: limits, wishes, nodes, how runs ended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slurm_fair.config.sections import ScopeSection
from slurm_fair.errors import SlurmError, SlurmTextError
from slurm_fair.model import RunTable
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.history import FIELDS, JOB_ID, ask_sacct, check_names, runs_from
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.task_lists import read_tasks
from slurm_fair.slurm_text import hostlist

# What is asked for beside the columns of a run, and what may be missing in a saved file.
MORE_FIELDS = ("NNodes", "TimelimitRaw", "NodeList")
_MINUTES = re.compile(r"[0-9]{1,9}")
_LIMIT_SECONDS = 600.0  # a month of a large site takes slurmdbd minutes
STEPS, NO_GPUS, HET = "steps of other rows", "without GPUs", "parts of heterogeneous jobs"
UNREADABLE = "with numbers or names that cannot be"


@dataclass(frozen=True, slots=True)
class Past:
    """Every run of every GPU job that accounting told of; the columns beside the runs have a row for each."""

    runs: RunTable
    state: tuple[str, ...]  # Slurm's word, without what follows it
    asked_type: tuple[str, ...]  # of GPUs, "" = any
    asked_nodes: Ints  # 0 = not said
    limit_seconds: Floats  # inf = none, or not said
    nodes: tuple[tuple[str, ...], ...]
    unsplit: Mapping[str, int]  # arrays of which tasks wait without a row of their own, and how many
    left_out: Mapping[str, int]  # rows that are no run of one GPU job, by reason


@dataclass(frozen=True, slots=True)
class _Row:
    """The part of a run that one row holds."""

    place: tuple[int, int, float]  # job, task, start: as the runs are sorted
    state: str
    kind: str
    asked_nodes: int
    limit_seconds: float
    nodes: tuple[str, ...]


@dataclass(slots=True)
class Listing:
    """Takes rows of sacct one by one."""

    _cells: list[tuple[str, ...]] = field(default_factory=list)
    _rows: list[_Row] = field(default_factory=list)
    _unsplit: dict[str, int] = field(default_factory=dict)
    _left: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, str]) -> None:
        """One row by the names of its columns; SlurmTextError when a cell is not what it should be."""
        job, wanted = row["JobID"], values.tres(row["ReqTRES"])
        gpus = values.tres_gpus(values.tres(row["AllocTRES"]))[0] or values.tres_gpus(wanted)[0]
        why = _why_not(job, gpus)
        if why:
            self.leave_out(why)
        elif "_[" in job:
            self._unsplit[job] = read_tasks(job.partition("_")[2]).count
        else:
            check_names(row["Account"], row["User"])
            self._rows.append(_row(row, wanted))
            self._cells.append(tuple(row[name] for name in FIELDS))

    def leave_out(self, why: str) -> None:
        """Count a row that is no run."""
        self._left[why] += 1

    def past(self) -> Past:
        """All rows so far, the runs sorted by job and start."""
        rows = sorted(self._rows, key=lambda row: row.place)
        return Past(
            runs=runs_from(self._cells),
            state=tuple(row.state for row in rows),
            asked_type=tuple(row.kind for row in rows),
            asked_nodes=np.array([row.asked_nodes for row in rows], dtype=np.int64),
            limit_seconds=np.array([row.limit_seconds for row in rows], dtype=np.float64),
            nodes=tuple(row.nodes for row in rows),
            unsplit=self._unsplit,
            left_out=dict(self._left),
        )


def _why_not(job: str, gpus: int) -> str:
    if "." in job:
        return STEPS
    if "+" in job:
        return HET
    return "" if gpus else NO_GPUS


def _row(row: Mapping[str, str], wanted: dict[str, str]) -> _Row:
    match = JOB_ID.fullmatch(row["JobID"])
    if match is None:
        raise SlurmTextError(f"'{row['JobID'][:40]}' is no job id")
    _, start, _ = (values.epoch(row[name]) for name in ("Submit", "Start", "End"))
    kind = values.tres_gpus(wanted)[1]
    minutes = row.get("TimelimitRaw", "")
    return _Row(
        place=(int(match[1]), int(match[2] or -1), start),
        state=row["State"].split(" ")[0],
        kind="" if kind == "+" else kind,
        asked_nodes=values.count(wanted.get("node", "")) or values.count(row.get("NNodes", "")),
        limit_seconds=60.0 * int(minutes) if _MINUTES.fullmatch(minutes) else np.inf,
        nodes=_nodes(row),
    )


def _nodes(row: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes on which it ran; none where that is not told or cannot be read."""
    try:
        return hostlist.expand(row.get("NodeList", ""))
    except SlurmTextError:
        return ()


def read_past(commands: Commands, start: float, end: float, scope: ScopeSection) -> Past | str:
    """Every run that lived in a period, or why accounting does not tell."""
    asked = (*FIELDS, *MORE_FIELDS)
    only = {"-r": scope.partitions, "-A": scope.accounts, "-q": scope.qos}
    try:
        rows = ask_sacct(commands, (start, end), asked, only, _LIMIT_SECONDS)
    except SlurmError as problem:
        return str(problem)
    return rows if isinstance(rows, str) else _listed(rows, asked)


def _listed(rows: Iterable[Sequence[str]], columns: Sequence[str]) -> Past | str:
    listing, wrong = Listing(), list[str]()
    for cells in rows:
        try:
            if len(cells) != len(columns):
                raise SlurmTextError(f"it has {len(cells)} columns instead of {len(columns)}")
            listing.add(dict(zip(columns, cells, strict=True)))
        except SlurmTextError as problem:
            listing.leave_out(UNREADABLE)
            wrong.append(str(problem))
    past = listing.past()
    return f"sacct: {wrong[0]}" if wrong and not len(past.runs) else past
