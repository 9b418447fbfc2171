"""From a trace to the jobs of a virtual cluster: who may run where, how fast, and through which regimes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import InputError
from slurm_fair.model import pack_keys
from slurm_fair.model.columns import Bools, Codes, Floats, Ints
from slurm_fair.model.counted import counted, first_of
from slurm_fair.model.gpu_weight import mean_weight, of_types
from slurm_fair.sim.scenario import Scenario
from slurm_fair.sim.world.columns import JobColumns
from slurm_fair.sim.world.sizes import ElasticJobs, elastic_jobs
from slurm_fair.sim.world.speed import job_rates, per_kind, scaling_of, speeds_of, spread_rates
from slurm_fair.sim.world.work import Regimes
from slurm_fair.trace import JobRegimes, Machines, Throughputs, Trace
from slurm_fair.trace.collect import Collector, ColumnRules
from slurm_fair.trace.faults import shown
from slurm_fair.trace.table import REQUIRED

_FEW_TYPES = 5  # that a message names


@dataclass(slots=True)
class Population:
    """All jobs that will ever be submitted, with what stays the same about them."""

    jobs: JobColumns
    regimes: Regimes
    rates: NDArray[np.float64]  # [job, GPU type]: speed on that type against the reference
    spread_rates: NDArray[np.float64]  # [the same]: on more nodes than it needs, against well placed there
    gpu_types: tuple[str, ...]
    tenants: tuple[str, ...]
    weights: Floats
    users: tuple[str, ...]
    models: tuple[str, ...]
    speeds: Floats  # of the GPU types themselves
    given_weights: Mapping[str, float]  # of tenants, also of those who have no job yet
    gpu_weights: Floats | None  # of the GPU types; None = 1 each
    asked_weights: Floats  # what a GPU counts that is asked for by its type; the last one of any type
    elastic: ElasticJobs

    def tenant(self, name: str) -> int:
        """Number of a tenant; one that is new here joins the others, who are sorted by name."""
        if name not in self.tenants:
            names = tuple(sorted([*self.tenants, name]))
            moved = np.array([names.index(old) for old in self.tenants], dtype=np.int64)
            weights = np.full(len(names), self.given_weights.get(name, 1.0))
            weights[moved] = self.weights
            if self.jobs.count:
                self.jobs.renumber_tenants(moved)
            self.tenants, self.weights = names, weights
        return self.tenants.index(name)

    def user(self, name: str) -> int:
        """The number of a user, who may be new."""
        if name not in self.users:
            self.users = (*self.users, name)
        return self.users.index(name)

    def add(self, count: int, seconds: float) -> slice:
        """Rows for so many more jobs alike, each of which has so much work to do."""
        rows = self.jobs.add(count)
        self.rates = np.concatenate([self.rates, np.tile(self.speeds, (count, 1))])
        self.spread_rates = np.concatenate([self.spread_rates, np.ones((count, len(self.speeds)))])
        old = self.regimes
        begin = float(old.begin[-1] + old.seconds[-1]) if len(old) else 0.0
        more = _plain(np.full(count, seconds))
        more = more.with_columns(begin=begin + more.begin)
        columns = {
            name: np.concatenate([column, getattr(more, name)]) for name, column in old._arrays().items()
        }
        first = np.arange(len(old), len(old) + count)
        self.regimes = old.with_columns(**columns)
        self.jobs.first_regime[rows], self.jobs.last_regime[rows] = first, first
        return rows


def nobody() -> Trace:
    """A trace without jobs."""
    return Collector(REQUIRED, ColumnRules()).trace()


def population(scenario: Scenario, epoch: float) -> Population:
    """The trace's jobs as they stand before the first of them is submitted."""
    trace, machines = scenario.trace, scenario.machines
    types = gpu_types_of(trace, machines)
    refuse_impossible(trace, machines, scenario.throughputs)
    jobs = JobColumns(len(trace), weighed=bool(scenario.gpu_weights))
    jobs.add(len(trace))
    _fill(jobs, trace, types, epoch)
    asked = asked_weights(scenario, types)
    jobs.gpu_weight[:] = asked[jobs.gpu_type]
    jobs.declared[:] = scenario.declared_seconds_of_jobs
    plain = scenario.plain_jobs.drawn(trace)
    jobs.checkpoints[:] = ~plain
    jobs.scaling[:] = scaling_of(trace, scenario.throughputs)
    regimes, jobs.first_regime[:], jobs.last_regime[:] = _regimes(trace, scenario)
    jobs.mode[:] = _modes(trace, scenario)
    here, jobs.tenant[:] = np.unique(trace.tenant, return_inverse=True)
    # Those whose jobs were left out do not count.
    tenants = tuple(trace.tenants[tenant] for tenant in here.tolist())
    rates = job_rates(trace, machines, types, scenario.throughputs)
    spread, never = spread_rates(trace, types, scenario.throughputs)
    here_too = np.isin(types, machines.gpu_types) & (rates > 0)
    _lay_out(jobs, scenario, never & here_too & _asked(jobs, len(types)))
    may_change = trace.with_columns(
        choice_set=np.where(plain, -1, trace.choice_set)
    )  # sizes change at a requeue
    return Population(
        jobs, regimes, rates, spread, types, tenants, scenario.weights_of(tenants), trace.users, trace.models,
        speeds_of(machines, types), scenario.weights, of_types(scenario.gpu_weights, types), asked,
        elastic_jobs(may_change, machines, types, rates, scenario.throughputs, scenario.elastic_exponent),
    )  # fmt: skip


