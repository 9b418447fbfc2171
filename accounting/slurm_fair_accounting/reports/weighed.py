"""The unit of reports whose GPU-hours are by the weight of the GPUs."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.ledger.charging.advance import BY_WEIGHT
from slurm_fair.model import EventKind
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader
from slurm_fair_accounting.table import Column, Kind, Report

NOTE = "GPU-hours are by weight: one is an hour of a GPU that counts 1"


def is_weighed(source: JournalReader, period: Period) -> bool:
    """True if GPUs were weighed at some time of the period."""
    sizes = list(source.events(end=period.end, kinds=(EventKind.CAPACITY,)))
    before = [event for event in sizes if event.time <= period.start][-1:]
    within = [event for event in sizes if event.time > period.start]
    return any(BY_WEIGHT in event.detail for event in (*before, *within))


def marked(report: Report, source: JournalReader) -> Report:
    """The report with its unit in its titles and its notes, where GPUs were weighed."""
    if not is_weighed(source, report.covered):
        return report
    note = "; ".join(part for part in (report.note, NOTE) if part)
    return replace(report, columns=tuple(map(_titled, report.columns)), note=note)


def _titled(column: Column) -> Column:
    if column.kind is not Kind.GPU_HOURS:
        return column
    return replace(column, title=column.title.replace("(GPUh)", "(wGPUh)"))
