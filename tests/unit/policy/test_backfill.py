"""Backfill starts whoever delays no job that was reserved a place in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, Plan, Verdict
from slurm_fair.model.ids import pack
from slurm_fair.policy import Placer, Pools, Shapes, View, consolidated, relaxed
from slurm_fair.policy.check import objections
from slurm_fair.policy.orders.backfill import RESERVED, WOULD_DELAY, Depth, FreeGpus, Mode, backfilled
from slurm_fair.policy.orders.ordered import WORDS
from tests.support.accounts import places, reasons, verdicts, view
from tests.support.builders import JobSpec, NodeSpec, job, lease, leases, node, snapshot

NOW = 1000.0
Nodes = Mapping[str, int | NodeSpec]
ONE: Nodes = {"n1": 8}


def runs(base: int, seconds: float, on: Mapping[str, int], **more: Any) -> JobSpec:
    """A job that has so many seconds left."""
    gpus = sum(on.values())
    return job(base, gpus=gpus, on=on, state=JobState.RUNNING, time_limit_seconds=seconds, **more)


def waits(base: int, gpus: int, seconds: float, **more: Any) -> JobSpec:
    return job(base, gpus=gpus, time_limit_seconds=seconds, **more)


def seen(nodes: Nodes, *jobs: JobSpec, ends: float = NOW + 9) -> View:
    held = leases(*(lease(each.base, each.on, end=ends) for each in jobs if each.on))
    return view(snapshot(time=NOW, nodes=nodes, jobs=jobs), held)


def planned(
    shown: View, mode: Mode = "easy", order: Sequence[int] = (), place: Placer = consolidated, **depth: Any
) -> Plan:
    """The plan for this order, else for all who wait as they are numbered; instants are multiples of 10 s."""
    keys = shown.snapshot.jobs.key.tolist()
    rows = [keys.index(pack(base)) for base in order] or shown.waiting_rows.tolist()
    how = Depth(mode, **{"resolution_seconds": 10.0, **depth})
    score = np.full(len(keys), np.nan)
    plan = backfilled(shown, np.array(rows, dtype=np.int64), place, how, score, {"kept": 1}, WORDS)
    assert objections(plan, shown) == ""
    return plan


def started(shown: View, mode: Mode = "easy", **depth: Any) -> list[str]:
    return sorted(places(shown.snapshot, planned(shown, mode, **depth)))


# 6 of 8 GPUs come free in 100 s: then the first that waits has all of them.
HEAD = (runs(1, 100, {"n1": 6}), waits(2, 8, 500))


@pytest.mark.parametrize("mode", ["easy", "conservative"])
@pytest.mark.parametrize(("seconds", "starts"), [(1.0, True), (100.0, True), (101.0, False), (np.inf, False)])
def test_who_is_over_when_the_first_starts_goes_ahead(mode: Mode, seconds: float, starts: bool) -> None:
    shown = seen(ONE, *HEAD, waits(3, 2, seconds))
    plan = planned(shown, mode)
    assert places(shown.snapshot, plan) == ({"3": {"n1": 2}} if starts else {})
    said = reasons(shown.snapshot, plan)
    otherwise = WOULD_DELAY if mode == "easy" else RESERVED
    assert (said["2"], said["3"]) == (RESERVED, WORDS.granted if starts else otherwise)


def test_whoever_asks_for_the_same_and_runs_shorter_is_still_looked_at() -> None:
    shown = seen(ONE, *HEAD, waits(3, 2, 300), waits(4, 2, 100), waits(5, 2, 100))
    assert started(shown) == ["4"]


def test_what_the_first_does_not_need_may_be_had_for_any_time() -> None:
    """At 100 s 6 GPUs are free, at 200 s all 10: the first has 8 of them then."""
    jobs = (runs(1, 100, {"n1": 4}), runs(2, 200, {"n1": 4}))
    for first, seconds, starts in (8, 9000, True), (9, 9000, False), (9, 201, False), (9, 200, True):
        shown = seen({"n1": 10}, *jobs, waits(3, first, 50), waits(4, 2, seconds))
        assert started(shown) == (["4"] if starts else [])


def test_those_who_start_at_this_look_hold_their_gpus_until_they_end() -> None:
    """Job 2 starts and ends at 300 s, and then only there is room for the first that does not fit."""
    jobs = (runs(1, 100, {"n1": 4}), waits(2, 2, 300), waits(3, 8, 50))
    assert started(seen(ONE, *jobs, waits(4, 2, 300))) == ["2", "4"]
    assert started(seen(ONE, *jobs, waits(4, 2, 301))) == ["2"]


@pytest.mark.parametrize(("seconds", "starts"), [(200.0, ["4", "5"]), (201.0, ["4"])])
def test_what_is_left_beside_the_first_goes_to_one_of_two_that_run_long(
    seconds: float, starts: list[str]
) -> None:
    """The first has 10 of 12 GPUs from 200 s on; 4 are free until then."""
    jobs = (runs(1, 100, {"n1": 4}), runs(2, 200, {"n1": 4}), waits(3, 10, 50), waits(4, 2, 9000))
    assert started(seen({"n1": 12}, *jobs, waits(5, 2, seconds))) == starts


# n1 comes free at 100 s, what is taken of n2 at 200 s: jobs 3 and 4 each need a whole node for long.
BOTH = (runs(1, 100, {"n1": 8}), runs(2, 200, {"n2": 6}), waits(3, 8, 300), waits(4, 8, 300))


@pytest.mark.parametrize(
    ("mode", "seconds", "starts"),
    [("easy", 250.0, True), ("conservative", 250.0, False), ("conservative", 200.0, True)],
)
def test_easy_reserves_for_the_first_that_does_not_fit_and_conservative_for_all(
    mode: Mode, seconds: float, starts: bool
) -> None:
    shown = seen({"n1": 8, "n2": 8}, *BOTH, waits(5, 2, seconds))
    plan = planned(shown, mode)
    assert sorted(places(shown.snapshot, plan)) == (["5"] if starts else [])
    said = reasons(shown.snapshot, plan)
    assert (said["3"], said["4"]) == (RESERVED, WOULD_DELAY if mode == "easy" else RESERVED)


@pytest.mark.parametrize(("seconds", "starts"), [(150.0, ["5"]), (151.0, [])])
def test_a_reserved_place_is_free_again_once_its_job_is_over(seconds: float, starts: list[str]) -> None:
    """Job 3 has 7 GPUs from 100 s on, and job 4 all 8 of them from 150 s on."""
    jobs = (runs(1, 100, {"n1": 2}), waits(3, 7, 50), waits(4, 8, 1000))
    assert started(seen(ONE, *jobs, waits(5, 1, seconds)), "conservative") == starts


@pytest.mark.parametrize(("seconds", "starts"), [(200.0, ["5"]), (201.0, [])])
def test_a_place_is_only_found_where_it_is_free_all_the_time(seconds: float, starts: list[str]) -> None:
    """Job 3 has all from 200 s on; of 6 GPUs from 100 s on there is too little time for job 4."""
    jobs = (runs(1, 100, {"n1": 4}), runs(2, 200, {"n1": 2}), waits(3, 8, 500), waits(4, 6, 150))
    assert started(seen(ONE, *jobs, waits(5, 2, seconds)), "conservative") == starts


def of_type(gpu_type: str) -> NodeSpec:
    return node(8, gpu_type=gpu_type)


@pytest.mark.parametrize(("of_x", "of_y", "starts"), [(200, 100, "4"), (100, 200, "5"), (100, 100, "5")])
def test_of_two_types_the_first_is_reserved_the_one_that_is_free_sooner(
    of_x: int, of_y: int, starts: str
) -> None:
    small = (waits(4, 2, 9000, gpu_type="x"), waits(5, 2, 9000, gpu_type="y"))
    jobs = (runs(1, of_x, {"n1": 6}), runs(2, of_y, {"n2": 6}), waits(3, 8, 500), *small)
    assert started(seen({"n1": of_type("x"), "n2": of_type("y")}, *jobs)) == [starts]


def test_the_first_is_reserved_nodes_that_leave_little_beside_it() -> None:
    """At 100 s n2 has 4 free GPUs and n1 has 8: it gets those of n2, and the first of two small ones 2 of n1."""
    jobs = (
        runs(1, 100, {"n1": 6}),
        runs(2, 100, {"n2": 2}),
        waits(3, 4, 500),
        waits(4, 2, 9000),
        waits(5, 2, 9000),
    )
    shown = seen({"n1": 8, "n2": node(8, gpus_others=4)}, *jobs)
    assert places(shown.snapshot, planned(shown)) == {"4": {"n1": 2}}


def test_the_first_is_reserved_the_node_that_it_names() -> None:
    jobs = (
        runs(1, 100, {"n1": 6}),
        runs(2, 100, {"n2": 6}),
        waits(3, 8, 500, wanted=("n2",)),
        waits(4, 2, 9000),
    )
    shown = seen({"n1": 8, "n2": 8}, *jobs)
    assert places(shown.snapshot, planned(shown)) == {"4": {"n1": 2}}


def test_a_gang_above_any_node_is_reserved_whole_nodes() -> None:
    """12 GPUs take two nodes of 8, no more and no less."""
    held = [runs(at, 100, {f"n{at}": 6}) for at in (1, 2, 3)]
    jobs = (*held, waits(4, 12, 500), waits(5, 2, 9000), waits(6, 2, 9000))
    shown = seen({"n1": 8, "n2": 8, "n3": 8}, *jobs)
    assert places(shown.snapshot, planned(shown)) == {"5": {"n3": 2}}


def test_a_gang_that_may_be_spread_is_reserved_all_the_nodes_that_it_takes() -> None:
    others = node(8, gpus_others=4)
    held = [runs(at, 100, {f"n{at}": 2}) for at in (1, 2, 3)]
    jobs = (*held, waits(4, 8, 500), *(waits(base, 2, 9000) for base in (5, 6)))
    shown = seen({"n1": others, "n2": others, "n3": others}, *jobs)
    assert places(shown.snapshot, planned(shown, place=relaxed)) == {"5": {"n3": 2}}


def in_partitions() -> list[JobSpec]:
    """A first job that does not fit, and a small one, of each of two partitions."""
    return [
        waits(10, 8, 500, partition="p"), waits(11, 1, 9000, partition="p"),
        waits(20, 8, 500, partition="q"), waits(21, 1, 50, partition="q"), waits(22, 1, 9000, partition="q"),
    ]  # fmt: skip


TWO: Nodes = {"n1": node(8, partitions=("p",)), "n2": node(8, partitions=("q",))}
HELD = (runs(1, 100, {"n1": 4}, partition="p"), runs(2, 100, {"n2": 4}, partition="q"))


def test_each_partition_has_a_first_one() -> None:
    assert started(seen(TWO, *HELD, *in_partitions())) == ["21"]


def test_without_backfill_who_does_not_fit_stops_its_own_partition() -> None:
    shown = seen(TWO, *HELD, *(each for each in in_partitions() if each.base != 20))
    assert started(shown, "none") == ["21", "22"]
    said = reasons(shown.snapshot, planned(shown, "none"))
    assert (said["10"], said["11"]) == (RESERVED, WOULD_DELAY)


def test_jobs_are_taken_in_the_order_that_is_given_and_so_many_of_them() -> None:
    shown = seen(ONE, waits(1, 5, 50), waits(2, 4, 50), waits(3, 4, 50))
    assert places(shown.snapshot, planned(shown, order=[3, 1, 2])) == {"2": {"n1": 4}, "3": {"n1": 4}}
    plan = planned(shown, order=[3, 1, 2], jobs=2)
    assert places(shown.snapshot, plan) == {"3": {"n1": 4}}
    assert (plan.rank.tolist(), plan.memory) == ([1, 2, 0], {"kept": 1})
    said = reasons(shown.snapshot, plan)
    assert (said["1"], said["2"]) == (RESERVED, WORDS.waits)


def test_an_end_beyond_the_window_is_not_seen() -> None:
    shown = seen(ONE, *HEAD, waits(3, 2, 9000))
    assert started(shown, window_seconds=100.0) == []
    assert started(shown, window_seconds=99.0) == ["3"]


def test_who_fits_no_node_and_who_is_over_its_arrays_limit_is_reserved_nothing() -> None:
    shown = seen(
        ONE, runs(1, 100, {"n1": 4}), waits(2, 9, 50, gpus_per_node=9),
        *(waits(3, 1, 9000, task=task, array_limit=1) for task in (0, 1)), waits(4, 3, 9000),
    )  # fmt: skip
    plan = planned(shown)
    assert places(shown.snapshot, plan) == {"3_0": {"n1": 1}, "4": {"n1": 3}}
    said = reasons(shown.snapshot, plan)
    assert said["2"] == WORDS.nowhere
    assert said["3_1"] == "its array's own limit is reached"


def test_nobody_who_runs_is_stopped_though_its_lease_is_over() -> None:
    shown = seen(ONE, *HEAD, waits(3, 9, 1), ends=NOW - 1)
    assert verdicts(shown.snapshot, planned(shown)) == {
        "1": Verdict.RENEW,
        "2": Verdict.WAIT,
        "3": Verdict.WAIT,
    }


def test_where_nobody_waits_nobody_starts() -> None:
    assert planned(seen(ONE)).granted.tolist() == []


def free_gpus(shown: View, granted: Mapping[int, list[tuple[int, int]]] | None = None) -> FreeGpus:
    """The forecast in steps of 10 s; who is granted runs for 35 s."""
    depth = Depth(resolution_seconds=10.0, window_seconds=1000.0)
    return FreeGpus(shown, Pools.of(shown.snapshot), depth, [35.0, 35.0], granted or {})


def of_all() -> Any:
    """The ways of a gang that takes all 8 GPUs of a node."""
    shown = seen(ONE, waits(1, 8, 50))
    return Shapes.of(Pools.of(shown.snapshot), shown.snapshot, shown.waiting_rows).ways_of(0)


GANG_OF_ALL = of_all()


def test_free_from_now_on_is_the_least_that_is_free_in_the_time() -> None:
    """n1: 2 free, 4 more at 40 s (its job ends at 31 s, and steps are full), 2 more at 100 s."""
    shown = seen(
        {"n1": 8, "n2": 8}, runs(1, 31, {"n1": 4}), runs(2, 100, {"n1": 2}), runs(3, 1001, {"n2": 3})
    )
    forecast = free_gpus(shown)
    assert forecast.throughout(1e9).tolist() == [2, 5]
    forecast.take(1, 55.0, [(0, 6), (1, 1)])  # from 40 s on, until 100 s
    assert [forecast.throughout(at).tolist() for at in (40.0, 41.0, 1e9)] == [[2, 5], [0, 4], [0, 4]]
    forecast.take(0, 10.0, [(0, 1)])
    assert [forecast.throughout(at).tolist() for at in (10.0, 40.0, 41.0)] == [[1, 5], [1, 5], [0, 4]]


def test_what_was_granted_is_in_use_from_now_on() -> None:
    shown = seen({"n1": 8}, runs(1, 100, {"n1": 2}))
    forecast = free_gpus(shown, {0: [(0, 3)], 1: [(0, 1)]})
    assert forecast.throughout(5.0).tolist() == [2]
    forecast.reserve(GANG_OF_ALL, 10.0)
    assert [forecast.throughout(at).tolist() for at in (100.0, 101.0)] == [[2], [0]]


def test_a_node_that_takes_no_work_is_not_free_even_later() -> None:
    forecast = free_gpus(seen({"n1": node(8, usable=False)}, runs(1, 10, {"n1": 8})))
    forecast.reserve(GANG_OF_ALL, 10.0)
    assert [forecast.throughout(at).tolist() for at in (5.0, 1e9)] == [[0], [0]]
