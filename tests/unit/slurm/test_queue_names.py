"""Names in the queue that users write: as many as a queue has are remembered, not as many as there ever were."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_fair.slurm.command import CommandResult
from slurm_fair.slurm.reading.queue import BETWEEN, Queue
from tests.support.slurm_stub import Stub, row

_COLUMN = {
    "accounts": "account",
    "users": "user",
    "partitions": "partition",
    "reasons": "reason",
    "qos": "qos",
    "reservations": "reservation",
    "node_lists": "node_list",
}


def test_names_that_are_new_for_ever_do_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.slurm.reading.queue._MANY_NAMES", 10)
    asked = Queue(Stub(tmp_path).commands())
    named = {
        "Account": "accounts",
        "UserName": "users",
        "Partition": "partitions",
        "Reason": "reasons",
        "QOS": "qos",
        "Reservation": "reservations",
        "NodeList": "node_lists",
    }
    stays = row(JobID=8, ArrayJobID=8, ArrayTaskID="0-3,7%2", Account="stays", NodeList="m1")
    for number in range(60):
        new = row(**dict.fromkeys(named, f"n{number}"), State="RUNNING", tres_per_job=f"gpu:g{number}:1")
        spoils = stays if number < 5 else row(JobID=8, ArrayJobID=8, tres_per_node=f"x{BETWEEN}")
        array = row(JobID=9, ArrayJobID=9, ArrayTaskID=f"1-{number + 2}%3")
        asked.forget_if_grown()
        rows = asked._rows(CommandResult(("squeue",), 0, new + spoils + array, "", 0.0), "", remember=True)
        assert not isinstance(rows, str)
        by = {row["record"].item(): row for row in rows}
        assert asked.gpu_types.texts[by[7]["gpu_type"]] == f"g{number}"
        assert {getattr(asked, name).texts[by[7][_COLUMN[name]]] for name in named.values()} == {f"n{number}"}
        assert asked.accounts.texts[by[8]["account"]] == "stays", "its last row that could be read"
        assert asked.task_lists[by[8]["tasks"]].numbers().tolist() == [0, 1, 2, 3, 7]
        assert asked.task_lists[by[9]["tasks"]].numbers().tolist() == list(range(1, number + 3))
        assert asked.array_limits[9] == 3
    known = [len(getattr(asked, name).texts) for name in named.values()]
    assert max(*known, len(asked.gpu_types.texts), len(asked.task_lists), len(asked._task_texts)) < 30


def test_an_array_that_runs_task_by_task_leaves_no_list_for_each_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurm_fair.slurm.reading.queue._MANY_SPANS", 3000)
    asked = Queue(Stub(tmp_path).commands())
    asked._most_spans = 3000
    for first in range(1000):
        text = row(JobID=9, ArrayJobID=9, ArrayTaskID=",".join(map(str, range(first, 2002, 2))))
        asked.forget_if_grown()
        rows = asked._rows(CommandResult(("squeue",), 0, text, "", 0.0), "", remember=True)
        assert not isinstance(rows, str)
        assert asked.task_lists[rows["tasks"][0]].numbers().tolist() == list(range(first, 2002, 2))
        assert sum(len(listed.spans) for listed in asked.task_lists) < 3000 + 3 * 1001
