"""The clock was set back: notes that lie ahead count as made now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import LeaseTerms, Standing
from slurm_fair.model.reservation import ReservedNodes, reservations, with_reservations
from slurm_fair.model.retries import Retries
from slurm_fair.reconcile.clock import without_the_future
from tests.support.builders import lease, leases

NOW, TERMS = 1000.0, LeaseTerms(term=900.0)


def standing(**columns: float) -> Standing:
    """One lease, which was granted long ago unless that is said."""
    return Standing.new(0.0)._replace(leases=leases(lease(1, {"n1": 1}, end=NOW + 60, **columns)))


def test_a_lease_that_was_granted_ahead_ends_a_term_from_now_at_the_latest() -> None:
    before = standing(granted=NOW + 500)
    leases = without_the_future(
        before._replace(leases=before.leases.with_columns(end=before.leases.end + 5000)), TERMS, NOW
    ).leases
    assert leases.granted.tolist() == [NOW]
    assert leases.end.tolist() == [TERMS.end_for(NOW)]
    assert without_the_future(before, TERMS, NOW).leases.end.tolist() == [NOW + 60]


@pytest.mark.parametrize(("renewals", "end"), [(0, NOW + 900), (3, NOW + 225)])
def test_where_leases_roll_a_renewed_one_ends_after_its_renewal_at_the_latest(
    renewals: int, end: float
) -> None:
    terms = LeaseTerms(term=900.0, aligned=False, renewal=225.0)
    leases = standing(granted=NOW + 3600).leases
    leases = leases.with_columns(end=leases.end + 5000, renewals=np.array([renewals]))
    ahead = Standing.new(0.0)._replace(leases=leases)
    assert without_the_future(ahead, terms, NOW).leases.end.tolist() == [end]


@pytest.mark.parametrize("name", ["granted", "asked", "opened"])
def test_what_lies_ahead_by_more_than_a_second_is_noted_as_now(name: str) -> None:
    ahead = without_the_future(standing(**{name: NOW + 1.5}), TERMS, NOW)
    assert getattr(ahead.leases, name).tolist() == [NOW]
    for at in (NOW + 1, NOW - 5):
        near = standing(**{name: at})
        assert without_the_future(near, TERMS, NOW) is near


def test_who_is_unsettled_rests_from_now() -> None:
    before = standing()._replace(unsettled={1: NOW + 2, 2: NOW + 0.5, 3: NOW - 50})
    assert without_the_future(before, TERMS, NOW).unsettled == {1: NOW, 2: NOW, 3: NOW - 50}
    near = standing()._replace(unsettled={2: NOW + 0.5})
    assert without_the_future(near, TERMS, NOW) is near


RESTS = Retries({5: (NOW + 3700, 2)})
GANG = ReservedNodes(7, since=NOW + 3500, due=NOW + 3900, nodes=("n1",), gpus=8, gpu_type=0)


def look_was_at(time: float) -> Standing:
    """A standing with rests and nodes set aside, of a last look that was then."""
    ledger = replace(standing().ledger, time=time)
    memory = with_reservations({}, [GANG])
    before = standing()._replace(ledger=ledger, memory=memory, left_over=9)
    return before._replace(backoff=RESTS, unmoved=RESTS, unshut=RESTS)


def test_rests_and_gpus_that_are_set_aside_last_no_longer_by_what_the_clock_was_set_back() -> None:
    after = without_the_future(look_was_at(NOW + 3600), TERMS, NOW)
    for rests in (after.backoff, after.unmoved, after.unshut):
        assert dict(rests.due) == {5: (NOW + 100, 2)}
    assert reservations(after.memory) == (GANG._replace(since=NOW - 100, due=NOW + 300),)
    assert after.left_over == 0, "the policy plans anew"


@pytest.mark.parametrize("ahead", [-10.0, 0.0, 10.0])
def test_a_clock_that_goes_on_or_lacks_a_few_seconds_changes_no_rest(ahead: float) -> None:
    before = look_was_at(NOW + ahead)
    assert without_the_future(before, TERMS, NOW) is before
