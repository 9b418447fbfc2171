"""Standard Workload Format 2.2 (cs.huji.ac.il/labs/parallel/workload/swf.html).

Lines of 18 numbers, -1 where not known; `;` begins a comment. Used: 1 job number, 2 submit time, 4 run time,
5 and 8 processors allocated and requested (read as GPUs: requested, else allocated), 9 requested time
(declared_s), 11 status (0 failed, 1 completed, 2 to 4 partial runs, 5 cancelled), 12 user, 13 group (the
tenant; else the user). Partial runs repeat a job that has its own line, and are left out, like jobs that
never ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from slurm_fair.trace import cells
from slurm_fair.trace.convert.entry import NEVER_RAN, NO_GPU, Item, each
from slurm_fair.trace.faults import BadCell
from slurm_fair.trace.files import reading
from slurm_fair.trace.write import number_text

COLUMNS = ("job_id", "tenant", "submit_s", "gpus", "duration_s", "user", "status", "declared_s")
_FIELDS = (
    "job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time",
    "used memory", "requested processors", "requested time", "requested memory", "status", "user", "group",
    "application", "queue", "partition", "preceding job", "think time",
)  # fmt: skip
_STATUS = {-1: "", 0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}
_PARTIAL = (2, 3, 4)


def items(path: Path) -> Iterator[Item]:
    """Each line that is no comment."""
    with reading(path) as text:
        lines = ((f":{at}", line.split()) for at, line in enumerate(text, start=1))
        yield from each((line for line in lines if line[1] and not line[1][0].startswith(";")), _job)


def _job(fields: Sequence[str]) -> Mapping[str, str] | str:
    if len(fields) != len(_FIELDS):
        raise BadCell(
            f"has {len(fields)} fields instead of {len(_FIELDS)}: SWF gives -1 for what is not known"
        )
    values = dict(zip(_FIELDS, map(_number, fields, _FIELDS), strict=True))
    status = int(values["status"])
    if status in _PARTIAL:
        return "that are partial runs of other lines"
    if status not in _STATUS:
        raise BadCell(f"{status} is no status of SWF", "status")
    if values["run time"] <= 0:
        return NEVER_RAN
    asked, given = values["requested processors"], values["allocated processors"]
    if asked <= 0 and given <= 0:
        return NO_GPU
    user = f"u{int(values['user'])}" if values["user"] >= 0 else ""
    group = f"g{int(values['group'])}" if values["group"] >= 0 else user
    if not group:
        raise BadCell("neither group nor user is known: give one, it becomes the tenant", "group")
    return {
        "job_id": str(int(values["job number"])),
        "tenant": group,
        "submit_s": number_text(values["submit time"]),
        "gpus": number_text(asked if asked > 0 else given),
        "duration_s": number_text(values["run time"]),
        "user": user,
        "status": _STATUS[status],
        "declared_s": number_text(values["requested time"]) if values["requested time"] > 0 else "",
    }


def _number(text: str, field: str) -> float:
    try:
        return cells.read_number(text)
    except BadCell as bad:
        raise BadCell(bad.what, field) from None
