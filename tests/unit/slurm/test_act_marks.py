"""Marks are durable before anything is imposed, and are corrected by what was seen."""

from __future__ import annotations

import pytest

from slurm_fair.model import Result, Verb
from slurm_fair.model.ids import pack
from tests.support.actuator_bench import CLOSED, OPENED, PINNED, WAITING, Bench, action, mark
from tests.support.slurm_stub import Stub


@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN])
def test_intent_and_mark_are_written_before_anything_is_sent_and_the_outcome_after(
    stub: Stub, verb: Verb
) -> None:
    stub.answers("squeue", WAITING, PINNED if verb is Verb.OPEN else CLOSED, OPENED)
    bench = Bench(stub)
    bench.do(action(verb))
    programs = [call[0] for call in stub.calls]
    first = programs.index("scontrol")
    assert bench.diary.events[0] == ("intend", 0)
    assert bench.diary.events[1] == ("mark", first)
    assert bench.diary.events[-1] == ("conclude", len(programs))
    assert [outcome.result for outcome in bench.diary.outcomes] == [Result.DONE]


def test_a_start_that_failed_stays_marked_so_that_it_is_tidied_up(stub: Stub) -> None:
    stub.answers("squeue", WAITING, PINNED)
    stub.answers("scontrol", "", (1, "", "Unexpected message received for job 7"))
    bench = Bench(stub)
    assert bench.do(action(Verb.OPEN))[0][0] is Result.UNKNOWN
    assert bench.diary.marks_now[pack(7), False].pinned


@pytest.mark.parametrize(("squeue", "blameless"), [("", False), (WAITING, True)], ids=["unseen", "no effect"])
def test_a_gate_that_was_not_seen_to_stand_is_blamed_on_nobody_only_if_it_was_tried(
    stub: Stub, squeue: str, blameless: bool
) -> None:
    if squeue:
        stub.answers("squeue", squeue, squeue)
    else:
        stub.answers("squeue", (1, "", "Unable to contact slurm controller"))
    bench = Bench(stub, marks=(mark(),))
    assert bench.do(action(Verb.CLOSE))[0][0] is not Result.DONE
    kept = bench.diary.marks_now[pack(7), False]
    assert (kept.blameless, kept.set_at) == (blameless, bench.actuator.now() if blameless else 1.0)


def test_an_act_that_may_come_to_nothing_leaves_the_mark_of_what_stood_before(stub: Stub) -> None:
    stub.answers("squeue", WAITING, CLOSED)
    bench = Bench(stub, marks=(mark(),))
    bench.do(action(Verb.CLOSE))
    kept = bench.diary.marks_now[pack(7), False]
    assert (kept.gate_until, kept.gate_before, kept.pinned) == (action(Verb.CLOSE).until, 0.0, False)
    assert not kept.blameless
