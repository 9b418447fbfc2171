"""Lives and runs of one window as looks at the cluster show them: the ledger's jobs, and those seen since.

Most looks show that little changed. Columns are worked out only for changes that a look shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from slurm_fair.ledger.charging.timeline import constant
from slurm_fair.ledger.charging.window import HOLDS, JobLives, JobRuns, Window, known_ends, stacked
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import JobAccounts, JobState, JobTable, Ledger
from slurm_fair.model.columns import (
    NO_ROWS,
    ZERO,
    Bools,
    Codes,
    Column,
    Floats,
    Ints,
    all_of,
    any_of,
    find,
    take_or,
)
from slurm_fair.model.ids import is_same_job


class _Match(NamedTuple):
    """The row of the snapshot's jobs that shows each life; lives are the ledger's accounts, then new jobs."""

    met: int  # how many lives have an account
    row: Ints | None  # -1 = gone; None = life i is row i
    key: Ints  # per life
    incarnation: Floats  # as it was known before, or is by now for a new one
    restarts: Ints
    gone: Bools
    requeued: Bools
    bearer: Floats  # submission of whatever job has its id now, 0 = none
    some_gone: bool = False
    some_requeued: bool = False

    def shown(self, column: Column, absent: Any) -> Column:
        """A column of the snapshot, by life; `absent` for lives that it does not show."""
        return column if self.row is None else take_or(column, self.row, absent)

    def grown(self, accounts: Column, shown: Column) -> Column:
        """A column of the accounts and then, for new ones, what the snapshot says."""
        return np.concatenate((accounts, shown[self.met :])) if self.key.size > self.met else accounts

    def padded(self, accounts: Column) -> Column:
        """A column of the accounts and then nothing for new ones."""
        if self.key.size == self.met:
            return accounts
        column = np.zeros(self.key.size, dtype=accounts.dtype)
        column[: self.met] = accounts
        return column


class _Sight(NamedTuple):
    """Columns of the snapshot, by life."""

    now: float
    state: Codes
    start: Floats
    end: Floats
    submit: Floats
    restarts: Ints
    gpus: Ints  # that it holds, or held when it ended
    holds: Bools
    done: Ints  # rows of the lives


def window_seen(
    ledger: Ledger, jobs: JobTable, now: float, tenant_row: Ints, settings: LedgerSettings
) -> Window:
    """Everyone who lived between the ledger's time and a look; `tenant_row` maps its tenants to ours."""
    match = _match(ledger, jobs, settings, tenant_row)
    state, start = match.shown(jobs.state, JobState.WAITING), match.shown(jobs.start, 0.0)
    sight = _Sight(
        now=now,
        state=state,
        start=start,
        end=match.shown(jobs.end, 0.0),
        submit=match.shown(jobs.submit, 0.0),
        restarts=match.shown(jobs.restarts, 0),
        gpus=match.shown(jobs.gpus, 0),
        holds=HOLDS.take(state) & (start > ZERO),
        done=(state == JobState.DONE).nonzero()[0],
    )
    lives = _lives(ledger, jobs, tenant_row, match, sight)
    return Window.of(lives, _runs(ledger, lives, match, sight), in_order=match.row is None)


def _went_back(ledger: Ledger, jobs: JobTable, accounts: Ints, rows: Ints, tenant_row: Ints) -> Bools:
    """True for jobs that are the same although SubmitTime and Restarts do not say so.

    Both go back with a slurmctld that was killed. Another job under the id would seldom ask for the same.
    """
    known = ledger.jobs
    alike: Bools = (tenant_row[jobs.tenant[rows]] == known.tenant[accounts]) & (
        jobs.usual_gpus[rows] == known.gpus[accounts]
    )
    alike &= is_same_job(known.incarnation[accounts], jobs.submit[rows], jobs.restarts[rows])
    return alike


