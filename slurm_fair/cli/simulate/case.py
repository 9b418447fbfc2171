"""The inputs of `simulate`, read and checked, with a list of what was left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from slurm_fair.cli.simulate.plain_parts import plain_parts
from slurm_fair.errors import InputError
from slurm_fair.ledger.settings import ReportShare
from slurm_fair.model.columns import Bools
from slurm_fair.model.gpu_weight import GpuWeights, misfit
from slurm_fair.model.speeds import USUAL_EXPONENT
from slurm_fair.sim.plain_jobs import NO_PLAIN_JOBS, PlainJobs
from slurm_fair.sim.scenario import Costs, NodeEvent, Outage, Scenario, Speeds
from slurm_fair.sim.truthfulness import Truthfulness
from slurm_fair.sim.world.load import impossible, missing_types, refuse_impossible
from slurm_fair.trace import (
    Fault,
    JobRegimes,
    Machines,
    Reading,
    Throughputs,
    Trace,
    read_machines,
    read_regimes,
    read_throughputs,
    read_trace,
    read_weights,
    refuse_foreign,
    uniform,
)
from slurm_fair.trace.cells import read_instant
from slurm_fair.trace.faults import BadCell, nearest_of, refuse, shown
from slurm_fair.trace.status import BAD_ENDS
from slurm_fair.trace.tabular import read_table

_OUTAGE_COLUMNS = ("time_s", "node", "event")

ASKED_FOR = ("demand", "requested")  # weights by the GPU time or the GPUs that jobs ask for


@dataclass(frozen=True, slots=True)
class CaseOptions:
    """Options that say what is simulated, beside the jobs and what a change of hands costs."""

    rounds: Literal["conserving", "gavel"] = "conserving"
    gpus: int | None = None
    gpus_per_node: int | None = None
    cluster: Path | None = None
    throughputs: Path | None = None
    throughputs_source: str | None = None
    regimes: Path | None = None
    outages: Path | None = None
    weights: str | None = None  # None = the site's own for its past, else equal
    failed: str = "keep"
    too_large: str = "refuse"
    until: float | None = None
    skip_bad: bool = False
    undeclared: Literal["actual", "unknown"] = "actual"
    report_share: ReportShare = "demand"
    gpu_weights: Mapping[str, float] | None = None
    elastic_exponent: float = USUAL_EXPONENT
    speeds: Speeds = "known"
    progress: Literal["reported", "silent"] = "reported"
    declared_error: float = 1.0
    plain: str | None = None  # parts of jobs that cannot save, of each tenant or of some
    seed: int = 0  # of the errors of declarations and of the jobs that cannot save

    @property
    def truthfulness(self) -> Truthfulness:
        """The way in which users and jobs tell of run times."""
        return Truthfulness(self.progress, self.declared_error, self.seed)

    def plain_jobs(self, trace: Trace) -> PlainJobs:
        """The jobs of a trace that cannot save."""
        parts = plain_parts(self.plain) if self.plain else {}
        usual = parts.pop("", 0.0)
        if foreign := [name for name in parts if name not in trace.tenants]:
            there = nearest_of(foreign[0], trace.tenants, "the trace has")
            raise InputError(f"--plain: the trace has no tenant {shown(foreign[0])}; {there}")
        return PlainJobs(usual, parts, self.seed) if self.plain else NO_PLAIN_JOBS

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        weights = None if self.weights in (None, "equal", "shares", *ASKED_FOR) else Path(self.weights)
        named = (weights, self.cluster, self.throughputs, self.regimes, self.outages)
        return tuple(path for path in named if path is not None)


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario with the story of its making."""

    scenario: Scenario
    trace_path: Path
    bad_rows: int
    failed: int  # jobs left out because they did not end well
    too_large: tuple[str, ...]  # jobs left out because no cluster like this one could run them
    weights: str  # equal, demand, or the file

    @property
    def fractional(self) -> int:
        """Jobs that ask for a part of a GPU and get the ceiling."""
        return int(self.scenario.trace.fractional.sum())

    def trace_document(self) -> dict[str, Any]:
        """The trace as JSON holds it."""
        trace = self.scenario.trace
        return {
            "path": str(self.trace_path),
            "jobs": len(trace),
            "tenants": len(np.unique(trace.tenant)),
            "users": len(np.unique(trace.user)),
            "gpu_seconds": float((trace.gpus * trace.duration_s).sum()),
            "span_s": float(trace.submit_s.max() - trace.submit_s.min()),
            "max_gpus": float(trace.gpus.max()),
            "jobs_with_fractional_gpus": self.fractional,
            "bad_rows": self.bad_rows,
            "failed_left_out": self.failed,
            "too_large_left_out": list(self.too_large),
        }

    def cluster_document(self) -> dict[str, Any]:
        """The cluster as JSON holds it."""
        machines = self.scenario.machines
        return {
            "gpus": machines.total_gpus,
            "nodes": len(machines),
            "racks": len(machines.racks),
            "types": [
                {"type": name, "nodes": int(mine.sum()), "gpus": int(machines.gpus[mine].sum())}
                for kind, name in enumerate(machines.gpu_types)
                for mine in [machines.gpu_type == kind]
            ],
        }

    @property
    def plain(self) -> int:
        """Jobs that cannot save."""
        return int(self._plain.sum())

    @property
    def _plain(self) -> Bools:
        return self.scenario.plain_jobs.drawn(self.scenario.trace)

    @property
    def undeclared(self) -> int:
        """Jobs whose users declared no run time."""
        return int(np.isnan(self.scenario.trace.declared_s).sum())

    def run_times_document(self) -> dict[str, Any]:
        """Counts of jobs by what policies were told of run times, for JSON."""
        known = self.scenario.undeclared == "actual"
        return {
            "undeclared": self.scenario.undeclared,
            "jobs_declared": len(self.scenario.trace) - self.undeclared,
            "jobs_actual": self.undeclared if known else 0,
            "jobs_unknown": 0 if known else self.undeclared,
        }

    def options_document(self, seed: int, repeat: int = 1) -> dict[str, Any]:
        """The other options on which the results depend, for JSON."""
        scenario = self.scenario
        return {
            "rounds": scenario.rounds,
            "checkpoint_cost_s": scenario.costs.checkpoint,
            "start_cost_s": scenario.costs.start + scenario.costs.opening,
            "restart_cost_s": scenario.costs.restart,
            "requeue_delay_s": scenario.costs.requeue_delay,
            "until_s": scenario.until_s if math.isfinite(scenario.until_s) else None,
            "weights": self.weights,
            "report_share": scenario.report_share,
            **({"gpu_weights": dict(scenario.gpu_weights)} if scenario.gpu_weights else {}),
            "jobs_with_regimes": len(scenario.regimes),
            "throughputs": scenario.throughputs.source if scenario.throughputs else None,
            "outages": len(scenario.outages),
            "jobs_elastic": int(((scenario.trace.choice_set >= 0) & ~self._plain).sum()),
            "elastic_exponent": scenario.elastic_exponent,
            **({"speeds": scenario.speeds} if scenario.speeds != "known" else {}),
            "progress": scenario.truthfulness.progress,
            "declared_error": scenario.truthfulness.declared_error,
            **({"jobs_plain": self.plain} if scenario.plain_jobs.some else {}),
            "seed": seed,
            "repeat": repeat,
        }


