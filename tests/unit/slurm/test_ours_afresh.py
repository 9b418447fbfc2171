"""A fresh row of one job shows whose its hold, its begin time, its node list and its size are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Action, JobState, Verb
from slurm_fair.model.ids import NO_TASK, pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.command import CommandResult, Commands
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh, free_action
from slurm_fair.slurm.reading.details import Details, JobDetails
from slurm_fair.slurm.reading.queue import BETWEEN, RAW, UNSPLIT
from slurm_fair.slurm.reading.request import PER_NODE, SizeRequest
from slurm_fair.slurm.reading.reread import FreshRow
from slurm_fair.slurm.reading.stamp import read_stamp
from tests.support.fake_jobs import ADMIN, REQUEUED_HELD, START, USER

GATE = START + 600
DELAY = 121.0
MARK = Mark(pack(7), 7, False, START, 0, GATE, False, START)
TWO = SizeRequest(PER_NODE, "gres:gpu:", 2, 1, 1, 4)
Scheduled = dict[int, float]


class Answering(Commands):
    """Says when Slurm tried to start each job last, or what else it is told to say."""

    def __init__(self, scheduled: Scheduled | None = None, complaint: str = "") -> None:
        super().__init__()
        self.scheduled, self.complaint = scheduled or {}, complaint
        self.asked: list[tuple[str, ...]] = []

    def run(
        self, *argv: str, stdin: str | None = None, timeout_seconds: float | None = None
    ) -> CommandResult:
        self.asked.append(argv)
        lines = (f"{record}{BETWEEN}{at:.0f}{BETWEEN}\n" for record, at in self.scheduled.items())
        return CommandResult(argv, 1 if self.complaint else 0, "".join(lines), self.complaint, 0.0)


class Commented(JobDetails):
    """Every job bears this comment."""

    comment = ""

    def of(self, record: int, restarts: int) -> Details:
        return Details(read_stamp(self.comment), "", ())


def ours(
    *marks: Mark, comment: str = "", commands: Answering | None = None, booted: float = 0.0
) -> OursAfresh:
    details = Commented(commands or Answering())
    details.comment = comment
    return OursAfresh(Marks(MarksInHand(marks)), details, DELAY, booted)


def row(**columns: Any) -> FreshRow:
    """A job that waits for resources since it was submitted."""
    quiet = FreshRow(JobState.WAITING, START, 0, START, 100, "Resources", frozenset(), "", False, 7)
    return replace(quiet, **columns)


def held(by: str = USER, **columns: Any) -> FreshRow:
    return row(priority=0, reason=by, **({"eligible": 0.0} | columns))


def act(number: int = 7, task: int = NO_TASK, *, whole: bool = False, restarts: int = 0) -> Action:
    return Action(Verb.OPEN, pack(number, task), number, START, restarts, whole_record=whole)


# -- marks and stamps -----------------------------------------------------------------------------------------


def test_the_mark_of_a_job_is_found_and_that_of_an_earlier_bearer_of_its_id_is_none() -> None:
    assert ours(MARK).mark_on(act()) is MARK
    assert ours().mark_on(act()) is None
    assert ours(replace(MARK, submit=START - 500)).mark_on(act()) is None


def test_a_task_without_a_mark_of_its_own_has_that_of_its_array() -> None:
    of_array, of_task = replace(MARK, whole_record=True), replace(MARK, key=pack(7, 3))
    assert ours(of_array).mark_on(act(7, 3)) is of_array
    assert ours(of_array, of_task).mark_on(act(7, 3)) is of_task
    assert ours(of_task).mark_on(act(7, 4)) is None
    assert ours(of_task).mark_on(act(whole=True)) is None


@pytest.mark.parametrize("comment", ["", "nothing of ours", "slurm_fair:v1,gate=hold=1", "slurm_fair:" * 999])
def test_a_comment_that_is_no_stamp_says_nothing(comment: str) -> None:
    assert ours(comment=comment).stamp_on(act()).gate == ""


# -- holds ----------------------------------------------------------------------------------------------------

HELD_BY_STAMP = "slurm_fair:v1,gate=hold"
LASTING = replace(MARK, gate_until=math.inf, gate_before=GATE)


def hold_of(who: OursAfresh, shown: FreshRow) -> tuple[bool, bool]:
    """It is ours; it is somebody else's."""
    return who.hold(act(), shown), who.foreign_hold(act(), shown)


