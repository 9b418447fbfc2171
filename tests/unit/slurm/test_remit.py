"""Jobs of the scope may be acted on, for as long as they are who the last look showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from slurm_fair.config.sections import ScopeSection
from slurm_fair.model import JobState
from slurm_fair.model.ids import pack
from slurm_fair.slurm.ownership.remit import Remit
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from slurm_fair.slurm.reading.reread import look
from slurm_fair.slurm.scope import Territory
from tests.support.fake_commands import FakeCommands
from tests.support.fake_slurm import PushedClock, World
from tests.support.slurm_stub import Stub, row

TERRITORY = Territory(frozenset({"gpu"}), ("n1", "n2"))


@pytest.mark.parametrize(
    ("now", "objection"),
    [
        ({}, ""),
        ({"Reason": "Priority", "EligibleTime": "1800009999"}, ""),
        ({"UserName": "bob"}, "its user or account is not the one that was looked at"),
        ({"Account": "b"}, "its user or account is not the one that was looked at"),
        ({"ArrayJobID": "99", "ArrayTaskID": "1"}, "its user or account is not the one that was looked at"),
        ({"Partition": "cpu"}, "it is outside of the scope"),
        ({"QOS": "urgent"}, "it is outside of the scope"),
        ({"BatchFlag": "0"}, "it is left alone"),
        ({"HetJobID": "7"}, "it is left alone"),
        ({"Reservation": "r1"}, "it is left alone"),
        ({"ReqNodes": "n1,n9"}, "it is left alone"),
        ({"tres-alloc": "cpu=1,node=1,billing=1", "tres-per-job": "N/A"}, "it is left alone"),
    ],
)
def test_a_job_is_acted_on_only_as_the_last_look_showed_it(now: Mapping[str, str], objection: str) -> None:
    world = World(PushedClock(), {"n1": 4, "n2": 4})
    job = world.submit(1, begin=world.clock.now() + 500)
    commands = FakeCommands(world)
    queue, details = Queue(commands), JobDetails(commands)
    scope = ScopeSection(accounts=("a", "b"), qos=("normal",))
    remit = Remit.of(_rows(queue), TERRITORY, scope)
    world.records[job].raw = dict(now)
    found = remit.objections(_rows(queue), queue, details)
    assert found == ({job: objection} if objection else {})


def test_a_job_that_the_last_look_did_not_show_is_not_acted_on() -> None:
    world = World(PushedClock(), {"n1": 4, "n2": 4})
    world.submit(1)
    commands = FakeCommands(world)
    queue, details = Queue(commands), JobDetails(commands)
    remit = Remit.of(_rows(queue), TERRITORY, ScopeSection())
    new = world.submit(1)
    assert remit.objections(_rows(queue), queue, details) == {new: "the last look did not show it"}


def test_a_job_whose_row_cannot_be_read_now_is_not_acted_on_by_its_row_of_before(tmp_path: Any) -> None:
    """For many jobs the whole queue is read, which repeats the last good row of a living job."""
    stub = Stub(tmp_path)
    good, spoilt = row(), row(**{"tres-per-node": "gpu:1,x\x1fy:0"})
    stub.answers("squeue", good, spoilt)
    queue = Queue(stub.commands())
    queue.read()
    rows = look(queue, [(pack(job), False) for job in range(7, 300)])
    assert not isinstance(rows, str), rows
    [(key, found)] = rows.items()
    assert key == (pack(7), False)
    assert found.state is JobState.WAITING
    assert found.objection == "its row cannot be read"


def _rows(queue: Queue) -> Any:
    rows = queue.read()
    assert not isinstance(rows, str), rows
    return rows
