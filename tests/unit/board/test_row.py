"""The words of a board's rows."""

from __future__ import annotations

import pytest

from slurm_fair.board.row import (
    LEASE_WORDS,
    has_lease,
    has_verdict,
    is_in,
    is_starting,
    is_waiting,
    may_be_planned,
    word,
)
from slurm_fair.model import Blocked, JobState, LeasePhase, Verdict


def row(**columns: str) -> dict[str, str]:
    """A job that waits without a lease, unless something else is said."""
    return {"state": "waiting", "verdict": "leave", "lease": "", "blocked": "", **columns}


def test_a_job_is_in_the_state_that_its_row_names() -> None:
    for state in JobState:
        shown = row(state=word(state))
        assert [other for other in JobState if is_in(shown, other)] == [state]
        assert is_waiting(shown) == (state is JobState.WAITING)


def test_a_verdict_is_one_of_several() -> None:
    shown = row(verdict=word(Verdict.GRANT))
    assert has_verdict(shown, Verdict.RENEW, Verdict.GRANT)
    assert not has_verdict(shown, Verdict.RENEW)


def test_a_lease_is_in_the_phase_whose_word_its_row_has() -> None:
    for phase in LeasePhase:
        shown = row(lease=LEASE_WORDS[phase])
        assert [other for other in LeasePhase if has_lease(shown, other)] == [phase]
    assert not any(has_lease(row(), phase) for phase in LeasePhase)


@pytest.mark.parametrize(
    ("shown", "starting"),
    [(row(lease="promised"), True), (row(), False), (row(lease="promised", state="running"), False)],
)
def test_who_waits_for_gpus_that_are_promised_is_starting(shown: dict[str, str], starting: bool) -> None:
    assert is_starting(shown) == starting


def test_only_a_job_that_nothing_but_kept_gpus_blocks_may_be_planned() -> None:
    able = [blocked for blocked in Blocked if may_be_planned(row(blocked=word(blocked)))]
    assert able == [Blocked.KEPT]
    assert may_be_planned(row())