def test_a_job_that_is_not_held_has_no_hold_of_anybody() -> None:
    assert hold_of(ours(LASTING, comment=HELD_BY_STAMP), row(reason=USER)) == (False, False)


@pytest.mark.parametrize(("by", "mine"), [(USER, True), (ADMIN, False), (REQUEUED_HELD, False)])
def test_a_hold_that_we_noted_is_ours_unless_it_shows_as_an_admins_or_slurms(by: str, mine: bool) -> None:
    assert hold_of(ours(LASTING), held(by)) == (mine, not mine)


def test_a_hold_on_a_job_whose_gate_we_noted_as_a_time_is_somebodys_own() -> None:
    assert hold_of(ours(MARK, comment=HELD_BY_STAMP), held()) == (False, True)


@pytest.mark.parametrize(
    ("scheduled", "mine"), [({7: START}, True), ({7: START + 2}, False), ({}, False), ({8: START}, False)]
)
def test_without_a_mark_a_hold_is_ours_where_slurm_never_tried_the_job_since(
    scheduled: Scheduled, mine: bool
) -> None:
    who = ours(comment=HELD_BY_STAMP, commands=Answering(scheduled))
    assert hold_of(who, held()) == (False, True), "nobody asked yet"
    assert who.learn([act()], {(pack(7), False): held()}) == ""
    assert hold_of(who, held()) == (mine, not mine)


# -- questions about holds ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "comment", "shown"),
    [
        ((LASTING,), HELD_BY_STAMP, held()),
        ((), "", held()),
        ((), HELD_BY_STAMP, row()),
        ((), HELD_BY_STAMP, held(ADMIN)),
        ((), HELD_BY_STAMP, held(eligible=START)),
        ((), HELD_BY_STAMP, held(restarts=1)),
    ],
    ids=["marked", "no stamp", "not held", "by an admin", "released before", "requeued"],
)
def test_slurm_is_not_asked_about_a_hold_that_cannot_be_the_submissions(
    marks: tuple[Mark, ...], comment: str, shown: FreshRow
) -> None:
    commands = Answering()
    assert ours(*marks, comment=comment, commands=commands).learn([act()], {(pack(7), False): shown}) == ""
    assert commands.asked == []


def test_jobs_that_slurm_no_longer_lists_are_not_asked_about() -> None:
    commands = Answering()
    assert ours(comment=HELD_BY_STAMP, commands=commands).learn([act(), act(8)], {}) == ""
    assert commands.asked == []


def test_all_holds_that_may_be_submissions_are_asked_about_at_once() -> None:
    commands = Answering({7: START, 8: START})
    rows = {(pack(number), False): held() for number in (7, 8)}
    who = ours(comment=HELD_BY_STAMP, commands=commands)
    assert who.learn([act(7), act(8), act(9)], rows) == ""
    (argv,) = commands.asked
    assert argv[argv.index("-j") + 1] == "7,8"


def test_what_slurm_complains_of_is_passed_on_in_one_line() -> None:
    who = ours(comment=HELD_BY_STAMP, commands=Answering(complaint="no route\nto\x1b host"))
    said = who.learn([act()], {(pack(7), False): held()})
    assert said.startswith("squeue: no route to")
    assert "\n" not in said
    assert hold_of(who, held()) == (False, True)


# -- begin times ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eligible", "mine"),
    [(GATE, True), (GATE + 1.5, True), (GATE - 1.5, True), (GATE + 1.6, False), (START, False), (0.0, False)],
)
def test_a_begin_time_within_a_second_of_the_noted_gate_is_ours(eligible: float, mine: bool) -> None:
    assert ours(MARK).begin(act(), row(eligible=eligible)) is mine


def test_the_gate_before_is_ours_until_the_new_one_stands() -> None:
    moved = replace(MARK, gate_until=GATE + 900, gate_before=GATE)
    assert [ours(moved).begin(act(), row(eligible=at)) for at in (GATE, GATE + 900, GATE + 300)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("comment", "mine"),
    [
        (f"slurm_fair:v1,gate=uts{GATE:.0f}", True),
        (f"slurm_fair:v1,gate=uts{GATE + 60:.0f}", False),
        ("slurm_fair:v1,gate=+600", True),
        ("slurm_fair:v1,gate=+900", False),
        ("slurm_fair:v1,gate=hold", False),
        ("", False),
    ],
)
def test_without_a_mark_a_begin_time_is_ours_where_the_stamp_says_it(comment: str, mine: bool) -> None:
    assert ours(comment=comment).begin(act(), row(eligible=GATE)) is mine


