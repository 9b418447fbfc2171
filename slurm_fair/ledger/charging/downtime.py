"""Charge the time without a daemon, from what accounting alone knows of the jobs that lived and ran then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slurm_fair.ledger.charging.advance import DEFAULTS
from slurm_fair.ledger.charging.charge import charge
from slurm_fair.ledger.charging.tenants import with_tenants
from slurm_fair.ledger.charging.window import (
    JobLives,
    JobRuns,
    Window,
    known_ends,
    rows_taken,
    seconds_charged,
    stacked,
)
from slurm_fair.ledger.charging.window_events import NO_LOOKS, Happened, written
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import Event, EventKind, JobTable, Ledger, RunTable
from slurm_fair.model.columns import Bools, Floats, Ints, absent, find, take_or


@dataclass(frozen=True, slots=True)
class _Chains:
    """Accounting's runs in the order of submission, and which of them belong to one job."""

    runs: RunTable
    life: Ints  # per run
    first: Ints  # first and last run of each life
    last: Ints
    account: Ints  # row of the ledger's jobs per life, -1 = unknown to it


class Gap(NamedTuple):
    """The time without us, up to an instant, and the runs of it as accounting told them."""

    runs: RunTable
    until: float


class Filled(NamedTuple):
    """The ledger after the gap, and what happened to jobs in it."""

    ledger: Ledger
    events: tuple[Event, ...] = ()


def fill_gap(
    ledger: Ledger,
    runs: RunTable,
    until: float,
    settings: LedgerSettings = DEFAULTS,
    shown: JobTable | None = None,
) -> Filled:
    """The ledger at `until`, from the runs and waits of accounting, and the events that no look has shown.

    The cluster's size and the weights are those that the ledger saw last; jobs that accounting does not mention
    went on as they were. Holds are unknown: a job counts as active from its submission to its end. `shown` are
    the jobs of the next look: accounting may have lost the end of another one.
    """
    if until <= ledger.time:
        return Filled(ledger)
    runs = runs.as_it_stood(until)  # the next look tells of what came after
    if shown is not None:
        runs = _without_the_lost(ledger, runs, until, shown)
    known, tenant_row = with_tenants(ledger, runs.tenants, np.ones(len(runs.tenants)))
    chains = _chains(known, runs)
    lives = _lives(known, chains, tenant_row, until)
    kept = _of_this_gap(known, chains, lives, until)
    silent = np.flatnonzero(~np.isin(np.arange(len(known.jobs)), chains.account))
    others = _silent_lives(known, chains, silent, until)
    place = _places(chains.account, kept, len(known.jobs))
    order = np.argsort(np.concatenate([place[kept], silent]))
    stretches = stacked(_runs(known, chains, place, until), _silent_runs(known, silent, others))
    everyone = rows_taken(stacked(rows_taken(lives, np.flatnonzero(kept)), others), order)
    window = Window.of(everyone, stretches)
    after, result = charge(known, window, until, settings)
    return Filled(after, _events_of(Happened(known, NO_LOOKS, window, result), runs))


def _without_the_lost(ledger: Ledger, runs: RunTable, until: float, shown: JobTable) -> RunTable:
    """The runs without open ones of jobs that live for accounting alone: neither ledger nor look knows them.

    Such a job was over by then, and with the last run that has an end as far as anybody can tell.
    """
    chains = _chains(ledger, runs)
    runs, last = chains.runs, chains.runs.take(chains.last)
    row = find(shown.key, last.key)
    submit, requeued = take_or(shown.submit, row, -1.0), take_or(shown.restarts, row, 0) > 0
    seen = (submit == last.submit) | (requeued & (submit > last.submit))
    is_open = (runs.end <= 0) | (runs.end > until)
    lost = (is_open[chains.last] | (last.requeued == 1)) & (chains.account < 0) & ~seen
    if not lost.any():
        return runs
    goes_on = runs.requeued.copy()
    ends = (chains.last - is_open[chains.last])[lost]
    goes_on[np.maximum(ends, chains.first[lost])] = 0
    return runs.with_columns(requeued=goes_on).take(~(lost[chains.life] & is_open))


