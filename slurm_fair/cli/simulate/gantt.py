"""Single GPUs for a drawing: the simulated cluster knows only which node a run had GPUs of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from slurm_fair.cli.simulate.case import Case
from slurm_fair.cli.simulate.one_run import FinishedRun
from slurm_fair.model.placement import slurm_fill
from slurm_fair_accounting.drawing.gantt import Bar, Lane, gantt
from slurm_fair_accounting.drawing.plot import legend_of
from slurm_fair_accounting.render import duration_text

MOST_GPUS = 64
_MOST_BARS = 3000
_MOST_NAMED = 10
_ROUNDING = 1e-3


def gantt_of(case: Case, done: FinishedRun) -> str:
    """The chart of one policy; where there are very many runs it shows the first ones."""
    machines, result = case.scenario.machines, done.result
    first = float(np.nanmin(result.outcomes.submit))
    span = float(result.outcomes.ended_or_now.max()) - first
    bars = list(_bars(case, done, first))
    caption = result.policy
    if len(bars) > _MOST_BARS:
        span = bars[_MOST_BARS].start
        caption = f"{caption}, the first {duration_text(span)}"
        bars = [bar for bar in bars[:_MOST_BARS] if bar.start < span]
        bars = [Bar(bar.row, bar.start, min(bar.end, span), bar.colour, bar.words) for bar in bars]
    lanes = [Lane(name, gpus) for name, gpus in zip(machines.names, machines.gpus.tolist(), strict=True)]
    tenants = result.outcomes.tenants
    keys = (
        legend_of(list(zip(tenants, range(len(tenants)), strict=True))) if len(tenants) <= _MOST_NAMED else ""
    )
    return keys + gantt(caption, lanes, bars, max(span, 1.0))


def _bars(case: Case, done: FinishedRun, first: float) -> Iterator[Bar]:
    """Bars in the order of their starts."""
    result, trace = done.result, case.scenario.trace
    outcomes, runs = result.outcomes, result.runs
    grants: dict[int, list[tuple[float, tuple[str, ...]]]] = defaultdict(list)
    for grant in done.grants:
        grants[grant.key].append((grant.time, grant.nodes))
    rows = _Rows(case)
    for run in np.argsort(runs.start, kind="stable").tolist():
        job, start, end = int(runs.job[run]), float(runs.start[run]), float(runs.end[run])
        row = int(result.trace_row[job])
        nodes = _nodes_at(grants[int(outcomes.key[job])], start)
        words = (
            f"{trace.job_id[row]}, {trace.tenants[trace.tenant[row]]}, {runs.gpus[run]} GPUs, "
            f"{duration_text(start - first)} to {duration_text(end - first)}"
        )
        for at in rows.take(nodes, int(runs.gpus[run]), int(trace.node_count[row]), start, end):
            yield Bar(at, start - first, end - first, int(outcomes.tenant[job]), words)


def _nodes_at(grants: Sequence[tuple[float, tuple[str, ...]]], start: float) -> tuple[str, ...]:
    """The nodes of the last lease that was granted before a run began."""
    before = [nodes for time, nodes in grants if time <= start + _ROUNDING]
    return before[-1] if before else ()


class _Rows:
    """A row for each GPU; a run takes those of its nodes that are free, the first ones first."""

    def __init__(self, case: Case) -> None:
        machines = case.scenario.machines
        sizes = machines.gpus.tolist()
        first = np.concatenate([[0], np.cumsum(machines.gpus)]).tolist()
        self._rows = {name: range(first[at], first[at] + sizes[at]) for at, name in enumerate(machines.names)}
        self._free_from = [0.0] * machines.total_gpus

    def take(
        self, nodes: Sequence[str], gpus: int, node_count: int, start: float, end: float
    ) -> Iterator[int]:
        """The rows of a gang: as many on each of the nodes that it asked for, else as Slurm fills nodes."""
        free = [
            [row for row in self._rows[node] if self._free_from[row] <= start + _ROUNDING] for node in nodes
        ]
        if nodes and node_count > 1 and gpus % len(nodes) == 0:
            shares = [gpus // len(nodes)] * len(nodes)
        else:
            shares = [here for _, here in slurm_fill(range(len(nodes)), map(len, free), gpus)]
        rows = [row for there, here in zip(free, shares, strict=True) for row in there[:here]]
        # Of runs that began together the drawing does not know which came first: then fewer are free than it took.
        others = {row for node in nodes for row in self._rows[node]}.difference(rows)
        rows += sorted(others, key=lambda row: (self._free_from[row], row))[: gpus - len(rows)]
        for row in rows:
            self._free_from[row] = end
            yield row