def read_case(path: Path, costs: Costs, given: CaseOptions) -> tuple[Case, Reading]:
    """Everything read and checked; InputError says what is wrong where."""
    machines = machines_of(given.gpus, given.gpus_per_node, given.cluster)
    rates = _rates_of(given.throughputs, given.throughputs_source)
    reading = read_trace(path, skip_bad=given.skip_bad, throughputs=rates)
    trace, dropped, large = jobs_wanted(reading.trace, machines, given, rates)
    weights = given.weights or "equal"
    scenario = Scenario(
        trace=trace,
        machines=machines,
        costs=costs,
        weights=weights_of(weights, trace),
        regimes=_regimes_of(given.regimes, trace, reading) if given.regimes else {},
        throughputs=rates,
        outages=read_outages(given.outages, machines) if given.outages else (),
        rounds=given.rounds,
        until_s=math.inf if given.until is None else given.until,
        undeclared=given.undeclared,
        truthfulness=given.truthfulness,
        plain_jobs=given.plain_jobs(trace),
        report_share=given.report_share,
        gpu_weights=gpu_weights_for(given.gpu_weights, machines),
        elastic_exponent=given.elastic_exponent,
        speeds=given.speeds,
    )
    return Case(scenario, path, len(reading.bad), dropped, large, weights), reading


def gpu_weights_for(given: Mapping[str, float] | None, machines: Machines) -> GpuWeights:
    """Weights that were asked for, which must fit the cluster."""
    weights = given or {}
    if wrong := misfit(weights, machines.gpu_types):
        raise InputError(f"--gpu-weights: {wrong}")
    return weights


def _rates_of(path: Path | None, source: str | None) -> Throughputs | None:
    if path is None and source:
        raise InputError("--throughputs-source names a source of --throughputs: give that too")
    return read_throughputs(path, source or "") if path else None


