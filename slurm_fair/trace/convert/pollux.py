"""Pollux and Sia (github.com/petuum/adaptdl, branch osdi21-artifact; github.com/siasosp23/artifacts).

A workload: CSV with name (`cifar10-17`), time (seconds), application, num_replicas, batch_size. Run times follow
from what GPUs a job gets, so duration_s is empty: the simulation takes them from throughputs. A workload is one
trace without tenants; the tenant is the file's name.
Their Philly list: CSV with timestamp (YYYY-MM-DD HH:MM:SS), duration (seconds), num_gpus, gpu_time, cluster
(Philly's virtual cluster: the tenant). Jobs are numbered in its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from slurm_fair.trace import cells
from slurm_fair.trace.convert.entry import NEVER_RAN, Item, each, instant_of, of_column
from slurm_fair.trace.faults import Fault
from slurm_fair.trace.tabular import Table, read_table
from slurm_fair.trace.write import number_text

COLUMNS = ("job_id", "tenant", "submit_s", "gpus", "duration_s", "model", "batch_size", "name")
_WORKLOAD = ("name", "time", "application", "num_replicas", "batch_size")
_PHILLY = ("timestamp", "duration", "num_gpus", "cluster")

Row = Mapping[str, str]


def items(path: Path) -> Iterator[Item]:
    """Each row of a workload or of the Philly list, told by the header."""
    with read_table(path, ()) as rows:
        philly = "timestamp" in rows.columns
    tenant = path.name.split(".")[0] or "workload"
    with read_table(path, _PHILLY if philly else _WORKLOAD) as rows:
        read = _philly_job if philly else lambda row: _job(row, tenant)
        yield from each(_named(rows), read)


def _named(rows: Table) -> Iterator[tuple[str, Row] | Fault]:
    """Each row with its number among the jobs."""
    for count, row in enumerate(rows.rows):
        if isinstance(row, Fault):
            yield row
        else:
            yield row[0], dict(zip(rows.columns, row[1], strict=True)) | {"": str(count)}


def _job(row: Row, tenant: str) -> Row:
    of_column("time", cells.not_negative, row["time"])
    of_column("num_replicas", cells.positive, row["num_replicas"])
    return {
        "job_id": row[""],
        "tenant": tenant,
        "submit_s": row["time"],
        "gpus": row["num_replicas"],
        "model": row["application"],
        "batch_size": row["batch_size"],
        "name": row["name"],
    }


def _philly_job(row: Row) -> Row | str:
    of_column("num_gpus", cells.positive, row["num_gpus"])
    if of_column("duration", cells.not_negative, row["duration"]) == 0:
        return NEVER_RAN
    return {
        "job_id": row[""],
        "tenant": row["cluster"],
        "submit_s": number_text(instant_of(row["timestamp"], "timestamp")),
        "gpus": row["num_gpus"],
        "duration_s": row["duration"],
    }