def _match(ledger: Ledger, jobs: JobTable, settings: LedgerSettings, tenant_row: Ints) -> _Match:
    """Match jobs to accounts by key. SubmitTime and Restarts tell if it is still the same job (ids are reused)."""
    accounts = ledger.jobs
    met, rows = accounts.key.size, jobs.key.size
    # As a rule living jobs stay listed, and new ones come after them.
    if rows >= met:
        same = jobs.key[:met] == accounts.key
        same &= jobs.restarts[:met] == accounts.restarts
        same &= jobs.submit[:met] == accounts.incarnation
        unknown = np.arange(met, rows) if rows > met else NO_ROWS
        if all_of(same) and _to_open(ledger, jobs, unknown, settings).size == unknown.size:
            nobody = np.zeros(rows, dtype=bool)
            return _Match(met, None, jobs.key, jobs.submit, jobs.restarts, nobody, nobody, jobs.submit)
    row = find(jobs.key, accounts.key)
    submit, restarts = take_or(jobs.submit, row, 0.0), take_or(jobs.restarts, row, 0)
    same = (restarts == accounts.restarts) & (submit == accounts.incarnation)
    requeued = (row >= 0) & (restarts > accounts.restarts) & (submit >= accounts.incarnation)
    other = ((row >= 0) & ~same & ~requeued).nonzero()[0]
    if other.size:
        back = other[_went_back(ledger, jobs, other, row[other], tenant_row)]
        same[back] = True
        requeued[back] = submit[back] > accounts.incarnation[back]
    row = np.where(requeued | same, row, -1)
    unknown = np.ones(rows, dtype=bool)
    unknown[row[row >= 0]] = False
    new = _to_open(ledger, jobs, unknown.nonzero()[0], settings)
    row, requeued = np.concatenate((row, new)), np.concatenate((requeued, np.zeros(new.size, dtype=bool)))
    return _Match(
        met=met,
        row=row,
        key=np.concatenate((accounts.key, jobs.key[new])),
        incarnation=np.concatenate((accounts.incarnation, jobs.submit[new])),
        restarts=np.concatenate((accounts.restarts, jobs.restarts[new])),
        gone=row < 0,
        requeued=requeued,
        bearer=np.concatenate((submit, jobs.submit[new])),
        some_gone=any_of(row < 0),
        some_requeued=any_of(requeued),
    )


def _to_open(ledger: Ledger, jobs: JobTable, unknown: Ints, settings: LedgerSettings) -> Ints:
    """Rows without an account that get one: ended jobs stay listed for minutes and are opened only once."""
    done = jobs.done[unknown]
    if not any_of(done):
        return unknown
    late = jobs.end[unknown] > max(ledger.time - settings.late_seconds, ledger.began)
    rows, done = unknown[~done | late], done[~done | late]
    ended = rows[done]
    accounted = np.zeros(len(rows), dtype=bool)
    accounted[done] = known_ends(ledger.closed, jobs.key[ended], jobs.submit[ended])
    return rows[~accounted]


def _lives(ledger: Ledger, jobs: JobTable, tenant_row: Ints, match: _Match, sight: _Sight) -> JobLives:
    accounts = ledger.jobs
    tenant = tenant_row[match.shown(jobs.tenant, 0)] if jobs.tenant.size else accounts.tenant
    gpus, weight = match.shown(jobs.usual_gpus, 0), match.shown(jobs.weight, 0.0)
    gpu_weight = _gpu_weight(accounts, jobs, match, sight)
    then_active, then_waits = match.shown(jobs.active, False), match.shown(jobs.waits, False)
    active_to, ended = _active_to(match, sight)
    incarnation, restarts = sight.submit, sight.restarts
    if match.some_gone:
        incarnation = np.where(match.gone, match.incarnation, incarnation)
        restarts = np.where(match.gone, match.restarts, restarts)
    if match.some_requeued:
        # Restarts is counted while the old run is completing, SubmitTime moves only when it waits again: until
        # then the requeue is not over, or the later SubmitTime would be taken for another job's.
        under_way = match.requeued & (sight.submit == match.incarnation)
        restarts = np.where(under_way, match.restarts, restarts)
    return JobLives(
        key=match.key,
        submit=match.grown(accounts.submit, sight.submit),
        tenant=match.grown(accounts.tenant, tenant),
        gpus=match.grown(accounts.gpus, gpus),
        weight=match.grown(accounts.weight, weight),
        gpu_weight=match.grown(accounts.gpu_weight, gpu_weight),
        active=match.padded(accounts.active),
        active_from=_since(ledger, accounts.active, then_active, ended, active_to, sight),
        active_to=active_to,
        waits_from=_since(ledger, accounts.waits, then_waits, ended, active_to, sight),
        ended=ended,
        incarnation=incarnation,
        restarts=restarts,
        then_tenant=tenant,
        then_gpus=gpus,
        then_weight=weight,
        then_gpu_weight=gpu_weight,
        then_active=then_active,
        then_waits=then_waits,
    )


def _gpu_weight(accounts: JobAccounts, jobs: JobTable, match: _Match, sight: _Sight) -> Floats:
    """The weight of a GPU of each life: a run is charged by the weights that were given when it began."""
    shown = match.shown(jobs.gpu_weight, 1.0)
    run_start = match.padded(accounts.run_start)
    goes_on = ((run_start > ZERO) & (sight.start == run_start)) | match.gone
    met = goes_on[: match.met].nonzero()[0]
    if all_of(shown[met] == accounts.gpu_weight[met]):
        return shown
    kept = shown.copy()
    kept[met] = accounts.gpu_weight[met]
    return kept


def _active_to(match: _Match, sight: _Sight) -> tuple[Floats, Bools]:
    """The instant up to which each life may claim a share in the window, and True for lives that are over."""
    active_to, ended, done = constant(match.key.size, sight.now), match.gone, sight.done
    if match.some_gone:
        # Gone with another job under its id: that job's submission is the latest instant it can have ended at.
        reused = match.gone & (match.bearer > match.incarnation)
        active_to[reused] = np.minimum(match.bearer[reused], sight.now)
    if done.size:
        active_to[done] = np.minimum(sight.end[done], sight.now)
        ended = ended.copy()
        ended[done] = True
    return active_to, ended


