"""The end of an act by the looks before and after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.model import JobState, Result, Verb
from slurm_fair.slurm.acting.effects import Effects
from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.reading.reread import FreshRow
from tests.support.actuator_bench import GATE, NOW, SUBMIT, Bench, action, mark
from tests.support.slurm_stub import Stub

WELL, LATE = (
    CommandResult(("x",), 0, "", "", 0.1),
    CommandResult(("scontrol",), -1, "", "", 5.0, timed_out=True),
)
WAITS = FreshRow(JobState.WAITING, SUBMIT, 0, GATE, 100, "BeginTime", frozenset(), "", False, 7)
OPEN_NOW = replace(WAITS, eligible=NOW)
RUNS = replace(WAITS, state=JobState.RUNNING)
SHUT = replace(WAITS, eligible=GATE + 500)


def effects(stub: Stub) -> Effects:
    """The effects that an actuator sees, which set the gate of job 7."""
    return Bench(stub, marks=(mark(),)).actuator.effects


@pytest.mark.parametrize(
    ("verb", "after", "result", "detail"),
    [
        (Verb.OPEN, OPEN_NOW, Result.DONE, ""),
        (Verb.OPEN, RUNS, Result.DONE, ""),
        (Verb.OPEN, WAITS, Result.UNKNOWN, "no effect was seen"),
        (Verb.CLOSE, SHUT, Result.DONE, ""),
        (Verb.CLOSE, replace(SHUT, nodes=frozenset({"n9"}), node_text="n9"), Result.DONE, ""),
        (Verb.CLOSE, RUNS, Result.REFUSED, "it started first"),
        (Verb.CLOSE, OPEN_NOW, Result.UNKNOWN, "no effect was seen"),
        (Verb.FREE, OPEN_NOW, Result.DONE, ""),
        (Verb.FREE, RUNS, Result.DONE, ""),
        (Verb.FREE, WAITS, Result.UNKNOWN, "no effect was seen"),
        (Verb.REQUEUE, replace(WAITS, restarts=1), Result.DONE, ""),
        (Verb.REQUEUE, replace(WAITS, state=JobState.ENDING, restarts=1), Result.DONE, ""),
        (Verb.REQUEUE, replace(WAITS, state=JobState.ENDING), Result.REFUSED, "it ended by itself"),
        (Verb.REQUEUE, replace(WAITS, state=JobState.DONE), Result.REFUSED, "it ended by itself"),
        (Verb.REQUEUE, RUNS, Result.UNKNOWN, "no effect was seen"),
    ],
)
def test_an_act_ends_as_the_look_after_it_shows(
    stub: Stub, verb: Verb, after: FreshRow, result: Result, detail: str
) -> None:
    act = action(verb)
    end = effects(stub).end_of(act, WELL, WAITS, {(act.key, False): after})
    assert (end.result, end.detail) == (result, detail)


def test_where_the_look_after_it_fails_nobody_knows(stub: Stub) -> None:
    end = effects(stub).end_of(action(Verb.OPEN), WELL, WAITS, "squeue: no answer")
    assert (end.result, end.detail, end.later) == (Result.UNKNOWN, "squeue: no answer", False)


@pytest.mark.parametrize(("before", "result"), [(WAITS, Result.DONE), (OPEN_NOW, Result.UNKNOWN)])
def test_after_no_answer_only_a_change_is_an_effect(stub: Stub, before: FreshRow, result: Result) -> None:
    act = action(Verb.OPEN)
    assert effects(stub).end_of(act, LATE, before, {(act.key, False): OPEN_NOW}).result is result


@pytest.mark.parametrize(
    ("verb", "whole", "result"),
    [(Verb.FREE, True, Result.DONE), (Verb.FREE, False, Result.UNKNOWN), (Verb.CLOSE, True, Result.UNKNOWN)],
)
def test_only_an_array_whose_tasks_have_all_started_may_be_gone(
    stub: Stub, verb: Verb, whole: bool, result: Result
) -> None:
    act = action(verb)._replace(whole_record=whole)
    assert effects(stub).end_of(act, WELL, WAITS, {}).result is result
