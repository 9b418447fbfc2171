"""Tasks of arrays are asked to save."""

from __future__ import annotations

import pytest

from slurm_fair.model import Result, Verb
from tests.support.actuator_bench import (
    Bench,
    action,
)
from tests.support.slurm_stub import Stub, row


@pytest.mark.parametrize("waiting", ["1,3-4", "1"], ids=["several tasks wait", "the last one waits"])
def test_a_task_is_asked_patiently_while_others_of_its_array_wait(stub: Stub, waiting: str) -> None:
    running = row(JobID=9, ArrayJobID=7, ArrayTaskID=2, State="RUNNING")
    stub.answers("squeue", row(ArrayTaskID=waiting) + running)
    stub.answers("scancel", (0, "", "scancel: Job is in transitional state, retrying\n"))
    assert Bench(stub).do(action(Verb.ASK, 7, task=2, record=9)) == [(Result.DONE, "")]
    assert [call[0] for call in stub.ran("scancel")] == ["-v"]


@pytest.mark.parametrize("others", ["", row(JobID=8)], ids=["alone", "another job waits"])
def test_a_task_whose_array_has_none_that_wait_is_asked_like_any_job(stub: Stub, others: str) -> None:
    stub.answers("squeue", row(JobID=9, ArrayJobID=7, ArrayTaskID=2, State="RUNNING") + others)
    stub.answers("scancel", "")
    assert Bench(stub).do(action(Verb.ASK, 7, task=2, record=9)) == [(Result.DONE, "")]
    assert [call[0] for call in stub.ran("scancel")] == ["--batch"]
