"""Lives and runs of one window as two looks at the cluster show them: the ledger's jobs and a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slurm_fair.ledger.lives import JobLives, JobRuns, at, join, known_ends, seconds_charged
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import JobState, JobTable, Ledger, Snapshot
from slurm_fair.model.columns import Bools, Floats, Ints, find


@dataclass(frozen=True, slots=True)
class _Sight:
    """What the snapshot says of each account, aligned to the accounts."""

    row: Ints  # of the snapshot's jobs, -1 = gone
    requeued: Bools
    submit: Floats
    restarts: Ints
    start: Floats
    end: Floats
    done: Bools
    holds: Bools


def lives_seen(
    ledger: Ledger, snapshot: Snapshot, tenant_row: Ints, settings: LedgerSettings
) -> tuple[JobLives, JobRuns]:
    """Everyone who lived between the ledger's time and the snapshot; `tenant_row` maps its tenants to ours."""
    sight = _sight(ledger, snapshot.jobs)
    lives = _known_lives(ledger, sight, snapshot.time)
    runs = join(_known_runs(ledger, sight, lives, snapshot.time), _runs_since(ledger, sight, snapshot.time))
    rows = _unknown_rows(ledger, snapshot, sight, settings)
    if not len(rows):
        return lives, runs
    jobs, tenant = snapshot.jobs.take(rows), tenant_row[snapshot.jobs.tenant[rows]]
    opened = _opened_lives(jobs, rows, tenant, snapshot.time)
    return join(lives, opened), join(runs, _opened_runs(jobs, len(lives), snapshot.time))


def _sight(ledger: Ledger, jobs: JobTable) -> _Sight:
    """Join by key; whether it is still the same job is told by SubmitTime and Restarts (ids are reused)."""
    accounts = ledger.jobs
    row = find(jobs.key, accounts.key)
    submit, restarts = at(jobs.submit, row, 0.0), at(jobs.restarts, row, 0)
    requeued = (row >= 0) & (restarts > accounts.restarts) & (submit >= accounts.incarnation)
    same = (restarts == accounts.restarts) & (submit == accounts.incarnation)
    row = np.where(requeued | same, row, -1)
    state = at(jobs.state, row, JobState.WAITING)
    start = at(jobs.start, row, 0.0)
    return _Sight(
        row=row,
        requeued=requeued,
        submit=submit,
        restarts=restarts,
        start=start,
        end=at(jobs.end, row, 0.0),
        done=(row >= 0) & (state == JobState.DONE),
        holds=at(jobs.holds_gpus, row, False) & (start > 0),
    )


def _known_lives(ledger: Ledger, sight: _Sight, now: float) -> JobLives:
    accounts, gone = ledger.jobs, sight.row < 0
    # Gone with another job under its id: that job's submission is the latest instant it can have ended at.
    gone_at = np.where(gone & (sight.submit > accounts.incarnation), np.minimum(sight.submit, now), now)
    active_to = np.where(sight.done, np.minimum(sight.end, now), gone_at)
    ran = sight.holds | (sight.done & (sight.end > sight.start) & (sight.start > 0))
    woke = np.where(ran, np.clip(sight.start, ledger.time, active_to), active_to)
    return JobLives(
        key=accounts.key,
        account=np.arange(len(accounts)),
        seen=sight.row,
        submit=accounts.submit,
        incarnation=np.where(gone, accounts.incarnation, sight.submit),
        restarts=np.where(gone, accounts.restarts, sight.restarts),
        tenant=accounts.tenant,
        gpus=accounts.gpus,
        weight=accounts.weight,
        active_from=np.where(accounts.active, ledger.time, woke),
        active_to=active_to,
        ended=gone | sight.done,
        news=np.zeros(len(accounts), dtype=bool),
    )


def _runs_on(ledger: Ledger, sight: _Sight) -> Bools:
    """Accounts whose open run is the one that the snapshot shows; a requeue in progress still is."""
    moved = sight.requeued & (sight.start != ledger.jobs.run_start)
    runs_on: Bools = (ledger.jobs.run_start > 0) & sight.holds & ~moved
    return runs_on


