"""An offer has what is free and what contested jobs hold, and a plan of it stops nobody for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, LeasePhase, Sizes, Snapshot, Verdict
from slurm_fair.model.ids import pack
from slurm_fair.policy import Offer, View, only_one_shape
from slurm_fair.policy.check import objections
from slurm_fair.policy.orders.offer import MOVES
from slurm_fair.policy.orders.ordered import WORDS
from tests.support.accounts import places, reasons, verdicts, view
from tests.support.builders import JobSpec, NodeSpec, job, lease, leases, node, snapshot

NOW = 1000.0
TWO = {"n1": 8, "n2": 8}
NOBODY = np.zeros(0, dtype=np.int64)


def runs(base: int, on: Mapping[str, int], **more: Any) -> JobSpec:
    return job(base, gpus=sum(on.values()), on=on, state=JobState.RUNNING, **more)


def seen(
    *jobs: JobSpec,
    nodes: Mapping[str, int | NodeSpec] = TWO,
    going: Mapping[int, LeasePhase] | None = None,
    memory: Mapping[str, Any] | None = None,
) -> View:
    """A view in which every lease is over, or in the phase that is said."""
    phase = going or {}
    held = [
        lease(each.base, each.on or {}, end=NOW - 1, phase=phase.get(each.base, LeasePhase.RUNNING))
        for each in jobs
        if each.on
    ]
    shown = view(snapshot(time=NOW, nodes=nodes, jobs=jobs), leases(*held))
    return replace(shown, memory=memory or {})


def rows(*at: int) -> Any:
    return np.array(at, dtype=np.int64)


def room(offer: Offer) -> list[list[int]]:
    return [column.tolist() for column in (offer.room.gpus, offer.room.cpus, offer.room.memory_mb)]


# Rows 0, 1, 2 run on n1 and n2; 3 and 4 wait.
THREE = (
    runs(1, {"n1": 4}, cpus=4),
    runs(2, {"n1": 2, "n2": 2}, cpus=6, memory_mb=10),
    runs(3, {"n2": 5}, checkpoints=False),
    job(4, gpus=6),
    job(5, gpus=2),
)


def test_on_offer_is_what_is_free_and_what_contested_jobs_hold() -> None:
    """Job 3 would lose its work, so its GPUs are not among them."""
    offer = Offer(seen(*THREE))
    assert offer.contested.tolist() == [True, True, False, False, False]
    assert room(offer) == [[8, 3], [64, 63], [512_000, 511_999]]
    assert offer.undecided.tolist() == [True, True, False, True, True]


def test_nothing_of_a_node_that_takes_no_work_is_on_offer() -> None:
    nodes: Mapping[str, int | NodeSpec] = {"n1": 8, "n2": node(8, usable=False)}
    offer = Offer(seen(runs(1, {"n1": 2, "n2": 2}), runs(2, {"n2": 4}), nodes=nodes))
    assert offer.contested.tolist() == [True, False]
    assert offer.free.tolist() == [8, 0]


def test_who_is_kept_takes_its_amounts_out_of_the_room_and_is_decided() -> None:
    offer = Offer(seen(*THREE))
    offer.keep(rows(1))
    assert room(offer) == [[6, 1], [61, 60], [511_995, 511_994]]
    assert offer.kept.tolist() == [False, True, False, False, False]
    assert offer.undecided.tolist() == [True, False, False, True, True]


def test_who_is_kept_keeps_its_gpus_unless_they_were_given_away() -> None:
    """Job 4 takes 5 GPUs of n1, where job 2 still has room and job 1 has not, or 7 of n2, where job 2 has none."""
    for site, kept in ((0, [False, True]), (1, [True, False])):
        offer = Offer(seen(*THREE[:2], replace(THREE[3], gpus=7)))
        assert offer.grant(2, [(site, 5 + 2 * site)])
        offer.keep(rows(0, 1))
        assert offer.kept[:2].tolist() == kept


def test_those_who_are_kept_first_take_what_two_cannot_both_have() -> None:
    for order, kept in ((rows(0, 1), [True, False]), (rows(1, 0), [False, True])):
        offer = Offer(seen(runs(1, {"n1": 4}), runs(2, {"n1": 4}), job(3, gpus=4)))
        offer.grant(2, [(0, 4)])
        offer.keep(order)
        assert offer.kept[:2].tolist() == kept


def test_what_is_not_to_be_had_is_not_given_and_nothing_is_taken_for_it() -> None:
    offer = Offer(seen(*THREE))
    before = room(offer)
    assert not offer.grant(3, [(0, 2), (1, 4)])
    assert (room(offer), offer.granted) == (before, {})
    assert offer.grant(3, [(0, 3), (1, 3)])
    assert (room(offer)[0], offer.granted) == ([5, 0], {3: [(0, 3), (1, 3)]})
    poor = Offer(seen(job(1, gpus=1, cpus=65), job(2, gpus=1, cpus=64), nodes={"n1": 8}))
    assert [poor.grant(row, [(0, 1)]) for row in (0, 1)] == [False, True]


def test_gpus_are_granted_to_who_waits_and_who_runs_goes_on_there() -> None:
    offer = Offer(seen(*THREE))
    assert offer.give(0, [(1, 3)])
    assert offer.give(4, [(0, 2)])
    assert not offer.give(1, [(1, 1)])
    assert (offer.granted, offer.moved) == ({4: [(0, 2)]}, {0: [(1, 3)]})
    assert offer.undecided.tolist() == [False, True, False, True, False]


def test_gangs_are_laid_in_order_on_as_few_nodes_as_can_be() -> None:
    jobs = [job(1, gpus=7), job(2, gpus=3), job(3, gpus=9, gpus_per_node=9), job(4, gpus=5), job(5, gpus=1)]
    offer = Offer(seen(*jobs))
    assert offer.lay(rows(1, 2, 0, 3, 4)) == [1, 0, 3, 4]
    assert offer.granted == {1: [(0, 3)], 0: [(1, 7)], 3: [(0, 5)], 4: [(1, 1)]}
    assert offer.lay(NOBODY) == []


def test_a_gang_that_may_lie_on_two_types_is_laid_once() -> None:
    offer = Offer(seen(job(1, gpus=2), nodes={"n1": node(gpu_type="x"), "n2": node(gpu_type="y")}))
    assert offer.lay(rows(0)) == [0]
    assert sorted(offer.free.tolist()) == [6, 8]


STOPS: dict[str, tuple[tuple[JobSpec, ...], list[int], int, list[int]]] = {
    "nobody, where what is free is enough": ((runs(1, {"n1": 6}),), [0], 2, []),
    "the last in the order": ((runs(1, {"n1": 4}), runs(2, {"n1": 4})), [0, 1], 4, [1]),
    "whoever is last": ((runs(1, {"n1": 4}), runs(2, {"n1": 4})), [1, 0], 4, [0]),
    "one that is not in it before": ((runs(1, {"n1": 4}), runs(2, {"n1": 4})), [1], 4, [0]),
    "as many as it takes": (
        (runs(1, {"n1": 3}), runs(2, {"n1": 3}), runs(3, {"n1": 2})),
        [0, 1, 2],
        5,
        [1, 2],
    ),
    "none in vain": (
        (runs(1, {"n1": 4}), runs(2, {"n1": 2}), runs(3, {"n1": 2})),
        [0, 1, 2],
        5,
        [0, 2],
    ),
    "none that is just not needed": (
        (runs(1, {"n1": 4}), runs(2, {"n1": 3}), runs(3, {"n1": 1})),
        [0, 1, 2],
        5,
        [0, 2],
    ),
}


@pytest.mark.parametrize(("jobs", "order", "gpus", "stops"), STOPS.values(), ids=STOPS)
def test_those_stop_whose_gpus_were_given_away(
    jobs: tuple[JobSpec, ...], order: list[int], gpus: int, stops: list[int]
) -> None:
    shown = seen(*jobs, job(9, gpus=gpus), nodes={"n1": 8})
    offer = Offer(shown)
    assert offer.grant(len(jobs), [(0, gpus)])
    offer.stop_contested(rows(*order))
    assert sorted(offer.stops) == stops
    assert offer.kept.nonzero()[0].tolist() == sorted({*range(len(jobs))} - {*stops})
    held = sum(each.gpus for at, each in enumerate(jobs) if at not in stops)
    assert offer.room.gpus.tolist() == [8 - gpus - held]
    plan = offer.finish(rows(*order))
    assert objections(plan, shown) == ""
    assert plan.verdict.tolist() == [
        *(Verdict.REVOKE if at in stops else Verdict.RENEW for at in range(len(jobs))),
        Verdict.GRANT,
    ]


def test_who_stops_for_one_node_is_enough_for_its_other_node_too() -> None:
    """Job 3 lies on both, and is last; job 2 would be the next to stop on n2."""
    jobs = (runs(1, {"n1": 4}), runs(2, {"n2": 4}), runs(3, {"n1": 4, "n2": 4}))
    offer = Offer(seen(*jobs, job(4, gpus=8, nodes=2)))
    assert offer.grant(3, [(0, 4), (1, 4)])
    offer.stop_contested(rows(0, 1, 2))
    assert (offer.stops, offer.room.gpus.tolist()) == ([2], [0, 0])


def test_a_job_stops_for_cpus_alone() -> None:
    offer = Offer(seen(runs(1, {"n1": 1}, cpus=40), runs(2, {"n1": 1}, cpus=1), job(3, gpus=1, cpus=30)))
    assert offer.grant(2, [(0, 1)])
    offer.stop_contested(rows(0, 1))
    assert offer.stops == [0]


def test_a_plan_says_who_starts_stops_moves_and_stays_and_remembers_where_movers_go() -> None:
    shown = seen(
        runs(1, {"n1": 4}), runs(2, {"n1": 4}), runs(3, {"n2": 4}), runs(4, {"n2": 2}, checkpoints=False),
        job(5, gpus=8, submit=3.0), job(6, gpus=8),
    )  # fmt: skip
    offer = Offer(shown)
    assert offer.move(0, [(1, 4)])
    assert offer.grant(4, [(0, 8)])
    order = rows(0, 1, 2, 4, 5)
    offer.stop_contested(order)
    assert sorted(offer.stops) == [1, 2]
    plan = offer.finish(order, waits=[(rows(5), "no node is left for it")])
    assert objections(plan, shown) == ""
    assert verdicts(shown.snapshot, plan) == {
        "1": Verdict.REVOKE,
        "2": Verdict.REVOKE,
        "3": Verdict.REVOKE,
        "4": Verdict.RENEW,
        "5": Verdict.GRANT,
        "6": Verdict.WAIT,
    }
    assert places(shown.snapshot, plan) == {"5": {"n1": 8}}
    assert plan.memory == {MOVES: [[pack(1), [["n2", 4]]]]}
    assert plan.rank.tolist() == [0, 1, 2, -1, 3, 4]
    said = reasons(shown.snapshot, plan)
    assert said["6"] == "no node is left for it"
    assert (said["1"], said["2"]) == (WORDS.moved, WORDS.revoked)


def moves(base: int, **on: int) -> dict[str, Any]:
    """The memory of a plan by which a job goes on there."""
    return {MOVES: [[pack(base), [[name, gpus] for name, gpus in on.items()]]]}


def test_for_a_job_on_its_way_room_is_kept_until_it_waits_and_then_it_has_its_gpus() -> None:
    leaving = runs(1, {"n1": 4})
    shown = seen(leaving, job(2, gpus=8), going={1: LeasePhase.REVOKING}, memory=moves(1, n2=4))
    offer = Offer(shown)
    assert (offer.moved, offer.granted, offer.free.tolist()) == ({0: [(1, 4)]}, {}, [4, 4])
    assert offer.undecided.tolist() == [False, True]
    plan = offer.finish(rows(1))
    assert (plan.memory, plan.verdict[0]) == (shown.memory, Verdict.LEAVE)

    there = seen(job(1, gpus=4), job(2, gpus=8), memory=moves(1, n2=4))
    offer = Offer(there)
    assert (offer.moved, offer.granted, offer.free.tolist()) == ({}, {0: [(1, 4)]}, [8, 4])
    plan = offer.finish(rows(1, 0))
    assert (plan.memory, places(there.snapshot, plan)) == ({}, {"1": {"n2": 4}})


LOST: dict[str, View] = {
    "it is gone": seen(job(2, gpus=4), memory=moves(1, n2=4)),
    "a node of it is gone": seen(job(1, gpus=8, nodes=2), memory=moves(1, n2=4, n3=4)),
    "its GPUs are not to be had": seen(
        job(1, gpus=4), runs(2, {"n2": 8}, checkpoints=False), memory=moves(1, n2=4)
    ),
    "it runs": seen(runs(1, {"n1": 4}, checkpoints=False), memory=moves(1, n2=4)),
}


@pytest.mark.parametrize("shown", LOST.values(), ids=LOST)
def test_a_job_on_its_way_is_forgotten_where(shown: View) -> None:
    offer = Offer(shown)
    assert (offer.moved, offer.granted, offer.finish(NOBODY).memory) == ({}, {}, {})


def test_a_node_of_which_more_was_promised_than_came_free_has_nothing_and_no_debt() -> None:
    promised = job(3, gpus=4)
    shown = view(
        snapshot(time=NOW, nodes=TWO, jobs=[runs(1, {"n1": 8}), promised]),
        leases(lease(1, {"n1": 8}, end=NOW + 9), lease(3, {"n1": 4}, phase=LeasePhase.GRANTED, end=NOW + 9)),
    )
    assert Offer(shown).free.tolist() == [0, 8]


def test_who_runs_may_have_another_shape_where_one_moves_is_elastic_or_there_are_two_types() -> None:
    one = snapshot(nodes=TWO, jobs=[job(1)])
    nobody, elastic = (Sizes(at, at + 1, at == 0) for at in (rows(), rows(0)))
    two = snapshot(nodes={"n1": node(gpu_type="x"), "n2": node(gpu_type="y")})
    cases: list[tuple[Snapshot, Mapping[str, Any], bool]] = [
        (one, {}, True),
        (one, {MOVES: [], "other": 1}, True),
        (replace(one, sizes=nobody), {}, True),
        (one, moves(1, n2=4), False),
        (replace(one, sizes=elastic), {}, False),
        (two, {}, False),
    ]
    assert [only_one_shape(shown, memory) for shown, memory, _ in cases] == [each[2] for each in cases]