def machines_of(gpus: int | None, gpus_per_node: int | None, cluster: Path | None) -> Machines:
    """The cluster that was asked for, by one of the two ways."""
    if cluster is not None:
        if gpus is not None or gpus_per_node is not None:
            given = "--gpus" if gpus is not None else "--gpus-per-node"
            raise InputError(f"{given} and --cluster both say what the cluster is: give one of them")
        return read_machines(cluster)
    if gpus is None:
        raise InputError("no cluster: give --gpus N [--gpus-per-node N], or --cluster FILE.toml")
    return uniform(gpus, gpus_per_node or 8)


def _regimes_of(path: Path, trace: Trace, reading: Reading) -> dict[str, JobRegimes]:
    """The regimes of the simulated jobs; a file that does not fit the whole trace is refused."""
    found = read_regimes(path)
    refuse_foreign(path, found, reading.trace, whole=not reading.bad)
    here = set(map(str, trace.job_id.tolist()))
    return {job: regimes for job, regimes in found.items() if job in here}


# -- jobs -----------------------------------------------------------------------------------------------------


def jobs_wanted(
    trace: Trace, machines: Machines, given: CaseOptions, throughputs: Throughputs | None = None
) -> tuple[Trace, int, tuple[str, ...]]:
    """The jobs that are simulated, how many that did not end well are left out, and the names of the too large."""
    failed = 0
    if given.failed == "drop":
        well = ~np.isin(trace.status, BAD_ENDS)
        nobody = "every job of it was cancelled, failed or ran out of time: use --failed keep"
        trace, failed = _kept(trace, well, nobody)
    if given.too_large != "drop":
        refuse_impossible(trace, machines, throughputs)
        return trace, failed, ()
    rows = impossible(trace, machines, throughputs)
    fits = np.ones(len(trace), dtype=bool)
    fits[rows] = False
    why = missing_types(trace, machines) or "give more"
    kept, _ = _kept(trace, fits, f"no job of it fits {machines.total_gpus} GPUs: {why}")
    return kept, failed, tuple(map(str, trace.job_id[rows].tolist()))


def _kept(trace: Trace, wanted: Bools, nobody: str) -> tuple[Trace, int]:
    if not wanted.any():
        raise InputError(f"nothing of the trace is left: {nobody}")
    left_out = len(trace) - int(wanted.sum())
    return (trace.take(np.flatnonzero(wanted)) if left_out else trace), left_out


# -- tenants --------------------------------------------------------------------------------------------------


def weights_of(wanted: str, trace: Trace) -> dict[str, float]:
    """Weights of the tenants: all alike, by what their jobs ask for, or those of a file.

    Jobs ask for GPU time (`demand`) or for GPUs (`requested`, Astraea section 6.1.2).
    """
    if wanted == "equal":
        return {}
    here = sorted(set(trace.tenant.tolist()))
    if wanted in ASKED_FOR:
        each = trace.gpus if wanted == "requested" else np.nan_to_num(trace.gpu_seconds)
        asked = np.bincount(trace.tenant, each, len(trace.tenants))
        return {trace.tenants[tenant]: float(asked[tenant]) for tenant in here}
    given = read_weights(Path(wanted))
    missing = [trace.tenants[tenant] for tenant in here if trace.tenants[tenant] not in given]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(
            f"{wanted}: no share for tenant {shown(missing[0])}{more} of the trace: add a row for each"
        )
    return given


# -- machines -------------------------------------------------------------------------------------------------


def read_outages(path: Path, machines: Machines) -> tuple[Outage, ...]:
    """Read the outages of nodes from a CSV file time_s,node,event; every bad row is refused."""
    found: list[Outage] = []
    known = frozenset(machines.names)
    with read_table(path, _OUTAGE_COLUMNS) as rows:
        for row in rows.rows:
            if isinstance(row, Fault):
                refuse(path, [row], "every row must be right")
                continue
            place, cells = row
            of = dict(zip(rows.columns, cells, strict=True))
            try:
                found.append(_outage(of, machines, known))
            except BadCell as bad:
                refuse(path, [Fault(place, bad.column, bad.what)], "every row must be right")
    return tuple(sorted(found, key=lambda outage: outage.time_s))


def _outage(cells: Mapping[str, str], machines: Machines, known: frozenset[str]) -> Outage:
    words = [event.value for event in NodeEvent]
    if cells["node"] not in known:
        raise BadCell(f"no node {shown(cells['node'])}; {nearest_of(cells['node'], machines.names)}", "node")
    if cells["event"].lower() not in words:
        raise BadCell(f"{shown(cells['event'])} is no event: {', '.join(words)}", "event")
    try:
        time_s = read_instant(cells["time_s"])
    except BadCell as bad:
        raise BadCell(bad.what, "time_s") from None
    return Outage(time_s, cells["node"], NodeEvent(cells["event"].lower()))
