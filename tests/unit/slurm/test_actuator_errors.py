"""Every error text of Slurm, for every verb: done, refused, or unknown until the next look."""

from __future__ import annotations

import pytest

from slurm_fair.model import Result, Verb
from slurm_fair.slurm.acting.refusals import Class
from tests.support.actuator_bench import (
    CLOSED,
    OPENED,
    RUNNING,
    WAITING,
    Bench,
    action,
    mark,
    sent,
)
from tests.support.refusal_texts import TEXTS
from tests.support.slurm_stub import Stub, row


def _expected(kind: Class) -> Result:
    return Result.UNKNOWN if kind is Class.UNKNOWN else Result.REFUSED


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.REQUEUE, Verb.FREE])
@pytest.mark.parametrize(("text", "kind"), [item for item in TEXTS.items() if item[0]])
def test_an_error_without_an_effect_is_refused_if_known_and_else_unknown(
    stub: Stub, verb: Verb, text: str, kind: Class
) -> None:
    stub.answers("squeue", RUNNING if verb is Verb.REQUEUE else WAITING)
    stub.answers("scontrol", (1, "", f"{text} for job 7\n"))
    ((result, detail),) = Bench(stub, marks=(mark(),)).do(action(verb))
    assert result is _expected(kind)
    assert text in detail
    if verb is Verb.OPEN:
        assert sent(stub) == ["update jobid=7 reqnodelist=n1"]  # the gate stays shut behind a failed pin


@pytest.mark.parametrize(("text", "kind"), [item for item in TEXTS.items() if item[0]])
def test_a_signal_that_slurm_complains_of_is_refused_if_known_and_else_unknown(
    stub: Stub, text: str, kind: Class
) -> None:
    stub.answers("squeue", RUNNING)
    stub.answers("scancel", (1, "", f"scancel: error: Kill job error on job id 7: {text}\n"))
    ((result, _),) = Bench(stub).do(action(Verb.ASK))
    assert result is _expected(kind)


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.REQUEUE, Verb.FREE])
def test_an_error_with_the_effect_seen_is_done(stub: Stub, verb: Verb) -> None:
    looks = [RUNNING, row(RestartCnt=1)] if verb is Verb.REQUEUE else [WAITING, CLOSED]
    looks = [WAITING, OPENED] if verb is Verb.FREE else looks
    stub.answers("squeue", *looks)
    stub.answers("scontrol", (1, "", "Unexpected message received for job 7"))
    assert Bench(stub, marks=(mark(),)).do(action(verb)) == [(Result.DONE, "")]


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.REQUEUE, Verb.FREE])
@pytest.mark.parametrize(
    "answer",
    [
        (0, "", ""),
        (0, "", "scontrol: a warning"),
        (1, "", ""),
        (1, "", "Access/permission denied for job 99"),
    ],
)
def test_silence_or_words_about_other_jobs_settle_nothing(
    stub: Stub, verb: Verb, answer: tuple[int, str, str]
) -> None:
    stub.answers("squeue", RUNNING if verb is Verb.REQUEUE else WAITING)
    stub.answers("scontrol", answer)
    ((result, _),) = Bench(stub, marks=(mark(),)).do(action(verb))
    assert result is Result.UNKNOWN


@pytest.mark.parametrize("verb", list(Verb))
def test_a_controller_that_dies_before_the_look_means_nothing_was_tried(stub: Stub, verb: Verb) -> None:
    dead = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    stub.answers("squeue", (1, "", dead))
    assert Bench(stub).do(action(verb)) == [(Result.REFUSED, f"not tried: squeue: {dead}")]
    assert (stub.ran("scontrol"), stub.ran("scancel")) == ([], [])


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.REQUEUE, Verb.FREE])
@pytest.mark.parametrize(
    "second", [(1, "", "slurm_load_jobs error: Socket timed out on send/recv operation"), WAITING[:-9], ""]
)
def test_a_controller_that_dies_after_the_act_leaves_it_unknown(
    stub: Stub, verb: Verb, second: str | tuple[int, str, str]
) -> None:
    stub.answers("squeue", RUNNING if verb is Verb.REQUEUE else WAITING, second)
    stub.answers("scontrol", (1, "", "Unexpected message received for job 7"))
    ((result, _),) = Bench(stub, marks=(mark(),)).do(action(verb))
    assert result is Result.UNKNOWN
    assert len(sent(stub)) == 1


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.REQUEUE, Verb.FREE])
def test_an_act_that_hangs_is_unknown(stub: Stub, verb: Verb) -> None:
    stub.answers("squeue", RUNNING if verb is Verb.REQUEUE else WAITING)
    stub.answers("scontrol", "", hangs=True)
    ((result, detail),) = Bench(stub, marks=(mark(),), timeout_seconds=0.4).do(action(verb))
    assert (result, "did not answer within" in detail) == (Result.UNKNOWN, True)
