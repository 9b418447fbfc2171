"""The queue as Slurm lists it: one explicit squeue format, parsed once per line and remembered."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import JobState, pack_keys
from slurm_fair.model.columns import Bools, Ints
from slurm_fair.model.ids import MOST_TASKS, NO_TASK
from slurm_fair.slurm.command import BY_TASK, CommandResult, Commands, only_ids
from slurm_fair.slurm.reading import values
from slurm_fair.slurm.reading.extent import gpus_in, nodes_in, pieces_in
from slurm_fair.slurm.reading.request import request_in
from slurm_fair.slurm.reading.task_lists import TaskList, beyond_a_user, read_tasks
from slurm_fair.slurm.reading.tasks import TaskRows
from slurm_fair.slurm_text import hostlist

BETWEEN, ROW_END = "\x1f", "\x1e"

# Ids, states, numbers, times and names that admins gave. Slurm itself writes them.
_OF_SLURM = (
    "JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "UserName", "State", "Reason", "Partition", "QOS",
    "NumNodes", "NodeList", "ReqNodes", "tres-alloc", "NumTasks", "SubmitTime", "EligibleTime", "StartTime",
    "EndTime", "PriorityLong", "TimeLimit", "Dependency", "RestartCnt", "BatchFlag", "Requeue", "Reservation",
    "Deadline", "MinTime", "OverSubscribe", "NTPerNode",
)  # fmt: skip
# Users' own words, kept raw: the GRES text always, the account where nobody enforces associations. They come
# last, and each row ends with a mark that is drawn anew for each call: no word can end its row and begin another.
# A separator in such a word gives its own row too many columns.
_OF_USERS = ("Account", "tres-per-node", "tres-per-job", "tres-per-task", "cpus-per-tres", "mem-per-tres")
FIELDS = (*_OF_SLURM, *_OF_USERS)
_FORMAT = ",".join(f"{name}:{BETWEEN}" for name in FIELDS[:-1]) + f",{FIELDS[-1]}:{ROW_END}"
_LONGEST_ACCOUNT = 255

UNSPLIT = -2  # in the place of a task: those of an array that still share one record
_MANY_NAMES = 20_000
_MANY_SPANS = 200_000  # kept in lists of tasks: an array that runs has a new list at each look

# What holds its GPUs is RUNNING, ENDING or SUSPENDED; a word that we do not know is never guessed at.
# STOPPED runs: its user has sent it SIGSTOP, which its batch script does not heed (slurm-facts: owners-may-stop).
# FAILED may also be a submission that was refused (slurm-facts: refused-rows-stay).
STATES = {
    "PENDING": JobState.WAITING, "REQUEUED": JobState.WAITING, "REQUEUE_HOLD": JobState.WAITING,
    "REQUEUE_FED": JobState.WAITING, "SPECIAL_EXIT": JobState.WAITING, "RESV_DEL_HOLD": JobState.WAITING,
    "RUNNING": JobState.RUNNING, "CONFIGURING": JobState.RUNNING, "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING, "POWER_UP_NODE": JobState.RUNNING, "STOPPED": JobState.RUNNING,
    "COMPLETING": JobState.ENDING, "STAGE_OUT": JobState.ENDING,
    "SUSPENDED": JobState.SUSPENDED,
    "COMPLETED": JobState.DONE, "CANCELLED": JobState.DONE, "FAILED": JobState.DONE, "TIMEOUT": JobState.DONE,
    "NODE_FAIL": JobState.DONE, "PREEMPTED": JobState.DONE, "BOOT_FAIL": JobState.DONE,
    "DEADLINE": JobState.DONE, "OUT_OF_MEMORY": JobState.DONE, "REVOKED": JobState.DONE,
    "LAUNCH_FAILED": JobState.DONE,
}  # fmt: skip

RAW = np.dtype(
    [
        ("record", "i8"), ("base", "i8"), ("task", "i8"), ("tasks", "i8"), ("array_limit", "i8"),
        ("het", "?"), ("qos", "i8"), ("user", "i8"), ("account", "i8"), ("partition", "i8"),
        ("reason", "i8"), ("node_list", "i8"),
        ("req_nodes", "i8"), ("reservation", "i8"), ("gpu_type", "i8"), ("state", "i1"), ("gpus", "i8"),
        ("gpus_per_node", "i8"), ("nodes", "i8"), ("cpus", "i8"), ("memory_mb", "i8"), ("submit", "f8"),
        ("eligible", "f8"), ("start", "f8"), ("end", "f8"), ("priority", "i8"), ("time_limit", "f8"),
        ("dependency", "?"), ("restarts", "i8"), ("batch", "?"), ("requeue", "?"), ("deadline", "f8"),
        ("beyond", "?"),  # an array whose tasks are not looked at one by one: its user has too many
        ("must_fit", "f8"),  # what must fit before its deadline at a start: its least time, else its limit
        ("exclusive", "?"),  # takes whole nodes (slurm-facts: exclusive-is-told)
        ("closes", "i1"),  # a Closing
        ("request", "i8"),  # a SizeRequest as it is written, or why there is none; -1 = no GPUs
        ("memory_per_gpu", "?"),
        ("listed_nodes", "i8"),  # of a job that was requeued those of its last run
        ("pieces", "i8"),  # of which none lies on two nodes
    ]
)  # fmt: skip


class Closing(IntEnum):
    """Releases whose word is believed that a job closes its nodes to others."""

    NONE, SOME_RELEASES, ALL_RELEASES = range(3)


# Words of OverSubscribe. NO is believed only where not all jobs have it.
_CLOSES = {
    "NO": Closing.SOME_RELEASES, "USER": Closing.ALL_RELEASES, "MCS": Closing.ALL_RELEASES,
    "TOPO": Closing.ALL_RELEASES,
}  # fmt: skip

_NAMED = {  # columns that are numbers of names, and whose names they are
    "qos": "qos",
    "user": "users",
    "account": "accounts",
    "partition": "partitions",
    "reason": "reasons",
    "node_list": "node_lists",
    "req_nodes": "node_lists",
    "reservation": "reservations",
    "gpu_type": "gpu_types",
    "request": "requests",
}


class Names:
    """Numbers for strings, given out in order of first sight and never taken back."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a string."""
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return known

    def known(self, text: str) -> int:
        """The number of a string, -1 when it was never seen."""
        return self._numbers.get(text, -1)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that is not believed, by those of its columns that come before every word of a user."""

    record: int  # -1 where not even that can be read
    label: str
    user: str
    partition: str
    state: JobState | None  # None where Slurm's word for it is new
    restarts: int  # -1 where that cannot be read
    why: str
    submit: float = math.inf  # where that cannot be read

    @property
    def may_wait(self) -> bool:
        """True if the job may wait, or is about to."""
        return self.state in (None, JobState.WAITING, JobState.ENDING)

    @property
    def over(self) -> bool:
        """True if the job has ended."""
        return self.state is JobState.DONE

    def holds(self, restarts: int) -> bool:
        """True if this run of the job still has its GPUs, as far as Slurm's own columns tell."""
        return restarts == self.restarts and self.state is not JobState.WAITING


