"""A site's past: the jobs that accounting tells of as a trace, and what really happened to them as a Result."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slurm_fair.ledger import formulas
from slurm_fair.ledger.charging.shares import integrate
from slurm_fair.ledger.charging.timeline import ActiveSpans, ClusterInWindow, totals
from slurm_fair.ledger.metrics.summary import RunFacts, summarise
from slurm_fair.ledger.metrics.windows import Steps, edges_of, exact_windows
from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs, of_these_jobs, recorded
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import labels
from slurm_fair.model.columns import Floats, Ints
from slurm_fair.model.end_words import COMPLETED, MAY_GO_ON
from slurm_fair.sim.loop.weighed import PlansWeighed
from slurm_fair.sim.result import SimulationResult
from slurm_fair.sim.scenario import Costs, Scenario
from slurm_fair.sim.world.load import asked_weights, gpu_types_of
from slurm_fair.slurm.past import Past
from slurm_fair.trace import Trace
from slurm_fair.trace.collect import Collector, ColumnRules
from slurm_fair.trace.convert.sacct import COLUMNS
from slurm_fair.trace.faults import BadCell
from slurm_fair.trace.write import number_text

RECORDED = "recorded"
NO_TENANT = "(none)"  # of a site whose jobs have no account
_WELL = (COMPLETED, "COMPLETING", "")  # as in a trace, no word is a good one
_NOT_OVER = "RUNNING"  # Slurm's word for a job that had not ended when accounting was asked
_LEAST_WORK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a past that can be replayed, and the names of those that cannot."""

    trace: Trace  # in the order of submission; the first is at 0
    outcomes: Outcomes  # row `row_of[job_id]` is what became of a job
    runs: Runs
    nodes: tuple[tuple[str, ...], ...]  # of each run
    state: tuple[str, ...]  # Slurm's word for each row of the outcomes
    row_of: Mapping[str, int]
    since: float  # epoch seconds of the trace's beginning
    cut: tuple[str, ...]  # jobs that were not over: taken as if they had ended when accounting was asked
    never_ran: tuple[str, ...]  # an array whose tasks have no rows of their own once
    never_count: int
    arrays: Mapping[str, int]  # how many jobs a name of those stands for, where it is not one


def jobs_of(past: Past, until: float) -> Jobs | None:
    """Jobs with all their runs as one; None when none of them ever ran. `until` = when accounting was asked.

    A job's work is all the time that it ran; `less_costs` takes off what of it was none. One that had not ended
    yet has done as much as it had by then and is over then, in what is recorded and in what is simulated: left
    out, its GPUs would be free for all others.
    """
    past, last = _in_order(past)
    outcomes, runs = recorded(past.runs, until)
    names = _unique(labels(outcomes.key))
    ran = np.flatnonzero(outcomes.ran > 0)
    open_ = ran[np.isnan(outcomes.end[ran])]
    never = [names[row] for row in np.flatnonzero(~(outcomes.ran > 0)).tolist()]
    if not len(ran):
        return None
    ran = ran[np.argsort(outcomes.submit[ran], kind="stable")]
    since = float(outcomes.submit[ran[0]])
    trace = _trace(past, last, outcomes, names, ran, since)
    state = tuple(past.state[row] for row in last.tolist())
    well = np.array([word in _WELL for word in state], dtype=bool)
    cut = np.isnan(outcomes.end) & (outcomes.ran > 0)
    started = past.runs.start > 0
    return Jobs(
        trace=trace,
        outcomes=outcomes.with_columns(
            end=np.where(cut, until, outcomes.end), completed=outcomes.completed & well & ~cut
        ),
        runs=runs,
        nodes=tuple(nodes for nodes, begun in zip(past.nodes, started.tolist(), strict=True) if begun),
        state=tuple(_NOT_OVER if going else word for word, going in zip(state, cut.tolist(), strict=True)),
        row_of={names[row]: row for row in ran.tolist()},
        since=since,
        cut=tuple(names[row] for row in open_.tolist()),
        never_ran=(*never, *past.unsplit),
        never_count=len(never) + sum(past.unsplit.values()),
        arrays=past.unsplit,
    )


