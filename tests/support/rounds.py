"""A policy played over aligned rounds: whoever it chooses runs for a whole lease, all leases end together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slurm_fair.model import JobState, Told, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.policy import Policy, View
from tests.support.accounts import Account, places, verdicts, view
from tests.support.builders import JobSpec, NodeSpec, lease, leases, snapshot


@dataclass
class Play:
    """The play so far; times begin at one term, because a job that started at 0 never started."""

    jobs: Sequence[JobSpec]
    nodes: Mapping[str, int | NodeSpec]
    term: float = 900.0
    weights: Mapping[str, float] = field(default_factory=dict)
    declared: Mapping[str, float] = field(default_factory=dict)
    now: float = 0.0
    ran: dict[str, float] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    on: dict[str, Mapping[str, int]] = field(default_factory=dict)  # where who runs
    since: dict[str, float] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    rounds: list[set[str]] = field(default_factory=list)  # who ran in each
    over: list[JobSpec] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = self.now or self.term

    def seen(self) -> View:
        """The policy's view now."""
        specs = [self._spec(spec) for spec in self.jobs if spec.submit <= self.now]
        snap = snapshot(time=self.now, nodes=self.nodes, jobs=specs, weights=self.weights)
        if self.declared:
            told = Told.nothing(len(snap.jobs), len(snap.gpu_types))
            declared = [self.declared.get(label, np.nan) for label in labels(snap.jobs.key)]
            snap = replace(snap, told=told.with_columns(declared_seconds=np.array(declared)))
        held = [lease(spec.base, spec.on or {}, end=self.now) for spec in specs if spec.on]
        gpus = {str(spec.base): spec.gpus for spec in (*self.jobs, *self.over)}
        had = {label: Account(gpus[label] * ran, 0.0, ran) for label, ran in self.ran.items()}
        base = view(snap, leases(*held), self._tenants(), had, self.term)
        waited = np.array([self.waited.get(label, 0.0) for label in labels(snap.jobs.key)])
        first = {str(spec.base): spec.submit for spec in self.jobs}
        submit = np.array([first[label] for label in labels(snap.jobs.key)], dtype=np.float64)
        ledger = replace(base.ledger, jobs=base.ledger.jobs.with_columns(waited=waited, submit=submit))
        return View(snap, ledger, base.leases, base.terms, self.now, memory=self.memory)

    def _spec(self, spec: JobSpec) -> JobSpec:
        label = str(spec.base)
        if label not in self.on:
            requeued = label in self.since
            return replace(spec, submit=self.since.get(label, spec.submit), restarts=int(requeued))
        start = self.since[label]
        return replace(spec, on=self.on[label], state=JobState.RUNNING, start=start)

    def _tenants(self) -> dict[str, Account]:
        had: dict[str, float] = {}
        for spec in (*self.jobs, *self.over):
            more = spec.gpus * self.ran.get(str(spec.base), 0.0)
            had[spec.tenant] = had.get(spec.tenant, 0.0) + more
        return {tenant: Account(of, 0.0) for tenant, of in had.items()}

    def round(self, policy: Policy) -> set[str]:
        """One plan and the lease that follows; returns who runs in it."""
        seen = self.seen()
        plan = policy.plan(seen)
        sites = places(seen.snapshot, plan)
        for label, verdict in verdicts(seen.snapshot, plan).items():
            if verdict == Verdict.REVOKE:
                del self.on[label]
                self.since[label] = self.now
            elif verdict == Verdict.GRANT:
                self.on[label], self.since[label] = sites[label], self.now
        for label in labels(seen.snapshot.jobs.key):
            clock = self.ran if label in self.on else self.waited
            clock[label] = clock.get(label, 0.0) + self.term
        self.memory = plan.memory
        self.now += self.term
        self.rounds.append(set(self.on))
        return self.rounds[-1]

    def play(self, policy: Policy, rounds: int) -> list[set[str]]:
        """So many rounds; who ran in each."""
        return [self.round(policy) for _ in range(rounds)]

    def finish(self, *bases: int) -> None:
        """These jobs are over."""
        self.over += [spec for spec in self.jobs if spec.base in bases]
        self.jobs = [spec for spec in self.jobs if spec.base not in bases]
        for base in bases:
            self.on.pop(str(base), None)
