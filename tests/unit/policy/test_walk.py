"""A walk renews, places or passes over each job of an order, and fills what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import JobState, LeasePhase
from slurm_fair.model.columns import ranks
from slurm_fair.model.ids import pack
from slurm_fair.model.reservation import ReservedNodes
from slurm_fair.policy import Candidates, Pools, Shapes, View, Walk, consolidated
from slurm_fair.policy.orders.walk import (
    FEW,
    STRETCH,
    ListedTwice,
    contest_of,
    may_place,
    placed_alone,
    refuse_twice,
    stretches,
    with_due_gangs_first,
    with_unlisted,
)
from tests.support.accounts import view
from tests.support.builders import JobSpec, LeaseSpec, NodeSpec, job, lease, leases, node, snapshot

NOW = 1000.0
Nodes = dict[str, int | NodeSpec]


def runs(base: int, on: dict[str, int], **more: object) -> JobSpec:
    return job(base, gpus=sum(on.values()), on=on, state=JobState.RUNNING, **more)


def over(*jobs: JobSpec) -> list[LeaseSpec]:
    """Leases of these that are over."""
    return [lease(each.base, each.on or {}, end=NOW - 1) for each in jobs if each.on]


def seen(nodes: Nodes, *jobs: JobSpec) -> View:
    """A view in which every lease is over."""
    return view(snapshot(time=NOW, nodes=nodes, jobs=jobs), leases(*over(*jobs)))


def walk(shown: View, bases: Sequence[int], expected: Sequence[int] = ()) -> Walk:
    """A walk in which jobs are numbered along this order; those that run and are not in it come behind."""
    pools, waits = Pools.of(shown.snapshot), shown.waiting_rows
    keys = shown.snapshot.jobs.key.tolist()
    order = np.array([keys.index(pack(base)) for base in bases], dtype=np.int64)
    shapes = Shapes.of(pools, shown.snapshot, waits)
    contested = shown.over_rows
    rows, numbers, asking = with_unlisted(shown, contested, order, ranks(len(keys), waits)[order])
    candidates = Candidates(shown.snapshot.jobs, rows, numbers, asking, shapes, len(contested))
    likely = np.isin(shown.snapshot.jobs.key[rows], [pack(base) for base in expected])
    contest = contest_of(shown, pools, consolidated, candidates, np.arange(len(order)), likely)
    return Walk(candidates, pools, contest)


def test_a_job_that_fits_nowhere_is_passed_over_alone() -> None:
    made = walk(seen({"n1": 8}, job(1, gpus=6), job(2, gpus=4), job(3, gpus=2)), [1, 2, 3])
    made.down(np.arange(3))
    assert made.granted == {0: [(0, 6)], 2: [(0, 2)]}
    assert made.misfits == [1]


def test_of_many_jobs_those_that_could_never_fit_are_misfits_too_and_the_order_holds() -> None:
    """More than are sooner looked at than sorted out: big and small ones in turn, of which 16 small ones fit."""
    count = 4 * FEW
    jobs = [
        job(1 + at, gpus=9 if at % 2 else 1, nodes=1, gpus_per_node=9 if at % 2 else 0) for at in range(count)
    ]
    made = walk(seen({"n1": 8}, *jobs), range(1, count + 1))
    made.down(np.arange(count))
    assert list(made.granted) == list(range(0, 16, 2))
    assert sorted(made.misfits)[:8] == list(range(1, 17, 2))


def test_a_tenants_job_that_does_not_fit_ends_its_placings_and_nobody_elses() -> None:
    jobs = [job(1, gpus=8), job(2, gpus=1), job(3, gpus=2, tenant="b"), job(4, gpus=1)]
    on = {"n1": 1}
    made = walk(seen({"n1": 8}, *jobs, runs(9, on)), [9, 1, 2, 3, 4])
    made.strict(np.arange(5))
    assert made.granted == {3: [(0, 2)]}
    assert made.misfits == [1]


def test_a_running_job_behind_its_tenants_misfit_is_renewed() -> None:
    jobs = [job(1, gpus=9, gpus_per_node=9), job(3, gpus=5, tenant="b")]
    made = walk(seen({"n1": 8}, *jobs, runs(2, {"n1": 4})), [1, 2, 3])
    made.strict(np.arange(3))
    assert (made.granted, made.contest.evicted) == ({}, [])


def test_so_is_one_that_stands_far_behind_it() -> None:
    """Jobs are looked at in parts, and those in a lane that is shut by then are left out: not who runs."""
    fill = [job(base, tenant="c") for base in range(100, 140)]
    first, last = job(1, gpus=99, gpus_per_node=99), job(3, gpus=8, tenant="b")
    shown = seen({"n1": 8, "n2": 40}, first, last, *fill, runs(2, {"n1": 8}))
    made = walk(shown, [1, *range(100, 140), 2, 3])
    made.strict(np.arange(43))
    assert (len(made.granted), made.contest.evicted, made.misfits) == (40, [], [0, 42])


def test_who_runs_loses_its_gpus_only_to_those_ahead_of_it() -> None:
    for order, granted, evicted in ([1, 2], {0: [(0, 5)]}, [0]), ([2, 1], {}, []):
        made = walk(seen({"n1": 8}, job(1, gpus=5), runs(2, {"n1": 4})), order)
        made.down(np.arange(2))
        assert (made.granted, made.contest.evicted) == (granted, evicted)


def test_who_runs_and_is_not_listed_loses_its_gpus_to_everybody_listed() -> None:
    made = walk(seen({"n1": 8}, job(1, gpus=5), runs(2, {"n1": 4})), [1])
    made.down(np.arange(1))
    assert (made.granted, made.contest.evicted) == ({0: [(0, 5)]}, [0])


def test_of_two_that_run_the_later_in_the_order_is_stopped_and_the_unlikely_winner_before() -> None:
    shown = seen({"n1": 8}, job(1, gpus=4), runs(2, {"n1": 4}), runs(3, {"n1": 4}))
    for order, expected, loser in ([1, 2, 3], (), 3), ([1, 3, 2], (), 2), ([1, 2, 3], (3,), 2):
        made = walk(shown, order, expected)
        made.down(np.arange(3))
        (gone,) = made.contest.evicted
        row = made.candidates.rows[made.candidates.contest_place == gone].item()
        assert shown.snapshot.jobs.key[row] == pack(loser)


def test_the_last_gpu_is_given_and_nobody_is_asked_behind_it() -> None:
    made = walk(seen({"n1": 8}, job(1, gpus=7), job(2), job(3)), [1, 2, 3])
    made.down(np.arange(3), first=1)
    assert made.granted == {0: [(0, 7)], 1: [(0, 1)]}


def test_a_walk_down_nobody_changes_nothing() -> None:
    made = walk(seen({"n1": 8}), [])
    made.down(np.arange(0))
    assert (made.granted, made.misfits, made.fill(np.arange(0))) == ({}, [], [])


def test_what_nobody_has_is_filled_in_order_and_nobody_is_stopped_for_it() -> None:
    jobs = [job(1, gpus=6), job(2, gpus=3), job(3, gpus=2), job(4, gpus=1)]
    made = walk(seen({"n1": 8}, *jobs, runs(9, {"n1": 4})), [1, 2, 3, 4, 9])
    assert made.fill(np.arange(4)) == [1, 3]
    assert made.granted == {1: [(0, 3)], 3: [(0, 1)]}
    assert made.contest.evicted == []


def test_who_asks_for_no_place_has_no_ways_and_fits_nothing() -> None:
    made = walk(seen({"n1": 8}, job(1, gpus=2), job(3, gpus=8), runs(2, {"n1": 4})), [3, 2, 1])
    ways = made.candidates.ways(np.arange(3))
    assert [[gang.gpus for gang in each] for each in ways] == [[8], [], [2]]
    assert [gang.gpus for gang in made.candidates.ways_of(0)] == [2]  # the first that asked
    assert made.candidates.ways_of(-1) == ()
    assert made.fitting().tolist() == [False, False, True]
    assert made.candidates.gpus.tolist() == [8, 4, 2]


def test_those_who_run_and_are_not_listed_stand_behind_the_order_and_are_counted_on() -> None:
    shown = seen({"n1": 8}, *(runs(base, {"n1": 1}) for base in (1, 2, 3)), job(4), job(5))
    order = np.array([3, 2, 4])
    rows, numbers, asking = with_unlisted(shown, np.array([0, 1, 2]), order, np.array([0, -1, 1]))
    assert rows.tolist() == [3, 2, 4, 0, 1]
    assert numbers.tolist() == [-1, 0, -1, 1, 2]
    assert asking.tolist() == [0, -1, 1, -1, -1]


def test_the_parts_of_an_order_grow_to_a_bound_and_are_the_whole_of_it() -> None:
    order = np.arange(10)
    assert [part.tolist() for part in stretches(order, 2)] == [[0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    assert list(stretches(order[:0], 2)) == []
    parts = list(stretches(np.arange(3 * STRETCH), STRETCH - 1))
    assert [len(part) for part in parts] == [STRETCH - 1, STRETCH, STRETCH, 1]
    assert np.concatenate(parts).tolist() == list(range(3 * STRETCH))


def test_an_order_that_lists_a_job_twice_is_refused_by_name() -> None:
    shown = seen({"n1": 8}, job(7), job(8), job(9, task=3))
    for fine in ([], [2], [2, 0, 1]):
        refuse_twice(shown, np.array(fine, dtype=np.int64))
    with pytest.raises(ListedTwice, match=r"job 9_3 \(row 2\) 3 times"):
        refuse_twice(shown, np.array([2, 0, 2, 1, 2]))
    with pytest.raises(ListedTwice, match=r"job 7 \(row 0\) 2 times"):
        refuse_twice(shown, np.array([0, 0]))


def test_gangs_for_which_nodes_were_set_aside_go_first_once_these_are_to_be_had() -> None:
    shown = seen({"n1": 8, "n2": 8}, *(job(base, gpus=8) for base in (1, 2, 3, 4)))
    order = np.array([3, 0, 2])
    assert with_due_gangs_first(shown, order) is order

    def reserved(*due: tuple[int, float]) -> View:
        return replace(shown, reserved=tuple(ReservedNodes(pack(b), 0.0, at, ("n1",), 8, 0) for b, at in due))

    assert with_due_gangs_first(reserved((3, NOW)), order).tolist() == [2, 3, 0]
    assert with_due_gangs_first(reserved((3, NOW + 1)), order).tolist() == [3, 0, 2]
    # Job 2 is not in the order: it has no place in it now.
    assert with_due_gangs_first(reserved((3, NOW), (2, NOW), (1, NOW)), order).tolist() == [2, 0, 3]


HALF_FREE: Nodes = {name: node(8, gpus_others=4) for name in ("n1", "n2")}
MAY_PLACE: dict[str, tuple[Nodes, list[JobSpec], bool, bool]] = {
    "nobody waits": ({"n1": 8}, [], False, False),
    "all that is free is enough": ({"n1": 4}, [job(1, gpus=4)], False, True),
    "one GPU is lacking": ({"n1": 4}, [job(1, gpus=5)], False, False),
    "the smallest counts": ({"n1": 4}, [job(1, gpus=5), job(2, gpus=4)], False, True),
    "a lease that is over counts": ({"n1": 8}, [job(1, gpus=8), runs(9, {"n1": 4})], False, True),
    "no node has enough": (HALF_FREE, [job(1, gpus=6)], False, False),
    "spread it would do": (HALF_FREE, [job(1, gpus=6)], True, True),
    "two nodes share it": (HALF_FREE, [job(1, gpus=8, nodes=2)], False, True),
    "the bigger half of it is nowhere": (
        {name: node(8, gpus_others=6) for name in ("n1", "n2", "n3")},
        [job(1, gpus=5, nodes=2)],
        False,
        False,
    ),
    "so many on a node": (
        {"n1": node(8, gpus_others=7), "n2": node(8, gpus_others=7)},
        [job(1, gpus=2, gpus_per_node=2)],
        False,
        False,
    ),
    "a gang above any node takes small ones too": (
        {**{f"n{at}": 2 for at in range(5)}, "n9": node(8, gpus_others=8)},
        [job(1, gpus=10)],
        False,
        True,
    ),
    "free GPUs of a node that takes no work": ({"n1": node(8, usable=False)}, [job(1)], False, False),
    "a lease that is over there": (
        {"n1": node(8, usable=False), "n2": 2},
        [job(1, gpus=4), runs(9, {"n1": 4})],
        False,
        False,
    ),
}


@pytest.mark.parametrize(("nodes", "jobs", "spread", "may"), MAY_PLACE.values(), ids=MAY_PLACE)
def test_a_waiting_job_might_be_placed(nodes: Nodes, jobs: list[JobSpec], spread: bool, may: bool) -> None:
    shown = seen(nodes, *jobs)
    assert may_place(shown, Pools.of(shown.snapshot), spread) is may


def test_who_waits_alone_gets_a_place_at_once() -> None:
    shown = seen({"n1": 8, "n2": 4}, job(1, gpus=3), runs(9, {"n1": 1}))
    assert placed_alone(shown, Pools.of(shown.snapshot), consolidated, False) == [(1, 3)]


ALONE: dict[str, View] = {
    "another waits too": seen({"n1": 8}, job(1), job(2)),
    "nobody waits": seen({"n1": 8}),
    "its array has a limit": seen({"n1": 8}, job(1, task=0, array_limit=1)),
    "somebody would have to stop": seen({"n1": 8}, job(1, gpus=5), runs(9, {"n1": 4})),
    "GPUs are owed to others": view(
        snapshot(time=NOW, nodes={"n1": 8, "n2": 8}, jobs=[job(1), job(2, gpus=4), runs(9, {"n1": 8})]),
        leases(lease(9, {"n1": 8}, end=NOW + 9), lease(2, {"n1": 4}, phase=LeasePhase.GRANTED, end=NOW + 9)),
    ),
}


@pytest.mark.parametrize("shown", ALONE.values(), ids=ALONE)
def test_there_is_no_place_at_once_where(shown: View) -> None:
    assert placed_alone(shown, Pools.of(shown.snapshot), consolidated, False) is None
