"""Lives and runs of one window as two looks at the cluster show them: the ledger's jobs and a snapshot.

Most looks show that little changed: what did not happen is not worked out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slurm_fair.ledger.lives import Column, JobLives, JobRuns, Window, at, join, known_ends
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import JobAccounts, JobState, JobTable, Ledger, Snapshot
from slurm_fair.model.columns import Bools, Floats, Ints, all_of, any_of, find

_DONE, _WAITING = np.int8(JobState.DONE), np.int8(JobState.WAITING)
_HOLDS = np.isin(np.arange(len(JobState)), (JobState.RUNNING, JobState.ENDING, JobState.SUSPENDED))


class _Match(NamedTuple):
    """Which row of the snapshot shows which life: the ledger's accounts, then jobs that it has not met."""

    met: int  # how many lives have an account
    row: Ints | None  # of the snapshot's jobs, -1 = gone; None = life i is row i
    new: Ints | slice  # rows of the snapshot's jobs that the others show
    requeued: Bools
    gone: Bools
    key_submit: Floats  # submission of whatever job has the life's key now, 0 = none
    some_gone: bool = False
    some_requeued: bool = False

    def shown(self, column: Column, absent: Any) -> Column:
        """What the snapshot says of each life."""
        return column if self.row is None else at(column, self.row, absent)


class _Sight(NamedTuple):
    """What the snapshot says of each life."""

    now: float
    submit: Floats
    restarts: Ints
    start: Floats
    end: Floats
    holds: Bools
    done: Bools
    some_done: bool


def window_seen(
    ledger: Ledger, snapshot: Snapshot, tenant_row: Ints, settings: LedgerSettings
) -> tuple[Window, Ints | None]:
    """Everyone who lived between the ledger's time and the snapshot; `tenant_row` maps its tenants to ours.

    Also the row of the snapshot that shows each life, -1 for one that is gone; None if life i is row i.
    """
    now, jobs = snapshot.time, snapshot.jobs
    match = _match(ledger, jobs, settings)
    accounts = ledger.jobs
    if match.gone.size > match.met:
        accounts = accounts.joined(_opened(jobs, match.new, tenant_row))
    sight = _sight(jobs, match, now)
    lives = _lives(ledger, accounts, jobs, tenant_row, match, sight)
    runs = _runs(ledger, accounts, lives, match, sight)
    return Window.of(accounts, lives, runs), match.row


def _match(ledger: Ledger, jobs: JobTable, settings: LedgerSettings) -> _Match:
    """By key; whether it is still the same job is told by SubmitTime and Restarts (ids are reused)."""
    accounts = ledger.jobs
    met, rows = accounts.key.size, jobs.key.size
    # As a rule living jobs stay listed, and new ones come after them.
    if rows >= met:
        same = jobs.key[:met] == accounts.key
        same &= jobs.restarts[:met] == accounts.restarts
        same &= jobs.submit[:met] == accounts.incarnation
        if all_of(same) and _to_open(ledger, jobs, np.arange(met, rows), settings).size == rows - met:
            nobody = np.zeros(rows, dtype=bool)
            return _Match(met, None, slice(met, rows), nobody, nobody, jobs.submit)
    row = find(jobs.key, accounts.key)
    submit, restarts = at(jobs.submit, row, 0.0), at(jobs.restarts, row, 0)
    same = (restarts == accounts.restarts) & (submit == accounts.incarnation)
    requeued = (row >= 0) & (restarts > accounts.restarts) & (submit >= accounts.incarnation)
    row = np.where(requeued | same, row, -1)
    unknown = np.ones(rows, dtype=bool)
    unknown[row[row >= 0]] = False
    new = _to_open(ledger, jobs, unknown.nonzero()[0], settings)
    row, requeued = np.concatenate([row, new]), np.concatenate([requeued, np.zeros(len(new), dtype=bool)])
    gone, key_submit = row < 0, np.concatenate([submit, jobs.submit[new]])
    return _Match(met, row, new, requeued, gone, key_submit, any_of(gone), any_of(requeued))


def _to_open(ledger: Ledger, jobs: JobTable, unknown: Ints, settings: LedgerSettings) -> Ints:
    """Which rows without an account get one: ended jobs stay listed for minutes and are opened only once."""
    done = jobs.state[unknown] == _DONE
    if not any_of(done):
        return unknown
    late = jobs.end[unknown] > max(ledger.time - settings.late_seconds, ledger.began)
    rows, done = unknown[~done | late], done[~done | late]
    ended = rows[done]
    told = np.zeros(len(rows), dtype=bool)
    told[done] = known_ends(ledger.closed, jobs.key[ended], jobs.submit[ended])
    rest: Ints = rows[~told]
    return rest


def _opened(jobs: JobTable, rows: Ints | slice, tenant_row: Ints) -> JobAccounts:
    """Accounts with nothing in them."""
    submit = jobs.submit[rows]
    nothing = np.zeros(submit.size)
    return JobAccounts(
        key=jobs.key[rows],
        submit=submit,
        incarnation=submit,
        restarts=jobs.restarts[rows],
        tenant=tenant_row[jobs.tenant[rows]],
        gpus=jobs.gpus[rows],
        weight=jobs.weight[rows],
        had=nothing,
        owed=nothing,
        waited=nothing,
        ran=nothing,
        run_start=nothing,
        run_had=nothing,
        active=np.zeros(submit.size, dtype=bool),
    )


