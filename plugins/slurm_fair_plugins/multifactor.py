"""The policy that sites have today: Slurm's multifactor priority with fair tree, and backfill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from slurm_fair.ledger.formulas import faded_parts
from slurm_fair.model import NEVER_ENDS_SECONDS, Plan
from slurm_fair.model.spans import DAY_SECONDS
from slurm_fair.policy import (
    YEARS,
    Floats,
    Ints,
    Order,
    PlacerName,
    View,
    Within,
    Words,
    alike,
    check_settings,
    keep_tenant_numbers,
    placer,
    take_or,
    tenant_numbers,
)
from slurm_fair.policy.orders.backfill import Depth, backfilled

USAGE = "usage"
_WEIGHT = Within(0, 4294967295)  # as Slurm keeps them
RENEW_SECONDS = 3600.0  # usage is brought up to date at least this often
WORDS = Words(
    granted="its priority is among the highest, or it fits in without delay to others",
    waits="others have a higher priority",
)


@dataclass(frozen=True, slots=True)
class Multifactor:
    """Priority = weighted age, size, fair-share and QOS factors (`priority/multifactor`), then `sched/backfill`.

    The settings are Slurm's and mean the same. Reading: Slurm's own default for every weight is 0, which is
    arrival order; the weights here are those of the example in its documentation, the terms (maximum age and
    half-life of 7 days) are Slurm's defaults. The fair tree has two levels, tenants by weight and then their
    users, all alike. A tenant's usage is its GPU time out of the ledger, decayed; within it, users are charged
    for the GPUs that they hold. Nobody is stopped. `easy` reserves for the first job of each partition that does
    not fit; `conservative`, as Slurm itself, for each of the `bf_max_job_test` jobs that are tested, which costs
    milliseconds a plan.
    """

    score_is: ClassVar[Order] = Order("its priority", highest_first=True)

    lease_seconds: ClassVar[float] = NEVER_ENDS_SECONDS
    unknown_run_time: ClassVar[str] = "are taken never to end: backfill starts them where nothing is reserved"

    priority_weight_age: Annotated[float, _WEIGHT] = 1000.0
    priority_weight_fairshare: Annotated[float, _WEIGHT] = 10000.0
    priority_weight_job_size: Annotated[float, _WEIGHT] = 1000.0
    priority_weight_qos: Annotated[float, _WEIGHT] = 0.0
    qos_priority: Annotated[dict[str, float], _WEIGHT] = field(default_factory=dict)
    priority_max_age_seconds: Annotated[float, Within(1, YEARS)] = 7 * DAY_SECONDS
    priority_decay_half_life_seconds: Annotated[float, Within(0, YEARS, "0 = no decay")] = 7 * DAY_SECONDS
    priority_favor_small: bool = False
    backfill: Literal["none", "easy", "conservative"] = "easy"
    bf_max_job_test: Annotated[int, Within(1, 1e6)] = 500
    bf_window_seconds: Annotated[float, Within(60, 30 * DAY_SECONDS)] = DAY_SECONDS
    bf_resolution_seconds: Annotated[float, Within(1, 3600)] = 60.0
    placement: PlacerName = "consolidated"

    def __post_init__(self) -> None:
        check_settings(self, "slurm")

    def plan(self, view: View) -> Plan:
        """Free GPUs by priority, and what is left to those who delay nobody with a reservation."""
        waits = np.flatnonzero(view.waiting)
        kept = view.memory.get(USAGE, {})
        memory, score = view.memory, np.full(len(view.waiting), np.nan)
        if len(waits) or not kept or view.now - kept["at"] >= RENEW_SECONDS:
            usage = Usage(view, self.priority_decay_half_life_seconds)
            memory = usage.kept()
            score[waits] = alike(self._priority(view, waits, usage))
        order = waits[np.lexsort((view.first_submit[waits], -score[waits]))]
        depth = Depth(self.backfill, self.bf_max_job_test, self.bf_window_seconds, self.bf_resolution_seconds)
        return backfilled(view, order, placer(self.placement), depth, score, memory, WORDS)

    def _priority(self, view: View, rows: Ints, usage: Usage) -> Floats:
        age = np.minimum((view.now - view.first_submit[rows]) / self.priority_max_age_seconds, 1.0)
        size = view.snapshot.jobs.gpus[rows] / max(view.snapshot.total_gpus, 1)
        if self.priority_favor_small:
            size = 1.0 - size
        priority: Floats = self.priority_weight_age * age + self.priority_weight_job_size * size
        if self.priority_weight_fairshare:
            priority = priority + self.priority_weight_fairshare * usage.factor(view, rows)
        if self.priority_weight_qos and self.qos_priority and view.snapshot.qos:
            highest = max(max(self.qos_priority.values()), 1e-9)
            names = [view.snapshot.qos[row] for row in rows.tolist()]
            qos = np.array([self.qos_priority.get(name, 0.0) for name in names]) / highest
            priority = priority + self.priority_weight_qos * qos
        return priority


class Usage:
    """Decayed GPU-seconds of tenants and of their users."""

    def __init__(self, view: View, half_life_seconds: float) -> None:
        self._view = view
        kept = view.memory.get(USAGE, {})
        elapsed = view.now - kept["at"] if kept else 0.0
        decay, charge = faded_parts(elapsed, half_life_seconds)
        had, row = view.ledger.tenants.had, view.tenant_account
        self.had: Floats = take_or(had, row, 0.0)
        before = tenant_numbers(view, "tenant_had")
        self.of_tenant = tenant_numbers(view, "tenant_usage") * decay + (self.had - before) * charge
        self._decay = decay
        self._users = _Users(view, kept, decay, charge * elapsed)

    def factor(self, view: View, rows: Ints) -> Floats:
        """Fair tree: each row's user's place in the order of level fair-shares, 1 = first."""
        tenant, user = view.snapshot.jobs.tenant, view.snapshot.jobs.user
        pairs, of_user = self._users.pairs, self._users.usage
        share = level_fs(np.maximum(view.snapshot.tenants.weight, 0.0), self.of_tenant)
        within = np.empty(len(pairs))
        for one in np.unique(pairs[:, 0]).tolist():
            mine = pairs[:, 0] == one
            within[mine] = level_fs(np.ones(int(mine.sum())), of_user[mine])
        factor = fair_tree(share[pairs[:, 0]], within)
        number = self._users.number(tenant[rows], user[rows])
        return factor[number]

    def kept(self) -> Mapping[str, Any]:
        """The usage that the next plan begins with."""
        now = dict(zip(self._view.snapshot.tenants.names, self.of_tenant.tolist(), strict=True))
        return {
            USAGE: {"at": self._view.now, **self._users.kept(self._decay)},
            "tenant_had": keep_tenant_numbers(self._view, "tenant_had", self.had),
            "tenant_usage": _faded(self._view.memory.get("tenant_usage", {}), self._decay) | now,
        }


def level_fs(shares: Floats, usage: Floats) -> Floats:
    """LF = S / U among siblings: part of the shares over part of the usage; inf where nothing was used."""
    shares = shares / (shares.sum() or 1.0)
    used = usage / (usage.sum() or 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        level: Floats = np.where(used > 0, shares / used, np.inf)
    return level


def fair_tree(of_tenant: Floats, of_user: Floats) -> Floats:
    """Rank over number of users, by tenant and then by user; equals share a rank, and tied tenants' users mix."""
    order = np.lexsort((-of_user, -of_tenant))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (of_tenant[order][1:] != of_tenant[order][:-1]) | (of_user[order][1:] != of_user[order][:-1])
    ahead = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    factor = np.empty(len(order))
    factor[order] = (len(order) - ahead) / max(len(order), 1)
    return factor


