"""GPUs that nobody else can use beside a job are its own: planned as such, and charged."""

from __future__ import annotations

import pytest

from slurm_fair.ledger import advance
from slurm_fair.model import Ledger
from slurm_fair.slurm import cluster
from tests.support.shared_site import Site

# A node of the fake: 4 GPUs, 64 CPUs, 512,000 MB.
GREEDY = {
    "all CPUs": ({"cpu": "64", "mem": "1G"}, 4),
    "all CPUs but two": ({"cpu": "62", "mem": "1G"}, 2),
    "half of the CPUs": ({"cpu": "32", "mem": "1G"}, 1),
    "all memory": ({"cpu": "1", "mem": "512000M"}, 4),
    "half of the memory": ({"cpu": "1", "mem": "256000M"}, 1),
    "nearly all memory": ({"cpu": "1", "mem": "490000M"}, 3),
}


def tres(wants: dict[str, str], gpus: int = 1) -> dict[str, str]:
    """The columns of a job that asks for one node."""
    counts = {"cpu": "1", "mem": "1G"} | wants
    text = ",".join(f"{name}={value}" for name, value in counts.items())
    return {"tres-alloc": f"{text},node=1,gres/gpu={gpus}", "tres-per-job": f"gres:gpu:{gpus}"}


@pytest.mark.parametrize(("wants", "gpus"), GREEDY.values(), ids=GREEDY)
def test_what_it_leaves_to_nobody_is_its_own_while_it_waits_and_while_it_runs(
    wants: dict[str, str], gpus: int
) -> None:
    site = Site()
    waits = site.world.submit(1, "a", begin=site.world.clock.now() + 500)
    site.world.records[waits].raw = tres(wants)
    site.runs(1, "b", tres(wants))
    seen = site.look()
    assert seen.jobs.gpus.tolist() == [gpus, gpus]
    assert seen.held.gpus.tolist() == [gpus]
    assert seen.nodes.gpus_others.tolist() == [0, 0]


def test_an_exclusive_job_asks_for_whole_nodes() -> None:
    site = Site()
    for wants in ({"OverSubscribe": "NO"}, {"OverSubscribe": "OK"}):
        job = site.world.submit(1, "a", begin=site.world.clock.now() + 500)
        site.world.records[job].raw = tres({}) | wants
    seen = site.look()
    assert seen.jobs.gpus.tolist() == [4, 1]
    assert seen.jobs.gpus_per_node.tolist() == [4, 0]
    assert seen.jobs.cpus.tolist() == [64, 1]