@pytest.mark.parametrize(
    ("eligible", "restarts", "slurms"),
    [(DELAY, 1, True), (DELAY + 5, 1, True), (DELAY + 6, 1, False), (-1, 1, False), (DELAY, 0, False)],
)
def test_a_time_soon_after_a_requeue_is_slurms_and_counts_as_ours_on_a_job_of_ours(
    eligible: float, restarts: int, slurms: bool
) -> None:
    shown = row(eligible=START + eligible, restarts=restarts)
    assert ours().delay(shown) is slurms
    assert ours(MARK).begin(act(restarts=restarts), shown) is slurms
    assert ours().begin(act(restarts=restarts), shown) is False, "no act of ours is known"


# -- node lists -----------------------------------------------------------------------------------------------

PINNED = replace(MARK, pinned=True, pin="n[1-2]", user_nodes="n7")


@pytest.mark.parametrize(
    ("text", "mine"), [("n[1-2]", True), ("n2,n1", True), ("n1", False), ("", False), ("n7", False)]
)
def test_a_list_of_the_nodes_that_we_set_is_ours_however_slurm_writes_it(text: str, mine: bool) -> None:
    who, shown = ours(PINNED), row(node_text=text)
    assert who.pins(act(), shown) is (PINNED if mine else None)
    assert who.own_nodes(act(), shown) == ("n7" if mine else text)


def test_without_a_mark_every_list_is_its_users_own() -> None:
    assert ours().pins(act(), row(node_text="n1")) is None
    assert ours().own_nodes(act(), row(node_text="n1")) == "n1"


@pytest.mark.parametrize("text", ["n[1-", "n[1-99999999999]", "\x1b[31m", "n1=n2"])
def test_a_list_that_cannot_be_read_is_not_ours(text: str) -> None:
    assert ours(PINNED).pins(act(), row(node_text=text)) is None


@pytest.mark.parametrize(("booted", "mine"), [(0.0, False), (START - 1, False), (START + 60, True)])
def test_a_list_that_we_took_away_is_ours_again_where_slurmctld_came_back_since(
    booted: float, mine: bool
) -> None:
    """One that was killed comes back with an earlier state."""
    taken = replace(PINNED, pinned=False)
    assert (ours(taken, booted=booted).pins(act(), row(node_text="n[1-2]")) is taken) is mine


# -- sizes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_array", [False, True])
def test_a_request_that_we_set_stands_for_its_users_own(of_array: bool) -> None:
    four, eight = TWO.resized(4, 1), TWO.resized(8, 1)
    mark = replace(MARK, whole_record=of_array, size=f"{eight};{four}", user_size=str(TWO))
    who, action = ours(mark), act(7, 3 if of_array else NO_TASK)
    for shown, resized in ((four, True), (eight, True), (TWO, False), (TWO.resized(6, 1), False)):
        assert who.resized(action, row(request=str(shown))) is resized
        assert who.own_request(action, row(request=str(shown))) == str(TWO if resized else shown)


def test_a_request_without_a_mark_and_one_that_we_did_not_set_are_its_users_own() -> None:
    sized = replace(MARK, size="nonsense=\x1b[31m", user_size="2")
    for who in (ours(), ours(MARK), ours(sized)):
        shown = row(request="its GPUs are asked for by the task")
        assert who.own_request(act(), shown) == shown.request
        assert not who.resized(act(), shown)


# -- what is done when all is given back ----------------------------------------------------------------------


def raw(**columns: Any) -> np.void:
    table = np.zeros(1, RAW)
    for name, value in (
        {"base": 7, "record": 9, "task": NO_TASK, "submit": START, "restarts": 2} | columns
    ).items():
        table[name] = value
    return np.void(table[0])


@pytest.mark.parametrize(
    ("task", "key", "whole"),
    [(NO_TASK, pack(7), False), (4, pack(7, 4), False), (0, pack(7, 0), False), (UNSPLIT, pack(7), True)],
)
def test_a_row_is_freed_as_the_job_task_or_array_that_it_is(task: int, key: int, whole: bool) -> None:
    freed = free_action(raw(task=task))
    assert freed == Action(Verb.FREE, key, 9, START, 2, whole_record=whole, why="fail open")
    assert free_action(raw(), "its user asked").why == "its user asked"