def asked_weights(scenario: Scenario, types: tuple[str, ...]) -> Floats:
    """The weight of a GPU of each type, and that of any of the machines' on average."""
    weights, machines = of_types(scenario.gpu_weights, types), scenario.machines
    if weights is None:
        return np.ones(len(types) + 1)
    kinds = np.array([types.index(name) for name in machines.gpu_types], dtype=np.int64)
    return np.append(weights, mean_weight(weights, kinds[machines.gpu_type], machines.gpus))


def gpu_types_of(trace: Trace, machines: Machines) -> tuple[str, ...]:
    return tuple(sorted({*machines.gpu_types, *trace.gpu_types}))


def impossible(trace: Trace, machines: Machines, throughputs: Throughputs | None = None) -> Ints:
    """Rows of jobs that these machines could never run."""
    rates = job_rates(trace, machines, machines.gpu_types, throughputs)
    runs_on, gpus, names = rates > 0, trace.whole_gpus, (*trace.gpu_types, "")
    first, of_kind = _kinds([gpus, trace.gpu_type, trace.node_count, *runs_on.T])
    never = [
        not _could_run(
            int(gpus[row]), names[trace.gpu_type[row]], int(trace.node_count[row]), runs_on[row], machines
        )
        for row in first.tolist()
    ]
    return np.flatnonzero(np.array(never, dtype=bool)[of_kind])