@dataclass(slots=True)
class Queue:
    """Reads squeue; a line that did not change since the last read is not parsed again.

    A row that cannot be read costs that row: its job stays as the last look saw it, or is not seen.
    """

    commands: Commands
    users: Names = field(default_factory=Names)
    accounts: Names = field(default_factory=Names)
    partitions: Names = field(default_factory=Names)
    reasons: Names = field(default_factory=Names)
    node_lists: Names = field(default_factory=Names)
    reservations: Names = field(default_factory=Names)
    qos: Names = field(default_factory=Names)
    gpu_types: Names = field(default_factory=Names)
    requests: Names = field(default_factory=Names)
    task_lists: list[TaskList] = field(default_factory=list)
    array_limits: dict[int, int] = field(default_factory=dict)  # by base; tasks of their own do not show it
    unreadable: tuple[Unreadable, ...] = ()  # rows of the last look at every job
    _task_rows: TaskRows = field(init=False)
    _task_texts: dict[str, int] = field(default_factory=dict)
    _spans_kept: int = 0
    _most_spans: int = _MANY_SPANS
    _lines: dict[str, int] = field(default_factory=dict)
    _refused: dict[str, Unreadable] = field(default_factory=dict)
    _parsed: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, RAW))

    def __post_init__(self) -> None:
        self._task_rows = TaskRows(self.commands, BETWEEN)

    def read(self, ids: Sequence[str] = ()) -> NDArray[np.void] | str:
        """Every listed job (or some ids) as RAW rows, or why the answer is not valid."""
        only = ("-j", only_ids(ids)) if ids else ()
        mark = self.commands.draw()
        answer = self.commands.squeue(*only, "-O", f"{_FORMAT}{mark}")
        if ids and not answer.whole and "Invalid job id" in answer.err:
            return np.zeros(0, RAW)  # the only id asked for is gone from memory
        if not answer.whole:
            return answer.complaint
        return self._rows(answer, mark, remember=not ids)

    def _rows(self, answer: CommandResult, mark: str, remember: bool) -> NDArray[np.void] | str:
        lines = answer.out.split(f"{ROW_END}{mark}\n")
        if lines.pop().strip():
            return "squeue: the last row is cut off"
        if self.commands.unfold == BY_TASK:
            lines = self._task_rows.by_record(lines, ask_limits=remember)
        good, rows, refused = self._read_lines(lines)
        if not remember:
            return self._bounded(rows)
        rows = self._bounded(np.concatenate([rows, self._as_they_were(refused.values())]))
        self._parsed, self._lines = rows, {line: row for row, line in enumerate(good)}
        self._refused, self.unreadable = refused, tuple(refused.values())
        return rows

    def _read_lines(self, lines: list[str]) -> tuple[list[str], NDArray[np.void], dict[str, Unreadable]]:
        """The lines that can be read, their rows, and what is wrong with the others."""
        fresh = {line: None for line in lines if line not in self._lines}
        parsed: dict[str, tuple[Any, ...]] = {}
        refused: dict[str, Unreadable] = {}
        for line in fresh:
            try:
                if line not in self._refused:
                    parsed[line] = self._parse(line)
            except SlurmTextError as wrong:
                refused[line] = _unreadable(line, str(wrong))
        refused |= {line: self._refused[line] for line in fresh if line in self._refused}
        table = np.concatenate([self._parsed, np.array(list(parsed.values()), dtype=RAW)])
        where = self._lines | {line: len(self._parsed) + row for row, line in enumerate(parsed)}
        good = [line for line in lines if line not in refused]
        rows: NDArray[np.void] = table[[where[line] for line in good]]
        return good, rows, refused

    def _as_they_were(self, refused: Iterable[Unreadable]) -> NDArray[np.void]:
        """The last rows of jobs that live on and whose row cannot be read now.

        A run that is over holds nothing any more: its user may have spoiled the row to keep the GPUs.
        """
        living = {bad.record: bad for bad in refused if not bad.over}
        if not living or not len(self._parsed):
            return np.zeros(0, RAW)
        before = np.isin(self._parsed["record"], list(living)) & (self._parsed["state"] != JobState.DONE)
        kept: NDArray[np.void] = self._parsed[before]
        holds = [living[row["record"].item()].holds(row["restarts"].item()) for row in kept]
        kept["state"][~np.array(holds, dtype=bool)] = JobState.WAITING
        return kept

    def _bounded(self, rows: NDArray[np.void]) -> NDArray[np.void]:
        """The rows, with a note on arrays that are too many for their user; the oldest that live count first."""
        arrays = np.flatnonzero(rows["task"] == UNSPLIT)
        some = rows[arrays]
        order = np.lexsort((some["record"], some["state"] == JobState.DONE)).argsort()
        lists = [self.task_lists[listed] for listed in some["tasks"].tolist()]
        rows["beyond"][arrays] = beyond_a_user(some["user"], order, lists)
        return rows

    def forget_if_grown(self) -> None:
        """Users may write new names for ever: keep those of the last look before they fill the memory.

        Rows that were read before have other numbers then.
        """
        known = sum(len(getattr(self, name).texts) for name in set(_NAMED.values())) + len(self.task_lists)
        if known < _MANY_NAMES + 10 * len(self._parsed) and self._spans_kept < self._most_spans:
            return
        rows, before = self._parsed.copy(), {name: getattr(self, name) for name in set(_NAMED.values())}
        for name in before:
            setattr(self, name, Names())
        for column, name in _NAMED.items():
            rows[column] = _renumbered(rows[column], before[name], getattr(self, name))
        listed = rows["tasks"] >= 0
        lists, rows["tasks"][listed] = np.unique(rows["tasks"][listed], return_inverse=True)
        at = {old: new for new, old in enumerate(lists.tolist())}
        self.task_lists = [self.task_lists[old] for old in at]
        self._spans_kept = sum(len(listed.spans) for listed in self.task_lists)
        self._most_spans = _MANY_SPANS + 2 * self._spans_kept
        self._task_texts = {text: at[old] for text, old in self._task_texts.items() if old in at}
        here = set(rows["base"].tolist())
        self.array_limits = {base: limit for base, limit in self.array_limits.items() if base in here}
        self._parsed = rows

    def _parse(self, line: str) -> tuple[Any, ...]:
        columns = line.split(BETWEEN)
        if len(columns) != len(FIELDS):
            raise SlurmTextError(f"its row has {len(columns)} columns instead of {len(FIELDS)}")
        f = dict(zip(FIELDS, columns, strict=True))
        record = values.count(f["JobID"])
        _check_names(f)
        base, task, tasks, limit = self._array(record, f["ArrayJobID"], f["ArrayTaskID"])
        counts = values.tres(f["tres-alloc"])
        state = STATES.get(f["State"])
        if state is None:
            raise SlurmTextError(f"its state '{f['State'][:40]}' is a word that this version does not know")
        nodes, listed = nodes_in(f, counts, state)
        gpus, kind, per_node = gpus_in(f, counts, nodes)
        request = _request(f, counts, nodes) if gpus else ""
        # What is over, and what Slurm refused, asks for no type any more: its text may be new for ever.
        kind = "" if state is JobState.DONE else kind
        closes = _CLOSES.get(f["OverSubscribe"], Closing.NONE)
        longest, least = values.duration_seconds(f["TimeLimit"]), values.duration_seconds(f["MinTime"])
        return (
            record, base, task, tasks, limit, not values.is_nothing(f["HetJobID"]) and f["HetJobID"] != "0",
            self.qos.number(f["QOS"]), self.users.number(f["UserName"]), self.accounts.number(f["Account"]),
            self.partitions.number(f["Partition"]),
            self.reasons.number(f["State" if state is JobState.DONE else "Reason"]),
            self.node_lists.number(f["NodeList"]), self.node_lists.number(f["ReqNodes"]),
            self.reservations.number(f["Reservation"]), self.gpu_types.number(kind) if kind else -1,
            int(state), gpus, per_node if per_node * nodes == gpus else 0, nodes,
            # slurm-facts: cpus-per-gpu-late
            max(values.count(counts.get("cpu", "0")), gpus * values.gres_gpus(f["cpus-per-tres"])[0]),
            values.megabytes(counts.get("mem", "0")),
            values.epoch(f["SubmitTime"]), values.epoch(f["EligibleTime"]), values.epoch(f["StartTime"]),
            values.epoch(f["EndTime"]), values.number(f["PriorityLong"]), longest,
            not values.is_nothing(f["Dependency"]), values.count(f["RestartCnt"]), f["BatchFlag"] == "1",
            f["Requeue"] == "1", values.epoch(f["Deadline"]), False, least if 0 < least < longest else longest,
            closes > Closing.NONE, int(closes), self.requests.number(request) if request else -1,
            not values.is_nothing(f["mem-per-tres"]), listed, pieces_in(f, gpus),
        )  # fmt: skip

    def _array(self, record: int, base: str, task: str) -> tuple[int, int, int, int]:
        if values.is_nothing(task):
            return record, NO_TASK, -1, 0
        if task.isascii() and task.isdigit():
            return values.count(base), values.count(task, MOST_TASKS), -1, 0
        if task not in self._task_texts:
            self.task_lists.append(read_tasks(task))
            self._spans_kept += len(self.task_lists[-1].spans)
            self._task_texts[task] = len(self.task_lists) - 1
        listed = self._task_texts[task]
        tasks = self.task_lists[listed]
        limit = self.array_limits[values.count(base)] = tasks.limit
        if tasks.count == 1:  # `3%2`: its own marks count (slurm-facts: one-task-list)
            return values.count(base), tasks.spans[0][0], -1, limit
        return values.count(base), UNSPLIT, listed, limit


