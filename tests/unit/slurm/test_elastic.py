"""The sizes of the elastic jobs of a look, and why others that name sizes are rigid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, JobTable
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.model.sizes import Per
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.elastic import Requests, asked_gpus, elastic_sizes, requests_of
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.reading.details import Details, JobDetails
from slurm_fair.slurm.reading.request import PER_JOB, PER_NODE, SizeRequest
from slurm_fair.slurm.reading.stamp import Stamp
from tests.support.builders import job, snapshot
from tests.support.slurm_stub import Stub, queue, row

TWO = SizeRequest(PER_NODE, "gres:gpu:", 2, 1, 1, 4)


def jobs(**columns: Any) -> JobTable:
    """A rigid job of one GPU, and one that waits with two."""
    return snapshot(jobs=[job(1), job(2, **{"gpus": 2, **columns})]).jobs


def found(
    sizes: tuple[int, ...] = (1, 2, 4),
    *,
    request: SizeRequest = TWO,
    resized: bool = False,
    memory_per_gpu: bool = False,
    rigid: Mapping[int, str] | None = None,
) -> Requests:
    """The second job names these sizes."""
    rows = np.zeros(2, dtype=[("memory_per_gpu", "?")])
    rows["memory_per_gpu"] = memory_per_gpu
    usual = np.array([1, 2])
    return Requests(rows, np.array([False, resized]), usual, {1: sizes}, {1: request}, rigid or {})


def test_an_elastic_job_has_a_row_for_each_size() -> None:
    sizes, rigid = elastic_sizes(jobs(), found())
    assert sizes is not None
    assert rigid == {}
    assert (sizes.row.tolist(), sizes.gpus.tolist()) == ([1, 1, 1], [1, 2, 4])
    assert sizes.usual.tolist() == [False, True, False]
    assert set(sizes.cpus_per.tolist()) == set(sizes.memory_per.tolist()) == {Per.NODE}


def test_cpus_and_memory_go_by_what_its_user_asked_for() -> None:
    in_all = replace(TWO, field=PER_JOB)
    sizes, _ = elastic_sizes(jobs(), found(request=in_all, memory_per_gpu=True))
    assert sizes is not None
    assert set(sizes.cpus_per.tolist()) == {Per.JOB}
    assert set(sizes.memory_per.tolist()) == {Per.GPU}


@pytest.mark.parametrize(
    ("columns", "request_field", "why"),
    [
        ({"checkpoints": False}, PER_NODE, "it cannot save and be requeued"),
        ({"requeueable": False}, PER_NODE, "it cannot save and be requeued"),
        ({"gpus": 8}, PER_NODE, "it takes whole nodes"),
        ({"most_nodes": 1}, PER_JOB, "it asks for GPUs in all and for a number of nodes"),
    ],
)
def test_a_job_that_cannot_be_resized_is_rigid_and_told_why(
    columns: Mapping[str, Any], request_field: str, why: str
) -> None:
    table = jobs(**columns)
    sizes, rigid = elastic_sizes(table, found(request=replace(TWO, field=request_field)))
    assert sizes is None
    assert rigid.keys() == {table.key.item(1)}
    assert rigid[table.key.item(1)].startswith(why)


def test_a_job_that_runs_with_another_size_stays_elastic() -> None:
    for columns in ({"gpus": 8}, {"most_nodes": 1}):
        running = jobs(state=JobState.RUNNING, **columns)
        sizes, rigid = elastic_sizes(running, found(request=replace(TWO, field=PER_JOB)))
        assert sizes is not None
        assert rigid == {}


def test_one_size_is_none() -> None:
    assert elastic_sizes(jobs(), found((2,))) == (None, {})


def test_what_was_found_rigid_before_stays_so() -> None:
    table = jobs()
    _, rigid = elastic_sizes(table, found(rigid={0: "its request is odd"}))
    assert rigid == {table.key.item(0): "its request is odd"}


def test_the_gang_that_was_asked_for_is_the_users_of_elastic_and_resized_jobs() -> None:
    table = jobs(gpus=8, state=JobState.RUNNING)
    sizes, _ = elastic_sizes(table, found())
    assert asked_gpus(table, found(), sizes).tolist() == [1, 2]
    assert asked_gpus(table, found(resized=True), None).tolist() == [1, 2]
    assert asked_gpus(table, found(), None).tolist() == [1, 8]


class Stamped(JobDetails):
    """Each record has a stamp that names sizes."""

    def __init__(self, **stamps: Any) -> None:
        super().__init__(Commands())
        self.stamps = {int(record[1:]): stamp for record, stamp in stamps.items()}
        self.naming = {(record, 0) for record in self.stamps}

    def of(self, record: int, restarts: int) -> Details:
        return Details(self.stamps.get(record), "", ())


def asked(
    stub: Stub, details: JobDetails, *lines: str, marks: tuple[Mark, ...] = (), most: int = 8
) -> Requests:
    """The requests of jobs as squeue lists them."""
    listed = queue(stub, "".join(lines))
    rows = listed.read()
    assert not isinstance(rows, str), rows
    key = np.array([pack(base) for base in rows["base"].tolist()], dtype=np.int64)
    return requests_of(rows, key, listed, details, Marks(MarksInHand(marks)), most)


NAMES = Stamp(version=1, sizes=(1, 2, 16))
PLAIN = row(JobID=7, tres_per_job="gres:gpu:2", tres_alloc="cpu=1,mem=8000M,node=1,gres/gpu=2")


def test_sizes_are_those_of_the_stamp_up_to_the_most_that_can_be(stub: Stub) -> None:
    found = asked(stub, Stamped(_7=NAMES), PLAIN)
    assert (dict(found.named), dict(found.rigid)) == ({0: (1, 2)}, {})
    assert found.requests[0].gpus == 2
    assert dict(asked(stub, Stamped(_7=NAMES), PLAIN, most=1).named) == {0: (1, 2)}  # its own is not left out


@pytest.mark.parametrize(
    ("stamp", "line", "why"),
    [
        (Stamp(version=1, bad_sizes="2x"), PLAIN, "its sizes '2x' cannot be read"),
        (Stamp(version=0, sizes=(1, 2)), PLAIN, "it cannot save and be requeued"),
        (Stamp(version=1, sizes=(1, 4)), PLAIN, "it asks for 2 GPUs, which is none of its sizes"),
        (
            NAMES,
            row(JobID=7, tres_per_task="gres:gpu:1", tres_per_job="N/A"),
            "its GPUs are asked for by the task",
        ),
    ],
)
def test_a_job_that_names_sizes_in_vain_is_rigid(stub: Stub, stamp: Stamp, line: str, why: str) -> None:
    found = asked(stub, Stamped(_7=stamp), line)
    assert dict(found.named) == {}
    assert found.rigid[0].startswith(why)


def test_a_job_that_is_over_or_names_none_is_left_out(stub: Stub) -> None:
    over = row(JobID=7, State="COMPLETED", StartTime="1795000000", EndTime="1795000060")
    for details, line in (
        (Stamped(_7=NAMES), over),
        (Stamped(_8=NAMES), PLAIN),
        (Stamped(_7=Stamp()), PLAIN),
    ):
        found = asked(stub, details, line)
        assert (dict(found.named), dict(found.rigid)) == ({}, {})


def test_a_waiting_job_is_shown_as_its_user_asked_for_it(stub: Stub) -> None:
    own = SizeRequest(PER_JOB, "gres:gpu:", 1, 1, 1, 1)
    ours = own.resized(2, 1)
    mark = Mark(pack(7), 7, False, 1795000000.0, 0, 0.0, True, 0.0, size=str(ours), user_size=str(own))
    found = asked(stub, Stamped(_7=NAMES), PLAIN, marks=(mark,))
    assert (found.resized.tolist(), found.usual.tolist()) == ([True], [1])
    assert found.rows["gpus"].tolist() == [1]
    running = PLAIN.replace("PENDING", "RUNNING")
    found = asked(stub, Stamped(_7=NAMES), running, marks=(mark,))
    assert (found.resized.tolist(), found.usual.tolist(), found.rows["gpus"].tolist()) == ([True], [1], [2])
