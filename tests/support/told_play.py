"""Rounds in which jobs tell what they know: remaining time, steps a second, epochs and speeds by GPU type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from slurm_fair.model import Told, Verdict
from slurm_fair.model.ids import labels
from slurm_fair.policy import Policy, View
from tests.support.accounts import places, verdicts
from tests.support.rounds import Play


@dataclass
class ToldPlay(Play):
    """Like Play; `left` is the work at first, in seconds on the reference type, and shrinks by running."""

    left: Mapping[str, float] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    epochs: Mapping[str, float] = field(default_factory=dict)
    scaling: Mapping[str, float] = field(default_factory=dict)
    rates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    gpu_weights: Mapping[str, float] = field(default_factory=dict)  # of jobs
    settled: set[str] = field(default_factory=set)  # whose lease has just begun

    def seen(self) -> View:
        """The view with what was told."""
        seen = super().seen()
        snap = seen.snapshot
        names, types = labels(snap.jobs.key), len(snap.gpu_types)
        ran = np.array([self.ran.get(name, 0.0) for name in names])
        left = np.array([self.left.get(name, np.nan) for name in names])
        epochs = np.array([self.epochs.get(name, np.nan) for name in names])
        left_now = np.maximum(left - ran, 1.0)
        told = Told.nothing(len(names), types).with_columns(
            left_seconds=left_now,
            done_seconds=ran,
            declared_seconds=left,
            steps_per_second=np.array([self.steps.get(name, np.nan) for name in names]),
            epoch=epochs * (1.0 - left_now / left),
            epochs=epochs,
            scaling=np.array([self.scaling.get(name, np.nan) for name in names]),
            rate=np.array([self.rates.get(name, (1.0,) * types) for name in names]).reshape(-1, types),
        )
        weight = np.array([self.gpu_weights.get(name, 1.0) for name in names])
        jobs = snap.jobs.with_columns(weight=weight)
        key = dict(zip(snap.jobs.key.tolist(), names, strict=True))
        settled = np.array([key[each] in self.settled for each in seen.leases.key.tolist()], dtype=bool)
        held = seen.leases.with_columns(end=np.where(settled, self.now + self.term, seen.leases.end))
        return replace(seen, snapshot=replace(snap, told=told, jobs=jobs), leases=held)

    def round(self, policy: Policy) -> set[str]:
        """Like Play's, but looked at again at once when a job was stopped: one that moves starts at once."""
        seen = self.seen()
        plan = policy.plan(seen)
        said = verdicts(seen.snapshot, plan)
        stopped = [label for label, verdict in said.items() if verdict == Verdict.REVOKE]
        if not stopped:
            return super().round(policy)
        sites = places(seen.snapshot, plan)
        for label in stopped:
            del self.on[label]
            self.since[label] = self.now
        for label, verdict in said.items():
            if verdict == Verdict.GRANT:
                self.on[label], self.since[label] = sites[label], self.now
        self.memory, self.settled = plan.memory, set(self.on)
        ran = super().round(policy)
        self.settled = set()
        return ran
