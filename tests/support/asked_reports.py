"""Reports of a month of events, as rows and as the command prints them."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from slurm_fair_accounting import (
    REPORTS,
    Choice,
    JournalReader,
    Period,
    build_report_group,
)
from tests.support import months
from tests.support.months import FEB_1, MAR_1, NOW

FEBRUARY = Period(FEB_1, MAR_1)
WHOLE = Period(FEB_1, NOW)


def rows(
    name: str, period: Period, source: JournalReader | None = None, **choice: Any
) -> list[dict[str, Any]]:
    """The rows of one report."""
    report = REPORTS[name](source or months.Month(), period, Choice(**choice))
    return [dict(row) for row in report.rows]


def run(*args: str, source: JournalReader | None = None, now: float = NOW) -> Result:
    """The output of `slurm-fair report`."""
    group = build_report_group(lambda context: source or months.Month(), lambda: now)
    return CliRunner().invoke(group, args, catch_exceptions=False)
