"""Looks that wait to be folded: which are taken together, and which shows an event of a job first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from slurm_fair.ledger.charging.advance import folded
from slurm_fair.ledger.charging.window_events import WindowLooks
from slurm_fair.ledger.settings import LedgerSettings
from slurm_fair.model import Blocked, EventKind, JobState, Ledger, Snapshot
from slurm_fair.model.ids import pack
from slurm_fair.sim.loop.pending_looks import PendingLook, Strip, shown_by, strips
from tests.support.builders import JobSpec, job, snapshot

BEGAN = 1000.0
ALIKE = {"a": 1.0, "b": 1.0}
WAITS = job(1, tenant="a", gpus=2, submit=BEGAN)
HELD = job(2, tenant="b", gpus=4, submit=BEGAN, blocked=Blocked.USER_HOLD)


def look(
    after: float, *jobs: JobSpec, weights: Mapping[str, float] = ALIKE, nodes: Sequence[int] = (4, 4)
) -> Snapshot:
    """A look so many seconds after the beginning."""
    named = {f"n{number}": gpus for number, gpus in enumerate(nodes, start=1)}
    return snapshot(time=BEGAN + after, nodes=named, jobs=jobs, weights=weights)


def runs(spec: JobSpec, start: float, node: str = "n1") -> JobSpec:
    return replace(spec, state=JobState.RUNNING, start=BEGAN + start, on={node: spec.gpus})


def over(spec: JobSpec, start: float, end: float) -> JobSpec:
    return replace(spec, state=JobState.DONE, start=BEGAN + start, end=BEGAN + end, on={})


def together(before: Snapshot | None, *looks: Snapshot, since: float = 0.0) -> list[WindowLooks]:
    """The looks as they are folded into a ledger that was brought up to `since`."""
    pending, known = [], before.jobs.key.tolist()[-1] if before and len(before.jobs) else -1
    for each in looks:
        pending.append(PendingLook(each, known))
        known = pending[-1].highest
    return list(strips(BEGAN + since, before, pending))


def sizes(before: Snapshot | None, *looks: Snapshot, since: float = 0.0) -> list[int]:
    found = together(before, *looks, since=since)
    assert [one for strip in found for one in strip.snapshots] == list(looks), "each once, in order"
    return [len(strip.snapshots) for strip in found]


# -- which are taken together ---------------------------------------------------------------------------------


def test_the_highest_key_that_was_ever_shown_is_kept_though_nobody_is_there_any_more() -> None:
    assert PendingLook(look(0), -1).highest == -1
    assert PendingLook(look(0, WAITS), -1).highest == pack(1)
    assert PendingLook(look(0, WAITS), pack(9)).highest == pack(9)
    assert PendingLook(look(0), pack(9)).highest == pack(9)


def test_looks_without_a_first_one_to_compare_with_are_taken_one_by_one() -> None:
    assert sizes(None, look(0, WAITS), look(10, WAITS)) == [1, 1]
    assert sizes(look(0, WAITS), look(10, WAITS)) == [1]
    assert sizes(look(0, WAITS)) == []


PLAIN = (
    look(10, WAITS),
    look(20, runs(WAITS, 12)),
    look(30, runs(WAITS, 12), job(3, tenant="b", submit=BEGAN + 25)),
    look(40, over(WAITS, 12, 33), job(3, tenant="b", submit=BEGAN + 25)),
    look(50, over(job(3, tenant="b", submit=BEGAN + 25), 41, 50)),
    look(60),
)


def test_arrivals_starts_and_ends_since_the_last_look_are_taken_together() -> None:
    assert sizes(look(0, WAITS), *PLAIN) == [6]


LATE = job(3, tenant="a", submit=BEGAN + 5)
ODD = {
    "an arrival of before the last look": look(20, WAITS, LATE),
    "an arrival that lies ahead": look(20, WAITS, job(3, submit=BEGAN + 21)),
    "a start of before the last look": look(20, runs(WAITS, 9)),
    "a start that lies ahead": look(20, runs(WAITS, 21)),
    "an end that lies ahead": look(20, over(WAITS, 12, 21)),
    "a job that is gone": look(20),
    "another size": look(20, replace(WAITS, gpus=1)),
    "another weight": look(20, replace(WAITS, weight=2.0)),
    "another tenant": look(20, replace(WAITS, tenant="b")),
    "another submission": look(20, replace(WAITS, submit=BEGAN + 11)),
    "a restart": look(20, replace(WAITS, restarts=1)),
    "a hold": look(20, replace(WAITS, blocked=Blocked.USER_HOLD)),
    "other weights of tenants": look(20, WAITS, weights={"a": 2.0, "b": 1.0}),
    "another tenant that counts": look(20, WAITS, weights={**ALIKE, "c": 1.0}),
    "more GPUs": look(20, WAITS, nodes=(4, 8)),
    "GPUs that went and came back": replace(look(20, WAITS), resized=((BEGAN + 12, 4), (BEGAN + 15, 8))),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_look_that_shows_anything_else_is_taken_alone(odd: Snapshot) -> None:
    after = tuple(replace(odd, time=BEGAN + time, resized=()) for time in (30.0, 40.0))
    found = sizes(look(0, WAITS), look(5, WAITS), look(10, WAITS), odd, *after)
    assert found[:2] == [2, 1]


def test_a_job_under_a_key_that_was_there_before_is_odd() -> None:
    ninth, fifth = (job(base, submit=BEGAN + submit) for base, submit in ((9, 2), (5, 25)))
    looks = (look(5, ninth), look(10, over(ninth, 6, 9)), look(20), look(30, fifth), look(40, fifth))
    assert sizes(look(0), *looks) == [3, 1, 1]
    assert sizes(look(0), *looks[2:]) == [3], "where nobody ever was"


def test_a_hold_that_is_taken_away_is_odd_and_one_that_stays_is_not() -> None:
    assert sizes(look(0, HELD), look(10, HELD), look(20, HELD)) == [2]
    free = replace(HELD, blocked=Blocked.NOT_BLOCKED)
    assert sizes(look(0, HELD), look(10, HELD), look(20, free), look(30, free)) == [1, 1, 1]


def test_a_run_of_which_slurm_thinks_better_is_odd() -> None:
    seen = (look(10, runs(WAITS, 2)), look(20, runs(WAITS, 2)), look(30, runs(WAITS, 1)))
    assert sizes(look(0, WAITS), *seen) == [2, 1]


def test_an_end_at_the_instant_up_to_which_all_is_charged_is_odd() -> None:
    looks = (look(20, over(WAITS, 5, 10)), look(30))
    before = look(10, runs(WAITS, 5))
    assert sizes(before, *looks, since=10) == [1, 1]
    assert sizes(before, *looks, since=0) == [2]


STOPPED = replace(WAITS, submit=BEGAN + 10, restarts=1)


def test_a_job_that_gave_its_gpus_back_at_the_instant_of_both_looks_is_plain_where_all_is_charged() -> None:
    before = look(10, runs(WAITS, 5))
    assert sizes(before, look(10, STOPPED), look(20, runs(STOPPED, 15)), since=10) == [2]
    assert sizes(before, look(10, STOPPED), look(20, runs(STOPPED, 15)), since=0) == [1, 1]
    later = replace(STOPPED, submit=BEGAN + 11)
    assert sizes(before, look(11, later), look(20, later), since=11) == [1, 1], "it was charged until 10 s"


@pytest.mark.parametrize(
    "again",
    [
        replace(STOPPED, restarts=2),  # one run was never seen
        replace(STOPPED, gpus=1),
        replace(STOPPED, submit=BEGAN + 9),
        replace(STOPPED, tenant="b"),
    ],
)
def test_one_that_came_back_otherwise_is_odd(again: JobSpec) -> None:
    assert sizes(look(10, runs(WAITS, 5)), look(10, again), look(20, again), since=10) == [1, 1]


def test_many_jobs_are_compared_as_few_are() -> None:
    many = [job(number, submit=BEGAN) for number in range(1, 601)]
    moved = [*many[:-1], replace(many[-1], weight=2.0)]
    looks = (look(10, *many), look(20, *many), look(30, *moved), look(40, *moved))
    assert sizes(look(0, *many), *looks) == [2, 1, 1]


# -- which one shows an event first -----------------------------------------------------------------------------


def strip() -> Strip:
    (found,) = together(look(0, WAITS), *PLAIN)
    assert isinstance(found, Strip)
    return found


def test_the_first_look_that_shows_an_event_is_known_with_the_jobs_row_there() -> None:
    found = strip()
    keys = found.first_shown[EventKind.FINISHED].key
    assert keys.tolist() == [pack(1), pack(3)]
    assert found.first(EventKind.FINISHED, keys) == ([3, 4], [0, 0])
    assert found.first(EventKind.STARTED, keys) == ([1, 4], [0, 0])
    assert found.first(EventKind.SUBMITTED, keys[1:]) == ([2], [1])
    assert found.first(EventKind.FINISHED, keys[::-1]) == ([4, 3], [0, 0])
    assert found.first_shown[EventKind.STOPPED].key.tolist() == []


def test_the_jobs_of_a_strip_are_those_of_its_last_look_and_all_that_ended_before() -> None:
    assert strip().jobs.key.tolist() == [pack(1), pack(3)]
    (found,) = together(look(0, WAITS), *PLAIN[:3])
    assert found.jobs.key.tolist() == [pack(1), pack(3)]
    assert [JobState(state) for state in found.jobs.state.tolist()] == [JobState.RUNNING, JobState.WAITING]


def test_events_are_told_of_all_looks_or_of_those_that_are_asked_for() -> None:
    ledger, _ = folded(
        Ledger.new(BEGAN), WindowLooks((look(0, WAITS),), look(0, WAITS).jobs), LedgerSettings()
    )
    _, happened = folded(ledger, strip(), LedgerSettings())

    def told(*looks: int) -> set[tuple[str, int, float]]:
        return {
            (str(became.kind), look, time - BEGAN)
            for became in shown_by(happened, looks)
            for look, time in zip(became.look, became.time, strict=True)
        }

    whole = {
        ("started", 1, 12.0), ("submitted", 2, 25.0), ("finished", 3, 33.0), ("started", 4, 41.0),
        ("finished", 4, 50.0),
    }  # fmt: skip
    assert told(*range(6)) == whole
    assert told(3, 1) == {event for event in whole if event[1] in (1, 3)}
    assert told(0, 5) == told() == set()