def _renumbered(column: NDArray[np.int64], before: Names, after: Names) -> NDArray[np.int64]:
    """The same names by other numbers; -1 stays."""
    old, row = np.unique(column, return_inverse=True)
    new = [after.number(before.texts[number]) if number >= 0 else number for number in old.tolist()]
    return np.array(new, dtype=np.int64)[row]


def _check_names(f: Mapping[str, str]) -> None:
    """Names that commands, tables and pages repeat are words, and node lists can be read."""
    account = f["Account"]
    if len(account) > _LONGEST_ACCOUNT or not account.isprintable():
        raise SlurmTextError("its account's name is no name")
    hostlist.expand(f["NodeList"])
    hostlist.expand(f["ReqNodes"])


def _unreadable(line: str, why: str) -> Unreadable:
    """The owner of a row that cannot be read; these columns stand before every word of a user."""
    f = dict(zip(_OF_SLURM, line.split(BETWEEN), strict=False))
    record, base, task = f["JobID"], f.get("ArrayJobID", ""), f.get("ArrayTaskID", "")
    plain = re.fullmatch(r"[0-9]{1,10}", record)
    name = f"{base}_{task}" if task.isascii() and task.isdigit() else base or record
    restarts, submit = f.get("RestartCnt", ""), f.get("SubmitTime", "")
    return Unreadable(
        int(record) if plain else -1,
        name[:40],
        f.get("UserName", ""),
        f.get("Partition", ""),
        STATES.get(f.get("State", "")),
        int(restarts) if re.fullmatch(r"[0-9]{1,9}", restarts) else -1,
        why,
        float(submit) if re.fullmatch(r"[0-9]{1,12}", submit) else math.inf,
    )


