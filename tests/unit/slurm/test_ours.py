"""A waiting job's hold, begin time and node list are ours or not: looks, strays and fail-open answer alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from slurm_fair.config.tree import from_tree
from slurm_fair.model import Blocked, Snapshot
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.cluster import SlurmCluster
from slurm_fair.slurm.fail_open import NoIntents, liberate
from slurm_fair.slurm.ownership.kept_back import Keepers
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.ownership.ours import WaitState, is_slurms_delay
from slurm_fair.slurm.ownership.out_of_scope import strays
from slurm_fair.slurm.ownership.submitted import maybe_held_since
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import Queue
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import ADMIN, COMPLETING, REQUEUED_HELD, RUNNING, START, USER
from tests.support.fake_slurm import PushedClock, World

GATE = START + 600


@dataclass(frozen=True)
class Case:
    """A waiting job: what was submitted, what became of it, what we noted, and whether its state is ours."""

    ours: bool
    submitted: Mapping[str, Any] = field(default_factory=dict)
    now: Mapping[str, Any] = field(default_factory=dict)  # fields of its record
    mark: Mapping[str, Any] | None = None


HOLD: Mapping[str, Any] = {"hold": True}
BEHIND: Mapping[str, Any] = {"begin": GATE}
OURS: Mapping[str, Any] = {"gate_until": math.inf, "gate_before": GATE}
LISTED: Mapping[str, Any] = {"wanted": ("n1",)}
PINNED: Mapping[str, Any] = {"gate_until": 0.0, "pinned": True, "pin": "n1"}
CASES = {
    "held from its submission by its stamp": Case(True, HOLD),
    "held by its user, without a stamp": Case(False, {"stamped": False}, {"held": USER, "eligible": 0.0}),
    "held by an admin as submitted": Case(False, HOLD, {"held": ADMIN}),
    "held by its user after it was released": Case(False, HOLD, {"eligible": START + 1}),
    "held by its user after Slurm tried to start it": Case(False, HOLD, {"scheduled": START + 30}),
    "held with Slurm's only try a second late": Case(True, HOLD, {"scheduled": START + 1}),
    "held as noted, and tried since": Case(True, HOLD, {"scheduled": START + 30}, OURS),
    "held by its user after a requeue": Case(False, HOLD, {"restarts": 1}),
    "held by Slurm after a requeue": Case(False, HOLD, {"restarts": 1, "held": REQUEUED_HELD}),
    "behind the gate of its stamp": Case(True, {"gate_seconds": 600}),
    "behind a later time than its stamp's": Case(False, {"gate_seconds": 600}, {"eligible": GATE + 300}),
    "behind a later time after a requeue": Case(
        False, {"gate_seconds": 600}, {"eligible": GATE + 300, "restarts": 1}
    ),
    "behind its user's time, without a stamp": Case(False, BEHIND),
    "behind the gate that we noted": Case(True, BEHIND, mark={"gate_until": GATE}),
    "behind a later time than we noted": Case(False, BEHIND, mark={"gate_until": GATE - 100}),
    "behind a time soon after it was submitted": Case(
        False, {"begin": START + 60}, mark={"gate_until": GATE}
    ),
    "behind a gate noted of an earlier job": Case(
        False, BEHIND, mark={"gate_until": GATE, "submit": START - 9}
    ),
    "held as noted": Case(True, HOLD, mark=OURS),
    "held by an admin beside what we noted": Case(False, HOLD, {"held": ADMIN}, OURS),
    "held by Slurm beside what we noted": Case(False, HOLD, {"held": REQUEUED_HELD}, OURS),
    "held by an earlier release of ours": Case(True, HOLD, {"held": ADMIN}, {"gate_until": math.inf}),
    "released by us, held by its user": Case(False, HOLD, {"eligible": START + 1}, {"gate_until": 0.0}),
    "with the list that we noted": Case(True, now=LISTED, mark=PINNED),
    "with the list and behind the gate that we noted": Case(
        True, {"gate_seconds": 600}, LISTED, {**PINNED, "gate_until": GATE}
    ),
    "with its user's list": Case(False, now=LISTED),
    "with another list than we noted": Case(False, now={"wanted": ("n2",)}, mark=PINNED),
    "with more nodes than we noted": Case(False, now={"wanted": ("n1", "n2")}, mark=PINNED),
    "with a list noted of an earlier job": Case(False, now=LISTED, mark={**PINNED, "submit": START - 9}),
    "with a list that we took away": Case(False, now=LISTED, mark={**PINNED, "pinned": False}),
    "with a list that its user wanted too": Case(False, now=LISTED, mark={**PINNED, "user_nodes": "n1"}),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


class Scene:
    """The job of a case on nodes that are full, so that it waits whatever becomes of it."""

    def __init__(self, case: Case) -> None:
        self.world = World(PushedClock(), {"n1": 4, "n2": 4})
        for name in ("n1", "n2"):
            self.world.take(name, 4)
        self.job = self.world.submit(1, **case.submitted)
        self.record = self.world.records[self.job]
        for name, value in case.now.items():
            setattr(self.record, name, value)
        known: dict[str, Any] = {
            "submit": self.record.submit,
            "pinned": False,
            "set_at": START,
            **(case.mark or {}),
        }
        mark = Mark(pack(self.job), self.job, False, restarts=0, **known) if case.mark else None
        self.marks = (mark,) if mark else ()
        self.commands = FakeCommands(self.world)

    def state(self) -> tuple[str, float, tuple[str, ...]]:
        """The state that may be ours."""
        return self.record.held, self.record.eligible, self.record.wanted

    def keepers(self, queue: Queue, details: JobDetails) -> Keepers:
        """The facts that tell whose its gate is."""
        marks = Marks(MarksInHand(self.marks))
        return Keepers(queue, details, marks, self.world.clock.now(), 121.0, 0.0)


@pytest.mark.parametrize(
    ("restarts", "delay", "slurms"),
    [
        (1, 121, True),
        (1, 119, True),
        (1, 125, True),
        (1, 60, False),
        (1, 0, False),
        (1, 200, False),
        (0, 121, False),
    ],
)
def test_a_begin_time_after_a_requeue_is_slurms_only_at_its_own_delay(
    restarts: int, delay: float, slurms: bool
) -> None:
    shown = WaitState.of_one(1, "BeginTime", restarts, START, START + delay)
    assert is_slurms_delay(shown, 121.0) == slurms


@cases
def test_fail_open_undoes_what_is_ours_and_only_that(case: Case) -> None:
    scene = Scene(case)
    before = scene.state()
    liberate(scene.commands, scene.marks, scene.world.clock.now)
    held, eligible, wanted = scene.state()
    if case.ours:
        assert (held, wanted) == ("", ())
        assert eligible <= scene.world.clock.now() + 2
    else:
        assert (held, eligible, wanted) == before


@cases
def test_a_job_outside_of_the_scope_is_freed_of_what_is_ours_alone(case: Case) -> None:
    scene = Scene(case)
    queue, details = Queue(scene.commands), JobDetails(scene.commands)
    rows = queue.read()
    assert not isinstance(rows, str), rows
    details.learn(dict.fromkeys(zip(rows["record"].tolist(), rows["restarts"].tolist(), strict=True)))
    marks = Marks(MarksInHand(scene.marks))
    assert details.scheduled.learn(maybe_held_since(rows, queue, details, marks)) == ""
    nobody = np.zeros(0, dtype=np.int64)
    found = strays(rows, nobody, scene.keepers(queue, details))
    assert [action.record for action in found] == ([scene.job] if case.ours else [])
    managed = np.array([pack(scene.job)])
    assert strays(rows, managed, scene.keepers(queue, details)) == ()


@cases
def test_a_look_takes_for_ours_what_is_ours(case: Case) -> None:
    scene = Scene(case)
    jobs = look_at(scene).jobs
    blocked, gated, pinned = Blocked(jobs.blocked.item(0)), jobs.gated.item(0), jobs.pinned.item(0)
    if scene.record.wanted:
        assert pinned is case.ours
    else:
        assert (gated, blocked is Blocked.NOT_BLOCKED) == (case.ours, case.ours)
    if scene.record.held and not case.ours:
        assert blocked is (Blocked.USER_HOLD if scene.record.held == USER else Blocked.ADMIN_HOLD)


def test_without_a_journal_a_stamped_job_that_was_requeued_is_freed() -> None:
    """Its gate was noted in the journal alone."""
    scene = Scene(Case(True, {"gate_seconds": 600}, {"eligible": GATE + 300, "restarts": 1}))
    freed = liberate(scene.commands, (), scene.world.clock.now, lost=True)
    assert (freed.freed, freed.left) == (1, ())
    assert scene.record.eligible <= scene.world.clock.now() + 2


def test_a_job_without_gpus_is_nobodys_to_free_whatever_its_comment_says() -> None:
    scene = Scene(Case(False, HOLD, {"gpus": 0}))
    assert liberate(scene.commands, (), scene.world.clock.now).freed == 0
    assert scene.record.held == USER


@pytest.mark.parametrize(("wanted", "named"), [(("n1",), 1), (("n2",), 0), ((), 0)])
def test_only_a_list_of_ours_is_named_on_a_job_that_runs(wanted: tuple[str, ...], named: int) -> None:
    scene = Scene(Case(True, {}, {"state": RUNNING, "on": {"n1": 1}, "wanted": wanted}, PINNED))
    assert len(liberate(scene.commands, scene.marks, scene.world.clock.now).pinned) == named


def test_a_job_of_ours_that_is_completing_is_waited_for() -> None:
    """Slurm will keep it back on our account."""
    scene = Scene(Case(True, BEHIND, {"state": COMPLETING, "on": {"n1": 1}}, {"gate_until": GATE}))
    freed = liberate(scene.commands, scene.marks, scene.world.clock.now)
    assert freed.left == (f"job {scene.job}: it is still completing",)
    assert not liberate(scene.commands, (), scene.world.clock.now).left


def look_at(scene: Scene) -> Snapshot:
    """A look of a daemon."""
    config = from_tree({"lease": {"term": 300, "interval": 10}}, "here")
    marks, now = MarksInHand(scene.marks), scene.world.clock.now
    seen = SlurmCluster(scene.commands, config.cluster, now, marks, NoIntents()).observe({})
    assert isinstance(seen, Snapshot), seen
    return seen


def test_a_job_whose_list_its_user_took_away_carries_none_of_ours() -> None:
    seen = look_at(Scene(Case(False, mark=PINNED)))
    assert seen.jobs.pinned.tolist() == [False]


def test_a_task_that_was_split_off_its_array_has_the_hold_and_the_gate_of_its_arrays_mark() -> None:
    for submitted, noted in ((HOLD, OURS), ({"begin": GATE, "stamped": False}, {"gate_until": GATE})):
        scene = Scene(Case(True, {**submitted, "tasks": [1, 2, 3]}))
        scene.record.comment = ""  # the mark alone tells
        split = scene.world.split(scene.record, 2)
        scene.marks = (
            Mark(
                pack(scene.job), scene.job, True, scene.record.submit, 0, pinned=False, set_at=START, **noted
            ),
        )
        jobs = look_at(scene).jobs
        assert jobs.gated.tolist() == [True] * 3
        assert jobs.blocked.tolist() == [Blocked.NOT_BLOCKED] * 3
        queue, details = Queue(scene.commands), JobDetails(scene.commands)
        rows = queue.read()
        assert not isinstance(rows, str), rows
        found = strays(rows, np.zeros(0, dtype=np.int64), scene.keepers(queue, details))
        assert sorted(action.record for action in found) == sorted([scene.job, split.number])
