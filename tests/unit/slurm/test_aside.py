"""Everything that holds GPUs of managed nodes is charged to its tenant from the first look on, managed or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_fair.ledger import advance
from slurm_fair.model import Blocked, JobState, Leases, Ledger, Snapshot
from slurm_fair.policy.reach import without_the_impossible
from slurm_fair.policy.registry import load
from tests.support.shared_site import Site

LEFT_ALONE = {
    "srun": {"BatchFlag": "0"},
    "hetjob": {"HetJobID": "7"},
    "reservation": {"Reservation": "mine"},
    "another partition": {"Partition": "other"},
    "one of each": {"Partition": "gpu,other", "BatchFlag": "0"},
}


@pytest.mark.parametrize("raw", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_left_alone_is_charged_live_and_is_demand(raw: dict[str, str]) -> None:
    site = Site()
    site.runs(3, "b", raw)
    site.runs(2, "a")
    ledger, _ = advance(Ledger.new(site.world.clock.now()), site.look())
    site.world.clock.advance(100)
    seen = site.look()
    assert [int(key) for key in seen.jobs.gpus] == [2]
    assert seen.total_gpus == 8
    assert seen.nodes.total_gpus == 5  # what can be planned
    after, _ = advance(ledger, seen)
    had = dict(zip(after.tenants.names, after.tenants.had, strict=True))
    assert had == pytest.approx({"a": 200.0, "b": 300.0})
    owed = dict(zip(after.tenants.names, after.tenants.owed_demand, strict=True))
    assert owed == pytest.approx({"a": 200.0, "b": 300.0})


@pytest.mark.parametrize(("gpus", "nodes"), [(2, 1), (8, 2)], ids=["a part of a node", "all nodes"])
def test_who_only_waits_for_gpus_of_jobs_left_alone_is_owed_its_share(gpus: int, nodes: int) -> None:
    site = Site()
    del site.world.machines["x1"]  # nobody is to start there
    for _ in range(2):
        site.runs(4, "b", {"BatchFlag": "0"})
    site.world.submit(gpus, "a", nodes=nodes, gate_seconds=1_000.0)

    def look() -> Snapshot:
        return without_the_impossible(site.look(), Leases.none(), load("astraea", {}))

    ledger, _ = advance(Ledger.new(site.world.clock.now()), look())
    site.world.clock.advance(100)
    seen = look()
    assert seen.jobs.blocked.tolist() == [Blocked.KEPT]
    after, _ = advance(ledger, seen)
    owed = dict(zip(after.tenants.names, after.tenants.owed_demand, strict=True))
    assert owed["a"] == pytest.approx(100.0 * min(gpus, 4))


def test_nobody_is_owed_for_what_its_own_srun_keeps_it_from() -> None:
    site = Site()
    del site.world.machines["x1"]
    site.runs(4, "a", {"BatchFlag": "0"})
    site.world.submit(8, "a", nodes=2, gate_seconds=1_000.0)
    site.world.submit(8, "b", nodes=2, gate_seconds=1_000.0)
    seen = without_the_impossible(site.look(), Leases.none(), load("astraea", {}))
    assert seen.jobs.blocked.tolist() == [Blocked.NODES, Blocked.KEPT]


def test_it_is_charged_to_the_second_of_its_end_and_no_further() -> None:
    site = Site()
    job = site.runs(4, "b", {"BatchFlag": "0"})
    began = site.world.clock.now()
    site.world.clock.advance(10)
    ledger, _ = advance(Ledger.new(began), site.look())
    assert ledger.tenants.had.tolist() == pytest.approx([40.0])
    site.world.clock.advance(20)
    record, raw = site.world.records[job], {"BatchFlag": "0", "NodeList": "n1"}
    site.world.records[job] = replace(record, state="CANCELLED", end=site.world.clock.now(), raw=raw)
    site.world.clock.advance(70)
    after, events = advance(ledger, site.look())
    assert after.tenants.had.tolist() == pytest.approx([120.0])
    assert [event.kind for event in events if event.key] == ["finished"]
    assert not len(after.jobs)
    again, _ = advance(after, site.look())
    assert again.tenants.had.tolist() == pytest.approx([120.0])


def test_a_job_on_nodes_that_are_not_managed_is_nobodys() -> None:
    site = Site()
    site.runs(4, "b", {"Partition": "other", "NodeList": "x1"})
    assert site.look().aside is None


def test_a_job_half_on_ours_is_charged_for_that_half() -> None:
    site = Site()
    raw = {"BatchFlag": "0", "NodeList": "n1,x1", "NumNodes": "2"}
    site.runs(4, "b", raw | {"tres-per-node": "gres:gpu:2", "tres-per-job": "N/A"})
    seen = site.look()
    assert seen.aside is not None
    assert seen.aside.jobs.gpus.tolist() == [2]
    assert seen.aside.held.gpus.tolist() == [2]


def test_of_accounts_out_of_the_scope_nobody_is_charged() -> None:
    site = Site(accounts=["a"])
    site.runs(4, "b")
    site.runs(2, "a", {"BatchFlag": "0"})
    seen = site.look()
    assert seen.aside is not None
    assert [seen.tenants.names[row] for row in seen.aside.jobs.tenant] == ["a"]
    assert seen.total_gpus == 4  # what b holds is not shared here
    assert seen.tenant_gpus_aside.sum() == 2


def test_a_job_that_comes_into_the_scope_goes_on_with_its_account() -> None:
    site = Site()
    job = site.runs(4, "b", {"Partition": "other"})
    ledger, _ = advance(Ledger.new(site.world.clock.now()), site.look())
    site.world.clock.advance(50)
    site.world.records[job].raw = {}
    seen = site.look()
    assert seen.aside is None
    assert seen.jobs.state.tolist() == [JobState.RUNNING]
    after, _ = advance(ledger, seen)
    assert after.tenants.had.tolist() == pytest.approx([200.0])
    assert after.jobs.had.tolist() == pytest.approx([200.0])


def test_accounts_that_a_user_makes_up_without_end_are_no_tenants() -> None:
    site = Site(gpus=16)
    for number in range(18):
        site.runs(1, f"made-up-{number:02}", {"BatchFlag": "0"})
    assert len(site.look().tenants.names) <= 16
