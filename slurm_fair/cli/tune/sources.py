"""The sources that lease terms are tried on: a trace, a saved file of sacct, or the site's own past."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from slurm_fair.cli.replay.case import Origin, case_of, case_of_reading, read_known_past
from slurm_fair.cli.replay.saved_file import has_times
from slurm_fair.cli.replay.site import LiveSite
from slurm_fair.cli.simulate.bad_rows import list_bad
from slurm_fair.cli.simulate.case import Case, CaseOptions, read_case
from slurm_fair.cli.simulate.costs import KnownCosts, known_costs
from slurm_fair.cli.simulate.given import CostOptions
from slurm_fair.cli.simulate.text import many
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.sim.scenario import Scenario
from slurm_fair.trace.convert import convert

# A simulation is given up at this multiple of the time that the work needs: its jobs make next to no progress.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Subject:
    """The source that the options name: just one of the first three, with what belongs to a trace."""

    trace: Path | None
    history: bool
    saved: Path | None
    throughputs: Path | None
    regimes: Path | None

    def check(self) -> None:
        """Refuse options that do not go together."""
        named = sum((self.trace is not None, self.history, self.saved is not None))
        if named != 1:
            what = "only one of these" if named else "one of these"
            raise InputError(f"what are the jobs? name {what}: a TRACE.csv, --history, or --sacct FILE")
        if self.trace is None and (self.throughputs or self.regimes):
            raise InputError("--throughputs and --regimes belong to a TRACE: leave them out")

    @property
    def files(self) -> list[Path]:
        """Files of jobs, none of which may be written over."""
        return [p for p in (self.trace, self.saved) if p is not None]


@dataclass(frozen=True, slots=True)
class Ground:
    """The case, what a change of hands costs there, and what is to be said of its making."""

    case: Case
    known: KnownCosts
    source: dict[str, Any]
    notes: list[str]
    ledger: LedgerSettings | None = None  # the site's own, where there is one
    live: LiveSite | None = None  # whose past it is

    @property
    def is_past(self) -> bool:
        """True if Slurm's accounting told of the jobs."""
        return bool(self.source["kind"] != "trace")


def ground_of(
    context: click.Context,
    subject: Subject,
    origin: Origin,
    wish: CaseOptions,
    given: CostOptions,
    now: float,
) -> Ground:
    """Read and check everything that the command needs."""
    if subject.trace is not None:
        if origin.start or origin.end:
            raise InputError("a TRACE has no period: leave --start and --end out")
        return _of_trace(subject.trace, wish, given)
    if subject.saved is not None and not has_times(subject.saved):
        return _of_listing(subject.saved, origin.skip_bad, wish, given)
    past = read_known_past(context, origin, given, now)
    case, notes = case_of(past, wish)
    ground = _bounded(case, past.known, past.source.document(), [*notes, *past.source.notes()])
    return replace(ground, ledger=past.ledger, live=past.live)


def _of_trace(path: Path, wish: CaseOptions, given: CostOptions) -> Ground:
    if wish.weights == "shares":
        raise InputError(
            "--weights shares asks Slurm, which a trace is not: give equal, requested, demand or FILE"
        )
    known = known_costs(given)
    case, reading = read_case(path, known.costs, wish)
    list_bad(path, reading)
    return _bounded(case, known, {"kind": "trace"}, [])


def _of_listing(path: Path, skip_bad: bool, wish: CaseOptions, given: CostOptions) -> Ground:
    """A file of sacct that tells how long jobs ran, though not when."""
    reading, known = convert("sacct", path, skip_bad=skip_bad), known_costs(given)
    list_bad(path, reading)
    case, notes = case_of_reading(path, reading, wish, known.costs, None)
    left = [f"note: {many(count, 'row')} left out: jobs {why}" for why, count in reading.left_out.items()]
    return _bounded(case, known, {"kind": "sacct", "rows_left_out": dict(reading.left_out)}, [*notes, *left])


def _bounded(case: Case, known: KnownCosts, source: dict[str, Any], notes: list[str]) -> Ground:
    return Ground(replace(case, scenario=_with_end(case.scenario)), known, source, notes)


def _with_end(scenario: Scenario) -> Scenario:
    """A simulation must end even where leases are hardly longer than what they cost."""
    trace, machines = scenario.trace, scenario.machines
    slowest = float(machines.speed.min())
    seconds = np.nan_to_num(trace.duration_s) / slowest
    work = float((trace.whole_gpus * seconds).sum()) / machines.total_gpus + float(seconds.max())
    end = float(trace.submit_s.max()) + _PATIENCE * work
    return replace(scenario, until_s=end if math.isfinite(end) else math.inf)
