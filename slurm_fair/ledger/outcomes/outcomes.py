"""The table of outcomes: one row per job of a simulation, a month of events, or accounting.

Every metric of efficiency, latency and finish-time fairness is a function of this table, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.ledger.formulas import rho_for_reports
from slurm_fair.ledger.outcomes.event_columns import (
    AT_EDGES,
    FURTHER,
    LIMIT,
    NAMES,
    SAID,
    Counted,
    EventTable,
    Heard,
)
from slurm_fair.ledger.outcomes.expected import expected_seconds, user_and_name, usual_seconds
from slurm_fair.model import Event, RunTable
from slurm_fair.model.columns import Bools, Columns, Floats, Ints, ranks
from slurm_fair.model.end_words import COMPLETED, NODE_FAIL


@dataclass(frozen=True)
class Outcomes(Columns):
    """Sorted by (key, submit): a key that is used again has a row for each job. nan = not known."""

    key: Ints
    tenant: Ints  # index into `tenants`
    user: Ints  # index into `users`, -1 = not known
    app: Ints  # jobs of one number are one app; -1 = an app of its own
    gpus: Ints  # the gang
    gpu_weight: Floats  # what each of its GPUs counts while it waits
    submit: Floats
    start: Floats  # of the first run, nan = it never ran
    end: Floats  # nan = not over
    ran: Floats  # seconds running, all runs
    waited: Floats  # seconds active and not running
    runs: Ints
    preemptions: Ints  # runs that we ended
    restarts: Ints
    had: Floats  # GPU-seconds by weight: what it was charged
    held: Floats  # GPU-seconds, each GPU counted 1
    owed: Floats  # GPU-seconds
    rho_ltgf: Floats  # had / owed
    exclusive_seconds: Floats  # run time alone with the GPUs asked for, after adaptation
    declared_seconds: Floats  # what its user said
    expected_seconds: Floats  # `age` of the latency ratio
    spread_seconds: Floats  # run time with its work spread evenly over all GPUs of every type
    completed: Bools  # over, and not because it failed or was cancelled
    tenants: tuple[str, ...]
    users: tuple[str, ...]
    until: float  # the instant that the table speaks of: what is not over lives then

    @classmethod
    def given(
        cls,
        *,
        key: Ints,
        tenant: Ints,
        tenants: tuple[str, ...],
        gpus: Ints,
        submit: Floats,
        end: Floats,
        until: float,
        **known: Any,
    ) -> Self:
        """A table of the columns at hand, sorted; what is left out is unknown, or follows from the others.

        `ran` is 0 unless given, `waited` the rest of the life, `had` the gang's time, `held` the same, `rho_ltgf`
        had / owed, `completed` every job that is over.
        """
        rows = len(key)
        unknown, nothing = np.full(rows, np.nan), np.zeros(rows, dtype=np.int64)
        ran = known.setdefault("ran", np.zeros(rows))
        known.setdefault("waited", np.maximum(np.where(np.isnan(end), until, end) - submit - ran, 0.0))
        had = known.setdefault("had", gpus * ran)
        known.setdefault("held", had)
        known.setdefault("gpu_weight", np.ones(rows))
        owed = known.setdefault("owed", unknown)
        known.setdefault("rho_ltgf", _rho(had, owed))
        known.setdefault("completed", ~np.isnan(end))
        known.setdefault("users", ())
        known.setdefault("runs", (ran > 0).astype(np.int64))
        for name in ("user", "app"):
            known.setdefault(name, nothing - 1)
        for name in ("preemptions", "restarts"):
            known.setdefault(name, nothing)
        for name in ("start", "exclusive_seconds", "declared_seconds", "expected_seconds", "spread_seconds"):
            known.setdefault(name, unknown)
        table = cls(
            key=key, tenant=tenant, gpus=gpus, submit=submit, end=end, tenants=tenants, until=until, **known
        )
        order = np.lexsort(
            (np.where(np.isnan(submit), -np.inf, submit), key)
        )  # not known: before what is known
        return table if (np.diff(order) == 1).all() else table.take(order)

    @property
    def over(self) -> Bools:
        """Jobs that have ended."""
        return ~np.isnan(self.end)

    @property
    def may_live(self) -> Bools:
        """Jobs without an end, but for those whose key a later job has: nobody saw how they ended."""
        last = np.ones(len(self), dtype=bool)
        last[:-1] = self.key[1:] != self.key[:-1]
        return ~self.over & last

    @property
    def ended_or_now(self) -> Floats:
        """The end of each job, or for a job that lives the instant that the table speaks of."""
        return np.where(self.over, self.end, self.until)


@dataclass(frozen=True)
class Runs(Columns):
    """One row per run of a job, sorted by (job, start)."""

    job: Ints  # row of the outcomes
    gpus: Ints
    start: Floats
    end: Floats  # `until` of the outcomes for one that goes on
    gpu_weight: Floats  # what each of its GPUs counts

    @classmethod
    def given(cls, job: Ints, gpus: Ints, start: Floats, end: Floats) -> Self:
        """Runs on GPUs that count 1 each."""
        return cls(job, gpus, start, end, np.ones(len(job)))

    @property
    def weighed_gpus(self) -> Floats:
        """GPUs of each by weight."""
        return self.gpus * self.gpu_weight


def of_these_jobs(outcomes: Outcomes, runs: Runs, rows: Ints) -> tuple[Outcomes, Runs]:
    """These jobs, their runs, and only the tenants that they have."""
    used, tenant = np.unique(outcomes.tenant[rows], return_inverse=True)
    names = tuple(outcomes.tenants[number] for number in used.tolist())
    place = ranks(len(outcomes), rows)
    mine = runs.take(np.flatnonzero(place[runs.job] >= 0))
    some = outcomes.take(rows).with_columns(tenant=tenant.reshape(-1).astype(np.int64), tenants=names)
    return some, mine.with_columns(job=place[mine.job])


def _rho(had: Floats, owed: Floats) -> Floats:
    known = np.isfinite(had) & np.isfinite(owed)
    return np.where(known, rho_for_reports(np.where(known, had, 0.0), np.where(known, owed, 0.0)), np.nan)


# -- from accounting --------------------------------------------------------------------------------------------


def recorded(runs: RunTable, until: float) -> tuple[Outcomes, Runs]:
    """Jobs and runs as accounting has them: what really happened, beside what a simulation says.

    Accounting knows neither what was owed nor who requeued a job (each requeue of a run counts as a pre-emption).
    The runs do not say how a job ended: each end counts as completed, until whoever has Slurm's words says more.
    """
    runs = runs.take(np.lexsort((runs.start, runs.submit, runs.key)))
    goes_on = (runs.key[1:] == runs.key[:-1]) & (runs.requeued[:-1] == 1)
    begins = np.concatenate([[True], ~goes_on])[: len(runs)]
    life, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    last = np.append(first[1:], len(runs))[: len(first)] - 1
    ran = np.flatnonzero(runs.start > 0)
    ends = np.where(runs.end > 0, runs.end, until)[ran]
    stretches = Runs.given(life[ran], runs.gpus[ran], runs.start[ran], np.maximum(ends, runs.start[ran]))
    seconds = stretches.end - stretches.start
    start = np.full(len(first), np.nan)
    start[stretches.job[::-1]] = stretches.start[::-1]
    over = (runs.end[last] > 0) & (runs.requeued[last] == 0)
    outcomes = Outcomes.given(
        key=runs.key[first],
        tenant=runs.tenant[last],
        tenants=runs.tenants,
        user=runs.user[last],
        users=runs.users,
        gpus=runs.gpus[last],
        submit=runs.submit[first],
        start=start,
        end=np.where(over, runs.end[last], np.nan),
        until=until,
        ran=totals(stretches.job, seconds, len(first)),
        had=totals(stretches.job, seconds * stretches.gpus, len(first)),
        runs=np.bincount(stretches.job, minlength=len(first)),
        preemptions=np.bincount(life[ran[runs.requeued[ran] == 1]], minlength=len(first)),
        restarts=last - first,
    )
    return outcomes, stretches


# -- from events ------------------------------------------------------------------------------------------------


def outcomes_of(events: Iterable[Event], until: float | None = None) -> tuple[Outcomes, Runs]:
    """Jobs and runs as events of the journal, of an export or of a simulation tell them, in any order.

    What an event of an end says of its job (`ran`, `waited`, `had`, `owed`) is the ledger's own account and goes
    before what the runs add up to; a job that is still open has its runs' sums up to `until` (default: the last
    event), and nobody knows yet what it is owed. A job without a known submission began before the events do.
    Of whom nobody said how long it runs alone, that ran so long; how long it was expected to run is then what its
    user declared, or its namesakes took, or its time limit.
    """
    return outcomes_heard(Heard.of(events), until)


def outcomes_heard(heard: Heard, until: float | None = None) -> tuple[Outcomes, Runs]:
    """The same from events that were heard one by one."""
    instant = heard.last if until is None else until
    lines = heard.lines()
    life = lines.life
    runs, revoked = _runs(lines, life, instant)
    return _outcomes(lines, life, runs, revoked, instant), runs


def _runs(lines: EventTable, life: Ints, until: float) -> tuple[Runs, Ints]:
    """The runs of every life, and the lives whose runs we ended, one entry a run."""
    changes = np.flatnonzero(lines.of_kind(Counted.STARTED, Counted.STOPPED, Counted.FINISHED))
    some, mine = lines.take(changes), life[changes]
    follows = np.zeros(len(changes), dtype=bool)
    follows[1:] = mine[1:] == mine[:-1]
    started = some.of_kind(Counted.STARTED)
    after_start = follows & np.concatenate([[False], started[:-1]])[: len(changes)]
    ended = np.flatnonzero(after_start)  # the change that ends the run which the one before began
    said = np.isfinite(some.start[ended])
    starts = np.where(said, some.start[ended], some.time[ended - 1])
    open_ = np.flatnonzero(started & ~np.append(after_start, False)[1:])
    stopped = some.of_kind(Counted.STOPPED)
    unseen = np.flatnonzero(stopped & ~after_start & np.isfinite(some.start))
    begun = np.concatenate([starts, some.time[open_], some.start[unseen]])
    over = np.concatenate([some.time[ended], np.full(len(open_), until), some.time[unseen]])
    runs = Runs(
        job=np.concatenate([mine[ended], mine[open_], mine[unseen]]),
        gpus=np.concatenate([some.gpus[ended - 1], some.gpus[open_], some.gpus[unseen]]),
        start=begun,
        end=np.maximum(begun, over),
        gpu_weight=np.concatenate(
            [some.gpu_weight[ended - 1], some.gpu_weight[open_], some.gpu_weight[unseen]]
        ),
    )
    # Whom Slurm would not stop was not stopped by us, whatever ends its run later.
    asked = lines.of_kind(Counted.REVOKED) * 1 - lines.of_kind(Counted.STAYS)
    before = np.concatenate([[0], np.cumsum(asked)])
    first = np.searchsorted(life, mine)
    since = np.where(follows, np.concatenate([[0], changes[:-1]])[: len(changes)], first)
    revoked = stopped & (before[changes] > before[since])
    revoked[revoked] = ~_failed(lines, changes[revoked])
    return runs.take(np.lexsort((runs.start, runs.job))), mine[revoked]


def _failed(lines: EventTable, rows: Ints) -> Bools:
    """Stops of which it is known that a node failed, though the job had been asked to give its GPUs back."""
    return np.array([word == NODE_FAIL for word in lines.words])[lines.state[rows]]


def _outcomes(lines: EventTable, life: Ints, runs: Runs, revoked: Ints, until: float) -> Outcomes:
    count = int(life[-1]) + 1 if len(life) else 0
    first = np.searchsorted(life, np.arange(count))
    last = np.searchsorted(life, np.arange(count), side="right") - 1
    submit, end, start = np.full(count, np.nan), np.full(count, np.nan), np.full(count, np.nan)
    begun = np.flatnonzero(lines.of_kind(Counted.SUBMITTED))
    over = np.flatnonzero(lines.of_kind(Counted.FINISHED))
    submit[life[begun]], end[life[over]] = lines.time[begun], lines.time[over]
    start[runs.job[::-1]] = runs.start[::-1]
    tenant, tenants = _named(lines.tenant[last], lines.words)
    said = _said(lines, life, count)
    submit = _first_known(said.pop("submit"), submit)
    seconds = totals(runs.job, runs.end - runs.start, count)
    had, held = _had_and_held(runs, said["had"])
    gpu_weight = np.ones(count)
    gpu_weight[life[begun]] = lines.gpu_weight[begun]
    (user, users), (name, _), (app, _) = _names(lines, life, count)
    ran = _first_known(said.pop("ran"), seconds)
    waited = np.maximum(np.where(np.isnan(end), until, end) - submit - ran, 0.0)
    usual = usual_seconds(user_and_name(user, name), submit, end, ran)
    known = _estimated(said, usual, np.where(np.isnan(end) | (ran <= 0), np.nan, ran))
    return Outcomes.given(
        key=lines.key[first],
        tenant=tenant,
        tenants=tenants,
        user=user,
        users=users,
        app=app,
        gpus=lines.gpus[last],
        submit=submit,
        start=start,
        end=end,
        until=until,
        ran=ran,
        waited=_first_known(said["waited"], waited),
        runs=np.bincount(runs.job, minlength=count),
        preemptions=np.bincount(revoked, minlength=count),
        restarts=_restarts(lines, life, said["restarts"]),
        had=had,
        held=held,
        gpu_weight=gpu_weight,
        owed=said["owed"],
        completed=~np.isnan(end) & _completed(lines, life, count),
        **known,
    )


def _had_and_held(runs: Runs, said: Floats) -> tuple[Floats, Floats]:
    """GPU-seconds of each life by weight, as said or as its runs add up to, and with each GPU counted 1."""
    seconds, count = runs.end - runs.start, len(said)
    had = _first_known(said, totals(runs.job, seconds * runs.weighed_gpus, count))
    weighed = np.zeros(count, dtype=bool)
    weighed[runs.job[runs.gpu_weight != 1.0]] = True
    return had, np.where(weighed, totals(runs.job, seconds * runs.gpus, count), had)


def _said(lines: EventTable, life: Ints, count: int) -> dict[str, Floats]:
    """The details of submissions and ends, by job; the end has the last word."""
    said = {name: np.full(count, np.nan) for name in SAID}
    for rows in (lines.of_kind(Counted.SUBMITTED), lines.of_kind(Counted.FINISHED)):
        table, of = lines.said_by(rows), life[rows]
        for name, column in said.items():
            column[of] = _first_known(table[name], column[of])
    return said


def _restarts(lines: EventTable, life: Ints, said: Floats) -> Ints:
    """Restarts by the end's word, else by the last start or stop: after a stop a job starts once more."""
    rows = np.flatnonzero(lines.of_kind(Counted.STARTED, Counted.STOPPED))
    seen = np.zeros(len(said))
    restarts = lines.restarts[rows] + lines.of_kind(Counted.STOPPED)[rows]
    np.maximum.at(seen, life[rows], np.nan_to_num(restarts))
    return _first_known(said, seen).astype(np.int64)


