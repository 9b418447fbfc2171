"""Reports on what tenants, users and jobs had and were owed, from the journal or an export of it."""

from slurm_fair_accounting.cli import build_report_group
from slurm_fair_accounting.export import EventFile, export_lines, read_events
from slurm_fair_accounting.period import Period, choose, parse_when
from slurm_fair_accounting.reports import REPORTS
from slurm_fair_accounting.source import JournalReader
from slurm_fair_accounting.table import Choice, Report

__all__ = [
    "REPORTS",
    "Choice",
    "EventFile",
    "JournalReader",
    "Period",
    "Report",
    "build_report_group",
    "choose",
    "export_lines",
    "parse_when",
    "read_events",
]
