"""A site has settings for plain jobs, and for interactive ones."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model import Snapshot
from slurm_fair.model.latest_starts import latest_starts
from tests.support.shared_site import Site


def look(**scope: Any) -> Snapshot:
    """A look at a job that saves, a plain one, and an interactive one, which all wait."""
    site = Site(**scope)
    begin = site.world.clock.now() + 500
    site.world.submit(1, "a", begin=begin)
    site.world.submit(1, "b", begin=begin, stamped=False)
    site.world.records[site.world.submit(1, "c", begin=begin, stamped=False)].interactive = True
    return site.look()


def tenants(seen: Snapshot) -> str:
    """The tenants whose jobs are managed."""
    return "".join(seen.tenants.names[row] for row in seen.jobs.tenant)


@pytest.mark.parametrize(
    ("scope", "managed", "restartable", "revocable"),
    [
        ({}, "ab", [False, False], [True, False]),
        ({"plain": "revoke"}, "ab", [False, True], [True, True]),
        ({"plain": "leave"}, "a", [False], [True]),
        ({"interactive": "gate"}, "abc", [False, False, False], [True, False, False]),
        (
            {"interactive": "gate", "plain": "revoke"},
            "abc",
            [False, True, True],
            [True, True, False],
        ),
    ],
)
def test_who_is_managed_and_can_be_taken_back(
    scope: dict[str, str], managed: str, restartable: list[bool], revocable: list[bool]
) -> None:
    seen = look(**scope)
    assert tenants(seen) == managed
    assert seen.jobs.restartable.tolist() == restartable
    assert seen.jobs.revocable.tolist() == revocable


def test_who_is_left_alone_is_told_why() -> None:
    reasons = {alone.reason for alone in look(plain="leave").left_alone}
    assert reasons == {
        "does not say that it can save: such jobs are left to Slurm here",
        "is interactive (srun or salloc): it cannot be requeued",
    }


@pytest.mark.parametrize(("deadline_in", "revocable"), [(0.0, True), (30 * 86_400.0, False)])
def test_a_waiting_job_with_a_deadline_and_no_limit_cannot_be_taken_back(
    deadline_in: float, revocable: bool
) -> None:
    """Slurm gives it a limit up to its deadline when it starts, and a least time of a minute before."""
    site = Site()
    now = site.world.clock.now()
    job = site.world.submit(1, "a", begin=now + 500, deadline=now + deadline_in if deadline_in else 0.0)
    site.world.record(job).raw = {"MinTime": "1:00"}
    assert site.look().jobs.revocable.tolist() == [revocable]


@pytest.mark.parametrize(("least", "seconds"), [("5:00", 300.0), ("0:00", 1200.0)])
def test_the_least_time_of_a_job_must_fit_before_its_deadline_else_its_limit(
    least: str, seconds: float
) -> None:
    site = Site()
    now = site.world.clock.now()
    job = site.world.submit(1, "a", begin=now + 500, time_limit=1200.0, deadline=now + 900)
    site.world.record(job).raw = {"MinTime": least}
    assert site.look().must_fit_seconds.tolist() == [seconds]


@pytest.mark.parametrize(("spare", "revocable"), [(5_000.0, True), (500.0, False)])
def test_a_waiting_job_whose_deadline_is_near_cannot_be_taken_back(spare: float, revocable: bool) -> None:
    site = Site()
    now = site.world.clock.now()
    site.world.submit(1, "a", begin=now + 500, time_limit=3_600.0, deadline=now + 3_600 + spare)
    assert site.look().jobs.revocable.tolist() == [revocable]


def test_the_latest_start_goes_by_the_least_time_of_a_job() -> None:
    site = Site()
    now = site.world.clock.now()
    for least in ("10:00", "N/A", "1:00:00"):
        job = site.world.submit(1, "a", begin=now + 500, time_limit=3_600.0, deadline=now + 5_000)
        site.world.record(job).raw = {"MinTime": least}
    seen = site.look()
    assert (latest_starts(seen) - seen.time).round().tolist() == [4400.0, 1400.0, 1400.0]
