"""Events become stories: one for each life of a job, with its runs and its leases."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model import Event
from slurm_fair_accounting.timelines import LeaseStory, Story, stories_of
from tests.support.months import T, event


def story(*events: Event) -> Story:
    """The only story that they tell."""
    (told,) = stories_of(events)
    return told


def leases(*events: Event) -> list[LeaseStory]:
    return story(*events).leases


def held(lease: LeaseStory) -> tuple[float | None, float | None, str]:
    """Seconds after T at which it began and ended, and by what."""
    start, end = (None if at is None else at - T for at in (lease.start, lease.end))
    return start, end, lease.ended_by


GRANTED = event(T, "granted", nodes=["n1"], number=1, why="its turn came")
STARTED = event(T + 20, "started", nodes=["n1"], restarts=0)


def test_no_events_tell_no_story() -> None:
    assert stories_of([]) == []


def test_a_key_that_is_submitted_again_begins_another_story() -> None:
    first, second = stories_of(
        [event(T, "submitted"), event(T + 5, "finished"), event(T + 6, "returned"), event(T + 9, "submitted")]
    )
    assert (first.submit, second.submit) == (T, T + 9)
    assert first.finished is not None
    assert second.finished is None


def test_what_trails_behind_an_end_belongs_to_the_life_that_ended() -> None:
    (lease,) = leases(GRANTED, STARTED, event(T + 90, "finished"), event(T + 95, "returned"))
    assert held(lease) == (20, 90, "finished")


def test_jobs_whose_events_are_mixed_keep_their_own_stories() -> None:
    told = stories_of([event(T, "submitted", "1"), event(T, "submitted", "2"), event(T + 5, "started", "1")])
    assert [len(each.runs) for each in told] == [1, 0]


def test_a_story_may_begin_in_the_middle() -> None:
    told = story(event(T + 50, "stopped", start=T + 10.0))
    assert told.submit is None
    assert told.runs == [(T + 10, T + 50)]


def test_an_end_without_a_start_tells_no_run() -> None:
    assert story(event(T, "finished")).runs == []
    assert story(event(T, "stopped")).runs == []


def test_a_run_ends_once() -> None:
    told = story(STARTED, event(T + 50, "stopped", start=T + 20.0), event(T + 60, "finished"))
    assert told.runs == [(T + 20, T + 50)]


def test_a_run_of_which_only_the_end_was_seen_stands_behind_the_earlier_one() -> None:
    told = story(STARTED, event(T + 50, "stopped"), event(T + 99, "stopped", start=T + 70.0))
    assert told.runs == [(T + 20, T + 50), (T + 70, T + 99)]


def test_nodes_and_restarts_are_those_of_the_last_run() -> None:
    told = story(STARTED, event(T + 50, "stopped"), event(T + 60, "started", nodes=["n2", "n3"], restarts=4))
    assert (told.nodes, told.restarts) == (("n2", "n3"), 4)


def test_tenant_gpus_and_owner_are_those_that_were_named_last() -> None:
    blank = Event(T + 5, "started", event(T, "submitted").key, "", 0, {"user": ""})
    told = story(event(T, "submitted"), event(T + 1, "granted", gpus=8, user="bob"), blank)
    assert (told.tenant, told.gpus, told.user) == ("chem", 8, "bob")


def test_an_end_says_when_its_job_was_submitted_though_nobody_saw_that() -> None:
    assert story(event(T, "finished", submit=T - 100.0)).submit == T - 100
    assert story(event(T, "finished")).submit == T
    assert story(event(T - 7, "submitted"), event(T, "finished")).submit == T - 7


def test_what_was_said_at_the_end_is_kept_and_its_own_end_wins() -> None:
    assert story(event(T, "finished", rho=0.5)).finished == {"end": T, "user": "ann", "rho": 0.5}
    told = story(event(T, "finished", end=T - 3.0)).finished
    assert told is not None
    assert told["end"] == T - 3


@pytest.mark.parametrize(("early", "start"), [(1.0, -1.0), (0.0, 0.0), (1.5, None)])
def test_a_start_in_slurms_second_before_the_grant_is_that_of_its_lease(
    early: float, start: float | None
) -> None:
    """Slurm says whole seconds of its starts."""
    (lease,) = leases(event(T - early, "started", nodes=["n1"], restarts=0), GRANTED)
    assert held(lease) == (start, None, "")


def test_a_lease_without_nodes_lies_where_its_job_runs() -> None:
    (lease,) = leases(event(T, "granted", number=1), STARTED)
    assert lease.nodes == ("n1",)


def test_a_job_that_ran_already_holds_its_lease_since_its_start() -> None:
    (lease,) = leases(STARTED, event(T + 300, "adopted", start=T + 20.0, number=3))
    assert (lease.number, lease.nodes, lease.granted, held(lease)) == (3, ("n1",), T + 300, (20, None, ""))


def test_a_renewal_ends_one_lease_and_begins_the_next_with_the_following_number() -> None:
    first, second = leases(GRANTED, STARTED, event(T + 900, "renewed", why="nobody is owed more"))
    assert (held(first), held(second)) == ((20, 900, "renewed"), (900, None, ""))
    assert (second.number, second.nodes, second.why) == (2, ("n1",), "nobody is owed more")
    assert first.why == "its turn came"


def test_a_renewal_of_a_lease_that_nobody_saw_granted_is_a_lease() -> None:
    (lease,) = leases(event(T, "renewed"))
    assert (lease.number, held(lease)) == (1, (0, None, ""))


REVOKED = event(T + 900, "revoked", why="others are owed more")
ENDS: dict[str, tuple[tuple[Event, ...], tuple[str, str]]] = {
    "its GPUs came back": ((event(T + 910, "stopped"),), ("revoked", "others are owed more")),
    "the return alone was seen": ((event(T + 910, "returned"),), ("revoked", "others are owed more")),
    "its job ended first": ((event(T + 910, "finished"),), ("finished", "")),
    "its node failed first": ((event(T + 910, "stopped", state="NODE_FAIL"),), ("stopped", "")),
}


@pytest.mark.parametrize(("after", "told"), ENDS.values(), ids=ENDS)
def test_a_revoked_lease_lasts_until_its_gpus_are_back(
    after: tuple[Event, ...], told: tuple[str, str]
) -> None:
    (still,) = leases(GRANTED, STARTED, REVOKED)
    assert held(still) == (20, None, "revoked")
    (lease,) = leases(GRANTED, STARTED, REVOKED, *after)
    assert lease.end == T + 910
    assert (lease.ended_by, lease.why_ended) == told


def test_a_job_that_slurm_would_not_stop_was_never_revoked() -> None:
    told = story(GRANTED, STARTED, REVOKED, event(T + 930, "stays"))
    assert [held(lease) for lease in told.leases] == [(20, 930, "renewed"), (930, None, "")]
    assert [lease.why_ended for lease in told.leases] == ["", ""]


def test_a_promise_that_is_taken_back_never_started() -> None:
    (lease,) = leases(GRANTED, event(T + 120, "takenback"))
    assert held(lease) == (None, 120, "takenback")


def test_a_revocation_of_no_open_lease_ends_none() -> None:
    told = story(GRANTED, event(T + 120, "takenback"), REVOKED)
    assert [held(lease) for lease in told.leases] == [(None, 120, "takenback")]


@pytest.mark.parametrize("kind", ["opened", "asked", "requeued", "from a later version", "x" * 9999])
def test_a_kind_that_tells_nothing_of_runs_and_leases_changes_neither(kind: str) -> None:
    told = story(GRANTED, event(T + 10, kind, nodes=["n9"], number=9))
    assert (told.runs, len(told.leases), told.nodes) == ([], 1, ())


@pytest.mark.parametrize("said", [None, ""])
def test_a_reason_that_is_none_is_no_text(said: Any) -> None:
    (lease,) = leases(event(T, "granted", why=said))
    assert lease.why == ""
