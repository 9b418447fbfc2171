"""The metrics of one act of the demo, from accounting: one function measures all acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slurm_fair.ledger import jain, quota, rho_for_reports, tenant_share
from slurm_fair.model import RunTable
from slurm_fair.model.columns import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class HungryTime:
    """A part of an act, in seconds since its first submission."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class TenantMeasures:
    """One tenant over one act; GPU time in GPU-seconds."""

    name: str
    weight: float
    hungry_share: float  # its part of the GPU time that all got while everybody was hungry
    hungry_rho: float
    rho: float
    first_wait_mean_seconds: float
    first_wait_max_seconds: float
    jct_mean_seconds: float


@dataclass(frozen=True, slots=True)
class Measures:
    """The metrics of one act of the demo."""

    tenants: tuple[TenantMeasures, ...]
    hungry_seconds: float
    jain_hungry: float  # of the tenants' rho while everybody was hungry
    first_wait_mean_seconds: float
    first_wait_max_seconds: float
    jct_mean_seconds: float
    makespan_seconds: float
    held_gpu_seconds: float
    held_while_waiting: float  # GPU time held / capacity, over the time in which some job waited
    preemptions: int

    @property
    def worst_rho(self) -> float:
        """The tenant served worst while everybody was hungry."""
        return min((tenant.hungry_rho for tenant in self.tenants), default=1.0)

    @property
    def worst_rho_overall(self) -> float:
        """The tenant served worst over the whole act."""
        return min((tenant.rho for tenant in self.tenants), default=1.0)


@dataclass(frozen=True, slots=True)
class _Lives:
    """One row per job, from its first submission to its last end."""

    tenant: Ints
    gpus: Ints
    submit: Floats
    first_start: Floats
    end: Floats

    @classmethod
    def of(cls, runs: RunTable) -> _Lives:
        """Runs of one key are one job: nothing else got its id during the act."""
        keys, first, row = np.unique(runs.key, return_index=True, return_inverse=True)
        submit, start = np.full(len(keys), np.inf), np.full(len(keys), np.inf)
        end = np.zeros(len(keys))
        np.minimum.at(submit, row, runs.submit)
        np.minimum.at(start, row, np.where(runs.start > 0, runs.start, np.inf))
        np.maximum.at(end, row, runs.end)
        return cls(runs.tenant[first], runs.gpus[first], submit, start, end)


@dataclass(frozen=True, slots=True)
class _Line:
    """Stretches of time in which nothing changed; rows are stretches, columns tenants."""

    since: Floats  # seconds from the first submission to the beginning of the stretch
    seconds: Floats
    demand: Ints
    held: Ints
    quota: Floats

    @property
    def hungry(self) -> Bools:
        """Every tenant wants at least its quota; the longest such time without a break."""
        all_along = (self.demand >= self.quota).all(axis=1) & (self.quota > 0).all(axis=1)
        part = np.cumsum(~all_along)
        length = np.bincount(part, self.seconds * all_along, minlength=1)
        longest: Bools = all_along & (part == np.argmax(length))
        return longest

    def within(self, window: HungryTime) -> Bools:
        """Stretches of the window, whose ends are cuts."""
        middle = self.since + self.seconds / 2
        return (middle > window.since) & (middle < window.until)


def hungry_in_all(
    acts: Sequence[RunTable], weights: Mapping[str, float], total_gpus: int
) -> HungryTime | None:
    """The time in which every tenant was hungry in every act; None where there is none."""
    since, until = 0.0, np.inf
    for runs in acts:
        if not len(runs):
            return None
        line = _line(runs, _Lives.of(runs), _weights(runs, weights), total_gpus)
        stretches = np.flatnonzero(line.hungry)
        if not len(stretches):
            return None
        since = max(since, float(line.since[stretches[0]]))
        until = min(until, float(line.since[stretches[-1]] + line.seconds[stretches[-1]]))
    return HungryTime(since, until) if since < until < np.inf else None


