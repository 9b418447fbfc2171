"""Rows of the queue that could be read before their users spoiled them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.model import JobState
from slurm_fair.slurm.reading.queue import Queue
from tests.support.slurm_stub import Stub, row


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ({"State": "RUNNING"}, {"State": "RUNNING"}, JobState.RUNNING),
        ({"State": "RUNNING"}, {"State": "COMPLETING"}, JobState.RUNNING),
        ({"State": "RUNNING"}, {"State": "PENDING"}, JobState.WAITING),
        ({"State": "RUNNING"}, {"State": "PENDING", "RestartCnt": "1"}, JobState.WAITING),
        ({"State": "RUNNING"}, {"State": "RUNNING", "RestartCnt": "1"}, JobState.WAITING),
        ({"State": "PENDING"}, {"State": "RUNNING"}, JobState.WAITING),
    ],
)
def test_a_run_that_is_over_keeps_no_gpus_by_a_row_that_its_user_spoils(
    tmp_path: Path, before: dict[str, str], now: dict[str, str], kept: JobState
) -> None:
    job = {"JobID": 9, "NodeList": "n1", "RestartCnt": "0"}
    spoilt = row(**job | now | {"tres-per-node": "gpu:1,x\x1fy:0"})
    stub = Stub(tmp_path)
    stub.answers("squeue", row(**job | before), spoilt, spoilt)
    asked = Queue(stub.commands())
    asked.read()
    for _ in range(2):
        rows = asked.read()
        assert not isinstance(rows, str), rows
        assert rows["state"].tolist() == [kept]
