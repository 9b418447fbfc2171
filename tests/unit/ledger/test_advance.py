"""Single cases of the fold: what is charged, to whom, and what is told."""

from __future__ import annotations

import numpy as np
import pytest

from slurm_fair.ledger import LedgerSettings, advance, rho_for_reports
from slurm_fair.model import Blocked, EventKind, JobState
from tests.support.builders import NodeSpec, job, node, snapshot
from tests.support.ledger_watch import BEGAN, Watch

RUNNING, WAITING, DONE = JobState.RUNNING, JobState.WAITING, JobState.DONE


def test_the_example_of_the_paper_gives_each_job_sixty_gpu_minutes_and_rho_one() -> None:
    """Figure 6c: 6 GPUs, gangs of 6, 3 and 3, leases of ten minutes: J1, then J2 and J3 twice."""
    watch = Watch(gpus=6)
    first = {"submit": BEGAN}
    watch.look(
        1000,
        job(1, gpus=6, state=RUNNING, start=1000, **first),
        job(2, gpus=3, **first),
        job(3, gpus=3, **first),
    )
    for time in (1600.0, 2200.0, 2800.0):
        watch.look(
            time,
            job(1, gpus=6, submit=1600, restarts=1),
            job(2, gpus=3, state=RUNNING, start=1600, **first),
            job(3, gpus=3, state=RUNNING, start=1600, **first),
        )
    assert watch.ledger.jobs.had.tolist() == [3600, 3600, 3600]
    assert rho_for_reports(watch.ledger.jobs.had, watch.ledger.jobs.owed) == pytest.approx(np.ones(3))
    assert watch.of_tenant("a", "had") / watch.of_tenant("a", "owed_demand") == pytest.approx(1)


def test_weights_divide_the_cluster_and_the_tenants_share() -> None:
    watch = Watch(gpus=8, a=1, b=3)
    jobs = [
        job(1, tenant="a", gpus=8, submit=BEGAN),
        job(2, tenant="b", gpus=8, submit=BEGAN, weight=1),
        job(3, tenant="b", gpus=8, submit=BEGAN, weight=2),
    ]
    watch.look(1000, *jobs)
    watch.look(1010, *jobs)
    assert watch.ledger.tenants.owed_quota.tolist() == [20, 60]
    assert watch.ledger.jobs.owed.tolist() == pytest.approx([20, 20, 40])


def test_a_tenant_that_asks_for_little_is_owed_little_in_reports_and_its_quota_when_choosing() -> None:
    watch = Watch(gpus=8)
    jobs = [job(1, tenant="a", gpus=1, submit=BEGAN), job(2, tenant="b", gpus=9, submit=BEGAN)]
    watch.look(1000, *jobs)
    watch.look(1010, *jobs)
    assert watch.ledger.tenants.owed_demand.tolist() == [10, 40]
    assert watch.ledger.tenants.owed_quota.tolist() == [40, 40]


def test_a_drained_node_counts_from_the_look_that_shows_it() -> None:
    watch = Watch(gpus=8)
    waiting = job(1, gpus=9, submit=BEGAN)
    watch.look(1000, waiting)
    drained: dict[str, int | NodeSpec] = {"n1": 4, "n2": node(4, usable=False)}
    watch.ledger, _ = advance(watch.ledger, snapshot(time=1010, nodes=drained, jobs=[waiting]))
    assert watch.of_tenant("a", "owed_quota") == 80
    watch.ledger, _ = advance(watch.ledger, snapshot(time=1020, nodes=drained, jobs=[waiting]))
    assert watch.of_tenant("a", "owed_quota") == 120


def test_a_held_job_is_owed_nothing_while_it_is_held() -> None:
    watch = Watch()
    held = job(1, gpus=8, submit=1000, blocked=Blocked.USER_HOLD)
    free = job(1, gpus=8, submit=1000)
    for time, seen in ((1010, held), (1020, free), (1030, free), (1040, held), (1050, held)):
        watch.look(time, seen)
    assert watch.of_job(1, "owed") == 8 * 20
    assert watch.of_job(1, "waited") == 20


CANNOT_START = (Blocked.LIMIT, Blocked.PARTITION, Blocked.BACKOFF, Blocked.NODES)
KEPT_BACK = (
    Blocked.USER_HOLD, Blocked.ADMIN_HOLD, Blocked.DEPENDENCY, Blocked.OWN_BEGIN, Blocked.ARRAY_LIMIT,
    Blocked.SLURM_HOLD, Blocked.IMPOSSIBLE, Blocked.SHAPE,
)  # fmt: skip