def _kinds(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """One row of each kind of jobs that are alike in these columns, and the kind of each row."""
    kind = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        if (column != column[:1]).any():
            place = np.unique(column, return_inverse=True)[1]
            kind = np.unique(kind * (place.max() + 1) + place, return_inverse=True)[1]
    return np.unique(kind, return_index=True)[1], kind


def _could_run(gpus: int, gpu_type: str, nodes: int, runs_on: Bools, machines: Machines) -> bool:
    """True if a gang fits the nodes of one type when they are all idle; it never lies on several types."""
    for kind, name in enumerate(machines.gpu_types):
        sizes = machines.gpus[machines.gpu_type == kind]
        if gpu_type not in ("", name) or not runs_on[kind] or int(sizes.sum()) < gpus:
            continue
        if nodes <= 1 or (gpus >= nodes and int((sizes >= -(-gpus // nodes)).sum()) >= nodes):
            return True
    return False


def refuse_impossible(trace: Trace, machines: Machines, throughputs: Throughputs | None = None) -> None:
    """One line that names the jobs that are larger than the cluster, or do not run on its GPUs."""
    rows = impossible(trace, machines, throughputs)
    if not len(rows):
        return
    missing = missing_types(trace, machines)
    if missing:
        raise InputError(
            f"{missing}: name a cluster that has it with --cluster, or leave the jobs out with --too-large drop"
        )
    names = first_of([f"{trace.job_id[row]} ({_size(trace, row)})" for row in rows.tolist()], 3)
    want, run = ("wants", "runs") if len(rows) == 1 else ("want", "run")
    measured = f", or {run} on none of its GPU types as they were measured" if throughputs else ""
    cluster = f"{counted(machines.total_gpus, 'GPU')} on {counted(len(machines), 'node')}"
    raise InputError(
        f"{len(rows)} of {counted(len(trace), 'job')} {want} more GPUs of one type, or more nodes, than the "
        f"cluster's {cluster} can give{measured}: {names}: give more, or leave them out with --too-large drop"
    )


def _size(trace: Trace, row: int) -> str:
    gpus, nodes = trace.whole_gpus.item(row), trace.node_count.item(row)
    return counted(gpus, "GPU") + (f" on {counted(nodes, 'node')}" if nodes else "")


def missing_types(trace: Trace, machines: Machines) -> str:
    """Names GPU types that jobs ask for and the cluster lacks, and those that it has; "" = none is missing."""
    asked = np.bincount(trace.gpu_type[trace.gpu_type >= 0], minlength=len(trace.gpu_types)).tolist()
    wanted = {name: jobs for name, jobs in zip(trace.gpu_types, asked, strict=True) if jobs}
    missing = {name: jobs for name, jobs in wanted.items() if name not in machines.gpu_types}
    if not missing:
        return ""
    here = ", ".join(map(shown, machines.gpu_types[:_FEW_TYPES]))
    more = ", ..." if len(machines.gpu_types) > _FEW_TYPES else ""
    first = next(iter(missing))
    others = f" or {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"{sum(missing.values())} of {len(trace)} jobs want the GPU type {shown(first)}{others}, which the "
        f"cluster does not have; it has {here}{more}"
    )


def _fill(jobs: JobColumns, trace: Trace, types: tuple[str, ...], epoch: float) -> None:
    count = len(trace)
    number = np.arange(1, count + 1)
    jobs.key[:] = pack_keys(number, np.full(count, -1))
    jobs.record[:] = number
    jobs.user[:], jobs.model[:] = trace.user, trace.model
    jobs.gpus[:] = jobs.usual_gpus[:] = trace.whole_gpus
    jobs.nodes[:] = np.maximum(trace.node_count, 1)
    # Records of jobs on one node do not tell whether their users asked for that: those take more too.
    jobs.most_nodes[:] = np.where(trace.node_count > 1, trace.node_count, 0)
    even = (trace.node_count > 1) & (jobs.gpus % jobs.nodes == 0)
    jobs.gpus_per_node[:] = np.where(even, jobs.gpus // jobs.nodes, 0)
    at = np.array([types.index(name) for name in trace.gpu_types] + [-1], dtype=np.int64)
    jobs.gpu_type[:] = at[trace.gpu_type]
    jobs.cpus[:], jobs.memory_mb[:] = 0, 0
    jobs.submit[:] = epoch + trace.submit_s
    jobs.gated[:], jobs.gate_until[:], jobs.gate_set[:] = True, np.inf, jobs.submit
    jobs.time_limit_seconds[:] = np.inf
    jobs.weight[:] = trace.weight
    jobs.requeueable[:] = True
    jobs.work[:] = trace.duration_s
    jobs.deadline[:], jobs.stopped_at[:] = np.inf, -np.inf


def _asked(jobs: JobColumns, types: int) -> NDArray[np.bool_]:
    """[job, GPU type]: whether its user lets it run there."""
    asked: NDArray[np.bool_] = (jobs.gpu_type[:, None] < 0) | (np.arange(types) == jobs.gpu_type[:, None])
    return asked


def _lay_out(jobs: JobColumns, scenario: Scenario, never: NDArray[np.bool_]) -> None:
    """Set which gangs are not spread, and on how many nodes each job runs as long as the trace says.

    Slurm knows one bound on a job's nodes, whatever their type: one type on which a job does not run spread is
    enough. A run time was recorded on the job's own nodes, so they slow it no further. One that follows from the
    throughputs is that of a well-placed gang.
    """
    trace, throughputs = scenario.trace, scenario.throughputs
    together = np.flatnonzero(never.any(axis=1) & (jobs.most_nodes == 0))
    jobs.most_nodes[together] = _fewest_nodes(scenario.machines, jobs.gpus[together])
    followed = np.zeros(len(trace), dtype=bool)
    if throughputs is not None:
        rate = per_kind(trace, lambda m, b, g: throughputs.steps_per_second(m, b, g) or math.nan)
        followed = np.isclose(trace.total_steps / rate, trace.duration_s, rtol=1e-6, atol=0.0)
    jobs.at_home[:] = np.where(followed, 0, trace.node_count)


def _fewest_nodes(machines: Machines, gpus: Ints) -> Ints:
    """The fewest idle nodes for gangs of so many GPUs, of the type with the smallest nodes that takes them."""
    most = np.ones(len(gpus), dtype=np.int64)
    for kind in range(len(machines.gpu_types)):
        sums = np.cumsum(np.sort(machines.gpus[machines.gpu_type == kind])[::-1])
        fewest = np.searchsorted(sums, gpus) + 1
        most = np.maximum(most, np.where(fewest <= len(sums), fewest, 0))
    return most


# -- regimes --------------------------------------------------------------------------------------------------


def _regimes(trace: Trace, scenario: Scenario) -> tuple[Regimes, Ints, Ints]:
    """Every job's regimes in one row of all of them; most jobs have just one."""
    listed = [_given(trace, row, scenario.regimes) for row in range(len(trace))] if scenario.regimes else []
    counts = np.array(
        [len(job.regimes) if job else 1 for job in listed] or np.ones(len(trace)), dtype=np.int64
    )
    first = np.cumsum(counts) - counts
    table = _single(trace, scenario.throughputs).take(np.repeat(np.arange(len(trace)), counts))
    for start, job in zip(first.tolist(), listed, strict=False):
        if job is not None:
            _write(table, start, job)
    begin = np.cumsum(table.seconds) - table.seconds
    return table.with_columns(begin=begin), first, first + counts - 1


def _modes(trace: Trace, scenario: Scenario) -> Codes:
    """The mode of each job: as its regimes say, else the trace."""
    if not scenario.regimes:
        return trace.mode
    given = [_given(trace, row, scenario.regimes) for row in range(len(trace))]
    said = zip(given, trace.mode.tolist(), strict=True)
    return np.array([mode if job is None else job.mode for job, mode in said], dtype=np.int8)


def _given(trace: Trace, row: int, regimes: Mapping[str, JobRegimes]) -> JobRegimes | None:
    return regimes.get(str(trace.job_id[row]))


def _plain(seconds: Floats) -> Regimes:
    """One regime for each job; nothing is known of its epochs."""
    unknown, count = np.full(len(seconds), np.nan), len(seconds)
    return Regimes(
        begin=np.cumsum(seconds) - seconds,
        seconds=seconds,
        epochs_before=np.zeros(count),
        epoch_seconds=unknown,
        epochs_total=unknown,
        steps_per_second=unknown,
        batch_size=np.zeros(count, dtype=np.int64),
        adapts=np.zeros(count, dtype=bool),
    )


def _single(trace: Trace, throughputs: Throughputs | None) -> Regimes:
    epochs = np.where(trace.epochs > 0, trace.epochs, np.nan).astype(np.float64)
    steps = np.where(trace.total_steps > 0, trace.total_steps, np.nan) / trace.duration_s
    if throughputs is not None:
        measured = per_kind(trace, lambda m, b, g: throughputs.steps_per_second(m, b, g) or math.nan)
        steps = np.where(np.isnan(measured), steps, measured)
    return Regimes(
        begin=np.zeros(len(trace)),
        seconds=trace.duration_s.copy(),
        epochs_before=np.zeros(len(trace)),
        epoch_seconds=trace.duration_s / epochs,
        epochs_total=epochs,
        steps_per_second=steps,
        batch_size=trace.batch_size.copy(),
        adapts=np.zeros(len(trace), dtype=bool),
    )


def _write(table: Regimes, start: int, job: JobRegimes) -> None:
    """Into columns that nobody else has seen yet."""
    done = 0
    for row, regime in enumerate(job.regimes, start):
        table.seconds[row], table.epochs_before[row] = regime.seconds, done
        table.epoch_seconds[row], table.epochs_total[row] = regime.seconds_per_epoch, job.epochs
        steps = job.samples_per_epoch / max(regime.batch_size, 1) / regime.seconds_per_epoch
        table.steps_per_second[row], table.batch_size[row] = steps, regime.batch_size
        table.adapts[row] = True
        done += regime.epochs