def _estimated(said: Mapping[str, Floats], usual: Floats, ran: Floats) -> dict[str, Floats]:
    """The declared run times, and the best estimates where nothing was declared."""
    known = {name: said[name] for name in FURTHER}
    unknown = np.full(len(usual), np.nan)
    best = expected_seconds(unknown, known["declared_seconds"], usual, said[LIMIT])
    known["expected_seconds"] = _first_known(known["expected_seconds"], best)
    known["exclusive_seconds"] = _first_known(known["exclusive_seconds"], ran)
    return known


def _names(lines: EventTable, life: Ints, count: int) -> list[tuple[Ints, tuple[str, ...]]]:
    """User, job name and app of each life, as an index into all of them; -1 = not said."""
    rows = lines.of_kind(*AT_EDGES)
    table, of, found = lines.said_by(rows), life[rows], []
    for name in NAMES:
        given, number = np.flatnonzero(table[name]), np.zeros(count, dtype=np.int64)
        number[of[given]] = table[name][given]
        at, all_ = _named(number, lines.words)
        found.append((at - 1, all_[1:]) if all_[:1] == ("",) else (at, all_))
    return found


def _completed(lines: EventTable, life: Ints, count: int) -> Bools:
    """An end without a word of failure is a good one."""
    completed = np.zeros(count, dtype=bool)
    rows = lines.of_kind(Counted.FINISHED)
    good = np.array([(word or COMPLETED).upper() == COMPLETED for word in lines.words])
    completed[life[rows]] = good[lines.state[rows]]
    return completed


def _named(number: Ints, words: Sequence[str]) -> tuple[Ints, tuple[str, ...]]:
    """An index into the sorted names for each that is an index into these words."""
    used, place = np.unique(number, return_inverse=True)
    names = [words[each] for each in used.tolist()]
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = ranks(len(names), np.array(order, dtype=np.int64))
    return rank[place.reshape(-1)], tuple(names[at] for at in order)


def _first_known(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(first), second, first)
