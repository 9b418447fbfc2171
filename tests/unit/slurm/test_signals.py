"""Requests to running jobs: each job has its own end, whatever scancel says of the others."""

from __future__ import annotations

import pytest

from slurm_fair.model import Result, Verb
from tests.support.actuator_bench import RUNNING, WAITING, Bench, action
from tests.support.slurm_stub import Stub, row


def test_one_job_that_stopped_running_does_not_cost_the_others_their_signal(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.slurm.acting.signals._SIGNAL_SECONDS", 0.4)
    other = row(JobID=8, State="RUNNING")
    stub.answers("squeue", RUNNING + other, WAITING + other)
    stub.answers("scancel", "", "")
    (stub.folder / "scancel.1.hangs").touch()
    results = Bench(stub).do(action(Verb.ASK), action(Verb.ASK, 8))
    assert results == [(Result.REFUSED, "it stopped running first"), (Result.DONE, "")]
    assert [call[2:] for call in stub.ran("scancel")] == [["7", "8"], ["8"]]


def test_a_job_that_ends_amid_scancel_fails_it_without_a_word_and_the_others_have_their_signal(
    stub: Stub,
) -> None:
    other = row(JobID=8, State="RUNNING")
    stub.answers("squeue", RUNNING + other, row(State="COMPLETING") + other)
    stub.answers("scancel", (1, "", ""))
    results = Bench(stub).do(action(Verb.ASK), action(Verb.ASK, 8))
    assert results == [(Result.REFUSED, "it stopped running first"), (Result.DONE, "")]
    assert len(stub.ran("scancel")) == 1


def test_a_scancel_that_fails_without_a_word_while_all_jobs_run_leaves_open_what_it_did(stub: Stub) -> None:
    running = RUNNING + row(JobID=8, State="RUNNING")
    stub.answers("squeue", running, running)
    stub.answers("scancel", (1, "", ""))
    results = Bench(stub).do(action(Verb.ASK), action(Verb.ASK, 8))
    assert [result for result, _ in results] == [Result.UNKNOWN, Result.UNKNOWN]
