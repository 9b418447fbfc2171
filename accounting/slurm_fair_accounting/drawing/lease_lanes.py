"""Leases on a line of time: a row a job, a bar a lease, a colour for how it ended."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_fair.model import EventKind
from slurm_fair_accounting.drawing.gantt import Bar, Lane, Layout, gantt
from slurm_fair_accounting.drawing.plot import legend_of, shortened
from slurm_fair_accounting.render import duration_text, instant_text
from slurm_fair_accounting.table import Report, Row

MOST_JOBS, MOST_LEASES = 60, 3000
NOT_ENDED = "not ended"
_ENDS = (
    EventKind.RENEWED,
    EventKind.REVOKED,
    EventKind.FINISHED,
    EventKind.STOPPED,
    EventKind.RETURNED,
    EventKind.TAKEN_BACK,
    NOT_ENDED,
)
_ROW, _LEFT, _MOST_LETTERS = 18.0, 170.0, 24


def lanes_of(report: Report) -> str:
    """The chart, or a sentence why there is none."""
    jobs = dict.fromkeys((str(row["tenant"]), str(row["job"])) for row in report.rows)
    if len(jobs) > MOST_JOBS or len(report.rows) > MOST_LEASES:
        return (
            f"<p>Single leases are not drawn: the report has {len(jobs)} jobs with {len(report.rows)} leases, and "
            f"the picture holds {MOST_JOBS} jobs with {MOST_LEASES}. Choose by --tenant or --user, or a shorter "
            "period.</p>"
        )
    lanes = {job: place for place, job in enumerate(sorted(jobs, key=lambda job: job[0]))}
    first = min(_begins(row) for row in report.rows)
    last = max(_ends(row, report) for row in report.rows)
    bars = [_bar(row, report, lanes[str(row["tenant"]), str(row["job"])], first) for row in report.rows]
    names = [Lane(shortened(f"{job} {tenant}", _MOST_LETTERS), 1) for tenant, job in lanes]
    ways = {_way(row) for row in report.rows}
    keys = legend_of([(way, place) for place, way in enumerate(_ENDS) if way in ways])
    layout = Layout(_ROW, _LEFT, instant_text(first))
    drawing = gantt("Leases of each job", names, bars, max(last - first, 1.0), layout)
    return f"<p>{_note(report.rows)}</p>{keys}{drawing}"


def _note(rows: Sequence[Row]) -> str:
    open_ended = any(row["end"] is None for row in rows)
    return "A bar is a lease; its colour is the way in which it ended." + (
        " The bar of a lease that has not ended reaches to the end of the period." if open_ended else ""
    )


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
        f"{instant_text(start)} to {instant_text(end)} ({duration_text(end - start)}), {_way(row)}"
    )
    return Bar(lane, start - first, end - first, _ENDS.index(_way(row)), words)
