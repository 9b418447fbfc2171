"""From a past to what is simulated: the jobs that can be replayed on some machines, with weights and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from slurm_fair.cli.base import site_of
from slurm_fair.cli.replay.saved_file import read_saved
from slurm_fair.cli.replay.site import LiveSite
from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.cli.simulate.case import (
    Case,
    CaseOptions,
    gpu_weights_for,
    jobs_wanted,
    machines_of,
    weights_of,
)
from slurm_fair.cli.simulate.costs import KnownCosts, known_costs, measured_at
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.cli.simulate.text import many, some
from slurm_fair.cli.table import clean, instant
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model.gpu_weight import GpuWeights
from slurm_fair.sim.past import Jobs, jobs_of, less_costs
from slurm_fair.sim.scenario import Costs, Scenario
from slurm_fair.slurm.past import Past
from slurm_fair.trace import Fault, Machines, Reading, Trace
from slurm_fair_accounting.source.period import Period, choose


@dataclass(frozen=True, slots=True)
class PastSource:
    """A past: its source, its jobs and the period that it covers."""

    kind: Literal["slurmdbd", "sacct"]
    name: Path  # as titles and tables name it
    jobs: Jobs
    until: float  # when accounting was asked, or the last instant of a saved file
    left_out: Mapping[str, int]  # rows that are no run of one GPU job
    period: Period | None = None
    bad: tuple[Fault, ...] = ()

    def document(self) -> dict[str, Any]:
        """The past as JSON holds it."""
        return {
            "kind": self.kind,
            "start": self.period.start if self.period else None,
            "end": self.period.end if self.period else None,
            "first_submit": self.jobs.since,
            "until": self.until,
            "not_over": list(self.jobs.cut),
            "never_ran": list(self.jobs.never_ran),
            "never_ran_jobs": self.jobs.never_count,
            "rows_left_out": dict(self.left_out),
        }

    def notes(self) -> list[str]:
        """Caveats for a reader of the numbers."""
        notes = []
        never, cut = self.jobs.never_ran, self.jobs.cut
        if never:
            count = many(self.jobs.never_count, "job")
            notes.append(
                f"{count} that never ran (or less than 1 s) left out: {some(never, self.jobs.arrays)}"
            )
        if cut:
            notes.append(
                f"{many(len(cut), 'job')} that had not ended by {self._until()} taken to end then, with the work "
                f"done so far: {some(cut)}"
            )
        notes += [f"{many(count, 'row')} left out: {why}" for why, count in sorted(self.left_out.items())]
        return ["note: " + clean(note) for note in notes]

    def _until(self) -> str:
        """The end in local time; an instant of a file stays as it stands there, for its zone is not known."""
        if self.kind == "sacct":
            return datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return instant(self.until)


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of the past that the options name."""

    saved: Path | None  # a file of sacct; without one slurmdbd is asked
    start: str | None
    end: str | None
    skip_bad: bool

    def check(self) -> None:
        """A file has no period: all of it counts."""
        if self.saved is not None and (self.start or self.end):
            raise InputError("--sacct takes a whole file: leave --start and --end out")

    @property
    def files(self) -> list[Path]:
        """Files that are read, none of which may be written over."""
        return [self.saved] if self.saved else []


@dataclass(frozen=True, slots=True)
class KnownPast:
    """A past, what a change of hands costs, and the site where it was."""

    source: PastSource
    known: KnownCosts
    live: LiveSite | None

    @property
    def ledger(self) -> LedgerSettings | None:
        """The site's own; what a file is from had none that we know."""
        return self.live.ledger if self.live else None


def read_known_past(
    context: click.Context, origin: Origin, given: CostOptions, now: float, load_in_work: bool = False
) -> KnownPast:
    """Out of slurmdbd and the site's own journal, or out of a file; bad rows that were skipped are listed."""
    if origin.saved is not None:
        source = _of_file(origin.saved, origin.skip_bad)
        list_bad(origin.saved, Reading(source.jobs.trace, source.bad))
        return _known(source, known_costs(given), None)
    live = LiveSite.of(site_of(context))
    period = choose(origin.start, origin.end, now, lambda: None)
    source = _of_site(live, period, now)
    return _known(source, known_costs(given, measured_at(live.site, period), load_in_work), live)


def _known(source: PastSource, known: KnownCosts, live: LiveSite | None) -> KnownPast:
    """The jobs with the work that is left when what the simulation charges is taken off."""
    return KnownPast(replace(source, jobs=less_costs(source.jobs, known.costs)), known, live)


