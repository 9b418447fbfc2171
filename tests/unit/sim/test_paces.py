"""A simulation looks at recorded instants, or at those at which the daemon would look."""

from __future__ import annotations

import math

import pytest

from slurm_fair.model import LeasePhase, LeaseTerms, Standing
from slurm_fair.sim.loop.paces import DaemonsLooks, RecordedLooks
from tests.support.builders import lease, leases

NOW = 100.0
QUIET = Standing.new(0.0)
BUSY = QUIET._replace(leases=leases(lease(1, {"n1": 8}, phase=LeasePhase.GRANTED, end=9000.0)))
TERMS = LeaseTerms(term=900.0, interval=10.0, aligned=False)
FOLLOWS = LeaseTerms(term=900.0, interval=1000.0, interval_min=2.0, aligned=False)


@pytest.mark.parametrize(
    ("now", "due"),
    [(0.0, 10.0), (9.9, 10.0), (10.0, 20.0), (10.0 - 1e-7, 20.0), (19.0, 20.0), (30.0, 37.0), (50.0, 57.0)],
)
def test_the_next_look_is_the_first_of_the_list_after_this_one_and_then_an_interval_away(
    now: float, due: float
) -> None:
    assert RecordedLooks((10.0, 20.0, 20.0, 30.0), 7.0)(QUIET, 3, now, 0.0) == due
    assert RecordedLooks((), 7.0)(QUIET, 0, now, 0.0) == now + 7.0


@pytest.mark.parametrize(
    ("acts", "due"),
    [(0, 110.0), (1, 112.05), (3, 116.05)],  # a tick without acts is over in 9 s, else in 10 s and 2 s an act
)
def test_no_look_begins_before_the_tick_with_its_acts_is_over(acts: int, due: float) -> None:
    looks = DaemonsLooks(TERMS, tick_seconds=9.0, acting_seconds=10.0, act_seconds=2.0)
    assert looks(QUIET, acts, NOW, math.inf) == pytest.approx(due)
    assert DaemonsLooks(TERMS)(QUIET, acts, NOW, NOW + 1) == 110.0  # nobody wakes it


def test_while_jobs_change_places_it_looks_again_after_a_breath_of_two_looks() -> None:
    looks = DaemonsLooks(TERMS, look_seconds=1.5, tick_seconds=0.5)
    assert looks(BUSY, 0, NOW, math.inf) == pytest.approx(100.5 + 3.0)
    assert DaemonsLooks(TERMS)(BUSY, 0, NOW, math.inf) < NOW + 1.0


@pytest.mark.parametrize(
    ("change", "heard"),
    [(50.0, 102.0), (101.0, 102.0), (102.0, 102.0), (102.1, 104.0), (104.0, 104.0), (math.inf, 1100.0)],
)
def test_who_asks_for_changes_hears_of_one_at_its_next_question(change: float, heard: float) -> None:
    assert DaemonsLooks(FOLLOWS)(QUIET, 0, NOW, change) == heard


def test_its_own_acts_are_changes_of_which_it_hears_at_its_first_question() -> None:
    looks = DaemonsLooks(FOLLOWS, acting_seconds=1.0, act_seconds=0.25)
    assert looks(QUIET, 2, NOW, math.inf) == 102.0
    assert looks(QUIET, 8, NOW, math.inf) == 103.0  # it asks when its acts are over
    assert looks(QUIET, 0, NOW, math.inf) == 1100.0


def test_looks_that_cost_slurmctld_too_much_come_more_seldom() -> None:
    """3 s are saved up, and a twentieth of what passes is added: -1.0 s are paid back in 20 s."""
    looks = DaemonsLooks(FOLLOWS, look_seconds=2.0)
    assert looks(QUIET, 0, NOW, NOW) == 102.0
    assert looks(QUIET, 0, NOW, NOW) == 120.0
    assert looks(QUIET, 0, NOW + 20.0, NOW) == pytest.approx(160.0)
