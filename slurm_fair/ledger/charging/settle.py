"""Correct charges by accounting, which knows to the second when each job ran."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from slurm_fair.ledger.charging.tenants import with_tenants
from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.model import ClosedRuns, JobAccounts, Ledger, RunTable
from slurm_fair.model.columns import Bools, Floats, Ints, absent, find, take_or


def settle(
    ledger: Ledger, runs: RunTable, until: float, gpu_weight: Floats | None = None
) -> tuple[Ledger, float]:
    """Charge what accounting says of the runs that ended by `until`; also the GPU-seconds moved, signs dropped.

    Runs that are still open in the ledger are left to the next look at the cluster. Runs that accounting does
    not have stay as they are: it may lag. So do those that have no GPUs there: they are charged for GPUs that
    nobody else could use beside them, or accounting counts no GPUs. Only `had` is mended (and the seconds run and
    waited), not `owed`. `gpu_weight` is what a GPU of each run counts, where that is known.
    """
    over = (runs.gpus > 0) & (runs.start > 0) & (runs.end > runs.start)
    over &= runs.end <= min(until, ledger.time)
    over &= (runs.end > max(ledger.began, ledger.closed.since)) & ~_open_in_ledger(ledger.jobs, runs)
    ledger, tenant_row = with_tenants(ledger, runs.tenants, np.ones(len(runs.tenants)))
    said = _as_closed(ledger, runs.take(over), tenant_row)
    polled = ledger.closed
    match = _matches(polled, said)
    said = said.with_columns(tenant=np.where(match >= 0, take_or(polled.tenant, match, 0), said.tenant))
    otherwise = np.full(len(runs), ledger.mean_gpu_weight) if gpu_weight is None else gpu_weight
    said = _weighed(said, np.where(match >= 0, take_or(polled.gpu_weight, match, 1.0), otherwise[over]))
    said = _with_what_lay_idle(said, take_or(polled.gpus, match, 0))
    gpu_seconds = said.charged - take_or(polled.charged, match, 0.0)
    seconds = said.end - said.start - (take_or(polled.end, match, 0.0) - take_or(polled.start, match, 0.0))
    left = np.delete(np.arange(len(polled)), match[match >= 0])
    tenants = ledger.tenants
    settled = replace(
        ledger,
        tenants=tenants.with_columns(had=tenants.had + totals(said.tenant, gpu_seconds, len(tenants))),
        jobs=_jobs_settled(ledger.jobs, said, gpu_seconds, seconds),
        closed=polled.take(left).joined(said),
    )
    return settled, float(np.abs(gpu_seconds).sum())


def _with_what_lay_idle(said: ClosedRuns, gpus: Ints) -> ClosedRuns:
    """Accounting knows no GPUs that nobody else could use beside a run: those that were seen stay charged."""
    more = np.maximum(gpus, said.gpus)
    return said.with_columns(gpus=more, charged=said.charged * more / said.gpus)


def _weighed(said: ClosedRuns, gpu_weight: Floats) -> ClosedRuns:
    """Accounting does not weigh GPUs: a run that was seen keeps its weight, and others have that of the mean."""
    return said.with_columns(gpu_weight=gpu_weight, charged=said.charged * gpu_weight)


def _open_in_ledger(jobs: JobAccounts, runs: RunTable) -> Bools:
    row = find(jobs.key, runs.key)
    run_start = take_or(jobs.run_start, row, 0.0)
    same_run = (run_start == runs.start) | (take_or(jobs.incarnation, row, -1.0) == runs.submit)
    result: Bools = (run_start > 0) & same_run
    return result


def _as_closed(ledger: Ledger, runs: RunTable, tenant_row: Ints) -> ClosedRuns:
    return ClosedRuns(
        key=runs.key,
        submit=runs.submit,
        start=runs.start,
        end=runs.end,
        gpus=runs.gpus,
        tenant=tenant_row[runs.tenant] if len(runs) else runs.tenant,
        charged=runs.gpus * (runs.end - np.maximum(runs.start, ledger.began)),
        gpu_weight=np.ones(len(runs)),
        since=ledger.closed.since,
    )


def _matches(polled: ClosedRuns, said: ClosedRuns) -> Ints:
    """Row of `polled` that charged each run: the one with its start, else one of its job that overlaps it."""
    match = absent(len(said))
    by_key: dict[int, dict[float, int]] = defaultdict(dict)
    there = np.flatnonzero(np.isin(polled.key, said.key) & (polled.start > 0))
    for row, key, start in zip(
        there.tolist(), polled.key[there].tolist(), polled.start[there].tolist(), strict=True
    ):
        by_key[key][start] = row
    keys, starts = said.key.tolist(), said.start.tolist()
    for number, (key, start) in enumerate(zip(keys, starts, strict=True)):
        if key in by_key:
            match[number] = by_key[key].pop(start, -1)
    for number in np.flatnonzero(match < 0).tolist():
        others = by_key.get(keys[number], {})
        for start, row in sorted(others.items()):
            if start < said.end[number] and polled.end[row] > said.start[number]:
                match[number] = others.pop(start)
                break
    return match


def _jobs_settled(jobs: JobAccounts, said: ClosedRuns, gpu_seconds: Floats, seconds: Floats) -> JobAccounts:
    """Runs of jobs that live on (a requeue ended them) are theirs too."""
    row = find(jobs.key, said.key)
    theirs = np.flatnonzero((row >= 0) & (take_or(jobs.submit, row, np.inf) <= said.start))
    had = totals(row[theirs], gpu_seconds[theirs], len(jobs))
    ran = totals(row[theirs], seconds[theirs], len(jobs))
    return jobs.with_columns(
        had=jobs.had + had, ran=jobs.ran + ran, waited=np.maximum(jobs.waited - ran, 0.0)
    )
