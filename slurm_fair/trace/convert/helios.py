"""SenseTime Helios (github.com/S-Lab-System-Group/HeliosData): `cluster_log.csv`.

Columns: job_id, user, vc (the tenant), gpu_num, cpu_num, node_num, state (COMPLETED, CANCELLED, FAILED, TIMEOUT,
NODE_FAIL), submit_time, start_time, end_time (YYYY-MM-DD HH:MM:SS), duration and queue (seconds). Jobs without
GPUs and those that never ran are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from slurm_fair.trace import cells
from slurm_fair.trace.convert.entry import NEVER_RAN, NO_GPU, Item, each, instant_of, of_column
from slurm_fair.trace.faults import Fault
from slurm_fair.trace.tabular import read_table
from slurm_fair.trace.write import number_text

COLUMNS = ("job_id", "tenant", "submit_s", "gpus", "duration_s", "user", "status", "node_count")
_NEEDED = ("job_id", "user", "vc", "gpu_num", "node_num", "state", "submit_time", "duration")


def items(path: Path) -> Iterator[Item]:
    """Each row of the log."""
    with read_table(path, _NEEDED) as rows:
        at = {name: place for place, name in enumerate(rows.columns)}
        named = (
            row if isinstance(row, Fault) else (row[0], {name: row[1][at[name]] for name in _NEEDED})
            for row in rows.rows
        )
        yield from each(named, _job)


def _job(row: Mapping[str, str]) -> Mapping[str, str] | str:
    if of_column("gpu_num", cells.not_negative, row["gpu_num"]) == 0:
        return NO_GPU
    if of_column("duration", cells.not_negative, row["duration"]) == 0:
        return NEVER_RAN
    return {
        "job_id": row["job_id"],
        "tenant": row["vc"],
        "submit_s": number_text(instant_of(row["submit_time"], "submit_time")),
        "gpus": row["gpu_num"],
        "duration_s": row["duration"],
        "user": row["user"],
        "status": row["state"],
        "node_count": row["node_num"],
    }
