"""Figure 6c of Astraea: one tenant's jobs of 6, 3 and 3 GPUs share 6 GPUs by leases of ten minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from slurm_fair.ledger import advance, rho_for_reports
from slurm_fair.model import JobState, Leases, LeaseTerms, Ledger, Plan, Snapshot, Verdict
from slurm_fair.policy import Policy, View, load
from tests.support.accounts import verdicts
from tests.support.builders import JobSpec, job, lease, leases, snapshot

TERM = 600.0
BEGAN = 6_000.0
GANGS = {"1": 6, "2": 3, "3": 3}
AS_IN_THE_PAPER: dict[str, object] = {"swap_after": 0.0, "early_starts": 0.0}


@dataclass(frozen=True)
class Cluster:
    """Six GPUs whose jobs never end; a job is known by its label."""

    now: float
    jobs: dict[str, JobSpec]

    def seen(self) -> Snapshot:
        """The job as Slurm would show it."""
        return snapshot(time=self.now, nodes={"n1": 6}, jobs=self.jobs.values())

    def leases(self) -> Leases:
        """All leases end now."""
        held = [j for j in self.jobs.values() if j.state == JobState.RUNNING]
        return leases(*(lease(j.base, {"n1": j.gpus}, start=j.start, end=self.now) for j in held))

    def follow(self, plan: Plan) -> Cluster:
        """The plan carried out at once, one lease later."""
        decided = verdicts(self.seen(), plan)
        after = {label: self._after(j, decided[label]) for label, j in self.jobs.items()}
        return Cluster(self.now + TERM, after)

    def _after(self, j: JobSpec, verdict: Verdict) -> JobSpec:
        if verdict == Verdict.GRANT:
            return replace(j, state=JobState.RUNNING, start=self.now, on={"n1": j.gpus})
        if verdict == Verdict.REVOKE:
            back = replace(j, state=JobState.WAITING, start=0.0, on=None)
            return replace(back, restarts=j.restarts + 1, submit=self.now)
        return j


def play(policy: Policy, terms: int) -> tuple[list[set[str]], list[Ledger]]:
    """The jobs that ran in each lease, and the ledger at its end."""
    cluster = Cluster(BEGAN, {label: job(int(label), gpus=g, submit=BEGAN) for label, g in GANGS.items()})
    ledger, _ = advance(Ledger.new(BEGAN), cluster.seen())
    ran, ledgers = [], []
    for _ in range(terms):
        seen = View(cluster.seen(), ledger, cluster.leases(), LeaseTerms(term=TERM), cluster.now)
        cluster = cluster.follow(policy.plan(seen))
        ran.append({label for label, j in cluster.jobs.items() if j.state == JobState.RUNNING})
        ledger, _ = advance(ledger, cluster.seen())
        ledgers.append(ledger)
    return ran, ledgers


def test_over_three_leases_each_job_runs_its_part() -> None:
    ran, _ = play(load("astraea", AS_IN_THE_PAPER), 3)
    assert ran == [{"1"}, {"2", "3"}, {"2", "3"}]


@pytest.mark.parametrize("lease_count", [3, 6, 9, 12])
def test_after_each_three_leases_the_jobs_have_had_the_same(lease_count: int) -> None:
    _, ledgers = play(load("astraea", AS_IN_THE_PAPER), lease_count)
    accounts = ledgers[-1].jobs
    assert accounts.had.tolist() == pytest.approx([lease_count * 6 * TERM / 3] * 3)
    assert rho_for_reports(accounts.had, accounts.owed).tolist() == pytest.approx([1.0] * 3)


def test_the_gpus_are_never_idle() -> None:
    ran, _ = play(load("astraea", AS_IN_THE_PAPER), 12)
    assert [sum(GANGS[label] for label in running) for running in ran] == [6] * 12


def test_without_leases_that_end_the_first_job_keeps_everything() -> None:
    """Leases are for this: with the same jobs, the first one has it all."""
    cluster = Cluster(BEGAN, {label: job(int(label), gpus=g, submit=BEGAN) for label, g in GANGS.items()})
    plan = load("astraea", AS_IN_THE_PAPER).plan(
        View(cluster.seen(), Ledger.new(BEGAN), cluster.leases(), LeaseTerms(term=TERM), BEGAN)
    )
    running = cluster.follow(plan)
    held = leases(lease(1, {"n1": 6}, start=BEGAN, end=np.inf))
    ledger, _ = advance(Ledger.new(BEGAN), running.seen())
    later = load("astraea", AS_IN_THE_PAPER).plan(
        View(running.seen(), ledger, held, LeaseTerms(term=TERM), running.now + 9e9)
    )
    assert verdicts(running.seen(), later) == {"1": Verdict.KEEP, "2": Verdict.WAIT, "3": Verdict.WAIT}
