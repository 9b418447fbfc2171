"""A promise whose GPUs, CPUs or memory somebody else has is taken back at once, with its true reason."""

from __future__ import annotations

from typing import Any

import pytest

from slurm_fair.model import LeasePhase, LeaseTerms
from slurm_fair.model.ids import pack
from slurm_fair.policy import Policy, registry
from slurm_fair.reconcile import follow
from slurm_fair.reconcile.free import awaited
from slurm_fair.tick import TickDone
from slurm_fair_plugins.astraea import Astraea
from tests.support.builders import JobSpec, LeaseSpec, job, lease, leases, node, snapshot
from tests.support.tick_bench import BEGAN, RUNNING, TickBench, gated, running

TERMS = LeaseTerms(term=900.0, interval=10.0, grace=120.0, start_timeout=60.0)
NOW = 5000.0
GRANTED, REVOKING = LeasePhase.GRANTED, LeasePhase.REVOKING
TAKEN = "other jobs have the CPUs or memory of its nodes"
SCARCE = [
    ({"cpus": 32}, {"cpus_others": 40}),
    ({"memory_mb": 256_000}, {"memory_others_mb": 300_000}),
]
Row = dict[str, int]


def see(bench: TickBench, *jobs: JobSpec, after: float = 10.0, **others: int) -> TickDone:
    """A look at one node of eight GPUs and 64 CPUs."""
    bench.clock.advance(after)
    return bench.look(snapshot(time=bench.clock.now(), nodes={"n1": node(8, **others)}, jobs=jobs))


def promises(done: TickDone) -> list[tuple[str, int, str]]:
    """The promises that were made or taken back in this look, with the reason."""
    assert done.record is not None
    told = [event for event in done.record.events if event.kind in ("granted", "takenback")]
    return [(event.kind, event.key, event.detail.get("why", "")) for event in told]


def requeued(policy: Policy, asks: Row, small: list[JobSpec]) -> tuple[TickBench, list[JobSpec]]:
    """Job 1 has just been requeued for job 2, which was promised its GPUs."""
    bench = TickBench(policy=policy, terms=TERMS)
    first, second = running(1, BEGAN + 10, gpus=8, **asks), gated(2, gpus=8, tenant="b", **asks)
    see(bench, gated(1, gpus=8, **asks))
    see(bench, first)
    see(bench, first, second, *small, after=float(bench.standing.leases.end.min()) - bench.clock.now())
    for _ in range(12):
        see(bench, first, second, *small)
    assert bench.acts() == ["requeue 1"]
    return bench, [gated(1, gpus=8, restarts=1, **asks), second, *small]


@pytest.mark.parametrize(("asks", "others"), SCARCE, ids=str)
def test_a_promise_whose_cpus_or_memory_others_take_is_taken_back_at_the_next_look(
    asks: Row, others: Row
) -> None:
    bench, jobs = requeued(Astraea(), asks, [gated(3, gpus=1, tenant="c")])
    done = see(bench, *jobs, **others)
    assert promises(done) == [
        ("takenback", pack(2), TAKEN),
        ("granted", pack(3), "it is among those owed most"),
    ]
    assert bench.acts() == ["open 3"], "what fits does not wait"


@pytest.mark.parametrize(("asks", "others"), SCARCE, ids=str)
def test_it_is_not_made_again_until_there_is_room_for_it(asks: Row, others: Row) -> None:
    bench, jobs = requeued(Astraea(), asks, [])
    made = [promises(see(bench, *jobs, **others)) for _ in range(100)]
    assert made == [[("takenback", pack(2), TAKEN)]] + [[]] * 99
    assert [kind for kind, *_ in promises(see(bench, *jobs))] == ["granted"]


