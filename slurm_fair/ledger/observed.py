"""Lives and runs of one window as two looks at the cluster show them: the ledger's jobs and a snapshot.

Most looks show that little changed: what did not happen is not worked out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slurm_fair.ledger.lives import JobLives, JobRuns, at, join, known_ends
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import JobState, JobTable, Ledger, Snapshot
from slurm_fair.model.columns import Bools, Codes, Floats, Ints, all_of, any_of, begins_with, find

_DONE, _WAITING = np.int8(JobState.DONE), np.int8(JobState.WAITING)
_RUNNING, _SUSPENDED = np.int8(JobState.RUNNING), np.int8(JobState.SUSPENDED)


class _Sight(NamedTuple):
    """What the snapshot says of each account, aligned to the accounts."""

    row: Ints  # of the snapshot's jobs, -1 = gone
    submit: Floats
    restarts: Ints
    start: Floats
    end: Floats
    holds: Bools
    done: Bools
    gone: Bools
    requeued: Bools
    some_done: bool
    some_gone: bool
    some_requeued: bool


def lives_seen(
    ledger: Ledger, snapshot: Snapshot, tenant_row: Ints, settings: LedgerSettings
) -> tuple[JobLives, JobRuns]:
    """Everyone who lived between the ledger's time and the snapshot; `tenant_row` maps its tenants to ours."""
    now, jobs = snapshot.time, snapshot.jobs
    sight = _sight(ledger, jobs)
    lives = _known_lives(ledger, sight, now)
    runs = _known_runs(ledger, sight, lives, now)
    rows = _unknown_rows(ledger, jobs, sight, settings)
    if not len(rows):
        return lives, runs
    everyone = join(lives, _opened_lives(jobs, rows, tenant_row, now))
    if any_of(jobs.start[rows] > 0):
        runs = join(runs, _opened_runs(jobs, rows, len(lives), now))
    return everyone, runs


def _sight(ledger: Ledger, jobs: JobTable) -> _Sight:
    """Join by key; whether it is still the same job is told by SubmitTime and Restarts (ids are reused)."""
    accounts, count = ledger.jobs, len(ledger.jobs)
    in_front = begins_with(jobs.key, accounts.key)  # living jobs stay listed, and new keys are greater
    row = np.arange(count) if in_front else find(jobs.key, accounts.key)

    def shown(column: NDArray[Any], absent: Any) -> NDArray[Any]:
        return column[:count] if in_front else at(column, row, absent)

    submit, restarts = shown(jobs.submit, 0.0), shown(jobs.restarts, 0)
    requeued = np.zeros(count, dtype=bool)
    same = (restarts == accounts.restarts) & (submit == accounts.incarnation)
    if not all_of(same):
        requeued = (row >= 0) & (restarts > accounts.restarts) & (submit >= accounts.incarnation)
        row, in_front = np.where(requeued | same, row, -1), False
    state: Codes = shown(jobs.state, _WAITING)
    start = shown(jobs.start, 0.0)
    done, gone = state == _DONE, row < 0
    return _Sight(
        row=row,
        submit=submit,
        restarts=restarts,
        start=start,
        end=shown(jobs.end, 0.0),
        holds=(state >= _RUNNING) & (state <= _SUSPENDED) & (start > 0),
        done=done,
        gone=gone,
        requeued=requeued,
        some_done=any_of(done),
        some_gone=any_of(gone),
        some_requeued=any_of(requeued),
    )


def _known_lives(ledger: Ledger, sight: _Sight, now: float) -> JobLives:
    accounts, gone, done = ledger.jobs, sight.gone, sight.done
    count = len(accounts)
    active_from, active_to = np.full(count, ledger.time), np.full(count, now)
    incarnation, restarts = sight.submit, sight.restarts
    if sight.some_gone:
        incarnation = np.where(gone, accounts.incarnation, incarnation)
        restarts = np.where(gone, accounts.restarts, restarts)
        # Gone with another job under its id: that job's submission is the latest instant it can have ended at.
        reused = gone & (sight.submit > accounts.incarnation)
        active_to[reused] = np.minimum(sight.submit[reused], now)
    if sight.some_requeued:
        # Restarts is counted while the old run is completing, SubmitTime moves only when it waits again: until
        # then the requeue is not over, or the later SubmitTime would be taken for another job's.
        under_way = sight.requeued & (sight.submit == accounts.incarnation)
        restarts = np.where(under_way, accounts.restarts, restarts)
    if sight.some_done:
        active_to[done] = np.minimum(sight.end[done], now)
    if not all_of(accounts.active):
        ran = sight.holds | (done & (sight.end > sight.start) & (sight.start > 0))
        woke = np.where(ran, np.clip(sight.start, ledger.time, active_to), active_to)
        active_from = np.where(accounts.active, ledger.time, woke)
    return JobLives(
        key=accounts.key,
        account=np.arange(count),
        seen=sight.row,
        submit=accounts.submit,
        incarnation=incarnation,
        restarts=restarts,
        tenant=accounts.tenant,
        gpus=accounts.gpus,
        weight=accounts.weight,
        active_from=active_from,
        active_to=active_to,
        ended=gone | done,
        news=np.zeros(count, dtype=bool),
    )


