"""A tick between two beats: who comes may get GPUs of a lease that is over, and nothing is renewed."""

from __future__ import annotations

import pytest

from slurm_fair.model import LeaseTerms, Verdict
from slurm_fair.policy.draft import KEPT_FOR_NOW
from tests.support.builders import JobSpec
from tests.support.tick_bench import BEGAN, TickBench, gated, running

# Leases of 64 s, renewed ones of 32 s, a beat of 2 s. The bench begins at a beat.
ROLLING = LeaseTerms(term=64.0, interval=10.0, grace=5.0, aligned=False, renewal=32.0, interval_min=1.0)


@pytest.fixture
def bench() -> TickBench:
    """A job of tenant a runs on both halves of the node, and its lease is over in 0.5 s."""
    bench = TickBench(terms=ROLLING)
    bench.see(running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a"), after=0.0)
    assert BEGAN % ROLLING.beat == 0
    assert bench.standing.leases.end.tolist() == [BEGAN + 64.0]
    bench.clock.advance(63.5)
    return bench


def verdicts(bench: TickBench, *jobs: JobSpec, after: float) -> list[Verdict]:
    """The verdicts of a look so much later."""
    record = bench.see(*jobs, after=after).record
    assert record is not None
    return [Verdict(verdict) for verdict in record.plan.verdict.tolist()]


def test_a_lease_that_is_over_is_kept_until_the_beat_and_renewed_then(bench: TickBench) -> None:
    job = running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a")
    assert verdicts(bench, job, after=1.0) == [Verdict.KEEP]
    assert bench.standing.leases.end.tolist() == [BEGAN + 64.0]
    assert verdicts(bench, job, after=1.5) == [Verdict.RENEW]
    assert bench.standing.leases.end.tolist() == [BEGAN + 66.0 + 32.0]


def test_who_comes_in_between_gets_its_gpus(bench: TickBench) -> None:
    job = running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a")
    comes = gated(2, tenant="b", submit=BEGAN + 64.0)
    assert verdicts(bench, job, comes, after=1.0) == [Verdict.REVOKE, Verdict.GRANT]


def test_without_news_nothing_is_decided_anew_before_the_beat(bench: TickBench) -> None:
    """The one that waits came while the lease was not over; the look after the lease's end shows nothing new."""
    job = running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a")
    waits = gated(2, tenant="b", submit=BEGAN + 60.0)
    assert verdicts(bench, job, waits, after=0.0) == [Verdict.KEEP, Verdict.WAIT]
    assert verdicts(bench, job, waits, after=1.0) == [Verdict.KEEP, Verdict.WAIT]
    assert verdicts(bench, job, waits, after=1.5) == [Verdict.REVOKE, Verdict.GRANT]


def test_after_a_plan_that_stands_in_for_another_the_next_look_decides(bench: TickBench) -> None:
    job = running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a")
    waits = gated(2, tenant="b", submit=BEGAN + 60.0)
    assert verdicts(bench, job, waits, after=0.0) == [Verdict.KEEP, Verdict.WAIT]
    bench.standing = bench.standing._replace(left_over=0)  # as such a plan leaves it
    assert verdicts(bench, job, waits, after=1.0) == [Verdict.REVOKE, Verdict.GRANT]


def test_it_is_said_why_a_lease_that_is_over_is_kept(bench: TickBench) -> None:
    job = running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a")
    assert verdicts(bench, job, after=0.0) == [Verdict.KEEP]
    record = bench.see(job, after=1.0).record
    assert record is not None
    why = record.plan.explanation
    assert why.reasons[why.reason.item(0)] == KEPT_FOR_NOW


def test_a_plan_that_nobody_carries_out_is_made_at_each_look(bench: TickBench) -> None:
    job = running(1, BEGAN, gpus=8, on={"n1": 8}, tenant="a")
    waits = gated(2, tenant="b", submit=BEGAN + 60.0)
    bench.dry_run = True
    assert verdicts(bench, job, waits, after=0.0) == [Verdict.KEEP, Verdict.WAIT]
    for seconds in (0.8, 0.4, 0.4):
        assert verdicts(bench, job, waits, after=seconds) == [Verdict.REVOKE, Verdict.GRANT]
