"""The site's rules for leases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.model import NEVER_ENDS_SECONDS, LeaseTerms
from tests.support.fake_cluster import Site
from tests.support.fake_jobs import Work


@pytest.mark.parametrize(
    ("asked_for", "grace"),
    [
        (0.0, 60.0),
        (10.0, 10.0),
        (60.0, 60.0),
        (120.0, 120.0),
        (600.0, 600.0),
        (601.0, 600.0),
        (999_999.0, 600.0),
    ],
)
def test_a_job_gets_the_grace_that_it_asks_for_up_to_the_most_that_a_site_gives(
    asked_for: float, grace: float
) -> None:
    assert LeaseTerms(grace=60.0, max_grace=600.0).grace_of(asked_for) == grace


@pytest.mark.parametrize(
    ("terms", "renewed", "shortest"),
    [
        (LeaseTerms(term=900.0, aligned=False, renewal=300.0), 1300.0, 300.0),
        (LeaseTerms(term=900.0, aligned=False), 1900.0, 900.0),
        (LeaseTerms(term=900.0, aligned=False, renewal=300.0, min_runtime=3600.0), 1300.0, 300.0),
        (LeaseTerms(term=900.0, renewal=300.0), 1800.0, 900.0),
        (
            LeaseTerms(term=NEVER_ENDS_SECONDS, aligned=False, renewal=300.0),
            1000.0 + NEVER_ENDS_SECONDS,
            NEVER_ENDS_SECONDS,
        ),
    ],
)
def test_a_renewed_lease_ends_after_its_renewal_where_leases_roll(
    terms: LeaseTerms, renewed: float, shortest: float
) -> None:
    assert (terms.renewed_end(1000.0), terms.shortest) == (renewed, shortest)


ROLLING = LeaseTerms(term=900.0, aligned=False, renewal=225.0)


@pytest.mark.parametrize(
    ("terms", "beat"),
    [
        (ROLLING, 14.0),
        (LeaseTerms(term=30.0, aligned=False, renewal=7.5), 7.5 / 16),
        (LeaseTerms(term=900.0, aligned=False, renewal=900.0), 0.0),
        (LeaseTerms(term=900.0, aligned=False), 0.0),
        (LeaseTerms(term=900.0, renewal=225.0), 0.0),
        (LeaseTerms(term=NEVER_ENDS_SECONDS, aligned=False, renewal=225.0), 0.0),
    ],
)
def test_shorter_renewed_leases_have_a_beat_of_whole_seconds_where_there_are_some(
    terms: LeaseTerms, beat: float
) -> None:
    assert terms.beat == beat


def test_a_lease_that_is_over_is_renewed_at_the_next_beat_and_others_at_once() -> None:
    ends = np.array([1400.0, 1400.5, 1413.9, 1414.0])
    assert ROLLING.renewed_at(ends).tolist() == [1414.0, 1414.0, 1414.0, 1428.0]
    assert LeaseTerms(term=900.0, aligned=False).renewed_at(ends).tolist() == ends.tolist()


@given(
    st.floats(0, 2e9),
    st.floats(0.01, 3600),
)
def test_no_lease_is_renewed_before_it_is_over_nor_more_than_a_beat_later(end: float, renewal: float) -> None:
    terms = LeaseTerms(term=2 * renewal, aligned=False, renewal=renewal)
    at = float(terms.renewed_at(np.array([end]))[0])
    assert end <= at <= end + terms.beat * (1 + 1e-6) + 1e-6


def test_the_sites_own_grace_is_never_more_than_a_job_may_ask_for() -> None:
    assert LeaseTerms(grace=60.0, max_grace=30.0).grace_of(50.0) == 50.0
    assert LeaseTerms(grace=60.0, max_grace=30.0).grace_of(90.0) == 60.0


def test_a_job_that_asks_for_a_grace_without_end_and_never_answers_is_requeued_after_the_most_it_may_have() -> (
    None
):
    terms = LeaseTerms(term=60.0, interval=10.0, grace=5.0, max_grace=20.0, start_timeout=20.0)
    site = Site.build({"n1": 8}, terms=terms)
    mute = site.world.submit(8, "a", work=Work(answers_in=float("inf")))
    site.world.record(mute).comment += ",grace=999999"
    site.run(10)
    rival = site.world.submit(8, "b")
    site.run(150)
    assert rival in {start.key >> 23 for start in site.world.starts}
    asked = next(e.time for r in site.journal.records for e in r.events if e.kind == "revoked")
    started = next(start.time for start in site.world.starts if start.key >> 23 == rival)
    assert 20.0 <= started - asked <= 30.0