def less_costs(jobs: Jobs, costs: Costs) -> Jobs:
    """The same jobs with less work: what their starts and saves took, the simulation charges anew.

    So a job whose runs come out as they were holds its GPUs for as long as it did.
    """
    runs, count = jobs.runs, len(jobs.outcomes)
    first = np.append(True, runs.job[1:] != runs.job[:-1])[: len(runs)]
    last = np.append(first[1:], True)[: len(runs)]
    lost = costs.start + np.where(first, 0.0, costs.restart) + np.where(last, 0.0, costs.checkpoint)
    worked = totals(runs.job, np.maximum(runs.end - runs.start - lost, 0.0), count)
    ran = totals(runs.job, runs.end - runs.start, count)
    row = np.array([jobs.row_of[str(name)] for name in jobs.trace.job_id], dtype=np.int64)
    # Whoever never got beyond its start has done a second's work: a trace has no jobs without any.
    work = np.maximum(worked, np.minimum(ran, _LEAST_WORK_SECONDS))[row]
    return replace(jobs, trace=jobs.trace.with_columns(duration_s=work))


def _in_order(past: Past) -> tuple[Past, Ints]:
    """Rows as `recorded` sorts them, and the row of each job's last run."""
    order = np.lexsort((past.runs.start, past.runs.submit, past.runs.key))
    runs, rows = past.runs.take(order), order.tolist()
    state = tuple(past.state[row] for row in rows)
    has_next = np.append(runs.key[1:] == runs.key[:-1], False)[: len(runs)]
    may_be_last = np.array([word in MAY_GO_ON for word in state], dtype=bool)
    requeued = np.where(may_be_last & ~has_next, 0, runs.requeued).astype(np.int8)
    tenants = tuple(name or NO_TENANT for name in runs.tenants)
    sorted_ = Past(
        runs=runs.with_columns(requeued=requeued, tenants=tenants),
        state=state,
        asked_type=tuple(past.asked_type[row] for row in rows),
        asked_nodes=past.asked_nodes[order],
        limit_seconds=past.limit_seconds[order],
        nodes=tuple(past.nodes[row] for row in rows),
        unsplit=past.unsplit,
        left_out=past.left_out,
    )
    goes_on = has_next & (requeued == 1)
    return sorted_, np.flatnonzero(~goes_on)


def _unique(names: Sequence[str]) -> list[str]:
    """Slurm may use an id again; the later job gets a number behind it."""
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return unique


def _trace(
    past: Past, last: Ints, outcomes: Outcomes, names: Sequence[str], rows: Ints, since: float
) -> Trace:
    collector = Collector(COLUMNS, ColumnRules())
    tenants, users = outcomes.tenants, outcomes.users
    columns = (
        rows,
        last[rows],
        outcomes.tenant[rows],
        outcomes.user[rows],
        outcomes.submit[rows] - since,
        outcomes.gpus[rows],
        outcomes.ran[rows],
    )
    for row, run, tenant, user, submit, gpus, seconds in zip(*(c.tolist() for c in columns), strict=True):
        limit, nodes = float(past.limit_seconds[run]), int(past.asked_nodes[run])
        cells = (
            names[row],
            tenants[tenant],
            number_text(submit),
            str(gpus),
            number_text(seconds),
            users[user],
            past.asked_type[run],
            past.state[run],
            str(nodes) if nodes else "",
            number_text(limit) if 0 < limit < math.inf else "",
        )
        try:
            collector.add("", cells)
        except BadCell as bad:
            raise BadCell(f"job {names[row]}: {bad.column}: {bad.what}") from None
    return collector.trace()


# -- what really happened ---------------------------------------------------------------------------------------


