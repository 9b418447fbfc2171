"""Holds that may be those of submissions: only their jobs are asked about."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.ownership.submitted import maybe_held_since
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import ADMIN, REQUEUED_HELD, RUNNING, START
from tests.support.fake_slurm import PushedClock, World


class Scene:
    """Jobs on nodes that are full."""

    def __init__(self) -> None:
        self.world = World(PushedClock(), {"n1": 4})
        self.world.take("n1", 4)
        self.marks: list[Mark] = []

    def submit(self, gpus: int = 1, **columns: Any) -> int:
        """A job with a hold as our gate; then some columns of its record are changed."""
        hold, tasks = columns.pop("hold", True), columns.pop("tasks", ())
        number = self.world.submit(gpus, hold=hold, tasks=tasks)
        for name, value in columns.items():
            setattr(self.world.records[number], name, value)
        return number

    def mark(self, number: int, task: int = -1, *, whole: bool = False, submit: float = START) -> None:
        key = pack(number, task) if task >= 0 else pack(number)
        self.marks.append(Mark(key, number, whole, submit, 0, START + 600, False, START))

    def found(self, known: bool = True) -> list[tuple[int, int]]:
        commands = FakeCommands(self.world)
        queue, details = Queue(commands), JobDetails(commands)
        rows = queue.read()
        assert not isinstance(rows, str), rows
        runs = zip(rows["record"].tolist(), rows["restarts"].tolist(), strict=True)
        assert not known or details.learn(list(runs)) == ""
        return maybe_held_since(rows, queue, details, Marks(MarksInHand(self.marks)))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_empty_queue_has_none(scene: Scene) -> None:
    assert scene.found() == []


def test_a_job_that_was_submitted_with_our_hold_is_found_and_others_beside_it_are_not(scene: Scene) -> None:
    scene.submit(hold=False)
    mine = scene.submit()
    scene.submit(held="", eligible=START)
    assert scene.found() == [(mine, 0)]


@pytest.mark.parametrize(
    "columns",
    [
        {"comment": ""},
        {"comment": "slurm_fair:v1,gate=+600"},
        {"comment": "slurm_fair:v1,gate=hold,"},
        {"comment": "myslurm_fair:v1,gate=hold"},
        {"gpus": 0},
        {"held": ADMIN},
        {"held": REQUEUED_HELD},
        {"restarts": 1},
        {"eligible": START + 1},
        {"state": RUNNING, "on": {"n1": 1}},
        {"state": "CANCELLED", "end": START},
    ],
    ids=lambda columns: " ".join(f"{name} {value}" for name, value in columns.items()),
)
def test_a_job_whose_hold_cannot_be_the_submissions_is_not_asked_about(
    scene: Scene, columns: dict[str, Any]
) -> None:
    scene.submit(**columns)
    assert scene.found() == []


def test_a_job_that_takes_whole_nodes_is_asked_about_and_one_that_takes_cpus_alone_is_not(
    scene: Scene,
) -> None:
    alone = scene.submit(raw={"OverSubscribe": "NO", "tres-alloc": "cpu=1,node=1", "tres-per-job": "N/A"})
    scene.submit(raw={"tres-alloc": "cpu=1,node=1", "tres-per-job": "N/A"})
    assert scene.found() == [(alone, 0)]


def test_a_job_with_a_mark_speaks_for_itself_and_one_of_an_earlier_job_says_nothing(scene: Scene) -> None:
    marked, renumbered = scene.submit(), scene.submit()
    scene.mark(marked)
    scene.mark(renumbered, submit=START - 500)
    assert scene.found() == [(renumbered, 0)]


def test_an_array_is_asked_about_as_one_and_its_mark_speaks_for_tasks_that_were_split_off(
    scene: Scene,
) -> None:
    base = scene.submit(tasks=(1, 2, 3))
    assert scene.found() == [(base, 0)]
    split = scene.world.split(scene.world.records[base], 2)
    assert scene.found() == [(base, 0), (split.number, 0)]
    scene.mark(base, whole=True)
    assert scene.found() == []


def test_a_mark_on_one_task_says_nothing_of_the_others(scene: Scene) -> None:
    base = scene.submit(tasks=(1, 2, 3))
    scene.world.split(scene.world.records[base], 2)
    scene.mark(base, 2)
    assert scene.found() == [(base, 0)]


def test_a_job_whose_comment_nobody_has_read_is_not_asked_about(scene: Scene) -> None:
    scene.submit()
    assert scene.found(known=False) == []
