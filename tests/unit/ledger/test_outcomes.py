"""One row per job, from events, from accounting and from columns at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger import Outcomes, advance, outcomes_of, recorded
from slurm_fair.model import Event, JobState, Ledger
from slurm_fair.model.ids import parse_label
from slurm_fair_accounting import EventFile, export_lines, read_events
from slurm_fair_accounting.timelines import stories_of
from tests.support import months
from tests.support.builders import job, run, runs, snapshot
from tests.support.outcome_rows import NAN, row, table


def of(outcomes: Outcomes, label: str) -> dict[str, Any]:
    """The row of one job as plain values."""
    at = outcomes.key.tolist().index(parse_label(label))
    return {name: column[at] for name, column in outcomes._arrays().items()}


MONTH = {
    # job -> what its events come to
    "17": {
        "submit": months.T, "start": months.T + 30, "end": months.T + 10805, "ran": 9000.0, "waited": 1805.0,
        "runs": 2, "preemptions": 1, "restarts": 1, "had": 36000.0, "owed": 40000.0, "rho_ltgf": 0.9,
        "gpus": 4, "completed": True,
    },
    "6_5": {"start": NAN, "ran": 0.0, "waited": 140.0, "runs": 0, "rho_ltgf": 1.0, "completed": False},
    "40": {
        "submit": months.MAR_1 - 3700, "start": months.MAR_1 - 3600, "end": NAN, "ran": 7200.0, "waited": 100.0,
        "runs": 1, "had": 14400.0, "owed": NAN, "rho_ltgf": NAN, "completed": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("label", MONTH)
def test_events_come_to_one_row_a_job(label: str) -> None:
    outcomes = outcomes_of(months.events(), until=months.MAR_1 + 3600)[0]
    found = of(outcomes, label)
    assert {name: found[name] for name in MONTH[label]} == pytest.approx(MONTH[label], nan_ok=True)
    assert np.all(np.diff(outcomes.key) > 0)
    assert (outcomes.tenants, outcomes.users) == (("chem", "phys"), ("ann", "bob"))
    assert outcomes.tenants[found["tenant"]] == ("phys" if label == "17" else "chem")
    assert outcomes.users[found["user"]] == ("ann" if label == "17" else "bob")


def test_runs_are_told_beside_the_jobs() -> None:
    outcomes, stretches = outcomes_of(months.events())
    assert outcomes.until == months.MAR_1 - 3600 + 920  # the last thing that happened
    mine = stretches.take(outcomes.key[stretches.job] == parse_label("17"))
    assert mine.start.tolist() == [months.T + 30, months.T + 3605]
    assert mine.end.tolist() == [months.T + 1830, months.T + 10805]
    still = stretches.take(outcomes.key[stretches.job] == parse_label("40"))
    assert still.end.tolist() == [outcomes.until]


def test_an_export_comes_to_the_same(tmp_path: Path) -> None:
    source = EventFile(months.events(), months.moments())
    file = tmp_path / "events.jsonl"
    file.write_text("".join(export_lines(source, 0.0, 1e12)))
    assert_same(outcomes_of(read_events(file).events())[0], outcomes_of(months.events())[0])


def assert_same(one: Outcomes, two: Outcomes) -> None:
    for name, column in one._arrays().items():
        np.testing.assert_array_equal(column, getattr(two, name), err_msg=name)
    assert (one.tenants, one.users, one.until) == (two.tenants, two.users, two.until)


def test_nothing_happened_to_nobody() -> None:
    outcomes, stretches = outcomes_of([])
    assert (len(outcomes), len(stretches), outcomes.until) == (0, 0, 0.0)


def event(time: float, kind: str, **detail: Any) -> Event:
    return Event(time, kind, 7, "a", 2, detail)


def only(events: list[Event], until: float | None = None) -> dict[str, Any]:
    """The one job that these events speak of."""
    outcomes = outcomes_of(events, until)[0]
    assert len(outcomes) == 1
    return {name: column[0] for name, column in outcomes._arrays().items()}


STORIES: list[tuple[str, list[Event], dict[str, Any]]] = [
    (
        "a job that began before the events do",
        [event(50, "stopped", start=20.0, had=60.0), event(60, "started"), event(90, "returned")],
        {"submit": NAN, "start": 20.0, "ran": 60.0, "had": 120.0, "runs": 2, "waited": NAN, "user": -1},
    ),
    (
        "a stop that does not say when its run began",
        [event(0, "submitted"), event(10, "started"), event(15, "stopped")],
        {"ran": 5.0, "runs": 1, "waited": 10.0, "preemptions": 0},
    ),
    (
        "a revocation that the job ran ahead of",
        [event(0, "submitted"), event(0, "started"), event(9, "revoked"), event(10, "finished", ran=10.0)],
        {"preemptions": 0, "runs": 1, "end": 10.0},
    ),
    (
        "a stop whose instant Slurm cut to whole seconds",
        [event(0, "submitted"), event(5, "started"), event(20.7, "revoked"), event(20, "stopped", start=5.0)],
        {"preemptions": 1, "ran": 15.0},
    ),
    (
        "a stop that nobody asked for",
        [event(0, "submitted"), event(5, "started"), event(9, "stopped", start=5.0), event(9, "started"),
         event(12, "revoked"), event(13, "stopped", start=9.0)],
        {"preemptions": 1, "runs": 2, "ran": 8.0},
    ),
    (
        "a node that failed while the job saved",
        [event(0, "submitted"), event(5, "started"), event(12, "revoked"),
         event(13, "stopped", start=5.0, restarts=0, state="NODE_FAIL")],
        {"preemptions": 0, "runs": 1, "restarts": 1},
    ),
    (
        "a stop by somebody else of a job that Slurm would not stop for us",
        [event(0, "submitted"), event(5, "started"), event(12, "revoked"), event(12, "stays"),
         event(40, "stopped", start=5.0)],
        {"preemptions": 0, "runs": 1},
    ),
    (
        "a stop of a job that Slurm would not stop at first",
        [event(0, "submitted"), event(5, "started"), event(12, "revoked"), event(12, "stays"),
         event(30, "revoked"), event(40, "stopped", start=5.0)],
        {"preemptions": 1, "runs": 1},
    ),
    (
        "a run without length",
        [event(0, "submitted"), event(5, "started"), event(5, "stopped", start=5.0), event(8, "started"),
         event(8, "finished")],
        {"runs": 2, "ran": 0.0, "end": 8.0, "start": 5.0, "waited": 8.0, "had": 0.0},
    ),
    (
        "what a simulation adds to its events",
        [event(0, "submitted", declared_seconds=30.0, exclusive_seconds=9.0),
         event(9, "finished", exclusive_seconds=10.0, spread_seconds=20.0, expected_seconds=40.0)],
        {"declared_seconds": 30.0, "exclusive_seconds": 10.0, "spread_seconds": 20.0, "expected_seconds": 40.0},
    ),
    (
        "what a user declared goes before a time limit",
        [event(0, "submitted", limit_seconds=90.0), event(1, "started"),
         event(9, "finished", declared_seconds=30.0, expected_seconds=None)],
        {"declared_seconds": 30.0, "expected_seconds": 30.0, "exclusive_seconds": 8.0, "spread_seconds": NAN},
    ),
    (
        "a time limit, where nothing else is known",
        [event(0, "submitted", limit_seconds=90.0), event(9, "finished")],
        {"expected_seconds": 90.0, "exclusive_seconds": NAN},
    ),
    (
        "a failure",
        [event(0, "submitted"), event(9, "finished", state="FAILED")],
        {"completed": False, "end": 9.0, "waited": 9.0},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), [s[1:] for s in STORIES], ids=[s[0] for s in STORIES])
def test_each_story(events: list[Event], expected: dict[str, Any]) -> None:
    found = only(events)
    assert {name: found[name] for name in expected} == pytest.approx(expected, nan_ok=True)


def test_a_key_that_is_used_again_has_a_row_for_each_job() -> None:
    first = [event(0, "submitted"), event(1, "started"), event(5, "finished")]
    second = [event(10, "submitted"), event(12, "started"), event(20, "finished")]
    outcomes, stretches = outcomes_of([*second, *first])
    assert outcomes.key.tolist() == [7, 7]
    assert outcomes.submit.tolist() == [0, 10]
    assert outcomes.ran.tolist() == [4, 8]
    assert stretches.job.tolist() == [0, 1]


def test_a_job_whose_submission_nobody_saw_stands_before_the_next_of_its_key_with_its_own_runs() -> None:
    events = [
        months.event(months.T, "started", gpus=8),
        months.event(months.T + 50, "submitted", gpus=2, user="bob"),
        months.event(months.T + 60, "started", gpus=2, user="bob"),
    ]
    outcomes, stretches = outcomes_of(events, until=months.T + 100)
    assert [outcomes.tenants[at] for at in outcomes.tenant] == ["phys", "chem"]
    assert [(outcomes.gpus[job], gpus) for job, gpus in zip(stretches.job, stretches.gpus, strict=True)] == [
        (8, 8),
        (2, 2),
    ]
    assert outcomes.may_live.tolist() == [False, True]


def test_the_ledgers_own_events_come_to_its_accounts() -> None:
    """A job that is requeued once, as three looks at the cluster show it."""
    running: dict[str, Any] = {"gpus": 4, "state": JobState.RUNNING, "on": {"n1": 4}}
    looks = [
        snapshot(time=100, nodes={"n1": 8}, jobs=[job(1, submit=90, start=95, **running)]),
        snapshot(time=130, nodes={"n1": 8}, jobs=[job(1, gpus=4, submit=120, restarts=1)]),
        snapshot(time=160, nodes={"n1": 8}, jobs=[job(1, submit=120, restarts=1, start=140, **running)]),
        snapshot(
            time=200,
            nodes={"n1": 8},
            jobs=[job(1, gpus=4, submit=120, restarts=1, start=140, end=190, state=JobState.DONE)],
        ),
    ]
    ledger, events = Ledger.new(80.0), list[Event]()
    for look in looks:
        ledger, news = advance(ledger, look)
        events += news
    found = only(events)
    assert {name: found[name] for name in ("submit", "start", "end", "ran", "had", "runs", "restarts")} == {
        "submit": 90, "start": 95, "end": 190, "ran": 75, "had": 300, "runs": 2, "restarts": 1,
    }  # fmt: skip
    assert found["waited"] == 25
    assert found["rho_ltgf"] == pytest.approx(ledger.tenants.had[0] / ledger.tenants.owed_demand[0])


def test_accounting_comes_to_the_same_table() -> None:
    outcomes, stretches = recorded(
        runs(
            run(3, gpus=2, submit=0, start=10, end=30, requeued=True),
            run(3, gpus=2, submit=30, start=40, end=60),
            run(4, submit=5, start=0, end=50),
            run(5, submit=50, start=55, end=0),
        ),
        until=100.0,
    )
    assert outcomes.submit.tolist() == [0, 5, 50]
    assert outcomes.start.tolist() == pytest.approx([10, NAN, 55], nan_ok=True)
    assert outcomes.end.tolist() == pytest.approx([60, 50, NAN], nan_ok=True)
    assert outcomes.ran.tolist() == [40, 0, 45]
    assert outcomes.waited.tolist() == [20, 45, 5]
    assert outcomes.had.tolist() == [80, 0, 45]
    assert (outcomes.runs.tolist(), outcomes.preemptions.tolist()) == ([2, 0, 1], [1, 0, 0])
    assert stretches.job.tolist() == [0, 0, 2]
    assert len(recorded(runs(), until=0.0)[0]) == 0


def test_columns_at_hand_make_a_sorted_table_with_the_rest_unknown() -> None:
    jobs = table(row(9, 20, ran=4), row(3, NAN, ran=0), until=30)
    turned = Outcomes.given(
        key=jobs.key[::-1], tenant=jobs.tenant, tenants=("a",), gpus=jobs.gpus, submit=jobs.submit[::-1],
        end=jobs.end[::-1], ran=jobs.ran[::-1], until=30.0,
    )  # fmt: skip
    assert_same(jobs, turned)
    assert jobs.waited.tolist() == [7, 27]
    assert jobs.had.tolist() == [4, 0]
    assert jobs.completed.tolist() == [True, False]
    assert np.isnan(jobs.rho_ltgf).all()
    assert jobs.ended_or_now.tolist() == [20, 30]


@dataclass(frozen=True)
class Life:
    """A job as it was: runs as (gap before, length, ended by us)."""

    submit: int
    runs: tuple[tuple[int, int, bool], ...]
    over: bool

    def events(self, key: int) -> list[Event]:
        def says(time: float, kind: str, **detail: Any) -> Event:
            return Event(float(time), kind, key, "ab"[key % 2], 1 + key % 3, detail)

        told_so_far, now = [says(self.submit, "submitted", user="u")], self.submit
        for number, (gap, length, ours) in enumerate(self.runs):
            start, now = now + gap, now + gap + length
            told_so_far.append(says(start, "started", restarts=number, nodes=["n1"]))
            if number < len(self.runs) - 1:
                told_so_far += [says(now, "revoked")] * ours
                told_so_far.append(says(now, "stopped", start=float(start)))
        return [*told_so_far, says(now, "finished")] if self.over else told_so_far


_LIVES = st.lists(
    st.builds(
        Life,
        st.integers(0, 50),
        st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.booleans()), max_size=4).map(tuple),
        st.booleans(),
    ),
    max_size=6,
)


@given(_LIVES, st.randoms(use_true_random=False))
def test_any_lives_are_told_as_they_were(lives: list[Life], dice: Any) -> None:
    events = [event for key, life in enumerate(lives) for event in life.events(key)]
    dice.shuffle(events)
    outcomes, stretches = outcomes_of(events, until=200.0)
    stories = {story.key: story for story in stories_of(sorted(events, key=lambda event: event.time))}
    assert outcomes.key.tolist() == list(range(len(lives)))
    for key, life in enumerate(lives):
        mine = stretches.take(stretches.job == key)
        spans = list(zip(mine.start.tolist(), mine.end.tolist(), strict=True))
        assert spans == [(start, 200.0 if end is None else end) for start, end in stories[key].runs]
        assert outcomes.runs[key] == len(life.runs)
        assert outcomes.preemptions[key] == sum(ours for _, _, ours in life.runs[:-1])
        assert outcomes.restarts[key] == max(len(life.runs) - 1, 0)
        assert outcomes.ran[key] == sum(end - start for start, end in spans)
        assert outcomes.completed[key] == life.over
        assert outcomes.waited[key] + outcomes.ran[key] == outcomes.ended_or_now[key] - life.submit