def recorded_result(jobs: Jobs, scenario: Scenario, how: LedgerSettings | None = None) -> SimulationResult:
    """Measure the recorded past of a scenario's jobs in the way in which a simulation of them is measured.

    What was owed follows from the definitions, with the machines and weights of the scenario. Nobody recorded what
    checkpoints cost, which GPUs lay idle while jobs waited, or how a placement slowed a job.
    """
    row = np.array([jobs.row_of[str(job)] for job in scenario.trace.job_id], dtype=np.int64)
    order = np.argsort(row)
    outcomes, runs = of_these_jobs(jobs.outcomes, jobs.runs, row[order])
    weight = scenario.weights_of(outcomes.tenants)
    total = float(scenario.machines.total_gpus)
    how = how or LedgerSettings()
    outcomes, runs, mean = _weighed(outcomes, runs, scenario, order)
    shared = total * mean
    outcomes, owed = _with_owed(outcomes, weight, shared, how)
    outcomes = _with_truth(outcomes, scenario.trace.take(order))
    last = float(outcomes.ended_or_now.max())
    capacity = Steps.steady(total, jobs.since)
    counts, edges = how.counts_seconds, edges_of(jobs.since, last)
    shared_out = Steps.steady(shared, jobs.since)
    windows = exact_windows(outcomes, runs, weight, shared_out, edges, counts_seconds=counts)
    had = totals(outcomes.tenant, outcomes.had, len(outcomes.tenants))
    facts = RunFacts(
        total_gpus=total,
        windows=windows,
        tenant_had=had,
        tenant_owed=owed,
        tenant_weight=weight,
        runs=runs,
        capacity=capacity,
    )
    accounts = dict(zip(outcomes.tenants, zip(had.tolist(), owed.tolist(), strict=True), strict=True))
    return SimulationResult(
        RECORDED, jobs.since, outcomes, order, runs, weight, float(weight.sum()), counts, "demand", windows,
        capacity, shared_out, total, accounts, summarise(outcomes, facts), math.nan, np.zeros(0), PlansWeighed(),
        0.0, 0.0,
    )  # fmt: skip


def _weighed(outcomes: Outcomes, runs: Runs, scenario: Scenario, order: Ints) -> tuple[Outcomes, Runs, float]:
    """Jobs and runs by the weight of the GPU type that their users asked for, and that of a GPU on average.

    Nobody recorded on which type a job ran that asked for none: it counts as the average.
    """
    if not scenario.gpu_weights:
        return outcomes, runs, 1.0
    trace = scenario.trace
    asked = asked_weights(scenario, gpu_types_of(trace, scenario.machines))
    at = np.array([gpu_types_of(trace, scenario.machines).index(name) for name in trace.gpu_types] + [-1])
    gpu_weight = asked[at[trace.gpu_type[order]]]
    runs = runs.with_columns(gpu_weight=gpu_weight[runs.job])
    had = outcomes.had * gpu_weight
    return outcomes.with_columns(gpu_weight=gpu_weight, had=had), runs, float(asked[-1])


def _with_owed(
    outcomes: Outcomes, weight: Floats, total_gpus: float, how: LedgerSettings
) -> tuple[Outcomes, Floats]:
    """Each job's and each tenant's claim (eq. 8 and 14), as the ledger would have integrated it."""
    claims = ActiveSpans(
        outcomes.tenant,
        outcomes.gpus * outcomes.gpu_weight,
        np.ones(len(outcomes)),
        outcomes.submit,
        outcomes.ended_or_now,
    )
    cluster = ClusterInWindow(total_gpus, weight, np.full(len(weight), -np.inf))
    first, last = float(outcomes.submit.min()), float(outcomes.ended_or_now.max())
    owed = integrate(claims, cluster, first, last, how)
    rho = formulas.rho_for_reports(outcomes.had, owed.claims)
    return outcomes.with_columns(owed=owed.claims, rho_ltgf=rho), owed.demand


def _with_truth(outcomes: Outcomes, trace: Trace) -> Outcomes:
    """The time for which jobs run alone is what a simulation of them takes it to be."""
    work = trace.duration_s
    return outcomes.with_columns(
        exclusive_seconds=work, expected_seconds=work, declared_seconds=trace.declared_s
    )


def nodes_of_runs(jobs: Jobs, result: SimulationResult) -> list[tuple[int, float, tuple[str, ...]]]:
    """Key, start and nodes of each run of a recorded result, as far as accounting named nodes."""
    known = {int(key) for key in result.outcomes.key.tolist()}
    columns = zip(jobs.runs.job.tolist(), jobs.runs.start.tolist(), jobs.nodes, strict=True)
    keys = jobs.outcomes.key.tolist()
    return [(keys[job], start, nodes) for job, start, nodes in columns if nodes and keys[job] in known]