def _events_of(happened: Happened, runs: RunTable) -> tuple[Event, ...]:
    """Events in the order of time. Accounting knows the users of jobs, and counts no restarts of their runs."""
    user = {key: runs.users[row] for key, row in zip(runs.key.tolist(), runs.user.tolist(), strict=True)}
    events = []
    for event in (event for some in happened.became for event in written(some)):
        said = dict(event.detail)
        if event.kind in (EventKind.STARTED, EventKind.STOPPED):
            said.pop("restarts", None)
        elif event.key in user:
            said["user"] = user[event.key]
        events.append(event._replace(detail=said))
    return tuple(sorted(events, key=lambda event: (event.time, event.key)))


def _of_this_gap(ledger: Ledger, chains: _Chains, lives: JobLives, until: float) -> Bools:
    """Not those that were over before it, which the ledger has charged and closed."""
    met = chains.account >= 0
    kept = met | ((lives.submit <= until) & (lives.active_to > ledger.time))
    ended = np.flatnonzero(kept & lives.ended & ~met)
    kept[ended[known_ends(ledger.closed, lives.key[ended], lives.incarnation[ended])]] = False
    return kept


def _places(account: Ints, kept: Bools, accounts: int) -> Ints:
    """The row of each life: accounts in their order, then new ones; -1 for one that is not kept."""
    new = kept & (account < 0)
    place = np.where(kept, account, -1)
    place[new] = np.arange(accounts, accounts + int(new.sum()))
    return place


def _chains(ledger: Ledger, runs: RunTable) -> _Chains:
    """A run that was requeued, or resized, and the next run of its key are one job; else the id was reused."""
    runs = runs.take(np.lexsort((runs.start, runs.submit, runs.key)))
    same_submit = runs.submit[1:] == runs.submit[:-1]
    goes_on = (runs.key[1:] == runs.key[:-1]) & ((runs.requeued[:-1] == 1) | same_submit)
    begins = np.concatenate([[True], ~goes_on])[: len(runs)]
    life = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(runs))[: len(first)] - 1
    row = find(ledger.jobs.key, runs.key)
    same = (row >= 0) & (take_or(ledger.jobs.incarnation, row, -1.0) == runs.submit)
    account = absent(len(first))
    account[life[same]] = row[same]
    # Of two lives that could be one account's, the later.
    owner = absent(len(ledger.jobs))
    owner[account[account >= 0]] = np.flatnonzero(account >= 0)
    account[(account >= 0) & (take_or(owner, account, -1) != np.arange(len(first)))] = -1
    return _Chains(runs, life, first, last, account)


def _lives(ledger: Ledger, chains: _Chains, tenant_row: Ints, until: float) -> JobLives:
    first, last = chains.runs.take(chains.first), chains.runs.take(chains.last)
    account, jobs = chains.account, ledger.jobs
    # A requeued run without a successor in the table: its job waits.
    ended = (last.end > 0) & (last.end <= until) & (last.requeued == 0)
    active_to = np.where(ended, last.end, until)
    submit = np.where(account >= 0, take_or(jobs.submit, account, 0.0), first.submit)
    later = chains.runs.submit > take_or(jobs.incarnation, account, np.inf)[chains.life]
    known_restarts = take_or(jobs.restarts, account, 0) + np.bincount(
        chains.life[later], minlength=len(first)
    )
    active, waits = take_or(jobs.active, account, False), take_or(jobs.waits, account, False)
    woke = np.where(last.start > 0, np.clip(last.start, ledger.time, active_to), active_to)
    submitted = np.minimum(submit, active_to)
    active_from = np.where(account >= 0, np.where(active, ledger.time, woke), submitted)
    waits_from = np.where(account >= 0, np.where(waits, ledger.time, woke), submitted)
    tenant = tenant_row[last.tenant] if len(last) else last.tenant
    weight = take_or(jobs.weight, account, 1.0)
    gpu_weight = take_or(jobs.gpu_weight, account, ledger.mean_gpu_weight)
    gpus = np.where(account >= 0, take_or(jobs.gpus, account, 0), last.gpus)
    return JobLives(
        key=last.key,
        submit=submit,
        tenant=tenant,
        gpus=gpus,
        weight=weight,
        gpu_weight=gpu_weight,
        active=active,
        active_from=active_from,
        active_to=active_to,
        waits_from=waits_from,
        ended=ended,
        incarnation=last.submit,
        restarts=np.where(account >= 0, known_restarts, chains.last - chains.first),
        then_tenant=tenant,
        then_gpus=gpus,
        then_weight=weight,
        then_gpu_weight=gpu_weight,
        then_active=(account < 0) | (active_to > active_from),
        then_waits=(account < 0) | (active_to > waits_from),
    )


