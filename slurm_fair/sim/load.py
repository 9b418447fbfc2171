"""From a trace to the jobs of a virtual cluster: who may run where, how fast, and through which regimes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slurm_fair.errors import InputError
from slurm_fair.model import pack_keys
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.sim.columns import JobColumns
from slurm_fair.sim.scenario import Scenario
from slurm_fair.sim.work import Regimes
from slurm_fair.trace import JobRegimes, Machines, Throughputs, Trace
from slurm_fair.trace.collect import Collector, Rules
from slurm_fair.trace.table import REQUIRED

_SPREAD = "unconsolidated"


@dataclass(slots=True)
class Population:
    """All jobs that will ever be submitted, with what stays the same about them."""

    jobs: JobColumns
    regimes: Regimes
    rates: NDArray[np.float64]  # [job, GPU type]: speed on that type against the reference
    gpu_types: tuple[str, ...]
    tenants: tuple[str, ...]
    weights: Floats
    users: tuple[str, ...]
    models: tuple[str, ...]
    speeds: Floats  # of the GPU types themselves
    given_weights: Mapping[str, float]  # of tenants, also of those who have no job yet

    def tenant(self, name: str) -> int:
        """Number of a tenant; one that is new here joins the others, who are sorted by name."""
        if name not in self.tenants:
            names = tuple(sorted([*self.tenants, name]))
            moved = np.array([names.index(old) for old in self.tenants], dtype=np.int64)
            weights = np.full(len(names), self.given_weights.get(name, 1.0))
            weights[moved] = self.weights
            count = self.jobs.count
            if count:
                self.jobs.tenant[:count] = moved[self.jobs.tenant[:count]]
            self.tenants, self.weights = names, weights
        return self.tenants.index(name)

    def user(self, name: str) -> int:
        """Number of a user."""
        if name not in self.users:
            self.users = (*self.users, name)
        return self.users.index(name)

    def add(self, count: int, seconds: float) -> slice:
        """Rows for so many more jobs alike, each of which has so much work to do."""
        rows = self.jobs.add(count)
        self.rates = np.concatenate([self.rates, np.tile(self.speeds, (count, 1))])
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
    return Collector(REQUIRED, Rules()).trace()


def population(scenario: Scenario, epoch: float) -> Population:
    """The trace's jobs as they stand before the first of them is submitted."""
    trace, machines = scenario.trace, scenario.machines
    types = _types(trace, machines)
    refuse_impossible(trace, machines)
    jobs = JobColumns(len(trace))
    jobs.add(len(trace))
    _fill(jobs, trace, types, epoch)
    jobs.spread_rate[:] = _spread_rates(trace, scenario.throughputs)
    regimes, jobs.first_regime[:], jobs.last_regime[:] = _regimes(trace, scenario)
    here, jobs.tenant[:] = np.unique(trace.tenant, return_inverse=True)
    tenants = tuple(
        trace.tenants[tenant] for tenant in here.tolist()
    )  # those whose jobs were left out do not count
    rates = _rates(trace, machines, types, scenario.throughputs)
    return Population(
        jobs, regimes, rates, types, tenants, scenario.weights_of(tenants), trace.users, trace.models,
        _speeds(machines, types), scenario.weights,
    )  # fmt: skip


def _types(trace: Trace, machines: Machines) -> tuple[str, ...]:
    return tuple(sorted({*machines.gpu_types, *trace.gpu_types}))


def impossible(trace: Trace, machines: Machines) -> Ints:
    """Rows of jobs that these machines could never run."""
    wishes = np.stack([trace.whole_gpus, trace.gpu_type, trace.node_count], axis=1)
    kinds, of_kind = np.unique(wishes, axis=0, return_inverse=True)
    names = (*trace.gpu_types, "")
    never = [not _could_run(gpus, names[kind], nodes, machines) for gpus, kind, nodes in kinds.tolist()]
    return np.flatnonzero(np.array(never, dtype=bool)[of_kind.reshape(-1)])