def _of_site(live: LiveSite, period: Period, now: float) -> PastSource:
    when = f"{instant(period.start)} to {instant(period.end)}"
    past = live.past(period)
    jobs = jobs_of(past, now)
    if jobs is None:
        never = sum(past.unsplit.values()) + len(set(past.runs.key.tolist()))
        also = f" ({many(never, 'job')} only waited)" if never else ""
        raise InputError(f"no GPU job ran from {when}{also}: give another --start and --end")
    return PastSource("slurmdbd", Path(f"history from {when}"), jobs, now, past.left_out, period)


def _no_run_of(past: Past) -> str:
    """The reason why no job of a file can be replayed, in one clause."""
    begun = past.runs.start > 0
    if not begun.any():
        return "no GPU job of it ever ran"
    if not (past.runs.end[begun] > 0).any():
        running = many(len(set(past.runs.key[begun].tolist())), "job")
        why = f"no GPU job of it has ended yet, and it knows of no second that {running} ran"
        return f"{why}: give a longer history"
    return "no GPU job of it ran for a second: give a longer history"


def _of_file(path: Path, skip_bad: bool) -> PastSource:
    """A past that sacct wrote into a file."""
    saved = read_saved(path, skip_bad)
    jobs = jobs_of(saved.past, saved.until)
    if jobs is None:
        reasons = ", ".join(f"{count} {why}" for why, count in sorted(saved.past.left_out.items()))
        raise InputError(f"{path}: {_no_run_of(saved.past)}{f' (but {reasons})' if reasons else ''}")
    return PastSource("sacct", path, jobs, saved.until, saved.past.left_out, bad=saved.bad)


def case_of(past: KnownPast, wish: CaseOptions) -> tuple[Case, list[str]]:
    """The scenario, and what is to be said about its machines."""
    source = past.source
    reading = Reading(source.jobs.trace, source.bad)
    return case_of_reading(source.name, reading, wish, past.known.costs, past.live)


def case_of_reading(
    name: Path, reading: Reading, wish: CaseOptions, costs: Costs, live: LiveSite | None
) -> tuple[Case, list[str]]:
    """The same of jobs that are a trace already."""
    machines, mixed = _machines(wish, live)
    trace = reading.trace
    if wish.gpus is not None:  # all alike: types and nodes that jobs asked for elsewhere mean nothing here
        anywhere = np.zeros(len(trace), dtype=np.int64)
        trace = trace.with_columns(gpu_type=anywhere - 1, gpu_types=(), node_count=anywhere)
    trace, failed, large = jobs_wanted(trace, machines, wish)
    named = wish.weights or ("equal" if live is None else "shares")
    scenario = Scenario(
        trace,
        machines,
        costs,
        _weights(named, trace, live),
        undeclared=wish.undeclared,
        truthfulness=wish.truthfulness,
        plain_jobs=wish.plain_jobs(trace),
        gpu_weights=_gpu_weights(wish, machines, live),
    )
    nodes = f"note: {many(len(mixed), 'node')} with several GPU types left out: {some(mixed)}"
    return Case(scenario, name, len(reading.bad), failed, large, named), [nodes] if mixed else []


def _machines(wish: CaseOptions, live: LiveSite | None) -> tuple[Machines, tuple[str, ...]]:
    if live is not None and wish.gpus is None and wish.gpus_per_node is None and wish.cluster is None:
        return live.machines()
    return machines_of(wish.gpus, wish.gpus_per_node, wish.cluster), ()


def _gpu_weights(wish: CaseOptions, machines: Machines, live: LiveSite | None) -> GpuWeights:
    """The given weights, else the site's own for its own past on GPU types that it knows."""
    if wish.gpu_weights is not None or live is None:
        return gpu_weights_for(wish.gpu_weights, machines)
    given = live.gpu_weights()
    weights = {name: given.get(name, 1.0) for name in machines.gpu_types}
    return weights if any(weight != 1.0 for weight in weights.values()) else {}


def _weights(named: str, trace: Trace, live: LiveSite | None) -> dict[str, float]:
    if named != "shares":
        return weights_of(named, trace)
    if live is None:
        raise InputError(
            "--weights shares asks Slurm, which a saved file is not: give equal, demand, requested or FILE"
        )
    return live.weights(trace.tenants)
