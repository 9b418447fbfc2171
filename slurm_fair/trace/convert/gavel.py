"""Gavel and Shockwave (github.com/stanford-futuredata/gavel, github.com/uw-mad-dash/shockwave): `.trace`.

One job a line, tab separated, no header. Gavel: job_type, command, working_directory, num_steps_arg,
needs_data_dir, total_steps, scale_factor, priority_weight, SLO, arrival_time. Shockwave has `mode` behind
scale_factor and, in its later traces, `duration` before arrival_time. job_type is "Model (batch size N)" or
"Model"; scale_factor is the number of GPUs; times are seconds. `duration` is the run time without
adaptation, which is also what a user would declare: adapted run times are in a regimes file. Where it is
absent the run time comes from total_steps and throughputs. Neither knows tenants: each job is its own,
`jobN` with N from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from slurm_fair.trace import cells
from slurm_fair.trace.convert.entry import Item, each, of_column
from slurm_fair.trace.faults import BadCell, Fault
from slurm_fair.trace.files import reading

COLUMNS = (
    "job_id", "tenant", "submit_s", "gpus", "duration_s", "model", "mode", "weight", "total_steps", "declared_s",
)  # fmt: skip
_HEAD = (
    "job_type",
    "command",
    "working_directory",
    "num_steps_arg",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
)
_TAIL = ("priority_weight", "SLO")
_LAYOUTS = {
    10: (*_HEAD, *_TAIL, "arrival_time"),
    11: (*_HEAD, "mode", *_TAIL, "arrival_time"),
    12: (*_HEAD, "mode", *_TAIL, "duration", "arrival_time"),
}


def items(path: Path) -> Iterator[Item]:
    with reading(path) as text:
        lines = ((at, line.rstrip("\r\n").split("\t")) for at, line in enumerate(text, start=1))
        jobs = ((at, fields) for at, fields in lines if fields != [""])
        yield from each(_numbered(jobs), _job)


def _numbered(
    lines: Iterable[tuple[int, Sequence[str]]],
) -> Iterator[tuple[str, tuple[int, Sequence[str]]] | Fault]:
    """Jobs by number; all lines of a file have one layout, or a cut line would pass for a shorter one."""
    width = 0
    for number, (at, fields) in enumerate(lines):
        width = width or len(fields)
        if len(fields) == width:
            yield f":{at}", (number, fields)
        else:
            yield Fault(f":{at}", "row", f"has {len(fields)} fields, the first line {width}: give them all")


def _job(numbered: tuple[int, Sequence[str]]) -> Mapping[str, str]:
    number, fields = numbered
    layout = _LAYOUTS.get(len(fields))
    if layout is None:
        raise BadCell(
            f"has {len(fields)} tab-separated fields; Gavel writes 10, Shockwave 11 or 12 of them: "
            f"{', '.join(_LAYOUTS[12])}"
        )
    row = {name: field.strip() for name, field in zip(layout, fields, strict=True)}
    weight = of_column("priority_weight", cells.weight, row["priority_weight"])
    for name in ("arrival_time", "SLO"):
        of_column(name, cells.read_number, row[name])
    for name in ("total_steps", "scale_factor"):
        of_column(name, cells.whole, row[name])
    return {
        "job_id": str(number),
        "tenant": f"job{number}",
        "submit_s": row["arrival_time"],
        "gpus": row["scale_factor"],
        "duration_s": row.get("duration", ""),
        "model": row["job_type"],
        "mode": row.get("mode", ""),
        "weight": str(weight),
        "total_steps": row["total_steps"],
        "declared_s": row.get("duration", ""),
    }
