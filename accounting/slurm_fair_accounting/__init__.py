"""Reports on what tenants, users and jobs had and were owed, from the journal or an export of it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slurm_fair_accounting.cli import build_report_group
    from slurm_fair_accounting.reports.registry import REPORTS
    from slurm_fair_accounting.source.event_file import EventFile, read_events
    from slurm_fair_accounting.source.export import export_lines
    from slurm_fair_accounting.source.period import Period, choose, parse_when
    from slurm_fair_accounting.source.source import JournalReader
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

# Commands that only print a table, or write a file, do not wait for all the reports.
_WHERE = {
    "cli": ("build_report_group",),
    "source.event_file": ("EventFile", "read_events"),
    "source.export": ("export_lines",),
    "source.period": ("Period", "choose", "parse_when"),
    "reports.registry": ("REPORTS",),
    "source.source": ("JournalReader",),
    "table": ("Choice", "Report"),
}


def __getattr__(name: str) -> Any:
    """A name of above, from its module when it is first asked for."""
    for module, names in _WHERE.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