def measure(
    runs: RunTable, weights: Mapping[str, float], total_gpus: int, window: HungryTime | None = None
) -> Measures:
    """Everything at once; runs without a start or without an end do not belong here.

    "Hungry" is the time in which every tenant wants its quota, or the window.
    """
    if not len(runs):
        return Measures((), 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
    lives = _Lives.of(runs)
    weight = _weights(runs, weights)
    line = _line(runs, lives, weight, total_gpus, window)
    hungry = line.hungry if window is None else line.within(window)
    waiting = line.demand.sum(axis=1) > line.held.sum(axis=1)
    first_wait = lives.first_start - lives.submit
    tenants = _tenants(runs.tenants, weight, lives, first_wait, line, hungry)
    held = float((line.held.sum(axis=1) * line.seconds).sum())
    while_waiting = float(line.seconds[waiting].sum()) * total_gpus
    return Measures(
        tenants=tenants,
        hungry_seconds=float(line.seconds[hungry].sum()),
        jain_hungry=jain(np.array([tenant.hungry_rho for tenant in tenants])),
        first_wait_mean_seconds=float(first_wait.mean()),
        first_wait_max_seconds=float(first_wait.max()),
        jct_mean_seconds=float((lives.end - lives.submit).mean()),
        makespan_seconds=float(lives.end.max() - lives.submit.min()),
        held_gpu_seconds=held,
        held_while_waiting=float((line.held.sum(axis=1) * line.seconds)[waiting].sum())
        / max(while_waiting, 1e-9),
        preemptions=int(runs.requeued.sum()),
    )


def _weights(runs: RunTable, weights: Mapping[str, float]) -> Floats:
    return np.array([weights.get(name, 1.0) for name in runs.tenants], dtype=np.float64)


def _line(
    runs: RunTable, lives: _Lives, weight: Floats, total_gpus: int, window: HungryTime | None = None
) -> _Line:
    ran, first_submit = runs.start > 0, lives.submit.min()
    edges = [first_submit + window.since, first_submit + window.until] if window else []
    cuts = np.unique(np.concatenate([lives.submit, lives.end, runs.start[ran], runs.end[ran], edges]))
    middle = (cuts[:-1] + cuts[1:]) / 2
    demand = _sums(lives.tenant, lives.gpus, lives.submit, lives.end, middle, len(weight))
    held = _sums(runs.tenant[ran], runs.gpus[ran], runs.start[ran], runs.end[ran], middle, len(weight))
    first = np.full(len(weight), np.inf)
    np.minimum.at(first, lives.tenant, lives.submit)
    here = np.where(middle[:, None] > first, weight, 0.0)  # a tenant counts from its first job on
    quotas = quota(total_gpus, here, here.sum(axis=1, keepdims=True))
    return _Line(cuts[:-1] - first_submit, np.diff(cuts), demand, held, quotas)


def _sums(tenant: Ints, gpus: Ints, since: Floats, until: Floats, instants: Floats, tenants: int) -> Ints:
    """GPUs of each tenant at each instant."""
    there = (since <= instants[:, None]) & (instants[:, None] < until)
    of = tenant[:, None] == np.arange(tenants)
    sums: Ints = (there * gpus).astype(np.int64) @ of.astype(np.int64)
    return sums


def _tenants(
    names: tuple[str, ...], weight: Floats, lives: _Lives, first_wait: Floats, line: _Line, hungry: Bools
) -> tuple[TenantMeasures, ...]:
    share = tenant_share(line.demand, line.quota)
    seconds = line.seconds[:, None]
    had, owed = line.held * seconds, share * seconds
    hungry_had, hungry_owed = had[hungry].sum(axis=0), owed[hungry].sum(axis=0)
    hungry_rho = rho_for_reports(hungry_had, hungry_owed)
    rho = rho_for_reports(had.sum(axis=0), owed.sum(axis=0))
    all_had = max(float(hungry_had.sum()), 1e-9)
    found, jct = [], lives.end - lives.submit
    for at, name in enumerate(names):
        waits = first_wait[lives.tenant == at]
        found.append(
            TenantMeasures(
                name,
                float(weight[at]),
                float(hungry_had[at]) / all_had,
                float(hungry_rho[at]),
                float(rho[at]),
                float(waits.mean()),
                float(waits.max()),
                float(jct[lives.tenant == at].mean()),
            )
        )
    return tuple(found)
