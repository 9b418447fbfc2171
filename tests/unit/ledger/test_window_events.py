"""Events of a window are told once, in the order of time, by the first look that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slurm_fair.ledger import LedgerSettings
from slurm_fair.ledger.charging.advance import folded
from slurm_fair.ledger.charging.window_events import GPU_WEIGHT, NO_LOOKS, Happened, WindowLooks
from slurm_fair.model import Event, EventKind, JobState, Snapshot, Told
from slurm_fair.model.ids import label
from tests.support.builders import JobSpec, job, snapshot
from tests.support.ledger_watch import BEGAN, Watch

RUNNING, DONE = JobState.RUNNING, JobState.DONE


def runs(base: int, start: float, **more: Any) -> JobSpec:
    return job(base, **{"gpus": 2, "submit": BEGAN, "state": RUNNING, "start": start, **more})


def happened(before: Sequence[JobSpec], shown: Snapshot) -> Happened:
    """All that a look shows first after one at 1010 that showed these."""
    watch = Watch()
    watch.look(1010.0, *before)
    return folded(watch.ledger, WindowLooks((shown,), shown.jobs), LedgerSettings())[1]


def told(before: Sequence[JobSpec], *jobs: JobSpec, now: float = 1030.0) -> list[Event]:
    (events,) = happened(before, snapshot(time=now, nodes={"n1": 8, "n2": 8}, jobs=jobs)).events
    return events


def short(events: Sequence[Event]) -> list[tuple[str, float, str]]:
    return [(event.kind, event.time, label(event.key)) for event in events]


def test_a_look_that_shows_nothing_new_tells_nothing() -> None:
    assert told([]) == []
    assert told([runs(1, 1005.0), job(2, submit=BEGAN)], runs(1, 1005.0), job(2, submit=BEGAN)) == []
    assert happened([], snapshot(time=1030.0)).became == ()


def test_events_come_in_the_order_of_time_and_of_one_instant_by_job_and_as_they_follow() -> None:
    """Job 1 is stopped and starts again at one instant; job 3 comes, runs and ends between the looks."""
    before = [runs(1, 1005.0), runs(2, 1005.0, tenant="b")]
    events = told(
        before,
        runs(1, 1020.0, submit=1020.0, restarts=1),
        runs(2, 1005.0, tenant="b", state=DONE, end=1020.0),
        runs(3, 1015.0, submit=1015.0, state=DONE, end=1020.0),
    )
    assert short(events) == [
        ("submitted", 1015.0, "3"),
        ("started", 1015.0, "3"),
        ("stopped", 1020.0, "1"),
        ("started", 1020.0, "1"),
        ("finished", 1020.0, "2"),
        ("finished", 1020.0, "3"),
    ]
    assert [event.tenant for event in events] == ["a", "a", "a", "a", "b", "a"]


def test_of_one_instant_the_job_with_the_lower_id_comes_first() -> None:
    before = [runs(1, 1005.0), job(2, gpus=2, submit=BEGAN)]
    events = told(before, runs(1, 1005.0, state=DONE, end=1020.0), runs(2, 1020.0))
    assert short(events) == [("finished", 1020.0, "1"), ("started", 1020.0, "2")]


def test_the_last_run_of_a_job_that_is_over_is_not_told_to_have_stopped_and_an_earlier_one_is() -> None:
    over = runs(1, 1020.0, submit=1015.0, restarts=1, state=DONE, end=1025.0)
    events = told([runs(1, 1005.0)], over)
    assert short(events) == [("stopped", 1015.0, "1"), ("started", 1020.0, "1"), ("finished", 1025.0, "1")]
    stopped, started, finished = (event.detail for event in events)
    assert stopped == {"start": 1005.0, "had": 20.0, "restarts": 0}
    assert started == {"nodes": [], "restarts": 1}
    parts = {name: finished[name] for name in ("had", "ran", "waited", "restarts", "submit", "end")}
    assert parts == {
        "had": 30.0, "ran": 15.0, "waited": 10.0, "restarts": 1, "submit": BEGAN, "end": 1025.0,
    }  # fmt: skip


def test_a_start_names_the_nodes_of_the_run_that_the_look_shows() -> None:
    shown = runs(1, 1015.0, gpus=3, on={"n2": 1, "n1": 2})
    (event,) = told([job(1, gpus=3, submit=BEGAN)], shown)
    assert (event.kind, event.gpus, event.detail) == ("started", 3, {"nodes": ["n1", "n2"], "restarts": 0})


def test_a_job_that_never_ran_and_is_gone_has_finished_without_anything() -> None:
    (event,) = told([job(1, gpus=2, submit=BEGAN), job(2)], job(2))
    assert short([event]) == [("finished", 1030.0, "1")]
    assert (event.detail["had"], event.detail["ran"], event.detail["waited"]) == (0.0, 0.0, 30.0)
    assert event.detail["rho"] == 0.0
    assert not {"user", "state", "declared_seconds", "limit_seconds"} & set(event.detail)


def test_what_users_say_is_told_with_the_submission_and_the_end_where_anybody_said_it() -> None:
    jobs = [
        job(1, submit=1015.0, user="ann", time_limit_seconds=600.0),
        job(2, submit=BEGAN, user="bob", state=DONE, end=1020.0, reason="COMPLETED"),
        job(3, submit=1016.0, user="eve", reason="Priority"),
    ]
    shown = snapshot(time=1030.0, jobs=jobs)
    declared = np.array([np.nan, 50.0, 70.0])
    shown = replace(shown, told=Told.nothing(3, 1).with_columns(declared_seconds=declared))
    (events,) = happened([job(2, submit=BEGAN, user="bob")], shown).events
    said = {label(event.key): event.detail for event in events}
    assert said["1"] == {"user": "ann", "limit_seconds": 600.0}
    assert said["3"] == {"user": "eve", "declared_seconds": 70.0}
    assert {name: said["2"].get(name) for name in ("user", "state", "declared_seconds", "limit_seconds")} == {
        "user": "bob", "state": "COMPLETED", "declared_seconds": 50.0, "limit_seconds": None,
    }  # fmt: skip


def test_the_weight_of_gpus_is_told_of_those_where_it_is_not_one() -> None:
    jobs = [runs(1, 1015.0, gpu_weight=2.0), runs(2, 1016.0), runs(3, 1017.0, gpu_weight=0.0)]
    started = told([job(base, gpus=2, submit=BEGAN) for base in (1, 2, 3)], *jobs)
    assert [event.detail.get(GPU_WEIGHT) for event in started] == [2.0, None, 0.0]
    (only,) = told([job(1, gpus=2, submit=BEGAN)], runs(1, 1015.0))
    assert GPU_WEIGHT not in only.detail


def test_each_kind_stands_in_columns_once() -> None:
    shown = snapshot(time=1030.0, jobs=[runs(1, 1015.0), runs(2, 1014.0)])
    (started,) = happened([job(base, gpus=2, submit=BEGAN) for base in (1, 2)], shown).became
    assert (started.kind, started.look, started.row) == (EventKind.STARTED, [0, 0], [0, 1])
    assert (started.time, started.gpus, started.said) == ([1015.0, 1014.0], [2, 2], {"restarts": [0, 0]})


def test_a_job_that_no_look_shows_any_more_has_no_row() -> None:
    assert WindowLooks((), snapshot(jobs=[job(1), job(3)]).jobs).first(
        EventKind.STARTED, snapshot(jobs=[job(3), job(2), job(1)]).jobs.key[::-1]
    ) == ([0, 0, 0], [1, -1, 0])
    assert NO_LOOKS.first(EventKind.FINISHED, np.array([7], dtype=np.int64)) == ([0], [-1])
