"""Another number of GPUs for a waiting job, and its user's own request given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.errors import SlurmTextError
from slurm_fair.model import Action, JobState, Verb
from slurm_fair.model.ids import pack
from slurm_fair.model.mark import Mark
from slurm_fair.slurm.acting.resizing import asks_for, opening, own_size, wanted, with_size, words_to_undo
from slurm_fair.slurm.acting.scontrol_lines import ScontrolLines
from slurm_fair.slurm.command import Commands
from slurm_fair.slurm.ownership.marks import Marks, MarksInHand
from slurm_fair.slurm.ownership.ours_afresh import OursAfresh
from slurm_fair.slurm.reading.details import Details, JobDetails
from slurm_fair.slurm.reading.request import PER_NODE, SizeRequest
from slurm_fair.slurm.reading.reread import FreshRow
from slurm_fair.slurm.reading.stamp import Stamp

TWO = SizeRequest(PER_NODE, "gres:gpu:", 2, 1, 1, 4)
FOUR, EIGHT = TWO.resized(4, 1), TWO.resized(8, 2)
ODD = "its GPUs are asked for by the task"
PLAIN = Mark(pack(7), 7, False, 0.0, 0, 0.0, True, 0.0)
RESIZED = replace(PLAIN, size=str(FOUR), user_size=str(TWO))


class Stamped(JobDetails):
    """Every job names the sizes 2, 4 and 8."""

    def of(self, record: int, restarts: int) -> Details:
        return Details(Stamp(version=1, sizes=(2, 4, 8)), "", ())


def ours(mark: Mark | None = None) -> OursAfresh:
    return OursAfresh(Marks(MarksInHand((mark,) if mark else ())), Stamped(Commands()), 60.0)


def start(gpus: int = 0, *nodes: str) -> Action:
    return Action(Verb.OPEN, pack(7), 7, 0.0, 0, nodes or ("n1",), gpus=gpus)


def shown(request: SizeRequest | str) -> FreshRow:
    return FreshRow(JobState.WAITING, 0.0, 0, 0.0, 1, "", frozenset(), "", False, 7, request=str(request))


def test_a_job_starts_with_the_size_that_the_plan_says() -> None:
    assert wanted(ours(), start(4), shown(TWO)) == FOUR
    assert wanted(ours(), start(8, "n1", "n2"), shown(TWO)) == EIGHT
    assert wanted(ours(), start(), shown(TWO)) is None


def test_a_job_that_carries_a_size_of_ours_gets_its_own_back() -> None:
    assert wanted(ours(RESIZED), start(), shown(FOUR)) == TWO
    assert wanted(ours(RESIZED), start(8, "n1", "n2"), shown(FOUR)) == EIGHT
    assert own_size("7", ours(RESIZED), start(), shown(FOUR)) == ("update jobid=7 trespernode=gres:gpu:2",)
    assert own_size("7", ours(), start(), shown(TWO)) == ()


def test_a_size_that_the_job_does_not_name_and_a_request_that_is_rigid_are_refused() -> None:
    with pytest.raises(SlurmTextError, match="cannot run with 3 GPUs"):
        wanted(ours(), start(3), shown(TWO))
    with pytest.raises(SlurmTextError, match="its size cannot be changed"):
        wanted(ours(), start(4), shown(ODD))
    assert wanted(ours(), start(), shown(ODD)) is None
    assert wanted(ours(), start(2), shown(replace(TWO, count=3))) == TWO


def test_the_size_is_changed_once_the_job_is_pinned() -> None:
    lines = ScontrolLines(pin=("pin",), then=("then",))
    opened = opening(lines, "7", ours(), start(4), shown(TWO))
    assert opened == ScontrolLines(("pin", "update jobid=7 trespernode=gres:gpu:4"), ("then",), str(FOUR))
    assert opening(lines, "7", ours(), start(), shown(TWO)) == lines
    with pytest.raises(SlurmTextError, match="its size cannot be changed"):
        opening(lines, "7", ours(replace(PLAIN, size=ODD, user_size=str(TWO))), start(4), shown(ODD))


def test_a_request_of_ours_is_undone_and_a_users_change_is_not() -> None:
    half = replace(EIGHT, count=2)  # an update to EIGHT that was cut short
    mark = replace(PLAIN, size=str(EIGHT), user_size=str(TWO))
    assert words_to_undo(ours(RESIZED), start(), shown(FOUR)) == ("trespernode=gres:gpu:2",)
    assert words_to_undo(ours(mark), start(), shown(half))[0] == "numnodes=1-1"
    for known, here in ((RESIZED, replace(TWO, count=3)), (RESIZED, ODD), (PLAIN, FOUR), (None, FOUR)):
        assert words_to_undo(ours(known), start(), shown(here)) == ()


def test_a_pinned_job_asks_for_all_that_was_wanted() -> None:
    assert asks_for(shown(FOUR), str(FOUR))
    assert not asks_for(shown(TWO), str(FOUR))
    assert not asks_for(shown(ODD), str(FOUR))
    assert asks_for(shown(TWO), "")


def test_the_mark_says_either_size_that_the_job_may_carry_after_a_crash() -> None:
    fresh = with_size(PLAIN, ours(), start(4), shown(TWO))
    assert (fresh.size, fresh.user_size) == (str(FOUR), str(TWO))
    again = with_size(RESIZED, ours(RESIZED), start(8, "n1", "n2"), shown(FOUR))
    assert str(EIGHT) in again.size
    assert str(FOUR) in again.size
    assert again.user_size == str(TWO)
    plain = with_size(PLAIN, ours(), start(), shown(TWO))
    assert (plain.size, plain.user_size) == ("", "")
