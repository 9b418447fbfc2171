"""Slurm's own history: `TZ=UTC sacct --parsable2 --allusers --allocations --starttime ... --format ...`.

Needed columns: JobID, Account (the tenant), User, Submit, State, ReqTRES or AllocTRES (gres/gpu), and
ElapsedRaw or Elapsed. Used where there: NNodes or AllocNodes, TimelimitRaw (minutes; declared_s). Others do
not matter, but not `--format ALL`: command lines may hold a `|`. Steps are left out, and so are jobs without
GPUs and those that never ran or still run. TZ=UTC keeps a clock change from moving submissions by an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slurm_fair.errors import InputError
from slurm_fair.slurm_text.durations import UNLIMITED, clock_seconds
from slurm_fair.trace import cells
from slurm_fair.trace.convert.entry import NEVER_RAN, NO_GPU, STILL_RUNS, Item, each, instant_of, of_column
from slurm_fair.trace.faults import BadCell, Fault, shown
from slurm_fair.trace.status import End, end_of
from slurm_fair.trace.tabular import read_table
from slurm_fair.trace.write import number_text

COLUMNS = (
    "job_id", "tenant", "submit_s", "gpus", "duration_s", "user", "gpu_type", "status", "node_count", "declared_s",
)  # fmt: skip
_NEEDED = ("JobID", "Account", "User", "Submit", "State")
_EITHER = (("ReqTRES", "AllocTRES"), ("ElapsedRaw", "Elapsed"))
_WANTED = (*_NEEDED, "ReqTRES", "AllocTRES", "ElapsedRaw", "Elapsed", "NNodes", "AllocNodes", "TimelimitRaw")
SAVE = (
    "TZ=UTC sacct --parsable2 --allusers --allocations --starttime now-30days "
    "--format JobID,Account,User,Submit,State,ElapsedRaw,ReqTRES,AllocTRES,NNodes,TimelimitRaw"
)
# What users write: sacct puts it between the bars as it is.
_FREE = (
    "JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment", "Constraints", "Licenses", "WorkDir",
    "Extra", "StdIn", "StdOut", "StdErr",
)  # fmt: skip
_NO_LIMIT = UNLIMITED | {"", "Unknown", "None", "N/A"}


def items(path: Path) -> Iterator[Item]:
    with read_table(path, _NEEDED, separator="|", cure=lambda columns: free_texts(columns, SAVE)) as rows:
        at = {name: place for place, name in enumerate(rows.columns) if name in _WANTED}
        for names in _EITHER:
            if not any(name in at for name in names):
                raise InputError(f"{path}:1: no column {' or '.join(names)}: ask sacct for it with --format")
        named = (
            row if isinstance(row, Fault) else (row[0], {name: row[1][place] for name, place in at.items()})
            for row in rows.rows
        )
        yield from each(named, _job)


def free_texts(columns: Sequence[str], command: str) -> str:
    """The remedy for rows with too many or too few cells, where texts of users are among the columns."""
    free = [name for name in _FREE if name in columns][:3]
    return f"is there a | or a line end in {' or '.join(free)}? save it again with {command}" if free else ""


def _job(row: Mapping[str, str]) -> Mapping[str, str] | str:
    if "." in row["JobID"]:
        return "that are steps of other rows"
    gpus, kind = _gpus(_first(row, "AllocTRES", "ReqTRES"))
    if gpus == 0:
        gpus, kind = _gpus(row.get("ReqTRES", ""))
    if gpus == 0:
        return NO_GPU
    state = _state(row["State"])
    seconds = _elapsed(row)
    if state is End.RUNNING:
        return STILL_RUNS
    if state is End.PENDING or seconds == 0:
        return NEVER_RAN
    limit = row.get("TimelimitRaw", "")
    minutes = 0.0 if limit in _NO_LIMIT else of_column("TimelimitRaw", cells.not_negative, limit)
    return {
        "job_id": row["JobID"],
        "tenant": row["Account"],
        "submit_s": number_text(_submit(row["Submit"])),
        "gpus": str(gpus),
        "duration_s": number_text(seconds),
        "user": row["User"],
        "gpu_type": kind,
        "status": row["State"],
        "node_count": _first(row, "NNodes", "AllocNodes"),
        "declared_s": number_text(60 * minutes) if minutes else "",
    }


def _state(text: str) -> End:
    try:
        return end_of(text)
    except BadCell as bad:
        raise BadCell(bad.what, "State") from None


def _first(row: Mapping[str, str], *names: str) -> str:
    """The first of these cells that holds something."""
    return next((row[name] for name in names if row.get(name)), "")


def _submit(text: str) -> float:
    """Epoch seconds under SLURM_TIME_FORMAT=%s, else Slurm's usual form."""
    return float(text) if re.fullmatch(r"[0-9]{1,11}", text) else instant_of(text, "Submit")


def _elapsed(row: Mapping[str, str]) -> float:
    raw, text = row.get("ElapsedRaw", ""), row.get("Elapsed", "")
    if raw:
        return of_column("ElapsedRaw", cells.not_negative, raw)
    seconds = clock_seconds(text) if text.count(":") == 2 else None
    if seconds is None:
        raise BadCell(f"{shown(text)} is no duration: Slurm writes [D-]HH:MM:SS", "Elapsed")
    return float(seconds)


def _gpus(tres: str) -> tuple[int, str]:
    """GPUs and their type, "" where it is not told or several, in `cpu=4,gres/gpu:a100=2,gres/gpu=2`."""
    plain, typed = 0, dict[str, int]()
    for part in tres.split(","):
        name, _, count = part.partition("=")
        if name == "gres/gpu":
            plain = _count(count)
        elif name.startswith("gres/gpu:"):
            typed[name.removeprefix("gres/gpu:")] = _count(count)
    kinds: Sequence[str] = [kind for kind, count in typed.items() if count]
    return max(plain, sum(typed.values())), kinds[0] if len(kinds) == 1 else ""


def _count(text: str) -> int:
    return int(of_column("AllocTRES", cells.whole, text))
