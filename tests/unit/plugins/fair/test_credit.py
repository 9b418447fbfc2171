"""Tenants are believed as far as what they said before came true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Event, EventKind, JobState, Told
from slurm_fair.policy import View
from slurm_fair_plugins.fair.credit import CREDIT, Credit
from tests.support.accounts import Account, view
from tests.support.builders import job, snapshot

NAN = float("nan")


def seen(
    *,
    declared: float = 3600.0,
    left: float = NAN,
    ran: float = 0.0,
    before: Any = None,
) -> View:
    """One job of tenant a, and one of b of which the same is said."""
    shown = snapshot(jobs=[job(each, state=JobState.RUNNING, tenant="ab"[each - 1]) for each in (1, 2)])
    told = Told.nothing(2, len(shown.gpu_types)).with_columns(
        declared_seconds=np.full(2, declared), left_seconds=np.full(2, left)
    )
    accounts = {"1": Account(ran, 0.0, ran), "2": Account(0.0, 0.0, 0.0)}
    memory = {CREDIT: before} if before else {}
    return replace(view(replace(shown, told=told), None, None, accounts), memory=memory)


def longer(shown: View) -> list[float]:
    """The factors of both jobs."""
    return list(map(float, Credit.of(shown).longer(shown)))


def test_who_never_ended_a_job_is_believed() -> None:
    assert longer(seen()) == [1.0, 1.0]


def test_a_tenant_whose_jobs_took_longer_than_declared_is_believed_so_much_less() -> None:
    assert longer(seen(before={"a": [[1000.0, 2000.0], [10.0, 10.0]]})) == pytest.approx([10 / 1.1, 1.0])


def test_a_tenth_more_than_declared_is_no_lie() -> None:
    assert longer(seen(before={"a": [[1000.0], [1.09]]})) == [1.0, 1.0]


def test_a_job_that_runs_longer_than_declared_counts_before_it_ends() -> None:
    assert longer(seen(declared=100.0, ran=400.0)) == pytest.approx([4 / 1.1, 1.0])


def test_many_small_true_claims_do_not_cover_a_large_false_one() -> None:
    before = {"a": [[10.0] * 20 + [5000.0], [1.0] * 20 + [8.0]]}
    assert longer(seen(before=before)) == pytest.approx([8 / 1.1, 1.0])


def after(before: Any, *ended: tuple[float, float]) -> Any:
    """The memory of tenant a after these jobs ended one after the other: seconds run and declared."""
    for ran, declared in ended:
        detail = dict.fromkeys(("submit", "end", "waited", "had", "owed"), 0.0)
        event = Event(
            1.0, EventKind.FINISHED, 9, "a", 1, {**detail, "ran": ran, "declared_seconds": declared}
        )
        before = Credit.of(replace(seen(before=before), happened=(event,))).kept({})[CREDIT]
    return before


def test_no_number_of_small_true_claims_drives_a_large_false_one_out_of_memory() -> None:
    memory = after(None, (5000.0, 625.0), *[(10.0, 10.0)] * 200)
    assert longer(seen(before=memory)) == pytest.approx([8 / 1.1, 1.0])
    assert len(memory["a"][0]) == 24


def test_a_false_claim_is_forgotten_after_about_as_much_work_that_was_declared_truly() -> None:
    lie, truth = (5000.0, 625.0), (500.0, 500.0)
    assert longer(seen(before=after(None, lie, *[truth] * 8))) == pytest.approx([8 / 1.1, 1.0])
    assert longer(seen(before=after(None, lie, *[truth] * 11))) == [1.0, 1.0]
    assert longer(seen(before=after(None, lie, *[(50.0, 50.0)] * 110))) == [1.0, 1.0]


def test_of_jobs_alike_about_the_last_two_dozen_count() -> None:
    lies, truths = [(1000.0, 125.0)] * 40, [(1000.0, 1000.0)] * 40
    assert longer(seen(before=after(None, *lies, *truths[:12])))[0] > 1.0
    assert longer(seen(before=after(None, *lies, *truths))) == [1.0, 1.0]


def test_reports_are_believed_as_far_as_what_ended_jobs_took_bears_them_out() -> None:
    before = {"a": [[3000.0], [1.0]]}
    assert longer(seen(left=2600.0, ran=1000.0, before=before))[0] == 1.0
    assert longer(seen(left=260.0, ran=1000.0, before=before))[0] == pytest.approx(10 / 1.1)


def test_reports_of_who_never_ended_a_job_are_believed() -> None:
    assert longer(seen(left=260.0, ran=1000.0)) == [1.0, 1.0]


def test_who_always_declares_twice_as_much_and_reports_the_truth_is_believed() -> None:
    before = {"a": [[1800.0], [0.5]]}
    assert longer(seen(left=1500.0, ran=300.0, before=before))[0] == 1.0


@pytest.mark.parametrize(("over", "factor"), [(2.0, 1.0), (2.2, 1.0), (10.0, 5.0 / 1.1)])
def test_where_gpu_types_differ_in_speed_so_much_longer_a_run_is_no_lie(over: float, factor: float) -> None:
    """The slowest type takes twice as long."""
    shown = seen(before={"a": [[1000.0], [over]]})
    told = shown.snapshot.told
    assert told is not None
    slow = told.with_columns(rate=np.full_like(told.rate, 0.5))
    found = longer(replace(shown, snapshot=replace(shown.snapshot, told=slow)))
    assert found == pytest.approx([factor, 1.0])
