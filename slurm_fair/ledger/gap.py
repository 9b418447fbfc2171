"""Time without the daemon: who lived and ran then is known to accounting alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.ledger.charge import charge
from slurm_fair.ledger.fold import DEFAULTS, with_tenants
from slurm_fair.ledger.lives import JobLives, JobRuns, Window, at, join, known_ends, seconds_charged
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import JobAccounts, Ledger, RunTable
from slurm_fair.model.columns import Bools, Floats, Ints, find


@dataclass(frozen=True, slots=True)
class _Chains:
    """Accounting's runs in the order of submission, and which of them belong to one job."""

    runs: RunTable
    life: Ints  # per run
    first: Ints  # first and last run of each life
    last: Ints
    account: Ints  # row of the ledger's jobs per life, -1 = unknown to it


def fill_gap(ledger: Ledger, runs: RunTable, until: float, settings: LedgerSettings = DEFAULTS) -> Ledger:
    """The ledger at `until`, from the runs and waits of accounting.

    The cluster's size and the weights are those that the ledger saw last; jobs that accounting does not mention
    went on as they were. Holds are unknown: a job counts as active from its submission to its end.
    """
    if until <= ledger.time:
        return ledger
    known, tenant_row = with_tenants(ledger, runs.tenants, np.ones(len(runs.tenants)))
    chains = _chains(known, runs)
    accounts = _accounts(known, chains, tenant_row)
    lives = _lives(known, chains, accounts, until)
    kept = _of_this_gap(known, accounts, lives, until)
    rows = _unmentioned(known, chains)
    others = known.jobs.take(rows)
    silent = _unmentioned_lives(known, chains, others, until)
    count = int(kept.sum())
    stretches = join(
        _runs(known, chains, np.where(kept, np.cumsum(kept) - 1, -1), until),
        _unmentioned_runs(known, rows, silent, count),
    )
    window = Window.of(join(accounts.take(kept), others), join(lives.take(kept), silent), stretches)
    return charge(known, window, until, settings)[0]


def _of_this_gap(ledger: Ledger, accounts: JobAccounts, lives: JobLives, until: float) -> Bools:
    """Not those that were over before it, which the ledger has charged and closed."""
    kept = lives.met | ((accounts.submit <= until) & (lives.active_to > ledger.time))
    ended = np.flatnonzero(kept & lives.ended & ~lives.met)
    kept[ended[known_ends(ledger.closed, accounts.key[ended], lives.incarnation[ended])]] = False
    return kept


def _chains(ledger: Ledger, runs: RunTable) -> _Chains:
    """A run that was requeued and the next run of its key are the same job; otherwise the id was reused."""
    runs = runs.take(np.lexsort((runs.start, runs.submit, runs.key)))
    goes_on = (runs.key[1:] == runs.key[:-1]) & (runs.requeued[:-1] == 1)
    begins = np.concatenate([[True], ~goes_on])[: len(runs)]
    life = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(runs))[: len(first)] - 1
    row = find(ledger.jobs.key, runs.key)
    same = (row >= 0) & (at(ledger.jobs.incarnation, row, -1.0) == runs.submit)
    account = np.full(len(first), -1, dtype=np.int64)
    account[life[same]] = row[same]
    return _Chains(runs, life, first, last, account)


def _accounts(ledger: Ledger, chains: _Chains, tenant_row: Ints) -> JobAccounts:
    """What each life had come to when the gap began; its gang and its tenant are those that accounting tells."""
    first, last = chains.runs.take(chains.first), chains.runs.take(chains.last)
    account, jobs = chains.account, ledger.jobs
    return JobAccounts(
        key=last.key,
        submit=np.where(account >= 0, at(jobs.submit, account, 0.0), first.submit),
        incarnation=np.where(account >= 0, at(jobs.incarnation, account, 0.0), first.submit),
        restarts=at(jobs.restarts, account, 0),
        tenant=tenant_row[last.tenant] if len(last) else last.tenant,
        gpus=last.gpus,
        weight=at(jobs.weight, account, 1.0),
        had=at(jobs.had, account, 0.0),
        owed=at(jobs.owed, account, 0.0),
        waited=at(jobs.waited, account, 0.0),
        ran=at(jobs.ran, account, 0.0),
        run_start=at(jobs.run_start, account, 0.0),
        run_had=at(jobs.run_had, account, 0.0),
        active=at(jobs.active, account, False),
    )