def _runs(ledger: Ledger, chains: _Chains, place: Ints, until: float) -> JobRuns:
    runs, jobs = chains.runs, ledger.jobs
    account = chains.account[chains.life]
    open_before = (take_or(jobs.run_start, account, 0.0) > 0) & (
        (take_or(jobs.run_start, account, 0.0) == runs.start)
        | ((take_or(jobs.incarnation, account, -1.0) == runs.submit) & (runs.start <= ledger.time))
    )
    is_open = (runs.end == 0) | (runs.end > until)
    touches = (runs.start > 0) & (runs.start <= until) & (is_open | (runs.end > ledger.time) | open_before)
    rows = np.flatnonzero(touches & (place[chains.life] >= 0))
    some, account, before = runs.take(rows), account[rows], open_before[rows]
    gpus = np.maximum(some.gpus, np.where(before, take_or(jobs.run_gpus, account, 0), 0))
    return JobRuns(
        life=place[chains.life[rows]],
        incarnation=some.submit,
        restarts=np.zeros(len(rows), dtype=np.int64),
        gpus=gpus,
        then_gpus=gpus,
        gpu_weight=take_or(jobs.gpu_weight, account, ledger.mean_gpu_weight),
        start=some.start,
        end=np.where(is_open[rows], until, some.end),
        open=is_open[rows],
        charged=np.where(before, take_or(jobs.run_had, account, 0.0), 0.0),
        charged_seconds=np.where(before, seconds_charged(jobs, account, ledger.time), 0.0),
        news=~before,
    )


def _silent_lives(ledger: Ledger, chains: _Chains, accounts: Ints, until: float) -> JobLives:
    """Accounts that accounting does not know; one whose id another job bears now has ended."""
    some = ledger.jobs.take(accounts)
    reused = _first_submit(chains, some.key)
    ended = np.isfinite(reused)
    active_to = np.where(ended, np.clip(reused, ledger.time, until), until)
    active_from = np.where(some.active, ledger.time, active_to)
    waits_from = np.where(some.waits, ledger.time, active_to)
    return JobLives(
        key=some.key,
        submit=some.submit,
        tenant=some.tenant,
        gpus=some.gpus,
        weight=some.weight,
        gpu_weight=some.gpu_weight,
        active=some.active,
        active_from=active_from,
        active_to=active_to,
        waits_from=waits_from,
        ended=ended,
        incarnation=some.incarnation,
        restarts=some.restarts,
        then_tenant=some.tenant,
        then_gpus=some.gpus,
        then_weight=some.weight,
        then_gpu_weight=some.gpu_weight,
        then_active=active_to > active_from,
        then_waits=active_to > waits_from,
    )


def _first_submit(chains: _Chains, keys: Ints) -> Floats:
    """The submit time of the first job of accounting under each key, inf without one."""
    first = chains.runs.take(chains.first)
    earliest = np.searchsorted(first.key, keys)
    there = find(first.key, keys) >= 0
    return np.where(there, take_or(first.submit, np.where(there, earliest, -1), np.inf), np.inf)


def _silent_runs(ledger: Ledger, accounts: Ints, lives: JobLives) -> JobRuns:
    """Their open runs went on for as long as they lived."""
    some = ledger.jobs.take(accounts)
    rows = np.flatnonzero(some.run_start > 0)
    return JobRuns(
        life=accounts[rows],
        incarnation=some.incarnation[rows],
        restarts=some.restarts[rows],
        gpus=some.run_gpus[rows],
        then_gpus=some.run_gpus[rows],
        gpu_weight=some.gpu_weight[rows],
        start=some.run_start[rows],
        end=np.maximum(lives.active_to[rows], some.run_start[rows]),
        open=~lives.ended[rows],
        charged=some.run_had[rows],
        charged_seconds=seconds_charged(ledger.jobs, accounts[rows], ledger.time),
        news=np.zeros(len(rows), dtype=bool),
    )
