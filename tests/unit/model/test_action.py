"""Acts and their ends, as the rest of the controller goes by them."""

from __future__ import annotations

import re
from itertools import product

import pytest

from slurm_fair.model import Action, Outcome, Result, Untried, Verb
from slurm_fair.model.action import STOPS
from slurm_fair.model.ids import pack

ACT = Action(Verb.OPEN, pack(7), 7, 100.0, 0)


@pytest.mark.parametrize(("result", "later"), list(product(Result, (False, True))))
def test_only_a_refusal_that_no_later_try_can_change_is_for_good(result: Result, later: bool) -> None:
    outcome = Outcome(ACT, result, later=later)
    assert outcome.refused_for_good is (result is Result.REFUSED and not later)


def test_an_act_that_was_tried_says_so_until_somebody_says_why_it_was_not() -> None:
    assert Outcome(ACT, Result.DONE).untried is None
    assert not Outcome(ACT, Result.REFUSED, later=True, untried=Untried.TOO_LATE).refused_for_good


def test_acts_with_all_the_same_are_one_and_a_requeue_makes_another() -> None:
    """Lines to Slurm are kept by act."""
    assert {ACT: "x"}[Action(Verb.OPEN, pack(7), 7, 100.0, 0)] == "x"
    for other in (ACT._replace(restarts=1), ACT._replace(whole_record=True), ACT._replace(nodes=("n1",))):
        assert other not in {ACT}


def test_an_act_asks_for_no_more_than_it_says() -> None:
    assert (ACT.nodes, ACT.until, ACT.whole_record, ACT.why, ACT.gpus) == ((), 0.0, False, "", 0)


def test_jobs_that_run_are_asked_and_requeued_and_nothing_else() -> None:
    assert set(STOPS) == {Verb.ASK, Verb.REQUEUE}


def test_every_word_that_a_journal_keeps_is_its_own() -> None:
    for kind in (Verb, Result, Untried):
        words = [member.value for member in kind]
        assert len(set(words)) == len(words)
        assert [word for word in words if not re.fullmatch(r"[a-z][a-z :]*[a-z]", word)] == []
        assert all(kind(member.value) is member for member in kind)