@pytest.mark.parametrize("blocked", Blocked)
def test_who_cannot_start_waits_and_claims_nothing_and_who_is_kept_back_does_neither(
    blocked: Blocked,
) -> None:
    watch = Watch()
    shown, free = job(1, gpus=8, submit=1000, blocked=blocked), job(1, gpus=8, submit=1000)
    for time, seen in ((1010, shown), (1020, shown), (1030, free), (1040, shown), (1050, shown)):
        watch.look(time, seen)
    claims = 10 if blocked in KEPT_BACK + CANNOT_START else 50
    waits = 10 if blocked in KEPT_BACK else 50
    assert (watch.of_job(1, "owed"), watch.of_job(1, "waited")) == (8 * claims, waits)


def test_a_job_that_its_user_holds_while_it_cannot_start_waits_until_then() -> None:
    """Neither look shows a claim: what changes is that it waits no longer."""
    watch = Watch()
    nodes, held = (job(1, gpus=8, submit=1000, blocked=why) for why in (Blocked.NODES, Blocked.USER_HOLD))
    for time, seen in (
        (1010, nodes),
        (1020, nodes),
        (1030, held),
        (1040, held),
        (1050, nodes),
        (1060, nodes),
    ):
        watch.look(time, seen)
    assert (watch.of_job(1, "owed"), watch.of_job(1, "waited")) == (0, 30 + 10)


def test_a_held_job_that_starts_between_two_looks_was_active_from_its_start() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=8, submit=1000, blocked=Blocked.DEPENDENCY))
    watch.look(1020, job(1, gpus=8, submit=1000, state=RUNNING, start=1014))
    assert (watch.of_job(1, "owed"), watch.of_job(1, "had"), watch.of_job(1, "waited")) == (48, 48, 0)


def test_a_start_that_was_not_known_at_the_last_look_is_charged_in_full() -> None:
    watch = Watch()
    watch.look(1010.7, job(1, gpus=2, submit=1000))
    watch.look(1020.7, job(1, gpus=2, submit=1000, state=RUNNING, start=1010))
    assert watch.of_job(1, "had") == pytest.approx(2 * 10.7)
    assert watch.of_job(1, "waited") == pytest.approx(10)


def test_an_arrival_cut_to_whole_seconds_changes_what_its_siblings_were_owed_since() -> None:
    late, exact = Watch(gpus=6), Watch(gpus=6)
    sibling, news = job(1, gpus=6, submit=1000), job(2, gpus=6, submit=1010)
    for watch in (late, exact):
        watch.look(1000, sibling)
    late.look(1010.7, sibling)
    exact.look(1010.7, sibling, news)
    for watch in (late, exact):
        watch.look(1020, sibling, news)
        assert watch.ledger.jobs.owed.tolist() == pytest.approx([60 + 30, 30])


def test_a_new_tenant_cut_to_whole_seconds_changes_everybodys_quota_since() -> None:
    watch = Watch(gpus=6)
    sibling = job(1, tenant="a", gpus=6, submit=1000)
    watch.look(1000, sibling)
    watch.look(1010.7, sibling)
    watch.look(1020, sibling, job(2, tenant="b", gpus=6, submit=1010))
    assert watch.ledger.tenants.owed_quota.tolist() == pytest.approx([60 + 30, 30])


def test_an_end_cut_to_whole_seconds_is_mended() -> None:
    watch = Watch(gpus=6)
    first = job(1, gpus=6, submit=1000, state=RUNNING, start=1000)
    watch.look(1000, first, job(2, gpus=6, submit=1000))
    watch.look(1010.7, first, job(2, gpus=6, submit=1000))
    watch.look(
        1020, job(1, gpus=6, submit=1000, state=DONE, start=1000, end=1010), job(2, gpus=6, submit=1000)
    )
    assert watch.of_job(2, "owed") == pytest.approx(30 + 60)
    assert watch.told[-1].detail["had"] == 60
    assert watch.told[-1].detail["owed"] == pytest.approx(30)


def test_a_job_met_long_after_its_submission_is_owed_since_then_but_its_siblings_keep_theirs() -> None:
    watch = Watch(gpus=6)
    sibling = job(1, gpus=6, submit=1000)
    watch.look(1000, sibling)
    watch.look(1100, sibling)
    watch.look(1110, sibling, job(2, gpus=6, submit=1000))
    assert watch.of_job(2, "owed") == pytest.approx(110 * 3)
    assert watch.of_job(1, "owed") == pytest.approx(95 * 6 + 15 * 3)


def test_the_ledger_speaks_of_the_time_since_it_began() -> None:
    watch = Watch(gpus=8)
    watch.look(1010, job(1, gpus=2, submit=500, state=RUNNING, start=600))
    assert (watch.of_job(1, "had"), watch.of_job(1, "owed")) == (20, 20)
    assert (watch.of_job(1, "waited"), watch.of_job(1, "ran")) == (100, 410)