def _known_runs(ledger: Ledger, sight: _Sight, lives: JobLives, now: float) -> JobRuns:
    """Runs of known jobs: those that were open go on or ended in the window, others began since."""
    ran, over = ledger.jobs.run_start > 0, sight.done
    if sight.some_done:
        over = over & (sight.end > sight.start) & (sight.start > 0)
    if not sight.some_requeued:
        return _shown_runs(ledger, sight, lives, (ran | sight.holds | over).nonzero()[0], sight.holds, now)
    # A requeued job may have two: the one that the requeue ended, and one since. While the requeue is in
    # progress it is still the old one.
    moved = sight.requeued & (sight.start != ledger.jobs.run_start)
    runs_on = ran & sight.holds & ~moved
    before = _shown_runs(ledger, sight, lives, ran.nonzero()[0], runs_on, now)
    starts = sight.holds & ~runs_on
    life = (starts | (over & (moved | ~ran))).nonzero()[0]
    is_open = starts[life]
    since = _fresh_runs(
        life, sight.submit[life], sight.restarts[life], ledger.jobs.gpus[life], sight.start[life],
        np.where(is_open, now, np.minimum(sight.end[life], now)), is_open,
    )  # fmt: skip
    return join(before, since)


def _shown_runs(
    ledger: Ledger, sight: _Sight, lives: JobLives, life: Ints, holds: Bools, now: float
) -> JobRuns:
    """One run of each of these lives, which `holds` GPUs still or ended in the window."""
    accounts = ledger.jobs
    before, is_open = accounts.run_start.take(life), holds.take(life)
    start, end = sight.start.take(life), np.full(len(life), now)  # Slurm may correct the start
    over = (~is_open).nonzero()[0]
    if len(over):
        some, first = life[over], before[over]
        same_run = sight.done[some] & ~sight.requeued[some] & (start[over] > 0)
        start[over] = np.where(same_run, start[over], first)
        # A requeue moves SubmitTime to the instant at which it ended the run.
        requeued_at = np.where(sight.submit[some] > first, np.minimum(sight.submit[some], now), now)
        end[over] = np.where(lives.ended[some] & ~sight.requeued[some], lives.active_to[some], requeued_at)
    news = before <= 0
    charged_seconds = np.maximum(ledger.time - before, 0.0)
    charged_seconds[news] = 0.0
    return JobRuns(
        life=life,
        incarnation=accounts.incarnation.take(life),
        restarts=accounts.restarts.take(life),
        gpus=accounts.gpus.take(life),
        start=start,
        end=np.maximum(end, start),
        open=is_open,
        charged=accounts.run_had.take(life),
        charged_seconds=charged_seconds,
        news=news,
    )


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


def _unknown_rows(ledger: Ledger, jobs: JobTable, sight: _Sight, settings: LedgerSettings) -> Ints:
    """Snapshot rows without an account; ended jobs stay listed for minutes and are opened only once."""
    known = len(sight.row)
    if len(jobs) == known and not sight.some_gone:
        return np.zeros(0, dtype=np.int64)
    unknown = np.ones(len(jobs), dtype=bool)
    unknown[sight.row[~sight.gone] if sight.some_gone else sight.row] = False
    rows = unknown.nonzero()[0]
    done = jobs.state[rows] == _DONE
    if not any_of(done):
        return rows
    late = jobs.end[rows] > max(ledger.time - settings.late_seconds, ledger.began)
    rows, done = rows[~done | late], done[~done | late]
    ended = rows[done]
    told = np.zeros(len(rows), dtype=bool)
    told[done] = known_ends(ledger.closed, jobs.key[ended], jobs.submit[ended])
    rest: Ints = rows[~told]
    return rest


def _opened_lives(jobs: JobTable, rows: Ints, tenant_row: Ints, now: float) -> JobLives:
    submit, done = jobs.submit[rows], jobs.state[rows] == _DONE
    until = np.where(done, np.minimum(jobs.end[rows], now), now)
    claims = jobs.active[rows] | done
    return JobLives(
        key=jobs.key[rows],
        account=np.full(len(rows), -1),
        seen=rows,
        submit=submit,
        incarnation=submit,
        restarts=jobs.restarts[rows],
        tenant=tenant_row[jobs.tenant[rows]],
        gpus=jobs.gpus[rows],
        weight=jobs.weight[rows],
        active_from=np.where(claims, np.minimum(submit, until), until),
        active_to=until,
        ended=done,
        news=np.ones(len(rows), dtype=bool),
    )


def _opened_runs(jobs: JobTable, rows: Ints, first_life: int, now: float) -> JobRuns:
    done, start, end = jobs.state[rows] == _DONE, jobs.start[rows], jobs.end[rows]
    ran = ((start > 0) & (jobs.holds_gpus[rows] | (done & (end > start)))).nonzero()[0]
    some, over = rows[ran], done[ran]
    until = np.where(over, np.minimum(end[ran], now), now)
    return _fresh_runs(
        first_life + ran, jobs.submit[some], jobs.restarts[some], jobs.gpus[some], start[ran], until, ~over
    )