def _could_run(gpus: int, gpu_type: str, nodes: int, machines: Machines) -> bool:
    """Whether a gang fits the nodes of one type when they are all idle; it never lies on several types."""
    for kind, name in enumerate(machines.gpu_types):
        sizes = machines.gpus[machines.gpu_type == kind]
        if gpu_type not in ("", name) or int(sizes.sum()) < gpus:
            continue
        if nodes <= 1 or (gpus >= nodes and int((sizes >= -(-gpus // nodes)).sum()) >= nodes):
            return True
    return False


def refuse_impossible(trace: Trace, machines: Machines) -> None:
    """One line that names the jobs that are larger than the cluster."""
    rows = impossible(trace, machines)
    if not len(rows):
        return
    names = ", ".join(f"{trace.job_id[row]} ({trace.whole_gpus[row]} GPUs)" for row in rows[:3].tolist())
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    raise InputError(
        f"{len(rows)} of {len(trace)} jobs want more GPUs of one type, or more nodes, than the cluster's "
        f"{machines.total_gpus} GPUs on {len(machines)} nodes can give: {names}{more}: give more, or "
        "leave them out with --too-large drop"
    )


def _fill(jobs: JobColumns, trace: Trace, types: tuple[str, ...], epoch: float) -> None:
    count = len(trace)
    number = np.arange(1, count + 1)
    jobs.key[:] = pack_keys(number, np.full(count, -1))
    jobs.record[:] = number
    jobs.user[:], jobs.model[:] = trace.user, trace.model
    jobs.gpus[:] = trace.whole_gpus
    jobs.nodes[:] = np.maximum(trace.node_count, 1)
    even = (trace.node_count > 1) & (jobs.gpus % jobs.nodes == 0)
    jobs.gpus_per_node[:] = np.where(even, jobs.gpus // jobs.nodes, 0)
    at = np.array([types.index(name) for name in trace.gpu_types] + [-1], dtype=np.int64)
    jobs.gpu_type[:] = at[trace.gpu_type]
    jobs.cpus[:], jobs.memory_mb[:] = 0, 0
    jobs.submit[:] = epoch + trace.submit_s
    jobs.gated[:], jobs.gate_until[:], jobs.gate_set[:] = True, np.inf, jobs.submit
    jobs.time_limit_seconds[:] = np.inf
    jobs.weight[:] = trace.weight
    jobs.checkpoints[:], jobs.requeueable[:] = True, True
    jobs.work[:] = trace.duration_s
    jobs.declared[:] = np.where(np.isnan(trace.declared_s), trace.duration_s, trace.declared_s)
    jobs.deadline[:], jobs.stopped_at[:] = np.inf, -np.inf


def _spread_rates(trace: Trace, throughputs: Throughputs | None) -> Floats:
    """As measured, else one over the sensitivity, else nothing lost."""
    sensitivity = np.where(np.isnan(trace.sensitivity), 1.0, np.maximum(trace.sensitivity, 1.0))
    rates: Floats = 1.0 / sensitivity
    if throughputs is None:
        return rates
    measured = _per_kind(trace, lambda model, batch, gpus: _spread_rate(throughputs, model, batch, gpus))
    return np.where(np.isnan(measured), rates, measured)


def _spread_rate(throughputs: Throughputs, model: str, batch: int, gpus: int) -> float:
    good = throughputs.steps_per_second(model, batch, gpus)
    apart = throughputs.steps_per_second(model, batch, gpus, placement=_SPREAD)
    return min(apart / good, 1.0) if good and apart else math.nan


def _per_kind(trace: Trace, value: Callable[[str, int, int], float]) -> Floats:
    """`value(model, batch size, GPUs)` of every job, asked once for jobs alike; nan for jobs without a model."""
    known: dict[tuple[int, int, int], float] = {}
    result = np.full(len(trace), np.nan)
    columns = (trace.model.tolist(), trace.batch_size.tolist(), trace.whole_gpus.tolist())
    for row, kind in enumerate(zip(*columns, strict=True)):
        if kind[0] < 0:
            continue
        if kind not in known:
            known[kind] = value(trace.models[kind[0]], kind[1], kind[2])
        result[row] = known[kind]
    return result


def _rates(
    trace: Trace, machines: Machines, types: tuple[str, ...], throughputs: Throughputs | None
) -> NDArray[np.float64]:
    """Speed of each job on each type: measured where it was, else that of the machines of the type."""
    rates = np.tile(_speeds(machines, types), (len(trace), 1))
    if throughputs is None:
        return rates
    for kind, name in enumerate(types):
        if name in throughputs.gpu_types:
            measured = _per_kind(trace, partial(_type_rate, throughputs, name))
            rates[:, kind] = np.where(np.isnan(measured), rates[:, kind], measured)
    return rates


def _speeds(machines: Machines, types: tuple[str, ...]) -> Floats:
    speeds = np.ones(len(types))
    for kind, name in enumerate(machines.gpu_types):
        speeds[types.index(name)] = float(machines.speed[machines.gpu_type == kind].min(initial=np.inf))
    return speeds


def _type_rate(throughputs: Throughputs, name: str, model: str, batch: int, gpus: int) -> float:
    there, reference = (throughputs.steps_per_second(model, batch, gpus, t) for t in (name, ""))
    return there / reference if reference and there is not None else math.nan


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
        measured = _per_kind(trace, lambda m, b, g: throughputs.steps_per_second(m, b, g) or math.nan)
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
