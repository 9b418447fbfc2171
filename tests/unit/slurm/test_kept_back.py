"""Columns and one row answer alike whose a hold, a begin time and a node list are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from slurm_fair.model import JobState, pack_keys
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.ownership.kept_back import Keepers, gates_of, whose_are
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.ownership.ours import kept_by_us
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh, free_action
from slurm_fair.slurm.ownership.submitted import maybe_held_since
from slurm_fair.slurm.reading.details import JobDetails
from slurm_fair.slurm.reading.queue import UNSPLIT, Queue
from slurm_fair.slurm.reading.reread import look
from tests.support.fake_commands import FakeCommands
from tests.support.fake_jobs import ADMIN, REQUEUE_DELAY_SECONDS, REQUEUED_HELD, START, USER, Record
from tests.support.fake_slurm import PushedClock, World

BOOTED = START - 50
BEGINS = (0.0, 0.0, START - 40, START + 1, START + 120, START + 121, START + 600, START + 602)
GATES = (0.0, math.inf, math.inf, START - 40, START + 1, START + 120, START + 600)
LISTS: tuple[tuple[str, ...], ...] = ((), ("n1",), ("n2",), ("n1", "n2"))
COMMENTS = ("", "v1,signal=USR2", "v1,gate=hold", "v1,gate=+600", f"v1,gate=uts{START + 120:.0f}")

shown = st.fixed_dictionaries(
    {
        "held": st.sampled_from(("", "", USER, USER, ADMIN, REQUEUED_HELD)),
        "eligible": st.sampled_from(BEGINS),
        "restarts": st.sampled_from((0, 0, 1)),
        "scheduled": st.sampled_from((0.0, START - 100, START, START, START + 1, START + 30)),
        "wanted": st.sampled_from(LISTS),
        "comment": st.sampled_from([f"slurm_fair:{text}" if text else "" for text in COMMENTS]),
        "after_submit": st.booleans(),
    }
)
noted = st.fixed_dictionaries(
    {
        "gate_until": st.sampled_from(GATES),
        "gate_before": st.sampled_from(GATES[:1] + GATES[3:]),
        "pinned": st.booleans(),
        "set_at": st.sampled_from((0.0, BOOTED - 1, BOOTED + 0.5, START)),
        "submit": st.sampled_from((START, START - 9)),
        "user_nodes": st.sampled_from(("", "n1", "n2")),
        "pin": st.sampled_from(("", "n1", "n2")),
        "user_begin": st.sampled_from((0.0, START - 1, START + 60)),
    }
)
jobs = st.lists(st.tuples(shown, st.none() | noted, st.none() | noted, st.booleans()), min_size=1, max_size=6)


class Scene:
    """Waiting jobs and arrays that Slurm shows in any state, and marks of ours on them that say anything."""

    def __init__(self, drawn: list[Any]) -> None:
        self.world = World(PushedClock(), {"n1": 4, "n2": 4})
        for name in ("n1", "n2"):
            self.world.take(name, 4)
        marks: list[Mark] = []
        for state, own, array, is_array in drawn:
            base = self.world.submit(1, tasks=(1, 2, 3) if is_array else ())
            records = [self.world.records[base]]
            if is_array:
                records.append(self.world.split(records[0], 2))
                marks += [Mark(pack(base), base, True, restarts=0, **array)] if array else []
            for record in records:
                self.shape(record, state)
            split = records[-1]
            key = pack(base, 2) if is_array else pack(base)
            marks += [Mark(key, split.number, False, restarts=0, **own)] if own else []
        commands = FakeCommands(self.world)
        self.queue, self.details = Queue(commands), JobDetails(commands)
        self.marks = Marks(MarksInHand(marks))
        rows = self.queue.read()
        assert not isinstance(rows, str), rows
        runs = zip(rows["record"].tolist(), rows["restarts"].tolist(), strict=True)
        assert self.details.learn(dict.fromkeys(runs)) == ""
        self.rows = rows[rows["state"] == JobState.WAITING]
        asked = maybe_held_since(self.rows, self.queue, self.details, self.marks)
        assert self.details.scheduled.learn(asked) == ""
        delay = REQUEUE_DELAY_SECONDS
        self.keepers = Keepers(self.queue, self.details, self.marks, START, delay, BOOTED)
        self.ours = OursAfresh(self.marks, self.details, delay, BOOTED)

    def shape(self, record: Record, state: dict[str, Any]) -> None:
        for name in ("held", "eligible", "restarts", "scheduled", "wanted", "comment"):
            setattr(record, name, state[name])
        if not state["after_submit"]:
            record.submit = START - 100


@given(jobs)
def test_columns_and_one_row_agree_on_what_is_ours(drawn: list[Any]) -> None:
    scene = Scene(drawn)
    rows, queue = scene.rows, scene.queue
    assert len(rows) >= len(drawn)
    key = pack_keys(rows["base"], np.where(rows["task"] == UNSPLIT, NO_TASK, rows["task"]))
    whose = whose_are(rows, key, np.ones(len(rows), dtype=bool), scene.keepers)
    acts = [free_action(row) for row in rows]
    fresh = look(queue, [(act.key, act.whole_record) for act in acts])
    assert not isinstance(fresh, str), fresh
    for at, act in enumerate(acts):
        row, ours = fresh[act.key, act.whole_record], scene.ours
        known = ours.mark_on(act) is not None
        begin = whose.begin[at] or (known and whose.delay[at])
        one = (
            ours.hold(act, row),
            ours.begin(act, row),
            ours.pins(act, row) is not None,
            ours.delay(row),
        )
        listed = bool(row.node_text)
        assert one[:2] == (whose.hold[at], begin)
        assert (one[2] and listed, one[3]) == (whose.nodes[at], whose.delay[at])
        event(f"hold {one[0]}, begin {one[1]}, list {one[2]}")
        if not known:
            stamp, run = ours.stamp_on(act), (act.record, act.restarts)
            kept = kept_by_us(
                rows[at], stamp, row.reason, lost=False, scheduled=scene.details.scheduled.at(*run)
            )
            assert kept == (whose.hold[at] if row.priority == 0 else whose.begin[at])


@given(jobs)
def test_a_look_and_a_fresh_read_agree_on_who_keeps_a_job_back(drawn: list[Any]) -> None:
    scene = Scene(drawn)
    rows = scene.rows[scene.rows["task"] != UNSPLIT]
    key = pack_keys(rows["base"], rows["task"])
    gates = gates_of(rows, key, scene.keepers)
    fresh = look(scene.queue, [(job, False) for job in key.tolist()])
    assert not isinstance(fresh, str), fresh
    for at, raw in enumerate(rows):
        act, ours = free_action(raw), scene.ours
        row = fresh[act.key, False]
        assert gates.held_by_us[at] == ours.hold(act, row)
        if row.eligible > START + 2:
            begin = ours.begin(act, row) or ours.delay(row)
            assert gates.ours[at] == (begin or ours.hold(act, row))
            assert gates.own_begin[at] == (not begin or ours.own_begin(act, row) > START)


@pytest.mark.parametrize(
    ("columns", "mark", "counts"),
    [
        ({}, {}, True),
        ({"state": "RUNNING", "start": START - 10}, {}, True),  # it started before its gate
        ({}, {"gate_until": 0.0}, False),  # we opened it
        ({}, {"gate_until": START - 5}, False),  # its gate has had its time
        ({"state": "RUNNING", "start": START - 10}, {"gate_until": START - 10}, False),
        ({}, {"pinned": True}, False),  # we were about to open it
        ({}, {"blameless": True}, False),  # it never came to stand, or went while nobody looked
        ({"restarts": 1}, {}, False),  # it was requeued since
        ({"restarts": 1}, {"restarts": 1}, True),
        ({"state": "RUNNING", "start": START - 100}, {}, False),  # the mark of a requeue that came to nothing
    ],
)
def test_a_gate_that_went_counts_as_set_only_if_nobody_but_a_stranger_can_have_moved_it(
    columns: dict[str, Any], mark: dict[str, Any], counts: bool
) -> None:
    world = World(PushedClock(), {"n1": 4})
    base = world.submit(1)
    for name, value in columns.items():
        setattr(world.records[base], name, value)
    said: dict[str, Any] = {
        "restarts": 0,
        "gate_until": START + 600,
        "pinned": False,
        "set_at": START - 20,
    } | mark
    marks = Marks(MarksInHand([Mark(pack(base), base, False, submit=START, **said)]))
    commands = FakeCommands(world)
    keepers = Keepers(Queue(commands), JobDetails(commands), marks, START, REQUEUE_DELAY_SECONDS, BOOTED)
    rows = keepers.queue.read()
    assert not isinstance(rows, str), rows
    (found,) = gates_of(rows, pack_keys(rows["base"], rows["task"]), keepers).gate_set
    assert found == (START - 20 if counts else 0.0)