def _faded(usage: Mapping[str, float], decay: float) -> dict[str, float]:
    """Usage of those who are away fades too; what has all but gone is forgotten."""
    return {name: of * decay for name, of in usage.items() if of * decay >= 1.0}


class _Users:
    """Usage of each (tenant, user) pair that has an active job."""

    def __init__(self, view: View, kept: Mapping[str, Any], decay: float, charge_seconds: float) -> None:
        snapshot, jobs = view.snapshot, view.snapshot.jobs
        self._names = snapshot.tenants.names, snapshot.users
        code = jobs.tenant * max(len(snapshot.users), 1) + jobs.user
        codes = np.unique(code[view.claims])
        self._codes, self._width = codes, max(len(snapshot.users), 1)
        self.pairs = np.stack([codes // self._width, codes % self._width], axis=1)
        past = kept.get("users", {})
        self._past: Mapping[str, float] = past.get("usage", {})
        usage, held = self._past, past.get("held", {})
        keys = self._keys = self._named()
        before = np.array([usage.get(key, 0.0) for key in keys])
        rate = np.array([held.get(key, 0.0) for key in keys])
        self.usage: Floats = before * decay + rate * charge_seconds
        holds = view.holdings
        gpus = holds.gpus * view.held_weight
        now = np.bincount(np.searchsorted(codes, code[holds.row]), gpus, len(codes))
        self._held: Floats = now.astype(np.float64)

    def _named(self) -> list[str]:
        tenants, users = self._names
        return [f"{tenants[tenant]}\t{users[user]}" for tenant, user in self.pairs.tolist()]

    def number(self, tenant: Ints, user: Ints) -> Ints:
        """Place of each pair."""
        return np.searchsorted(self._codes, tenant * self._width + user)

    def kept(self, decay: float) -> Mapping[str, Any]:
        """The usage that the next plan begins with."""
        return {
            "users": {
                "usage": _faded(self._past, decay) | dict(zip(self._keys, self.usage.tolist(), strict=True)),
                "held": dict(zip(self._keys, self._held.tolist(), strict=True)),
            }
        }
