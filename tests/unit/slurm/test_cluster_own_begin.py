"""A begin time of a user's own is kept while our gate stands in its place, whatever happens to the controller."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blocked, LeaseTerms, Verb
from slurm_fair.model.retries import Retries
from tests.support.crashes import POINTS, Crash, Failpoint, disarm
from tests.support.fake_cluster import Site

INTERVAL = 60.0
TERMS = LeaseTerms(
    term=900.0,
    interval=INTERVAL,
    grace=60.0,
    start_timeout=60.0,
    reserve_after=900.0,
    renewal=225.0,
    aligned=False,
)


def site_with(seconds: float) -> tuple[Site, int, float]:
    """A site, a job that its user lets begin so many seconds later, and that instant."""
    site = Site.build({"n1": 8}, terms=TERMS)
    begin = float(int(site.now + seconds))
    return site, site.world.submit(4, "a", begin=begin), begin


def run_until_gated(site: Site, job: int) -> None:
    """Run until our gate has taken the place of the user's begin time."""
    own = site.world.records[job].eligible
    while site.world.records[job].eligible == own:
        site.run(5)


@pytest.mark.parametrize("seconds", [600.0, 90.0, 30.0])
def test_what_frees_the_queue_gives_it_back(seconds: float) -> None:
    site, job, begin = site_with(seconds)
    run_until_gated(site, job)
    assert site.now < begin < site.world.records[job].eligible
    assert site.fail_open().left == ()
    assert (site.world.records[job].state, site.world.records[job].eligible) == ("PENDING", begin)
    assert site.fail_open().left == ()
    assert site.world.records[job].eligible == begin


def test_a_job_that_leaves_the_scope_has_it_again() -> None:
    site, job, begin = site_with(600.0)
    run_until_gated(site, job)
    scope = from_tree({"scope": {"accounts": ["other"]}}, "test").scope
    site.config = replace(site.config, scope=scope)
    site.restart()
    site.run(30)
    assert site.world.records[job].eligible == begin
    site.run_until(begin + 5)
    assert begin <= site.world.records[job].start <= begin + 5


@pytest.mark.parametrize("point", POINTS)
def test_a_controller_that_died_round_the_act_keeps_it(point: str) -> None:
    site, job, begin = site_with(600.0)
    Failpoint(point, Verb.CLOSE).arm(site)
    with pytest.raises(Crash):
        site.run_until(begin)
    disarm(site)
    site.world.clock.advance(1.0)
    site.restart()
    site.run_until(begin + 2 * INTERVAL)
    assert begin <= site.world.records[job].start <= begin + INTERVAL


def test_the_look_says_that_it_lies_ahead_until_it_is_over() -> None:
    site, job, begin = site_with(600.0)
    run_until_gated(site, job)
    site.tick()
    jobs = site.journal.records[-1].snapshot.jobs
    assert (jobs.gated.tolist(), jobs.blocked.tolist()) == ([True], [Blocked.OWN_BEGIN])
    (mark,) = site.journal.marks()
    assert (mark.user_begin, mark.gate_until) == (begin, site.world.records[job].eligible)
    site.run_until(begin + INTERVAL)
    assert site.running() == {job}
    (mark,) = site.journal.marks()
    assert mark.user_begin == 0


def test_a_wish_to_start_at_once_takes_its_place() -> None:
    site, job, begin = site_with(600.0)
    run_until_gated(site, job)
    site.world.move_begin(job, site.now)
    site.fail_open()
    site.world.clock.advance(2.0)
    site.world.catch_up()
    assert site.running() == {job}
    assert site.world.records[job].start < begin


def test_another_begin_time_takes_its_place() -> None:
    site, job, begin = site_with(600.0)
    run_until_gated(site, job)
    site.world.move_begin(job, begin + 500)
    site.run(30)
    run_until_gated(site, job)
    site.fail_open()
    assert site.world.records[job].eligible == begin + 500


def test_a_gate_that_is_set_anew_keeps_it() -> None:
    site, job, begin = site_with(600.0)
    run_until_gated(site, job)
    (mark,) = site.journal.marks()
    site.standing = site.standing._replace(backoff=Retries())
    site.rules = replace(site.rules, terms=replace(TERMS, term=3600.0))
    site.run(60)
    (later,) = site.journal.marks()
    assert later.gate_until > mark.gate_until
    assert later.user_begin == begin
    site.run_until(begin + INTERVAL)
    assert begin <= site.world.records[job].start