def test_a_requeued_job_keeps_its_account() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, submit=1000, state=RUNNING, start=1004))
    watch.look(1020, job(1, gpus=2, submit=1014, restarts=1))
    watch.look(1030, job(1, gpus=2, submit=1014, restarts=1, state=RUNNING, start=1026))
    assert (watch.of_job(1, "had"), watch.of_job(1, "submit")) == (28, 1000)
    assert (watch.of_job(1, "waited"), watch.of_job(1, "ran")) == (16, 14)
    assert watch.kinds() == [("submitted", 1000), ("started", 1004), ("stopped", 1014), ("started", 1026)]
    assert watch.told[-1].detail == {"nodes": ["n1"], "restarts": 1}


def test_a_requeued_job_that_gives_its_gpus_back_slowly_stops_when_it_was_requeued() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, submit=1000, state=RUNNING, start=1004))
    watch.look(1020, job(1, gpus=2, submit=1019, restarts=1, state=JobState.ENDING, start=1004))
    watch.look(1030, job(1, gpus=2, submit=1019, restarts=1))
    assert watch.of_job(1, "had") == 30
    assert watch.kinds()[-1] == ("stopped", 1019)


def test_a_requeue_seen_before_slurm_moved_its_submit_time_is_the_same_job() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, submit=1000, state=RUNNING, start=1004))
    watch.look(1020, job(1, gpus=2, submit=1000, restarts=1, state=JobState.ENDING, start=1004))
    watch.look(1030, job(1, gpus=2, submit=1024, restarts=1))
    watch.look(1040, job(1, gpus=2, submit=1024, restarts=1, state=RUNNING, start=1036))
    assert (watch.of_job(1, "had"), watch.of_job(1, "submit")) == (48, 1000)
    assert watch.kinds() == [("submitted", 1000), ("started", 1004), ("stopped", 1024), ("started", 1036)]


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_reused_id_is_another_job(restarts: int) -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, tenant="a", submit=1000, restarts=1, state=RUNNING, start=1004))
    watch.look(1020, job(1, gpus=4, tenant="b", submit=1018, restarts=restarts))
    assert (watch.of_job(1, "had"), watch.of_job(1, "submit")) == (0, 1018)
    assert watch.of_tenant("a", "had") == 28
    assert set(watch.kinds()[2:]) == {("submitted", 1018), ("finished", 1018)}


def test_more_restarts_with_an_earlier_submission_is_another_job() -> None:
    watch = Watch()
    watch.look(1010, job(1, gpus=2, tenant="a", submit=1000, state=RUNNING, start=1004))
    watch.look(1020, job(1, gpus=2, tenant="b", submit=999, restarts=3))
    assert watch.of_job(1, "submit") == 999
    assert watch.told[-1].kind == "finished"


def test_a_job_that_ended_stays_listed_and_is_told_of_once() -> None:
    watch = Watch()
    ended = job(1, gpus=2, submit=1001, state=DONE, start=1003, end=1008)
    for time in (1010, 1012, 1020):
        watch.look(time, ended)
    assert watch.kinds() == [("submitted", 1001), ("started", 1003), ("finished", 1008)]
    assert len(watch.ledger.jobs) == 0
    detail = watch.told[-1].detail
    assert (detail["had"], detail["owed"], detail["waited"], detail["ran"]) == (10, 14, 2, 5)
    assert detail["rho"] == pytest.approx(10 / 14)


def test_a_job_that_vanished_ended_at_the_look_and_coming_back_is_charged_once() -> None:
    watch = Watch()
    here = job(1, gpus=2, submit=1000, state=RUNNING, start=1000)
    watch.look(1010, here)
    watch.look(1020)
    assert watch.of_tenant("a", "had") == 40
    watch.look(1030, here)
    assert watch.of_tenant("a", "had") == 60
    assert watch.of_job(1, "had") == 60


def test_a_look_older_than_the_ledger_changes_nothing() -> None:
    watch = Watch()
    watch.look(1010, job(1, submit=1000))
    before = watch.ledger
    watch.look(1005)
    assert watch.ledger is before


def test_a_tenant_without_jobs_counts_in_the_quotas_until_it_is_forgotten() -> None:
    watch = Watch(gpus=8)
    watch.settings = LedgerSettings(tenant_memory_seconds=20)
    other = job(2, tenant="b", gpus=8, submit=1000)
    watch.look(1000, job(1, tenant="a", submit=1000), other)
    watch.look(1010, job(1, tenant="a", submit=1000, state=DONE, end=1010), other)
    watch.look(1050, other)
    assert watch.of_tenant("a", "owed_quota") == pytest.approx(4 * 30)
    assert watch.of_tenant("b", "owed_quota") == pytest.approx(4 * 30 + 8 * 20)


def test_m_is_told_at_first_when_it_changes_and_once_a_day() -> None:
    watch = Watch(gpus=8)
    for gpus, time in ((8, 1010.0), (6, 1020.0), (6, 1030.0), (6, 86_400.0), (6, 86_410.0)):
        watch.gpus = gpus
        watch.look(time)
    told = [(event.time, event.gpus) for event in watch.told if event.kind == EventKind.CAPACITY]
    assert told == [(BEGAN, 8), (1020.0, 6), (86_400.0, 6)]