def _known_runs(ledger: Ledger, sight: _Sight, lives: JobLives, now: float) -> JobRuns:
    """The runs that were open at the ledger's time: they go on, or they ended in the window."""
    accounts, runs_on = ledger.jobs, _runs_on(ledger, sight)
    same_run = (runs_on | (sight.done & ~sight.requeued)) & (sight.start > 0)
    start = np.where(same_run, sight.start, accounts.run_start)  # Slurm may correct it
    # A requeue moves SubmitTime to the instant at which it ended the run.
    requeued_at = np.where(sight.submit > accounts.run_start, np.minimum(sight.submit, now), now)
    over_at = np.where(lives.ended & ~sight.requeued, lives.active_to, requeued_at)
    life = np.flatnonzero(accounts.run_start > 0)
    end = np.where(runs_on, now, over_at)[life]
    return JobRuns(
        life=life,
        incarnation=accounts.incarnation[life],
        restarts=accounts.restarts[life],
        gpus=accounts.gpus[life],
        start=start[life],
        end=np.maximum(end, start[life]),
        open=runs_on[life],
        charged=accounts.run_had[life],
        charged_seconds=seconds_charged(accounts, life, ledger.time),
        news=np.zeros(len(life), dtype=bool),
    )


def _runs_since(ledger: Ledger, sight: _Sight, now: float) -> JobRuns:
    """Runs of known jobs that started since; some of them are over again."""
    accounts = ledger.jobs
    moved = (accounts.run_start == 0) | (sight.requeued & (sight.start != accounts.run_start))
    over = sight.done & (sight.end > sight.start) & (sight.start > 0) & moved
    starts = sight.holds & ~_runs_on(ledger, sight)
    life = np.flatnonzero(starts | over)
    return _fresh_runs(
        life, sight.submit[life], sight.restarts[life], accounts.gpus[life], sight.start[life],
        np.where(over, np.minimum(sight.end, now), now)[life], starts[life],
    )  # fmt: skip


def _fresh_runs(
    life: Ints, incarnation: Floats, restarts: Ints, gpus: Ints, start: Floats, end: Floats, is_open: Bools
) -> JobRuns:
    nothing = np.zeros(len(life))
    return JobRuns(
        life=life,
        incarnation=incarnation,
        restarts=restarts,
        gpus=gpus,
        start=start,
        end=np.maximum(end, start),
        open=is_open,
        charged=nothing,
        charged_seconds=nothing,
        news=np.ones(len(life), dtype=bool),
    )


def _unknown_rows(ledger: Ledger, snapshot: Snapshot, sight: _Sight, settings: LedgerSettings) -> Ints:
    """Snapshot rows without an account; ended jobs stay listed for minutes and are opened only once."""
    jobs = snapshot.jobs
    unknown = np.ones(len(jobs), dtype=bool)
    unknown[sight.row[sight.row >= 0]] = False
    done = jobs.state == JobState.DONE
    unknown &= ~done | (jobs.end > max(ledger.time - settings.late_seconds, ledger.began))
    rows = np.flatnonzero(unknown)
    ended = rows[done[rows]]
    told = ended[known_ends(ledger.closed, jobs.key[ended], jobs.submit[ended])]
    return rows[~np.isin(rows, told)]


def _opened_lives(jobs: JobTable, rows: Ints, tenant: Ints, now: float) -> JobLives:
    done = jobs.state == JobState.DONE
    until = np.where(done, np.minimum(jobs.end, now), now)
    claims = jobs.active | done
    return JobLives(
        key=jobs.key,
        account=np.full(len(jobs), -1),
        seen=rows,
        submit=jobs.submit,
        incarnation=jobs.submit,
        restarts=jobs.restarts,
        tenant=tenant,
        gpus=jobs.gpus,
        weight=jobs.weight,
        active_from=np.where(claims, np.minimum(jobs.submit, until), until),
        active_to=until,
        ended=done,
        news=np.ones(len(jobs), dtype=bool),
    )


def _opened_runs(jobs: JobTable, first_life: int, now: float) -> JobRuns:
    done = jobs.state == JobState.DONE
    ran = (jobs.start > 0) & (jobs.holds_gpus | (done & (jobs.end > jobs.start)))
    rows = np.flatnonzero(ran)
    some = jobs.take(rows)
    end = np.where(done[rows], np.minimum(some.end, now), now)
    return _fresh_runs(first_life + rows, some.submit, some.restarts, some.gpus, some.start, end, ~done[rows])
