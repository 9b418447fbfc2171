"""The page of `report --html`: what the report speaks of, its plots, its table."""

from __future__ import annotations

from slurm_fair_accounting import render
from slurm_fair_accounting.drawing import page
from slurm_fair_accounting.drawing.report_plots import PLOTS
from slurm_fair_accounting.table import Kind, Report

MOST_ROWS = 5000  # a browser shows so many at once without pain


def report_page(report: Report) -> str:
    """The whole page; its plots are of all rows, also where the table ends before."""
    sections = [PLOTS[report.name](report), page.section("Table", _extent(report), _table(report))]
    return page.page(report.title, render.about(report), sections)


def _extent(report: Report) -> str:
    count = len(report.rows)
    if count <= MOST_ROWS:
        return f"{count} {'row' if count == 1 else 'rows'}; - = not known."
    return (
        f"The first {MOST_ROWS} of {count} rows; - = not known. All of them: --csv or --json; fewer: --tenant, "
        "--user or a shorter period."
    )


def _table(report: Report) -> str:
    words = [column.kind in (Kind.TEXT, Kind.INSTANT, Kind.DAY) for column in report.columns]
    heads = [column.title for column in report.columns]
    return page.plain_table(heads, render.cell_texts(report, MOST_ROWS), words)
