"""A view tells more than jobs and accounts: quotas, ends of leases, ended jobs, modes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Event, JobState, LeasePhase, Mode, Plan, Told
from slurm_fair.model.ids import label
from slurm_fair.policy import JobHistory, Lately, View, contenders, ended_now, oldest_first, ordered
from slurm_fair.policy.history import MOST_KEPT
from slurm_fair.sim import rules_for
from slurm_fair.sim.run import simulate
from slurm_fair.sim.trial import JOBS, stages
from slurm_fair.store.codec import Encoder, decode
from tests.support import strange_policies as strange
from tests.support.accounts import Account, view
from tests.support.builders import job, lease, leases, snapshot

NOW = 5000.0
RUNNING = JobState.RUNNING
SEEN = snapshot(
    time=NOW,
    nodes={"n1": 8, "n2": 4},
    jobs=[
        job(1, gpus=6, tenant="a", state=RUNNING, start=100, on={"n1": 4, "n2": 2}),
        job(2, gpus=2, tenant="b", state=RUNNING, start=100, on={"n1": 2}),
        job(3, gpus=1, tenant="b"),
        job(4, gpus=2, tenant="c"),
    ],
    weights={"a": 1.0, "b": 3.0, "c": 0.0},
)
HELD = leases(
    lease(1, {"n1": 4, "n2": 2}, end=NOW + 60),
    lease(2, {"n1": 2}, end=NOW - 1),
    lease(3, {"n2": 1}, phase=LeasePhase.GRANTED, end=NOW + 900),
)
SIGHT = view(SEEN, HELD)


def test_a_tenants_quota_is_its_weights_part_of_the_gpus() -> None:
    assert SIGHT.tenant_quota.tolist() == [3.0, 9.0, 0.0]


def test_what_a_tenant_holds_is_what_its_jobs_have_and_were_promised() -> None:
    assert SIGHT.tenant_gpus.tolist() == [6, 3, 0]


def test_a_tenant_that_was_last_seen_long_ago_is_owed_nothing_and_the_others_share_its_part() -> None:
    shown = replace(SIGHT, counts_seconds=600.0)  # nobody's last job is known here: those with jobs count
    assert shown.tenant_quota.tolist() == [3.0, 9.0, 0.0]
    seen = replace(SEEN, jobs=SEEN.jobs.take(SEEN.jobs.tenant == 0))
    alone = view(seen, HELD.take(HELD.key == SEEN.jobs.key[0]))
    assert replace(alone, counts_seconds=600.0).tenant_quota.tolist() == [12.0, 0.0, 0.0]
    tenants = alone.ledger.tenants
    for ago, quotas in ((599.0, [3.0, 9.0, 0.0]), (601.0, [12.0, 0.0, 0.0])):
        last = np.where(np.arange(3) == 1, NOW - ago, -np.inf)
        ledger = replace(alone.ledger, tenants=tenants.with_columns(last_job=last))
        met = replace(alone, ledger=ledger, counts_seconds=600.0)
        assert met.tenant_quota.tolist() == quotas


def test_nobody_has_a_quota_without_weights_or_tenants() -> None:
    nobody = view(snapshot(time=NOW, nodes={"n1": 8}))
    assert (nobody.tenant_quota.size, nobody.tenant_gpus.size) == (0, 0)
    weightless = view(snapshot(nodes={"n1": 8}, jobs=[job(1)], weights={"a": 0.0}))
    assert weightless.tenant_quota.tolist() == [0.0]


def test_without_news_only_leases_count_as_over_that_are_renewed_now() -> None:
    """Job 2's lease is over since a second; with a beat of 14 s it is renewed at 5,012 s."""
    rolling = replace(SIGHT.terms, aligned=False, renewal=225.0)
    for news, now, over in (
        (True, NOW, [1]), (False, NOW, []), (False, 5011.9, []), (False, 5012.0, [1]),
    ):  # fmt: skip
        shown = replace(SIGHT, terms=rolling, news=news, now=now)
        assert (shown.decided_rows.tolist(), shown.over_rows.tolist()) == (over, over)
    assert replace(SIGHT, news=False).decided_rows.tolist() == [1], "where there is no beat"


def test_each_job_knows_when_its_lease_ends() -> None:
    assert SIGHT.lease_end.tolist() == [NOW + 60, NOW - 1, NOW + 900, np.inf]


def test_leases_end_node_by_node_the_earliest_first() -> None:
    ends = SIGHT.lease_ends
    rows = list(
        zip(ends.row.tolist(), ends.node.tolist(), ends.gpus.tolist(), (ends.end - NOW).tolist(), strict=True)
    )
    assert rows == [(1, 0, 2, -1.0), (0, 0, 4, 60.0), (0, 1, 2, 60.0), (2, 1, 1, 900.0)]
    assert ends.gpus_until(NOW, 2).tolist() == [2, 0]
    assert ends.gpus_until(NOW + 60, 2).tolist() == [6, 2]
    assert (ends.first_of(0), ends.first_of(1)) == (NOW - 1, NOW + 60)
    assert view(SEEN).lease_ends.first_of(1) == np.inf


