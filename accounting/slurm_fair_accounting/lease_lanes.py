"""Leases on a line of time: a row a job, a bar a lease, a colour for how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair_accounting import page
from slurm_fair_accounting.gantt import Bar, Lane, Layout, gantt
from slurm_fair_accounting.plot import legend_of, shortened
from slurm_fair_accounting.render import duration, instant
from slurm_fair_accounting.table import Report, Row

MOST_JOBS, MOST_LEASES = 60, 3000
NOT_ENDED = "not ended"
_ENDS = ("renewed", "revoked", "finished", "stopped", "returned", "takenback", NOT_ENDED)
_ROW, _LEFT, _MOST_LETTERS = 18.0, 170.0, 24


def lanes_of(report: Report) -> str:
    """The chart, or a sentence why there is none."""
    lanes = {(str(row["tenant"]), str(row["job"])): 0 for row in report.rows}
    if len(lanes) > MOST_JOBS or len(report.rows) > MOST_LEASES:
        return (
            f"<p>Each lease is drawn for up to {MOST_JOBS} jobs with {MOST_LEASES} leases; here are {len(lanes)} "
            f"jobs with {len(report.rows)}: choose by --tenant or --user, or a shorter period.</p>"
        )
    lanes = {lane: place for place, lane in enumerate(sorted(lanes, key=lambda lane: lane[0]))}
    first = min(_begins(row) for row in report.rows)
    last = max(_ends(row, report) for row in report.rows)
    bars = [_bar(row, report, lanes[str(row["tenant"]), str(row["job"])], first) for row in report.rows]
    names = [Lane(_name(job, tenant), 1) for tenant, job in lanes]
    ends = {_way(row) for row in report.rows}
    keys = legend_of([(way, place) for place, way in enumerate(_ENDS) if way in ends])
    layout = Layout(_ROW, _LEFT, instant(first))
    caption = "Leases of each job"
    note = f"<p>{page.text(_note(report.rows))}</p>"
    return keys + gantt(caption, names, bars, max(last - first, 1.0), layout) + note


def _note(rows: Sequence[Row]) -> str:
    open_ended = any(row["end"] is None for row in rows)
    return "A bar is a lease, its colour tells how it ended." + (
        " One that has not ended reaches to the end of the period." if open_ended else ""
    )


def _name(job: str, tenant: str) -> str:
    return shortened(f"{job} {tenant}", _MOST_LETTERS)


def _way(row: Row) -> str:
    return str(row["ended_by"]) if row["ended_by"] in _ENDS else NOT_ENDED


def _begins(row: Row) -> float:
    """Its start; one that never started is drawn from its grant."""
    return float(row["granted"] if row["start"] is None else row["start"])


def _ends(row: Row, report: Report) -> float:
    return float(max(report.asked.end, _begins(row)) if row["end"] is None else row["end"])


def _bar(row: Row, report: Report, lane: int, first: float) -> Bar:
    start, end = _begins(row), _ends(row, report)
    words = (
        f"{row['job']}, {row['tenant']}, lease {row['lease']}, {row['gpus']} GPUs on {row['nodes']}, "
        f"{instant(start)} to {instant(end)} ({duration(end - start)}), {_way(row)}"
    )
    return Bar(lane, start - first, end - first, _ENDS.index(_way(row)), words)