def _lives(ledger: Ledger, chains: _Chains, accounts: JobAccounts, until: float) -> JobLives:
    last, account, jobs = chains.runs.take(chains.last), chains.account, ledger.jobs
    # A requeued run without a successor in the table: its job waits.
    ended = (last.end > 0) & (last.end <= until) & (last.requeued == 0)
    active_to = np.where(ended, last.end, until)
    later = chains.runs.submit > at(jobs.incarnation, account, np.inf)[chains.life]
    known_restarts = accounts.restarts + np.bincount(chains.life[later], minlength=len(last))
    met = account >= 0
    woke = np.where(last.start > 0, np.clip(last.start, ledger.time, active_to), active_to)
    known_from = np.where(met & ~accounts.active, woke, ledger.time)
    active_from = np.where(met, known_from, np.minimum(accounts.submit, active_to))
    return JobLives(
        incarnation=last.submit,
        restarts=np.where(met, known_restarts, chains.last - chains.first),
        tenant=accounts.tenant,
        gpus=accounts.gpus,
        weight=accounts.weight,
        active=~met | (active_to > active_from),
        active_from=active_from,
        active_to=active_to,
        ended=ended,
        met=met,
    )


def _runs(ledger: Ledger, chains: _Chains, new_row: Ints, until: float) -> JobRuns:
    runs, jobs = chains.runs, ledger.jobs
    account = chains.account[chains.life]
    open_before = (at(jobs.run_start, account, 0.0) > 0) & (
        (at(jobs.run_start, account, 0.0) == runs.start)
        | (at(jobs.incarnation, account, -1.0) == runs.submit)
    )
    is_open = (runs.end == 0) | (runs.end > until)
    touches = (runs.start > 0) & (runs.start <= until) & (is_open | (runs.end > ledger.time) | open_before)
    rows = np.flatnonzero(touches & (new_row[chains.life] >= 0))
    some, account, before = runs.take(rows), account[rows], open_before[rows]
    return JobRuns(
        life=new_row[chains.life[rows]],
        incarnation=some.submit,
        restarts=np.zeros(len(rows), dtype=np.int64),
        gpus=some.gpus,
        start=some.start,
        end=np.where(is_open[rows], until, some.end),
        open=is_open[rows],
        charged=np.where(before, at(jobs.run_had, account, 0.0), 0.0),
        charged_seconds=np.where(before, seconds_charged(jobs, account, ledger.time), 0.0),
        news=~before,
    )


def _unmentioned(ledger: Ledger, chains: _Chains) -> Ints:
    """Rows of the accounts that accounting does not know."""
    return np.flatnonzero(~np.isin(np.arange(len(ledger.jobs)), chains.account))


def _unmentioned_lives(ledger: Ledger, chains: _Chains, some: JobAccounts, until: float) -> JobLives:
    """They went on; one whose id another job bears now has ended."""
    reused = _first_submit(chains, some.key)
    ended = np.isfinite(reused)
    active_to = np.where(ended, np.clip(reused, ledger.time, until), until)
    active_from = np.where(some.active, ledger.time, active_to)
    return JobLives(
        incarnation=some.incarnation,
        restarts=some.restarts,
        tenant=some.tenant,
        gpus=some.gpus,
        weight=some.weight,
        active=active_to > active_from,
        active_from=active_from,
        active_to=active_to,
        ended=ended,
        met=np.ones(len(some), dtype=bool),
    )


def _first_submit(chains: _Chains, keys: Ints) -> Floats:
    """When the first job of accounting under each key was submitted, inf without one."""
    first = chains.runs.take(chains.first)
    earliest = np.searchsorted(first.key, keys)
    there = find(first.key, keys) >= 0
    return np.where(there, at(first.submit, np.where(there, earliest, -1), np.inf), np.inf)


def _unmentioned_runs(ledger: Ledger, accounts: Ints, lives: JobLives, first_life: int) -> JobRuns:
    """Their open runs went on for as long as they lived; `lives` begin at row `first_life` of all."""
    some = ledger.jobs.take(accounts)
    rows = np.flatnonzero(some.run_start > 0)
    return JobRuns(
        life=first_life + rows,
        incarnation=some.incarnation[rows],
        restarts=some.restarts[rows],
        gpus=some.gpus[rows],
        start=some.run_start[rows],
        end=np.maximum(lives.active_to[rows], some.run_start[rows]),
        open=~lives.ended[rows],
        charged=some.run_had[rows],
        charged_seconds=seconds_charged(ledger.jobs, accounts[rows], ledger.time),
        news=np.zeros(len(rows), dtype=bool),
    )
