"""Leases that are over are renewed together; until then who comes may get their GPUs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import EventKind, LeaseTerms, Standing, TickRecord
from slurm_fair.sim.loop.renewals import renewed_until
from tests.support.builders import lease, leases
from tests.support.simulated import Rounds, arrival, simulated

BEAT = 4.0  # a sixteenth of a quarter of the lease, in whole seconds


def rounds(renewal: float | None = None) -> Rounds:
    """Rolling leases of 300 s, and a look at each change."""
    return Rounds(lease=300.0, aligned=False, interval_min=1.0, renewal=renewal)


@pytest.mark.parametrize(("renewal", "starts"), [(None, [0.0, 302.0]), (math.inf, [0.0, 600.0])])
def test_who_comes_before_a_lease_is_renewed_gets_its_gpus_at_once(
    renewal: float | None, starts: list[float]
) -> None:
    """The lease of the first is over at 300 s, and renewed at 304 s, or at once."""
    jobs = [arrival(0, seconds=2000), arrival(302, seconds=100, tenant="b")]
    result = simulated(jobs, gpus=1, gpus_per_node=1, how=rounds(renewal))
    assert (result.outcomes.start - result.epoch).tolist() == starts


def test_leases_are_renewed_at_beats_alone_and_most_beside_others() -> None:
    """Forty GPUs change hands among sixty jobs that came one after the other."""
    renewed = list[float]()

    def listen(tick: TickRecord, standing: Standing) -> None:
        del standing
        renewed.extend(event.time for event in tick.events if event.kind == EventKind.RENEWED)

    jobs = [arrival(7 * at, seconds=3000, tenant="ab"[at % 2]) for at in range(60)]
    simulated(jobs, gpus=40, how=rounds(), listen=listen)
    assert len(renewed) > 50
    assert {at % BEAT for at in renewed} == {0.0}
    assert len(set(renewed)) < len(renewed) / 2


@given(st.lists(st.integers(0, 400), min_size=1, max_size=5), st.integers(0, 2000))
def test_leases_renewed_without_a_look_end_as_with_one_at_each_beat(ends: list[int], until: int) -> None:
    terms = LeaseTerms(term=300.0, aligned=False, renewal=75.0)
    held = leases(*(lease(key + 1, {"n1": 1}, end=float(end)) for key, end in enumerate(ends)))
    expected = []
    for end, renewals in ((float(end), 0) for end in ends):
        at = math.floor(end / BEAT + 1) * BEAT
        while at < until:
            end, renewals = at + 75.0, renewals + 1
            at = math.floor(end / BEAT + 1) * BEAT
        expected.append((end, renewals))
    found = renewed_until(held, terms, float(until))
    assert list(zip(found.end.tolist(), found.renewals.tolist(), strict=True)) == expected
