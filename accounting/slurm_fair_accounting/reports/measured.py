"""Metrics of a period by the definitions that simulations use: its jobs, M, and tenants' accounts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.ledger import formulas
from slurm_fair.ledger.charging.advance import BY_WEIGHT
from slurm_fair.ledger.metrics.efficiency import mean_gpus, span
from slurm_fair.ledger.metrics.summary import RunFacts
from slurm_fair.ledger.metrics.windows import (
    Steps,
    TenantWindows,
    edges_of,
    exact_windows,
    windows_of_moments,
)
from slurm_fair.ledger.outcomes.outcomes import Outcomes, Runs, of_these_jobs, outcomes_of
from slurm_fair.ledger.settings import LedgerSettings, ReportShare
from slurm_fair.model import Event, EventKind, Standing
from slurm_fair.model.columns import Bools
from slurm_fair_accounting.reports.history import live_of, newest_known
from slurm_fair_accounting.reports.tenants import Account, accounts_of
from slurm_fair_accounting.source.period import Period
from slurm_fair_accounting.source.source import JournalReader

KINDS = (
    EventKind.SUBMITTED,
    EventKind.STARTED,
    EventKind.STOPPED,
    EventKind.REVOKED,
    EventKind.STAYS,
    EventKind.FINISHED,
)
NO_CAPACITY = "nothing says how many GPUs there were: M is the sum of quotas, unfair hours are from accounts"
_FOR_EVER = float("inf")
_ALIKE = 1e-6


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcomes, windows and sizes that every metric of a period is made of."""

    outcomes: Outcomes  # jobs that lived in the period; over = ended in it
    facts: RunFacts
    accounts: Mapping[str, Account]  # of tenants, over the covered period
    windows: Mapping[str, int]  # row of each tenant in the facts' windows
    covered: Period
    note: str


def measured(source: JournalReader, period: Period, share: ReportShare = "demand") -> Measured:
    """Measures a period of a journal or of an export, be it a real or a simulated cluster's."""
    outcomes, runs = _jobs(source, period)
    covered, accounts, note = accounts_of(source, period, share)
    seen = _capacity(source, period)
    first = min(span(outcomes)[0], period.start)
    by_quotas = (period.start, _quotas(accounts, covered))
    capacity = Steps.seen([(size.time, float(size.gpus)) for size in seen] or [by_quotas], first)
    shared = Steps.seen([(size.time, _by_weight(size)) for size in seen] or [by_quotas], first)
    if not seen:
        note = "; ".join(part for part in (note, NO_CAPACITY) if part)
    edges = edges_of(period.start, float(outcomes.ended_or_now.max(initial=period.start)))
    names: Sequence[str] = outcomes.tenants
    if seen:
        weight = np.array([_weight(accounts.get(name)) for name in names], dtype=np.float64)
        # Who counts in the quotas without a job in the table: those who were given a quota.
        others = [accounts[name] for name in accounts.keys() - set(names) if accounts[name].quota > 0]
        weight_sum = float(weight.sum()) + sum(map(_weight, others))
        counts, along = _who_counts(source, accounts, names, covered)
        windows = exact_windows(outcomes, runs, weight, shared, edges, weight_sum, share, counts, along)
    else:
        names, windows = windows_of_moments(source.moments(period.start, period.end), edges)
    facts = _facts(outcomes, runs, capacity, windows, accounts)
    rows = {name: row for row, name in enumerate(names)}
    return Measured(outcomes, facts, accounts, rows, covered, note)


def _who_counts(
    source: JournalReader, accounts: Mapping[str, Account], names: Sequence[str], covered: Period
) -> tuple[float, Bools]:
    """The seconds that a tenant counts in quotas beyond its jobs, and those who did before the period began.

    Quotas that are as the weights are were given to everybody all the time.
    """
    weights = np.array([_weight(account) for account in accounts.values()])
    quotas = np.array([account.quota for account in accounts.values()])
    before = {
        moment.tenant for moment in source.moments(covered.start, covered.start) if moment.owed_quota > 0
    }
    along = np.array([name in before for name in names], dtype=bool)
    expected = formulas.quota(float(quotas.sum()), weights, float(weights.sum()))
    if np.allclose(quotas, expected, rtol=_ALIKE, atol=0.0):
        return math.inf, along
    return LedgerSettings().tenant_memory_seconds, along


def _facts(
    outcomes: Outcomes, runs: Runs, capacity: Steps, windows: TenantWindows, accounts: Mapping[str, Account]
) -> RunFacts:
    mine = [accounts[name] for name in sorted(accounts)]
    return RunFacts(
        total_gpus=mean_gpus(capacity, outcomes),
        windows=windows,
        tenant_had=np.array([account.had for account in mine], dtype=np.float64),
        tenant_owed=np.array([account.owed for account in mine], dtype=np.float64),
        tenant_weight=np.array([_weight(account) for account in mine], dtype=np.float64),
        runs=runs,
        capacity=capacity,
    )


def _weight(account: Account | None) -> float:
    return 1.0 if account is None or account.weight is None else account.weight


# -- M ------------------------------------------------------------------------------------------------------------


def _capacity(source: JournalReader, period: Period) -> list[Event]:
    """M and since when, as far as it was told: what it was at the beginning, and its changes."""
    changes = list(source.events(end=period.end, kinds=(EventKind.CAPACITY,)))
    before = [event for event in changes if event.time <= period.start][-1:]
    return [*before, *(event for event in changes if event.time > period.start)]


def _by_weight(size: Event) -> float:
    """M by weight, where GPUs are weighed."""
    return float(size.detail.get(BY_WEIGHT, size.gpus))


def _quotas(accounts: Mapping[str, Account], covered: Period) -> float:
    """M as tenants' quotas add up to it."""
    quota = sum(account.quota for account in accounts.values())
    return quota / covered.seconds if covered.seconds > 0 else 0.0


# -- jobs ---------------------------------------------------------------------------------------------------------


def _jobs(source: JournalReader, period: Period) -> tuple[Outcomes, Runs]:
    """Jobs that lived in the period, as they stood at its end, with all of their runs."""
    standing = source.latest()
    until = min(period.end, newest_known(source, standing, period.start))
    if standing is None:
        outcomes, runs = outcomes_of(source.events(end=period.end, kinds=KINDS), until)
        stays = outcomes.over | outcomes.may_live
    else:
        events, known = _outcomes_of(source, standing, period)
        outcomes, runs = outcomes_of(events, until)
        stays = outcomes.over | (outcomes.may_live & np.isin(outcomes.key, list(known)))
    return of_these_jobs(outcomes, runs, np.flatnonzero(stays & (outcomes.ended_or_now >= period.start)))


def _outcomes_of(source: JournalReader, standing: Standing, period: Period) -> tuple[list[Event], set[int]]:
    """The events of the period's jobs up to its end, and the keys of those that are known to have lived on."""
    living = live_of(standing, Period(period.start, _FOR_EVER))
    within = list(source.events(period.start, period.end, kinds=KINDS))
    later = list(source.events(period.end, kinds=(EventKind.FINISHED,)))
    ends = [event for event in (*within, *later) if event.kind == EventKind.FINISHED]
    submits = {event.key: float(event.detail.get("submit", event.time)) for event in ends}
    submits |= {key: job.submit for key, job in living.items() if job.submit < period.end}
    early = {key: submit for key, submit in submits.items() if submit < period.start}
    before = source.events(min(early.values()), period.start, kinds=KINDS, keys=early) if early else ()
    return [*before, *within], living.keys() | {event.key for event in later}
