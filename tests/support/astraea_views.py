"""Views of a cluster for Astraea, and what it decides in them."""

from __future__ import annotations

from typing import Any

from slurm_fair.model import JobState, Leases, Snapshot, Verdict
from slurm_fair.policy import View
from slurm_fair_plugins.astraea import Astraea
from tests.support.accounts import verdicts
from tests.support.builders import JobSpec, NodeSpec, job, lease, leases, snapshot

NOW = 10_000.0
GRANT, WAIT, RENEW, REVOKE, KEEP, LEAVE = (
    Verdict.GRANT,
    Verdict.WAIT,
    Verdict.RENEW,
    Verdict.REVOKE,
    Verdict.KEEP,
    Verdict.LEAVE,
)


def cluster(*jobs: JobSpec, gpus: int | dict[str, int | NodeSpec] = 8, **weights: float) -> Snapshot:
    """One node, or those given."""
    nodes: dict[str, int | NodeSpec] = {"n1": gpus} if isinstance(gpus, int) else gpus
    return snapshot(time=NOW, nodes=nodes, jobs=jobs, weights=weights)


def running(base: int, on: dict[str, int], **columns: Any) -> JobSpec:
    """A job that runs there."""
    return job(base, gpus=sum(on.values()), on=on, state=JobState.RUNNING, **columns)


def over(*specs: JobSpec) -> Leases:
    """Leases of these jobs, all of them over."""
    return leases(*(lease(s.base, s.on or {}, end=NOW) for s in specs))


def decided(seen: View, policy: Astraea | None = None) -> dict[str, Verdict]:
    return verdicts(seen.snapshot, (policy or Astraea()).plan(seen))


def granted(seen: View, policy: Astraea | None = None) -> list[str]:
    """Labels of the granted jobs, in order."""
    return [label for label, verdict in decided(seen, policy).items() if verdict == GRANT]