@pytest.mark.parametrize(
    ("what", "holder", "first", "second", "kept"),
    [
        ("who was asked to leave counts as gone", REVOKING, {}, {}, [1, 2, 7]),
        ("the latest promise that does not fit goes", LeasePhase.RUNNING, {}, {}, [2, 7]),
        ("what asks for no CPUs lacks none", LeasePhase.RUNNING, {"cpus": 0}, {"cpus": 40}, [1, 7]),
        ("a gate that is open has its own time", LeasePhase.RUNNING, {"opened": NOW - 5}, {}, [1, 7]),
    ],
)
def test_cpus_that_their_holder_keeps_are_promised_to_nobody(
    what: str, holder: LeasePhase, first: dict[str, Any], second: Row, kept: list[int]
) -> None:
    before = leases(
        promised(1, NOW - 20, opened=first.get("opened", 0.0)),
        promised(2, NOW - 30),
        lease(7, {"n1": 1}, phase=holder, start=100.0, granted=4500.0, end=5400.0),
    )
    shown = [
        job(1, gpus=2, cpus=first.get("cpus", 20)),
        job(2, gpus=2, **({"cpus": 20} | second)),
        job(7, gpus=1, cpus=30, state=RUNNING, on={"n1": 1}, start=100.0),
    ]
    after, events, _ = follow(before, snapshot(time=NOW, jobs=shown), TERMS)
    assert [key >> 23 for key in after.key.tolist()] == kept, what
    assert [event.detail["why"] for event in events] == [TAKEN] * (3 - len(kept))


def promised(base: int, granted: float, opened: float = 0.0) -> LeaseSpec:
    """Two GPUs of the first node."""
    return lease(base, {"n1": 2}, phase=GRANTED, granted=granted, opened=opened, end=5400.0)


@pytest.mark.parametrize(("others", "kept"), [(32, 1), (33, 0)])
def test_a_gang_takes_an_even_share_of_its_cpus_on_each_of_its_nodes(others: int, kept: int) -> None:
    before = leases(lease(1, {"n1": 6, "n2": 2}, phase=GRANTED, granted=NOW - 20, end=5400.0))
    nodes = {"n1": node(8), "n2": node(8, cpus_others=others)}
    shown = snapshot(time=NOW, nodes=nodes, jobs=[job(1, gpus=8, nodes=2, cpus=64)])
    assert len(follow(before, shown, TERMS).leases) == kept


def test_nobody_loses_a_promise_for_one_whose_job_has_gone() -> None:
    before = leases(promised(1, NOW - 30), promised(2, NOW - 20))
    shown = [
        job(2, gpus=2, cpus=40),
        job(7, gpus=1, cpus=20, state=RUNNING, on={"n1": 1}, start=100.0),
        job(9, gpus=1, cpus=40),
    ]
    after, events, _ = follow(before, snapshot(time=NOW, jobs=shown), TERMS)
    assert pack(2) in after.key.tolist()
    assert [event.kind for event in events if event.kind != "adopted"] == ["returned"]


@pytest.mark.parametrize(
    ("holder", "opened", "lacks"),
    [
        ({"gpus": 1}, 0.0, {0: ()}),
        ({"gpus": 7}, 0.0, {0: ("GPUs",)}),
        ({"gpus": 1, "cpus": 60}, 0.0, {0: ("CPUs",)}),
        ({"gpus": 7, "cpus": 60, "memory_mb": 512_000}, 0.0, {0: ("GPUs", "CPUs", "memory")}),
        ({"gpus": 7, "cpus": 60}, NOW - 5, {}),
    ],
)
def test_a_promised_job_awaits_what_its_nodes_have_not_got(
    holder: dict[str, int], opened: float, lacks: dict[int, tuple[str, ...]]
) -> None:
    leaves = job(7, **holder, state=RUNNING, on={"n1": holder["gpus"]}, start=100.0)
    shown = snapshot(time=NOW, nodes={"n1": 8}, jobs=[job(1, gpus=2, cpus=20), leaves])
    before = leases(promised(1, NOW - 20, opened), lease(7, {"n1": holder["gpus"]}, phase=REVOKING))
    assert awaited(follow(before, shown, TERMS).leases, shown) == lacks


@pytest.mark.parametrize(("asks", "others"), SCARCE, ids=["CPUs", "memory"])
@pytest.mark.parametrize("policy", registry.names())
def test_no_policy_promises_nodes_whose_cpus_or_memory_others_have(
    policy: str, asks: Row, others: Row
) -> None:
    """Else the promise would be made and taken back at every look."""
    bench, told = TickBench(policy=registry.load(policy, {}), terms=TERMS), []
    waits = gated(1, gpus=8, submit=BEGAN, **asks)
    for _ in range(60):
        told += promises(see(bench, waits, after=20, **others))
    assert told == []
    for _ in range(60):
        told += promises(see(bench, waits, after=20))
        if told:
            break
    assert [kind for kind, *_ in told] == ["granted"], "where there is room it is promised"
