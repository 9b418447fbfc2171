"""Jobs of the scope alone are acted on, and our own holds alone are lifted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from slurm_fair.model import Result, Verb
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.remit import Remit
from slurm_fair.slurm.reading.details import Details, JobDetails
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.stamp import Stamp
from tests.support.actuator_bench import (
    EVERYTHING,
    GATE,
    OPENED,
    RUNNING,
    TRIED_AT_FIRST,
    WAITING,
    Bench,
    action,
    mark,
    sent,
)
from tests.support.slurm_stub import QUIET, Stub, row

STAMPED = Details(Stamp(1, gate="hold"), "/home/alice", ())
HELD = {"PriorityLong": 0, "Reason": "JobHeldUser", "EligibleTime": "N/A"}


@pytest.mark.parametrize("eligible", ["N/A", QUIET["EligibleTime"]], ids=["never freed", "freed once"])
@pytest.mark.parametrize("reason", ["JobHeldAdmin", "job requeued in held state"])
@pytest.mark.parametrize(
    "ours", [(), (replace(mark(math.inf), gate_before=GATE),)], ids=["as submitted", "not seen lifted"]
)
@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.FREE])
def test_an_admins_hold_on_a_job_that_we_hold_too_is_the_admins(
    stub: Stub, verb: Verb, ours: tuple[Mark, ...], reason: str, eligible: str
) -> None:
    stub.answers("squeue", row(PriorityLong=0, Reason=reason, EligibleTime=eligible))
    bench = Bench(stub, marks=ours)
    bench.actuator.details._known[7, 0] = STAMPED
    bench.do(action(verb))
    assert "release" not in "".join(sent(stub))


def test_freeing_a_job_that_was_submitted_held_leaves_the_begin_time_that_its_user_gave(stub: Stub) -> None:
    """Slurm shows no begin time of a held job: the release alone brings it into force."""
    stub.answers("squeue", row(**HELD), TRIED_AT_FIRST, OPENED)
    bench = Bench(stub)
    bench.actuator.details._known[7, 0] = STAMPED
    assert bench.do(action(Verb.FREE)) == [(Result.DONE, "")]
    assert sent(stub) == ["release 7"]


def test_a_job_is_not_freed_as_long_as_our_hold_is_seen(stub: Stub) -> None:
    stub.answers("squeue", row(**HELD), TRIED_AT_FIRST, row(**HELD))
    bench = Bench(stub)
    bench.actuator.details._known[7, 0] = STAMPED
    assert bench.do(action(Verb.FREE)) == [(Result.UNKNOWN, "no effect was seen")]


@pytest.mark.parametrize(
    "said",
    [
        "7\x1f1795000060\x1f\n",
        (1, "", "slurm_load_jobs error: Socket timed out"),
        "7\x1fsoon\x1f\n",
        "8\x1f1\x1f\n",
        "",
    ],
    ids=["tried since", "no answer", "no time", "another job", "nothing"],
)
@pytest.mark.parametrize("verb", [Verb.CLOSE, Verb.OPEN, Verb.FREE])
def test_a_hold_is_nobodys_but_its_users_unless_slurm_says_that_it_never_tried_the_job_since(
    stub: Stub, verb: Verb, said: str | tuple[int, str, str]
) -> None:
    stub.answers("squeue", row(**HELD), said, row(**HELD))
    bench = Bench(stub)
    bench.actuator.details._known[7, 0] = STAMPED
    bench.do(action(verb))
    assert "release" not in "".join(sent(stub))
    assert not bench.diary.marks_now


OF_EVERYTHING = (EVERYTHING.territory, EVERYTHING.scope, EVERYTHING.record, EVERYTHING.who)
ACTS = [(Verb.CLOSE, WAITING), (Verb.OPEN, WAITING), (Verb.REQUEUE, RUNNING), (Verb.ASK, RUNNING)]


@pytest.mark.parametrize(("verb", "seen"), ACTS)
def test_nothing_is_done_to_a_job_that_may_not_be_acted_on(stub: Stub, verb: Verb, seen: str) -> None:
    stub.answers("squeue", seen)
    bench = Bench(stub)
    bench.actuator.remit = Objecting(*OF_EVERYTHING)
    assert bench.do(action(verb)) == [(Result.REFUSED, "it is left alone")]
    assert not stub.fed("scontrol")
    assert not [call for call in stub.calls if call[0] == "scancel"]


@pytest.mark.parametrize(("verb", "seen"), ACTS)
def test_before_the_first_look_jobs_are_only_freed(stub: Stub, verb: Verb, seen: str) -> None:
    stub.answers("squeue", seen)
    bench = Bench(stub)
    bench.actuator.remit = None
    [(result, why)] = bench.do(action(verb))
    assert result is Result.REFUSED
    assert "nobody has looked" in why
    assert not stub.fed("scontrol")


def test_what_is_ours_is_taken_back_from_anybody(stub: Stub) -> None:
    for remit in (None, Objecting(*OF_EVERYTHING)):
        stub.answers("squeue", WAITING, OPENED)
        bench = Bench(stub, marks=(mark(),))
        bench.actuator.remit = remit
        assert bench.do(action(Verb.FREE)) == [(Result.DONE, "")]


class Objecting(Remit):
    """A remit over nobody."""

    def objections(self, rows: NDArray[np.void], queue: Queue, details: JobDetails) -> dict[int, str]:
        return dict.fromkeys(rows["record"].tolist(), "it is left alone")
