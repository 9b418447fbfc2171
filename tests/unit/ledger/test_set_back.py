"""A clock that was set back: the ledger goes on from there, and no time is charged twice or given away."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_fair.ledger.charging.set_back import seconds_set_back
from slurm_fair.model import JobState, Ledger
from tests.support.builders import JobSpec, job
from tests.support.ledger_watch import BEGAN, Watch

RUNNING = JobState.RUNNING
EVERY = 100.0  # seconds between looks


def running(start: float) -> list[JobSpec]:
    """One job of each of two tenants, of which the first holds GPUs since then; the other waits."""
    return [
        job(1, tenant="a", gpus=8, state=RUNNING, start=start, submit=BEGAN),
        job(2, tenant="b", gpus=8, submit=BEGAN),
    ]


def watch_until(seconds: float, start: float) -> Watch:
    watch = Watch(gpus=8)
    for look in range(1, int(seconds / EVERY) + 1):
        watch.look(BEGAN + look * EVERY, *running(start))
    return watch


@pytest.mark.parametrize(("ahead", "back"), [(0.0, 0.0), (10.0, 0.0), (10.5, 10.5), (7200.0, 7200.0)])
def test_the_clock_counts_as_set_back_if_it_lacks_more_than_ten_seconds(ahead: float, back: float) -> None:
    assert seconds_set_back(Ledger.new(BEGAN + ahead), BEGAN) == back


@given(
    start=st.integers(0, 3000).map(lambda seconds: BEGAN + seconds),
    back=st.integers(11, 4000),
    looks=st.integers(1, 50),
)
@settings(max_examples=25)
def test_gpus_are_charged_for_the_time_that_passes_on_whichever_side_of_the_step_they_were_got(
    start: float, back: float, looks: int
) -> None:
    """To within two looks: from one to the next the start that Slurm tells is past again."""
    watch = watch_until(3600, start)
    had, now = watch.of_tenant("a", "had"), watch.ledger.time - back
    for look in range(looks + 1):
        watch.look(now + look * EVERY, *running(start))
    assert watch.ledger.time == now + looks * EVERY
    gained = watch.of_tenant("a", "had") - had
    assert gained == pytest.approx(8 * EVERY * looks, abs=2 * 8 * EVERY)
    assert watch.of_job(1, "had") == pytest.approx(watch.of_tenant("a", "had"))


def test_shares_are_owed_again_from_the_step_on() -> None:
    watch = watch_until(3600, BEGAN)
    owed, now = watch.of_tenant("b", "owed_quota"), watch.ledger.time - 1800
    watch.look(now, *running(BEGAN))
    assert watch.of_tenant("b", "owed_quota") == owed
    watch.look(now + 100, *running(BEGAN))
    assert watch.of_tenant("b", "owed_quota") - owed == pytest.approx(4 * 100)


def test_a_tenant_that_comes_after_the_step_gets_an_account() -> None:
    watch = watch_until(3600, BEGAN)
    now = watch.ledger.time - 7200
    watch.look(now, *running(BEGAN), job(3, tenant="c", submit=now))
    watch.look(now + 20, *running(BEGAN), job(3, tenant="c", submit=now))
    assert watch.of_tenant("c", "owed_quota") > 0


def test_a_run_that_ends_before_its_start_is_past_keeps_its_charges() -> None:
    watch = watch_until(3600, BEGAN + 3000)
    had, now = watch.of_tenant("a", "had"), watch.ledger.time - 2400
    for look in range(10):
        watch.look(now + look * EVERY, *running(BEGAN + 3000))
    gained = watch.of_tenant("a", "had") - had
    ended = job(1, tenant="a", gpus=8, state=JobState.DONE, start=BEGAN + 3000, end=now + 950, submit=BEGAN)
    watch.look(now + 1000, ended)
    assert watch.of_tenant("a", "had") - had == pytest.approx(gained, abs=8 * EVERY)
