"""Public traces and Slurm's own history as Trace CSV: one module per source, each with the source's columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from slurm_fair.errors import InputError
from slurm_fair.trace.collect import Collector, ColumnRules
from slurm_fair.trace.convert import gavel, helios, philly, pollux, sacct, swf
from slurm_fair.trace.convert.entry import Item, Left
from slurm_fair.trace.faults import Fault, nearest_of, shown
from slurm_fair.trace.read import Reading, finished, try_add
from slurm_fair.trace.throughputs import Throughputs


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of file that can be converted."""

    columns: tuple[str, ...]  # of the Trace CSV, which each job has
    items: Callable[[Path], Iterator[Item]]
    about: str
    has_durations: bool = True


SOURCES = {
    "philly": Source(philly.COLUMNS, philly.items, "Microsoft Philly: cluster_job_log (JSON)"),
    "helios": Source(helios.COLUMNS, helios.items, "SenseTime Helios: cluster_log.csv"),
    "swf": Source(swf.COLUMNS, swf.items, "Standard Workload Format; processors are read as GPUs"),
    "sacct": Source(sacct.COLUMNS, sacct.items, "sacct --parsable2, best with TZ=UTC and --allocations"),
    "gavel": Source(gavel.COLUMNS, gavel.items, "Gavel: .trace, tab separated", has_durations=False),
    "shockwave": Source(
        gavel.COLUMNS, gavel.items, "Shockwave: .trace, the same with mode and duration", False
    ),
    "pollux": Source(pollux.COLUMNS, pollux.items, "Pollux: workload CSV, or its list of Philly jobs", False),
    "sia": Source(pollux.COLUMNS, pollux.items, "Sia: the same", has_durations=False),
}


def convert(
    source: str, path: Path, *, skip_bad: bool = False, throughputs: Throughputs | None = None
) -> Reading:
    """A foreign file as a trace whose first submission is at 0; what it could not use is told beside it."""
    if source not in SOURCES:
        raise InputError(f"no source {shown(source)}; {nearest_of(source, SOURCES)}")
    kind = SOURCES[source]
    collector = Collector(kind.columns, ColumnRules(throughputs, kind.has_durations))
    bad: list[Fault] = []
    left: Counter[str] = Counter()
    for item in kind.items(path):
        if isinstance(item, Left):
            left[item.why] += 1
            continue
        cells = [] if isinstance(item, Fault) else [item.cells.get(name, "") for name in kind.columns]
        fault = item if isinstance(item, Fault) else try_add(collector, item.place, cells)
        if fault:
            bad.append(fault)
    reading = finished(path, collector, bad, skip_bad, left)
    trace = reading.trace
    given = {name: column for name, column in trace.further.items() if any(column)}
    submit = np.round(trace.submit_s - trace.submit_s[0], 6)
    return replace(reading, trace=trace.with_columns(submit_s=submit, further=given))
