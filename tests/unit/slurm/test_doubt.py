"""Node lists of which nobody can tell whether they are ours, and holds that are seen lifted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from slurm_fair.errors import SlurmTextError
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting import scontrol_lines
from slurm_fair.slurm.ownership.doubt import in_doubt, unexplained
from slurm_fair.slurm.ownership.mark_expiry import without_lifted_holds
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.reading.queue import Queue
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import START
from tests.support.fake_slurm import PushedClock, World

OURS: Mapping[str, Any] = {"pinned": True, "pin": "n1"}


class Scene:
    """One waiting job with a node list."""

    def __init__(
        self,
        *wanted: str,
        mark: Mapping[str, Any] | None = None,
        raw: Mapping[str, str] | None = None,
        **submitted: Any,
    ) -> None:
        self.world = World(PushedClock(), {"n1": 4, "n2": 4})
        self.job = self.world.submit(1, begin=START + 600, node_list=wanted, **submitted)
        record = self.world.records[self.job]
        record.raw = raw or {}
        self.record, known = (
            record,
            {"submit": record.submit, "gate_until": 0.0, "pinned": False, **(mark or {})},
        )
        mine = Mark(pack(self.job), self.job, False, restarts=0, set_at=START, **known) if mark else None
        self.marks = Marks(MarksInHand((mine,) if mine else ()))
        self.queue = Queue(FakeCommands(self.world))
        rows = self.queue.read()
        assert not isinstance(rows, str), rows
        self.rows = rows

    def first(self) -> dict[int, str]:
        """The jobs that the first look of a journal cannot explain."""
        return unexplained(self.rows, self.queue, self.marks)

    def doubts(self, at_first: Mapping[int, str]) -> list[str]:
        """The jobs that stay in doubt."""
        found = in_doubt(self.rows, self.queue, self.marks, at_first, 0.0)
        return [each.nodes for each in found]


def test_a_list_that_no_mark_tells_of_is_unexplained_at_the_first_look() -> None:
    scene = Scene("n1")
    assert scene.first() == {scene.job: "n1"}
    assert Scene("n1", mark=OURS).first() == {}
    assert Scene("n1", mark={**OURS, "submit": START - 9}).first() != {}, "a mark of an earlier job"
    assert Scene().first() == {}


def test_the_list_of_a_job_that_takes_whole_nodes_may_be_ours_and_one_of_cpus_alone_never_is() -> None:
    scene = Scene("n1")
    for takes, found in (("NO", {scene.job: "n1"}), ("OK", {})):
        raw = {"OverSubscribe": takes, "tres-alloc": "cpu=1,node=1", "tres-per-job": "N/A"}
        alone = Scene("n1", raw=raw)
        assert alone.first() == found
        assert alone.doubts({alone.job: "n1"}) == list(found.values())


def test_only_the_list_of_the_first_look_stays_in_doubt() -> None:
    job = Scene("n1").job
    assert Scene("n1").doubts({job: "n1"}) == ["n1"]
    assert Scene("n2").doubts({job: "n1"}) == [], "its user has named others since"
    assert Scene("n1").doubts({job + 1: "n1"}) == []
    assert Scene("n1", mark=OURS).doubts({job: "n1"}) == [], "we have set the same since"
    assert Scene().doubts({job: "n1"}) == []


@pytest.mark.parametrize(
    ("submitted", "mark", "seen"),
    [
        ({}, {}, True),
        ({"hold": True}, {}, False),
        ({}, {"submit": START - 9}, False),
        ({}, {"gate_before": 0.0}, False),
    ],
    ids=["it waits unheld", "it is held still", "another job bears the id", "of an earlier release"],
)
def test_a_hold_of_ours_is_over_when_it_is_seen_lifted(
    submitted: Mapping[str, Any], mark: Mapping[str, Any], seen: bool
) -> None:
    ours = {"gate_until": math.inf, "gate_before": START + 600, **mark}
    scene = Scene(mark=ours, **submitted)
    found = [
        (each.gate_until, each.gate_before)
        for each in without_lifted_holds(scene.marks, scene.rows, scene.queue)
    ]
    assert found == ([(START + 600, 0.0)] if seen else [])


@pytest.mark.parametrize("job", ["7 starttime=now", "7\nexit", "", "07", "7_[1;2]", "7,8", "all"])
def test_what_is_no_job_id_is_sent_to_nobody(job: str) -> None:
    for line in (scontrol_lines.update, scontrol_lines.requeue_lines):
        with pytest.raises(SlurmTextError):
            line(job)