@pytest.mark.parametrize("word", ["USER", "MCS", "TOPO"])
@pytest.mark.parametrize("told", [True, False])
def test_nodes_that_are_shared_with_jobs_of_the_same_user_alone_are_taken_whole(
    word: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm lists such a job with one GPU for as long as it runs, and lets nobody else in beside it."""
    monkeypatch.setattr(cluster, "tells_exclusive", lambda _: told)
    site = Site()
    closed = tres({}) | {"OverSubscribe": word}
    waits = site.world.submit(1, "a", begin=site.world.clock.now() + 500)
    site.world.records[waits].raw = closed
    site.runs(1, "b", closed)
    seen = site.look()
    assert seen.jobs.gpus.tolist() == [4, 4]
    assert seen.jobs.gpus_per_node.tolist()[0] == 4
    assert seen.held.gpus.tolist() == [4]
    assert seen.nodes.gpus_others.tolist() == [0, 0]


def test_the_second_job_of_a_user_on_a_closed_node_has_what_it_asked_for() -> None:
    site = Site()
    for _ in range(2):
        site.runs(1, "a", tres({}) | {"OverSubscribe": "USER"})
    assert site.look().held.per_node(2).tolist() == [4, 0]


def test_a_job_left_alone_that_closes_its_node_is_charged_for_it() -> None:
    site = Site()
    site.runs(1, "a", tres({}) | {"OverSubscribe": "USER", "BatchFlag": "0"})
    seen = site.look()
    assert seen.aside is not None
    assert seen.aside.jobs.gpus.tolist() == [4]


def test_an_exclusive_job_that_asks_for_all_gpus_of_its_node_needs_its_cpus_too() -> None:
    site = Site()
    job = site.world.submit(4, "a", begin=site.world.clock.now() + 500)
    site.world.records[job].raw = tres({}, 4) | {"OverSubscribe": "NO"}
    assert site.look().jobs.cpus.tolist() == [64]


def test_who_asks_for_more_nodes_than_there_are_asks_for_no_more_gpus() -> None:
    """A job of `sbatch --gpus=1 -n 999999999` lies nowhere, and its demand is what its user wrote."""
    site = Site()
    job = site.world.submit(1, "a", begin=site.world.clock.now() + 500)
    greedy = tres({"cpu": "999999999"}) | {"NumNodes": "1562500"}
    site.world.records[job].raw = greedy
    assert site.look().jobs.gpus.tolist() == [1]


def test_an_exclusive_gang_has_as_many_nodes_as_it_asks_for_or_needs() -> None:
    site = Site()
    for gpus, nodes in ((1, "2"), (6, "1")):
        job = site.world.submit(gpus, "a", begin=site.world.clock.now() + 500)
        site.world.records[job].raw = tres({}, gpus) | {"OverSubscribe": "NO", "NumNodes": nodes}
    seen = site.look()
    assert (seen.jobs.gpus.tolist(), seen.jobs.nodes.tolist()) == ([8, 8], [2, 2])


def test_whole_nodes_without_a_gpu_asked_for_are_planned_where_all_nodes_have_some() -> None:
    site = Site(partitions=["gpu", "other"])
    site.world.machines["x2"] = type(site.world.machines["x1"])("x2", 0, partition="other")
    for partition in ("gpu", "other"):
        job = site.world.submit(1, "a", begin=site.world.clock.now() + 500)
        raw = {"tres-alloc": "cpu=1,mem=1G,node=1", "tres-per-job": "N/A", "OverSubscribe": "NO"}
        site.world.records[job].raw = raw | {"Partition": partition}
    seen = site.look()
    assert seen.jobs.gpus.tolist() == [4]
    assert [alone.reason for alone in seen.left_alone] == ["asks for no GPU"]


def test_cpus_alone_that_leave_no_gpu_to_others_are_charged() -> None:
    site = Site()
    site.runs(1, "a", {"tres-alloc": "cpu=64,mem=1G,node=1", "tres-per-job": "N/A"})
    site.runs(1, "b", {"tres-alloc": "cpu=8,mem=1G,node=1", "tres-per-job": "N/A"})
    seen = site.look()
    assert seen.aside is not None
    assert seen.aside.jobs.gpus.tolist() == [4]
    assert seen.total_gpus == 8
    ledger, _ = advance(Ledger.new(site.world.clock.now()), seen)
    site.world.clock.advance(100)
    after, _ = advance(ledger, site.look())
    assert dict(zip(after.tenants.names, after.tenants.had, strict=True)) == pytest.approx({"a": 400.0})


def test_no_node_gives_more_than_it_has() -> None:
    site = Site()
    first = site.runs(1, "a", tres({"cpu": "63"}))
    second = site.runs(3, "b", tres({}, 3))
    assert site.world.records[first].on == {"n1": 1}
    assert site.world.records[second].on == {"n1": 3}
    assert site.look().held.gpus.tolist() == [1, 3]


def test_cpus_per_gpu_are_counted_before_the_job_runs() -> None:
    site = Site()
    job = site.world.submit(2, "a", begin=site.world.clock.now() + 500)
    site.world.records[job].raw = tres({}, 2) | {"cpus-per-tres": "gres:gpu:6"}
    assert site.look().jobs.cpus.tolist() == [12]
