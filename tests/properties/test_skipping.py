"""Looks that are left out change nothing: a simulation that looks more often comes to the same."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from slurm_fair.model import Standing, TickRecord
from slurm_fair.policy import registry
from tests.support.any_scenario import EXAMPLES, Case, Peopled, cases, play
from tests.support.simulated import Rounds, arrival, simulated


class Looking(Peopled):
    """A simulation that leaves no look out."""

    def _next_look(self, record: TickRecord) -> float:
        usual = Peopled._next_look(self, record)
        return min(usual, self._first_look_from(self.clock.now() + 1e-6))


class Asking(Peopled):
    """A simulation that asks the policy at each end of a lease, whatever it would say."""

    def _only_renews(self, record: TickRecord, end: float) -> bool:
        del record, end
        return False


def at_intervals(case: Case) -> Case:
    """The case with looks at an interval: of those that follow changes each one puts off the next."""
    return replace(case, how=replace(case.how, interval_min=0.0))


@pytest.mark.parametrize("policy", registry.names())
@EXAMPLES
@given(case=cases())
def test_looking_more_often_changes_nothing(policy: str, case: Case) -> None:
    case = at_intervals(case)
    skipping, looking = play(case, policy).result, play(case, policy, kind=Looking).result
    assert len(looking.decisions) >= len(skipping.decisions)
    for name in ("start", "end", "ran", "had", "preemptions"):
        one, two = getattr(skipping.outcomes, name), getattr(looking.outcomes, name)
        assert np.allclose(one, two, atol=1e-3, equal_nan=True), name


class Told:
    """The looks of a simulation and every event, as the listeners of its journal hear of them."""

    def __init__(self) -> None:
        self.looks: list[float] = []
        self.events: list[tuple[float, str, int, dict[str, Any]]] = []

    def hear(self, tick: TickRecord, standing: Standing) -> None:
        """One tick's; what was told late goes to its place."""
        del standing
        self.looks.append(tick.time)
        told = [(event.time, event.kind, event.key, dict(event.detail)) for event in tick.events]
        self.events = sorted([*self.events, *told], key=lambda event: event[:3])


def _same(one: object, two: object) -> bool:
    """To the rounding of one long window of the ledger instead of several."""
    if isinstance(one, float) and isinstance(two, float):
        return bool(np.isclose(one, two, rtol=1e-9, atol=1e-6, equal_nan=True))
    return one == two


@pytest.mark.parametrize("policy", registry.names())
@EXAMPLES
@given(case=cases())
def test_asking_where_everybody_goes_on_tells_of_nothing_else(policy: str, case: Case) -> None:
    case, resting, asking = at_intervals(case), Told(), Told()
    play(case, policy, resting.hear)
    play(case, policy, asking.hear, kind=Asking)
    assert [event[:3] for event in resting.events] == [event[:3] for event in asking.events]
    for one, two in zip(resting.events, asking.events, strict=True):
        assert one[3].keys() == two[3].keys()
        assert all(_same(one[3][name], two[3][name]) for name in one[3]), (one, two)


ALIGNED, ROLLING = Rounds(lease=300.0), Rounds(lease=300.0, aligned=False, renewal=math.inf)
RENEWALS = {
    "aligned": (ALIGNED, range(300, 5_101, 300), [150, 300, 3_600, 4_000, 4_060, 5_150]),
    "rolling": (ROLLING, range(450, 4_951, 300), [150, 450, 3_750, 4_000, 4_050, 4_060, 5_150]),
}


@pytest.mark.parametrize(("how", "ends", "looks"), RENEWALS.values(), ids=RENEWALS)
def test_leases_that_are_only_renewed_need_no_look_but_are_told_of(
    how: Rounds, ends: range, looks: list[float]
) -> None:
    """Looks are at arrivals, at ends of leases behind a start and a full hour, and at ends of jobs at last."""
    told = Told()
    jobs = [arrival(150, gpus=4, seconds=5_000), arrival(4_000, gpus=4, seconds=60)]
    result = simulated(jobs, "astraea", how=how, listen=told.hear)
    renewed = [event for event in told.events if event[1] == "renewed"]
    assert [time - result.epoch for time, *_ in renewed] == [*ends]
    assert [detail["until"] - time for time, _, _, detail in renewed] == [300.0] * len(ends)
    assert [detail["number"] for *_, detail in renewed] == [*range(2, len(ends) + 2)]
    assert [time - result.epoch for time in told.looks] == looks


def test_the_end_of_a_lease_behind_an_arrival_is_looked_at() -> None:
    """The job that came at 299 s would be seen at 301 s; the lease that ends at 300 s is one look earlier."""
    jobs = [arrival(0, gpus=4, seconds=5_000), arrival(299, gpus=4, seconds=60)]
    result = simulated(jobs, "astraea", how=Rounds(lease=100.0, interval=7.0))
    assert (result.outcomes.start - result.epoch).tolist() == [0.0, 300.0]