def _request(f: Mapping[str, str], counts: dict[str, str], nodes: int) -> str:
    """The size that it asks for, as marks keep it, or why that cannot be changed."""
    # The column of nodes may show those of the last run, or what CPUs come to (slurm-facts: stale-node-count).
    asked = values.count(counts.get("node", "0")) or nodes
    found = request_in(f, asked, values.count(f["NumTasks"]), values.count(counts.get("cpu", "0")))
    return str(found)


def may_take_gpus(rows: NDArray[np.void]) -> Bools:
    """Rows that ask for GPUs, or for whole nodes, which may have some: a look may manage these, and no others."""
    return (rows["gpus"] > 0) | rows["exclusive"]  # type: ignore[no-any-return]


def begins_later(rows: NDArray[np.void]) -> Bools:
    """Waiting rows with a begin time behind their submission: a gate, or their owner's wish."""
    waits = rows["state"] == JobState.WAITING
    return waits & (rows["eligible"] > rows["submit"])  # type: ignore[no-any-return]


def with_tasks(rows: NDArray[np.void], task_lists: list[TaskList]) -> tuple[Ints, Ints, Ints]:
    """(row, base, task) with every task of an unsplit array as a job of its own; one beyond its user's is one."""
    unsplit = (rows["task"] == UNSPLIT) & ~rows["beyond"]
    counts = np.ones(len(rows), dtype=np.int64)
    lists = [task_lists[listed] for listed in rows["tasks"][unsplit].tolist()]
    counts[unsplit] = [listed.count for listed in lists]
    row = np.repeat(np.arange(len(rows)), counts)
    task = np.where(rows["beyond"], NO_TASK, rows["task"])[row].astype(np.int64)
    if lists:
        task[np.repeat(unsplit, counts)] = np.concatenate([listed.numbers() for listed in lists])
    return row, rows["base"][row].astype(np.int64), task


def by_key(rows: NDArray[np.void], task_lists: list[TaskList]) -> tuple[NDArray[np.void], Ints]:
    """One row per job or array task, sorted by key; a finished row gives way to a living one."""
    row, base, task = with_tasks(rows, task_lists)
    key = pack_keys(base, task)
    order = np.lexsort((rows["state"][row] == JobState.DONE, key))
    key, row = key[order], row[order]
    first = np.ones(len(key), dtype=bool)
    first[1:] = key[1:] != key[:-1]
    return rows[row[first]], key[first]