def _since(
    ledger: Ledger, before: Bools, then: Bools, ended: Bools, active_to: Floats, sight: _Sight
) -> Floats:
    """The instant since when each job is active: before this look, or within it; the end of one that is not."""
    since, met = constant(active_to.size, ledger.time), before.size
    if not all_of(before):
        asleep = (~before).nonzero()[0]
        start, end, until = sight.start[asleep], sight.end[asleep], active_to[asleep]
        ran = sight.holds[asleep] | ((sight.state[asleep] == JobState.DONE) & (end > start) & (start > 0))
        since[asleep] = np.where(ran, np.clip(start, ledger.time, until), until)
    if met < active_to.size:
        until, claims = active_to[met:], then[met:] | ended[met:]
        submit = np.minimum(sight.submit[met:], until)
        since[met:] = submit if all_of(claims) else np.where(claims, submit, until)
    return since


def _runs(ledger: Ledger, lives: JobLives, match: _Match, sight: _Sight) -> JobRuns:
    """Runs of the window: the open ones go on or ended, others began."""
    run_start, done = match.padded(ledger.jobs.run_start), sight.done
    ran = run_start > ZERO
    over = done[(sight.end[done] > sight.start[done]) & (sight.start[done] > 0)] if done.size else done
    if not match.some_requeued:
        some = ran | sight.holds
        some[over] = True
        return _shown_runs(ledger, lives, match, sight, some.nonzero()[0], sight.holds, run_start)
    # A requeued job may have two: the one that the requeue ended, and one since. While the requeue is in
    # progress it is still the old one.
    moved = match.requeued & (sight.start != run_start)
    runs_on = ran & sight.holds & ~moved
    before = _shown_runs(ledger, lives, match, sight, ran.nonzero()[0], runs_on, run_start)
    starts = sight.holds & ~runs_on
    some = starts.copy()
    some[over[(moved | ~ran)[over]]] = True
    fresh = some.nonzero()[0]
    return stacked(before, _fresh_runs(lives, sight, fresh, starts[fresh]))


def _shown_runs(
    ledger: Ledger,
    lives: JobLives,
    match: _Match,
    sight: _Sight,
    life: Ints,
    holds: Bools,
    run_start: Floats,
) -> JobRuns:
    """One run of each of these lives, which `holds` GPUs still or ended in the window."""
    before, is_open = run_start[life], holds[life]
    start, end = sight.start[life], constant(life.size, sight.now)  # Slurm may correct the start
    over, news = (~is_open).nonzero()[0], before <= ZERO
    if over.size:
        some = life[over]
        shown = (sight.state[some] == JobState.DONE) & ~match.requeued[some] & (start[over] > 0)
        if not all_of(shown):
            start[over] = np.where(shown, start[over], before[over])
        end[over] = lives.active_to[some]
        again = over[~lives.ended[some] | match.requeued[some]]
        if again.size:  # a requeue moves SubmitTime to the instant at which it ended the run
            moved_to = sight.submit[life[again]]
            end[again] = np.where(moved_to > before[again], np.minimum(moved_to, sight.now), sight.now)
    charged_seconds, charged = np.maximum(ledger.time - before, ZERO), match.padded(ledger.jobs.run_had)[life]
    charged_seconds[news] = 0.0
    if start.size and start.item(start.argmax()) > sight.now:
        # The clock was set back since these began. Until their start is past, each window counts by itself.
        ahead = (is_open & ~news & (start > sight.now)).nonzero()[0]
        start[ahead], charged[ahead], charged_seconds[ahead] = ledger.time, 0.0, 0.0
    return JobRuns(
        life=life,
        incarnation=match.incarnation[life],
        restarts=match.restarts[life],
        gpus=np.where(news, sight.gpus[life], match.padded(ledger.jobs.run_gpus)[life]),
        then_gpus=sight.gpus[life],
        gpu_weight=np.where(news, lives.then_gpu_weight[life], lives.gpu_weight[life]),
        start=start,
        end=np.maximum(end, start),
        open=is_open,
        charged=charged,
        charged_seconds=charged_seconds,
        news=news,
    )


def _fresh_runs(lives: JobLives, sight: _Sight, life: Ints, is_open: Bools) -> JobRuns:
    """Runs of these lives that began since the last look."""
    start, nothing = sight.start[life], np.zeros(life.size)
    end = np.where(is_open, sight.now, np.minimum(sight.end[life], sight.now))
    return JobRuns(
        life=life,
        incarnation=sight.submit[life],
        restarts=sight.restarts[life],
        gpus=sight.gpus[life],
        then_gpus=sight.gpus[life],
        gpu_weight=lives.then_gpu_weight[life],
        start=start,
        end=np.maximum(end, start),
        open=is_open,
        charged=nothing,
        charged_seconds=nothing,
        news=np.ones(life.size, dtype=bool),
    )