def _sight(jobs: JobTable, match: _Match, now: float) -> _Sight:
    state, start = match.shown(jobs.state, _WAITING), match.shown(jobs.start, 0.0)
    done = state == _DONE
    return _Sight(
        now=now,
        submit=match.shown(jobs.submit, 0.0),
        restarts=match.shown(jobs.restarts, 0),
        start=start,
        end=match.shown(jobs.end, 0.0),
        holds=_HOLDS.take(state) & (start > 0),
        done=done,
        some_done=any_of(done),
    )


def _lives(
    ledger: Ledger, accounts: JobAccounts, jobs: JobTable, tenant_row: Ints, match: _Match, sight: _Sight
) -> JobLives:
    now, gone, done, ended = sight.now, match.gone, sight.done, sight.done
    active, active_to = match.shown(jobs.active, False), np.empty(done.size)
    active_to.fill(now)
    incarnation, restarts = sight.submit, sight.restarts
    if match.some_gone:
        ended = gone | done
        incarnation = np.where(gone, accounts.incarnation, incarnation)
        restarts = np.where(gone, accounts.restarts, restarts)
        # Gone with another job under its id: that job's submission is the latest instant it can have ended at.
        reused = gone & (match.key_submit > accounts.incarnation)
        active_to[reused] = np.minimum(match.key_submit[reused], now)
    if match.some_requeued:
        # Restarts is counted while the old run is completing, SubmitTime moves only when it waits again: until
        # then the requeue is not over, or the later SubmitTime would be taken for another job's.
        under_way = match.requeued & (sight.submit == accounts.incarnation)
        restarts = np.where(under_way, accounts.restarts, restarts)
    if sight.some_done:
        active_to[done] = np.minimum(sight.end[done], now)
    met = np.ones(done.size, dtype=bool)
    met[match.met :] = False
    return JobLives(
        incarnation=incarnation,
        restarts=restarts,
        tenant=tenant_row[match.shown(jobs.tenant, 0)] if len(jobs) else accounts.tenant,
        gpus=match.shown(jobs.gpus, 0),
        weight=match.shown(jobs.weight, 0.0),
        active=active,
        active_from=_active_from(ledger, accounts, active | done, active_to, match.met, sight),
        active_to=active_to,
        ended=ended,
        met=met,
    )


def _active_from(
    ledger: Ledger, accounts: JobAccounts, claims: Bools, active_to: Floats, met: int, sight: _Sight
) -> Floats:
    """Since when in the window each life claims a share, or its end for one that does not."""
    active_from = np.empty(active_to.size)
    active_from.fill(ledger.time)
    if not all_of(ledger.jobs.active):
        ran = sight.holds | (sight.done & (sight.end > sight.start) & (sight.start > 0))
        woke = np.where(ran, np.clip(sight.start, ledger.time, active_to), active_to)
        active_from = np.where(accounts.active, ledger.time, woke)
    if met < active_to.size:
        until = active_to[met:]
        active_from[met:] = np.where(claims[met:], np.minimum(sight.submit[met:], until), until)
    return active_from


def _runs(ledger: Ledger, accounts: JobAccounts, lives: JobLives, match: _Match, sight: _Sight) -> JobRuns:
    """Those that were open go on or ended in the window, others began since."""
    ran, over, holds = accounts.run_start > 0, sight.done, sight.holds
    if sight.some_done:
        over = over & (sight.end > sight.start) & (sight.start > 0)
    if not match.some_requeued:
        rows = (ran | holds | over).nonzero()[0]
        return _shown_runs(ledger, accounts, lives, match, sight, rows, holds)
    # A requeued job may have two: the one that the requeue ended, and one since. While the requeue is in
    # progress it is still the old one.
    moved = match.requeued & (sight.start != accounts.run_start)
    runs_on = ran & holds & ~moved
    before = _shown_runs(ledger, accounts, lives, match, sight, ran.nonzero()[0], runs_on)
    starts = holds & ~runs_on
    fresh = (starts | (over & (moved | ~ran))).nonzero()[0]
    return join(before, _fresh_runs(accounts, sight, fresh, starts[fresh]))


def _shown_runs(
    ledger: Ledger,
    accounts: JobAccounts,
    lives: JobLives,
    match: _Match,
    sight: _Sight,
    life: Ints,
    holds: Bools,
) -> JobRuns:
    """One run of each of these lives, which `holds` GPUs still or ended in the window."""
    before, is_open = accounts.run_start.take(life), holds.take(life)
    start, end = sight.start.take(life), np.empty(life.size)  # Slurm may correct the start
    end.fill(sight.now)
    over = (~is_open).nonzero()[0]
    if over.size:
        some, first = life[over], before[over]
        same_run = sight.done[some] & ~match.requeued[some] & (start[over] > 0)
        start[over] = np.where(same_run, start[over], first)
        # A requeue moves SubmitTime to the instant at which it ended the run.
        requeued_at = np.where(
            sight.submit[some] > first, np.minimum(sight.submit[some], sight.now), sight.now
        )
        end[over] = np.where(lives.ended[some] & ~match.requeued[some], lives.active_to[some], requeued_at)
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


def _fresh_runs(accounts: JobAccounts, sight: _Sight, life: Ints, is_open: Bools) -> JobRuns:
    """Runs of these lives that began since the last look."""
    start, nothing = sight.start[life], np.zeros(len(life))
    end = np.where(is_open, sight.now, np.minimum(sight.end[life], sight.now))
    return JobRuns(
        life=life,
        incarnation=sight.submit[life],
        restarts=sight.restarts[life],
        gpus=accounts.gpus[life],
        start=start,
        end=np.maximum(end, start),
        open=is_open,
        charged=nothing,
        charged_seconds=nothing,
        news=np.ones(len(life), dtype=bool),
    )
