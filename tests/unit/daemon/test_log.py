"""The daemon's log tells each fact once, and again where it lasts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from slurm_fair.daemon.log import Pauses, TickLog, Trouble, act_line
from slurm_fair.host.state_folder import Pause
from slurm_fair.model import Action, Outcome, Result, Standing, TickRecord, Untried, Verb
from slurm_fair.model.ids import pack
from slurm_fair.tick import TickDone
from tests.support.board_scene import recorded
from tests.support.command_line import heard


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Everything that is said, however softly."""
    with heard(), caplog.at_level(logging.DEBUG, logger="slurm_fair"):
        yield caplog


def _said(told: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    """The lines since the last time, of one level."""
    lines = [record.getMessage() for record in told.records if record.levelno == level]
    told.clear()
    return lines


def test_a_trouble_is_said_at_once_and_every_ten_minutes(told: pytest.LogCaptureFixture) -> None:
    trouble = Trouble("Slurm is silent")
    lines = {}
    for seconds in (0, 10, 599, 600, 601, 700, 1201, 1202):
        trouble.stands(1000.0 + seconds, "no answer")
        lines[seconds] = _said(told)
    assert {seconds: line for seconds, line in lines.items() if line} == {
        0: ["Slurm is silent: no answer"],
        601: ["Slurm is silent (for 601 s): no answer"],
        1202: ["Slurm is silent (for 1202 s): no answer"],
    }


def test_another_reason_is_said_after_a_minute_and_one_that_flickers_is_not(
    told: pytest.LogCaptureFixture,
) -> None:
    trouble = Trouble("blind")
    lines = []
    for seconds, why in ((0, "a"), (10, "b"), (20, "a"), (60, "b"), (61, "b"), (62, "a"), (122, "a")):
        trouble.stands(1000.0 + seconds, why, logging.ERROR)
        lines.append(_said(told, logging.ERROR))
    assert lines == [["blind: a"], [], [], [], ["blind (for 61 s): b"], [], ["blind (for 122 s): a"]]


def test_the_end_of_a_trouble_is_said_once_and_the_next_one_begins_anew(
    told: pytest.LogCaptureFixture,
) -> None:
    trouble = Trouble("blind")
    trouble.ended(900.0, "sees again")
    assert _said(told) == []
    trouble.stands(1000.0, "a")
    trouble.stands(1005.0, "a")
    assert trouble.since == 1000.0
    trouble.ended(1030.4, "sees again")
    trouble.ended(1031.0, "sees again")
    assert _said(told) == ["blind: a", "sees again after 30 s"]
    trouble.stands(1032.0, "a")
    assert (_said(told), trouble.since) == (["blind: a"], 1032.0)


def test_a_pause_is_said_when_it_begins_changes_and_ends(told: pytest.LogCaptureFixture) -> None:
    pauses, ann, bob = Pauses(), Pause("upgrade", "ann"), Pause("", "bob")
    heeded = [
        pauses.heed(pause, now)
        for pause, now in (
            (None, 1.0),
            (ann, 10.0),
            (replace(ann), 20.0),
            (bob, 30.0),
            (None, 45.0),
            (None, 50.0),
        )
    ]
    assert heeded == [False, True, True, True, False, False]
    assert _said(told) == ["paused by ann: upgrade", "paused by bob", "resumed after 15 s"]


def _outcome(
    result: Result, verb: Verb = Verb.OPEN, detail: str = "no", untried: Untried | None = None
) -> Outcome:
    return Outcome(Action(verb, pack(7, 2), 9, 0.0, 0), result, detail, untried=untried)


def test_an_act_is_one_line() -> None:
    assert act_line(_outcome(Result.REFUSED)) == "open 7_2: refused no"
    assert act_line(_outcome(Result.DONE, Verb.ASK, "")) == "ask 7_2: done"


@pytest.mark.parametrize(
    ("outcome", "level"),
    [
        (_outcome(Result.DONE), logging.INFO),
        (_outcome(Result.REFUSED), logging.WARNING),
        (_outcome(Result.UNKNOWN), logging.WARNING),
        (_outcome(Result.REFUSED, untried=Untried.DRY_RUN), logging.DEBUG),
        (_outcome(Result.REFUSED, untried=Untried.TOO_LATE), logging.WARNING),
        (_outcome(Result.REFUSED, Verb.FREE), 0),
        (_outcome(Result.UNKNOWN, Verb.FREE), 0),
        (_outcome(Result.DONE, Verb.FREE), logging.INFO),
    ],
)
def test_an_outcome_is_as_loud_as_it_is_odd(
    told: pytest.LogCaptureFixture, outcome: Outcome, level: int
) -> None:
    record, standing = recorded(outcomes=(outcome,))
    TickLog().tell(TickDone(standing, record))
    found = [line.levelno for line in told.records if line.getMessage() == act_line(outcome)]
    assert found == ([level] if level else [])


def _tick(time: float, **changes: object) -> tuple[Standing, TickRecord]:
    record, standing = recorded(time=time, **changes)
    return standing, record


def test_what_stays_the_same_is_said_once_in_ten_minutes(told: pytest.LogCaptureFixture) -> None:
    log, refused = TickLog(), _outcome(Result.REFUSED)
    times = []
    for seconds in range(0, 1400, 100):
        log.tell(TickDone(*_tick(5000.0 + seconds, outcomes=(refused, refused), guard="too many")))
        if lines := _said(told):
            assert lines == [act_line(refused), "too many"]
            times.append(seconds)
    assert times[0] == 0
    assert len(times) == 2
    assert 600 < times[1] <= 800


def test_every_note_of_a_plan_is_said_and_nothing_of_an_empty_one(told: pytest.LogCaptureFixture) -> None:
    log = TickLog()
    standing, record = _tick(5000.0)
    log.tell(TickDone(standing, record))
    log.tell(TickDone(standing, None, "blind"))
    assert _said(told) == []
    plan = replace(record.plan, note="it was late", fault="the profiler raised")
    log.tell(TickDone(standing, record._replace(plan=plan, guard="held back")))
    assert _said(told) == ["it was late", "the profiler raised", "held back"]


def test_an_act_that_is_done_is_said_each_time(told: pytest.LogCaptureFixture) -> None:
    log, done = TickLog(), _outcome(Result.DONE)
    for _ in range(2):
        log.tell(TickDone(*_tick(5000.0, outcomes=(done,))))
    assert _said(told, logging.INFO) == [act_line(done)] * 2