def test_what_nobody_said_is_nan_in_said_and_filled_in_in_told() -> None:
    jobs = [job(1, time_limit_seconds=600.0), job(2)]
    silent = view(snapshot(time=NOW, nodes={"n1": 8}, jobs=jobs))
    assert np.isnan(silent.told_alone.left_seconds).all()
    assert silent.told.left_seconds.tolist() == [600.0, np.inf]
    told = Told.nothing(2, 1).with_columns(mode=np.array([0, 2], dtype=np.int8))
    speaking = replace(silent, snapshot=replace(silent.snapshot, told=told))
    assert [Mode(code) for code in speaking.told.mode] == [Mode.STATIC, Mode.GNS]


def finished(key: int, ran: float, **more: Any) -> Event:
    """The end of a job as the ledger tells it."""
    detail = {"had": ran, "owed": ran, "waited": 5.0, "ran": ran, "submit": 0.0, "end": NOW, **more}
    return Event(NOW, "finished", key, "a", 1, detail)


def looked(memory: Mapping[str, Any], *events: Event) -> JobHistory:
    """The history at a look with these events."""
    return JobHistory.of(replace(SIGHT, memory=memory, happened=events))


def test_ended_jobs_are_told_at_the_look_that_shows_their_end() -> None:
    seen = replace(SIGHT, happened=[Event(NOW, "started", 3, "b", 1), finished(9, 70.0, state="COMPLETED")])
    (job,) = ended_now(seen)
    assert (job.key, job.ran_seconds, job.state) == (9, 70.0, "COMPLETED")
    assert np.isnan(job.declared_seconds)


def test_a_history_counts_on_from_what_it_kept() -> None:
    first = looked({}, finished(8, 10.0))
    assert (first.seen, first.ended, first.run_seconds().tolist()) == (5, 1, [10.0])
    second = looked({"history": first.kept()}, Event(NOW, "submitted", 12, "a", 1), finished(9, 20.0))
    assert (second.seen, second.ended) == (6, 2)
    assert second.run_seconds().tolist() == second.run_seconds("a").tolist() == [10.0, 20.0]
    assert second.run_seconds("b").size == 0


def test_a_history_comes_back_from_the_journal() -> None:
    kept = looked({}, finished(8, 10.0)).kept()
    encoder = Encoder()
    back = decode(encoder.tree(kept), encoder.blobs.__getitem__)
    again = looked({"history": back})
    assert again.last[0][:9] == looked({}, finished(8, 10.0)).last[0][:9]


def test_a_history_keeps_only_the_last_jobs() -> None:
    past = looked({}, *(finished(key, float(key)) for key in range(MOST_KEPT + 7)))
    assert (past.ended, len(past.last), past.last[0].key) == (MOST_KEPT + 7, MOST_KEPT, 7)


def test_lately_is_the_difference_over_a_window() -> None:
    memory: Mapping[str, Any] = {}
    told = []
    for minute in range(0, 200, 2):
        owed, had = 60.0 * minute, 60.0 * min(minute, 100)
        names = {"a": Account(had, owed), "b": Account(0.0, 2 * owed)}
        seen = view(
            snapshot(time=NOW + 60 * minute, nodes={"n1": 8}, jobs=[job(1), job(2, tenant="b")]), None, names
        )
        lately = Lately.of(replace(seen, memory=memory), 3600.0)
        memory = {"lately": json.loads(json.dumps(lately.kept()))}
        assert len(memory["lately"]) <= 14
        told.append(lately)
    assert told[0].seconds == 0.0
    assert told[0].had.tolist() == [0.0, 0.0]
    assert told[20].had.tolist() == [2400.0, 0.0]
    assert 3600.0 <= told[-1].seconds <= 3900.0
    assert told[-1].owed.tolist() == [told[-1].seconds, 2 * told[-1].seconds]
    assert told[-1].had.tolist() == [0.0, 0.0]


@dataclass(frozen=True)
class Remembers:
    """The oldest first; keeps a history and notes the modes that it was told."""

    past: list[JobHistory] = field(default_factory=list)
    modes: set[int] = field(default_factory=set)

    def plan(self, view: View) -> Plan:
        """A plan with its history in the memory."""
        history = JobHistory.of(view)
        self.past.append(history)
        self.modes.update(view.told.mode.tolist())
        return ordered(view, oldest_first(view, contenders(view)), memory={"history": history.kept()})


@pytest.mark.parametrize("stage", [0, 1])
def test_in_a_simulation_every_job_is_seen_and_every_end_is_exact(stage: int) -> None:
    with strange.installed(mine=Remembers):
        rules = rules_for("mine", {}, lease=300.0, aligned=stages()[stage].aligned)
        simulate(stages()[stage].scenario, rules)
    assert isinstance(rules.policy, Remembers)
    last, trace = rules.policy.past[-1], stages()[stage].scenario.trace
    assert (last.seen, last.ended) == (JOBS, JOBS)
    seconds = dict(zip(trace.job_id.tolist(), trace.duration_s.tolist(), strict=True))
    assert {label(job.key) for job in last.last} == set(seconds)
    assert all(job.ran_seconds >= seconds[label(job.key)] - 1e-6 for job in last.last)
    assert all(job.end - job.submit >= job.ran_seconds - 1e-6 for job in last.last)
    assert rules.policy.modes == {Mode.STATIC, Mode.ACCORDION, Mode.GNS}
