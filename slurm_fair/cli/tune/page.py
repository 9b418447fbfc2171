"""The page of `tune-lease --html`: the trade-off as a table and as curves over the lease term."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slurm_fair.cli.tune.text import MARK, TuneAnswer
from slurm_fair.model.columns import Floats
from slurm_fair_accounting.drawing import page, plot
from slurm_fair_accounting.drawing.page import Cell

_MORE_ROOM = 1.02


def tune_page(answer: TuneAnswer) -> str:
    sections = [
        page.section(
            "Recommended",
            answer.recommendation(),
            _table(answer),
            *(f"<p>{page.text(words)}</p>" for words in answer.notes()),
        ),
        page.section(
            "Trade-off",
            "A short lease lets the controller right wrongs often and costs checkpoints and restarts; a long one "
            "leaves the order as it is. The dotted line is the recommended term.",
            page.side_by_side(*_charts(answer)),
        ),
    ]
    return page.page(f"Lease terms for {answer.ground.case.trace_path.name}", answer.lead(), sections)


def _table(answer: TuneAnswer) -> str:
    columns = [column for column in answer.columns() if column.key != "mark"]
    first, *others = columns
    lines = [
        (
            first.text(row[first.key]),
            [Cell(column.text(row[column.key]), row["mark"] == MARK) for column in others],
        )
        for row in answer.table()
    ]
    return page.grouped_table([column.title for column in columns], [("", lines)])


def _charts(answer: TuneAnswer) -> list[str]:
    rows = answer.table()
    terms = np.array([row["lease_s"] for row in rows])
    x = plot.logarithmic("lease term, log", terms, seconds=True)

    def chart(caption: str, label: str, curves: Sequence[tuple[str, Floats]]) -> str:
        known = np.concatenate([values[np.isfinite(values)] for _, values in curves])
        y = plot.linear_axis(label, 0.0, float(known.max(initial=0.0)) * _MORE_ROOM or 1.0, 5)
        series = [plot.Series(name, terms, values, place) for place, (name, values) in enumerate(curves)]
        return plot.chart(caption, series, x, y, answer.advice.lease_seconds)

    return [
        chart(
            "Fairness: less is better",
            "%",
            [
                ("jobs with sharing loss", 100 * plot.values_of(rows, "ltgf_job_loss_fraction")),
                ("unfair tenant hours", 100 * plot.values_of(rows, "ltgf_tenant_unfair_fraction")),
            ],
        ),
        chart(
            "Completion time (JCT)",
            "hours",
            [
                ("mean", plot.values_of(rows, "jct_mean_s") / 3600),
                ("p95", plot.values_of(rows, "jct_p95_s") / 3600),
            ],
        ),
        chart(
            "GPU time lost to checkpoints and restarts",
            "%",
            [("lost", 100 * plot.values_of(rows, "overhead_fraction"))],
        ),
        chart(
            "Regret: the largest distance to the best term, in tolerances",
            "tolerances",
            [("regret", plot.values_of(rows, "regret"))],
        ),
    ]
