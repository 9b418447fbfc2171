"""Accounts of rounds: who shares the GPUs, the clock of what was received, and what is kept between plans."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState
from slurm_fair.model.columns import Floats
from slurm_fair.model.ids import pack
from slurm_fair.policy import View
from slurm_fair_plugins.received import Crowd, KeptShares, Received, ServiceClock, SharesPast
from tests.support.builders import NodeSpec, job, node
from tests.support.hops_views import NOW, sight

NAN = float("nan")
TWO: dict[str, int | NodeSpec] = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}


def floats(*numbers: float) -> Floats:
    return np.array(numbers, dtype=np.float64)


def crowd(seen: View, *rows: int, kept: Mapping[str, Any] | None = None) -> Crowd:
    """All jobs of a view, or those in these rows."""
    return Crowd(seen, np.array(rows or range(len(seen.waiting)), dtype=np.int64), kept or {})


def keys(*bases: int) -> list[int]:
    return [pack(base) for base in bases]


# --- the crowd


def test_a_crowd_counts_the_gpus_of_each_type_that_has_any() -> None:
    nodes: dict[str, int | NodeSpec] = {**TWO, "n3": node(2, gpu_type="x"), "n4": node(0, gpu_type="cpu")}
    some = crowd(sight([job(1, gpus=2), job(2, gpus=3)], nodes), 1)
    types = some.view.snapshot.gpu_types
    assert [types[kind] for kind in some.kinds.tolist()] == ["x", "y"]
    assert (some.capacity.tolist(), some.gang.tolist(), some.key.tolist()) == ([6.0, 4.0], [3.0], keys(2))


def test_a_job_has_no_speed_on_a_type_that_its_user_does_not_want_or_where_its_gang_has_no_room() -> None:
    jobs = [job(1, gpus=2), job(2, gpus=2, gpu_type="y"), job(3, gpus=4), job(4, gpus=5)]
    nodes: dict[str, int | NodeSpec] = {"n1": node(3, gpu_type="x"), "n2": node(4, gpu_type="y")}
    rates = [[1.0, 2.0]] * 4
    found = crowd(sight(jobs, nodes, rates=rates)).rate
    assert found.tolist() == [[1.0, 2.0], [0.0, 2.0], [0.0, 2.0], [0.0, 0.0]]


def test_a_gang_whose_nodes_must_each_have_so_many_gpus_has_no_room_where_they_have_fewer() -> None:
    names = ("x1", "x2", "y1", "y2", "y3")
    nodes: dict[str, int | NodeSpec] = {
        name: node(4 if name[0] == "x" else 3, gpu_type=name[0]) for name in names
    }
    wide = job(1, gpus=8, nodes=2, gpus_per_node=4)
    one = job(2, gpus=6, nodes=2, gpus_per_node=3)
    assert crowd(sight([wide, one], nodes)).rate.tolist() == [[1.0, 0.0], [1.0, 1.0]]


def test_a_small_gang_for_several_nodes_has_no_room_where_there_are_fewer() -> None:
    nodes: dict[str, int | NodeSpec] = {name: node(4, gpu_type=name[0]) for name in ("x1", "y1", "y2")}
    assert crowd(sight([job(1, gpus=2, nodes=2)], nodes)).rate.tolist() == [[0.0, 1.0]]


def test_of_one_type_only_gangs_larger_than_all_of_its_gpus_have_no_speed() -> None:
    jobs = [job(1, gpus=16), job(2, gpus=17)]
    assert crowd(sight(jobs)).rate.tolist() == [[1.0], [0.0]]


def test_where_nothing_was_told_every_job_has_the_same_speed() -> None:
    seen = sight([job(1), job(2)], TWO)
    bare = replace(seen, snapshot=replace(seen.snapshot, told=None))
    assert crowd(bare).rate.tolist() == [[1.0, 1.0]] * 2


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([10.0, NAN, 30.0, 80.0], [10.0, 30.0, 30.0, 80.0]),
        ([NAN, NAN, NAN, NAN], [3600.0] * 4),
        ([0.0, NAN, 0.25, 0.5], [1.0] * 4),  # a second at least
        ([5.0, float("inf"), 7.0, 9.0], [5.0, 7.0, 7.0, 9.0]),
    ],
)
def test_work_of_which_nobody_knows_is_the_median_of_the_others(said: list[float], left: list[float]) -> None:
    seen = sight([job(base) for base in range(1, 5)], left_seconds=said)
    assert crowd(seen).left.tolist() == left


def test_the_age_begins_with_the_submission_and_is_never_negative() -> None:
    seen = sight([job(1, submit=NOW - 70.0), job(2, submit=NOW + 5.0)])
    assert crowd(seen).age.tolist() == [70.0, 0.0]


def test_what_is_kept_is_found_by_key_in_whatever_row_a_job_stands_now() -> None:
    before = crowd(sight([job(3), job(5), job(9)]))
    kept = before.to_remember(debt=floats(0.3, 0.5, 0.9))
    assert json.loads(json.dumps(kept)) == kept, "plain data"
    after = crowd(sight([job(4), job(5), job(9)]), 2, 0, 1, kept=kept)
    assert after.remembered("debt", -1.0).tolist() == [0.9, -1.0, 0.5]


def test_at_first_nothing_is_remembered_of_anybody() -> None:
    assert crowd(sight([job(1), job(2)])).remembered("debt", 7.0).tolist() == [7.0, 7.0]


# --- the clock


def untouched() -> Floats:
    raise AssertionError("the pace was asked for")


def test_a_clock_counts_from_what_it_showed_and_from_nothing_where_nobody_looked() -> None:
    clock = ServiceClock(floats(50.0, 50.0, 50.0, NAN))
    assert clock.since(floats(20.0, NAN, 60.0, 10.0), untouched).tolist() == [30.0, 0.0, 0.0, 0.0]


def test_progress_counts_as_the_time_that_it_took_at_the_jobs_pace() -> None:
    """The first reports 60 s of work, twice as fast as on the reference; the third has no speed there."""
    clock = ServiceClock(floats(60.0, 60.0, 60.0), np.array([True, False, True]))
    passed = clock.since(np.zeros(3), lambda: floats(2.0, 2.0, 0.0))
    assert passed.tolist() == [30.0, 60.0, 60.0]


# --- shares of before

ONE_TYPE = {
    "kinds": [0], "members": [7, 5], "key": [7, 5], "share": [0.25, 0.75], "deficit": [1.0, -1.0],
    "seconds": [100.0, 200.0],
}  # fmt: skip


def test_shares_of_before_are_found_by_key_and_others_have_none() -> None:
    past = SharesPast.read({**ONE_TYPE, "key": [5, 7], "share": [0.75, 0.25]})
    found = past.of_keys(np.array([9, 7, 5, 3]))
    assert found[1:3, :2].tolist() == [[0.25, -1.0], [0.75, 1.0]]
    for row in (0, 3):
        assert np.array_equal(found[row], [NAN, 0.0, NAN], equal_nan=True)


def test_where_nobody_had_a_share_nobody_has_one() -> None:
    nothing: dict[str, Any] = {"kinds": [0, 1], "members": [], "key": [], "share": [], "deficit": []}
    found = SharesPast.read(nothing).of_keys(np.array([4, 2]))
    assert np.array_equal(found, [[NAN, NAN, 0.0, 0.0]] * 2, equal_nan=True)
    assert SharesPast.read(nothing).of_keys(np.zeros(0, dtype=np.int64)).shape == (0, 4)


def test_what_a_plan_kept_and_what_the_journal_gives_back_are_the_same() -> None:
    kept = KeptShares(ONE_TYPE)
    back = json.loads(json.dumps(kept))
    assert SharesPast.of(kept) is kept.past
    np.testing.assert_array_equal(SharesPast.of(back).columns, SharesPast.of(kept).columns)
    assert SharesPast.of(back).kinds == [0]


# --- what was received


def received(some: Crowd, *seconds: float, kept: Mapping[str, Any] | None = None) -> Received:
    """The account of these jobs, whose clocks show so many seconds."""
    return Received(some, ServiceClock(floats(*seconds)), kept or {})


def kept_of(some: Crowd, account: Received, share: list[float], deficit: list[float]) -> Mapping[str, Any]:
    """The memory after shares were computed, as the journal gives it back."""
    named = {"kinds": some.kinds.tolist(), "members": some.key.tolist(), "key": some.key.tolist()}
    kept = {**named, "share": share, "deficit": deficit, **account.noted()}
    back: Mapping[str, Any] = json.loads(json.dumps(kept))
    return back


def test_at_first_nobody_has_a_share_and_nobody_a_priority() -> None:
    account = received(crowd(sight([job(1), job(2)])), 9.0, 9.0)
    assert np.isnan(account.share).all()
    assert (account.deficit.tolist(), account.time.tolist()) == ([[0.0]] * 2, [[0.0]] * 2)
    assert account.priority.tolist() == [[0.0]] * 2


def test_on_one_type_the_clock_tells_what_was_received() -> None:
    some = crowd(sight([job(1), job(2), job(3)]))
    kept = kept_of(some, received(some, 100.0, 200.0, 0.0), [0.5, 0.25, 0.25], [3.0, -3.0, 0.0])
    later = received(some, 550.0, 200.0, 90.0, kept=kept)
    assert later.time.tolist() == [[450.0], [0.0], [90.0]]
    assert (later.share[:, 0].tolist(), later.deficit[:, 0].tolist()) == ([0.5, 0.25, 0.25], [3.0, -3.0, 0.0])


def test_the_priority_is_the_share_over_the_time_received_which_begins_at_half_a_round() -> None:
    """A round is 900 s."""
    some = crowd(sight([job(1), job(2)]))
    kept = kept_of(some, received(some, 0.0, 0.0), [0.9, 0.45], [0.0, 0.0])
    assert received(some, 450.0, 0.0, kept=kept).priority[:, 0].tolist() == pytest.approx([1e-3, 1e-3])


def test_where_there_are_other_types_now_everybody_begins_anew() -> None:
    one = crowd(sight([job(1)]))
    kept = kept_of(one, received(one, 10.0), [1.0], [5.0])
    two = received(crowd(sight([job(1)], TWO)), 500.0, kept=kept)
    assert np.isnan(two.share).all()
    assert (two.deficit.tolist(), two.time.tolist()) == ([[0.0, 0.0]], [[0.0, 0.0]])


def test_shares_that_are_computed_anew_count_from_now_on() -> None:
    some = crowd(sight([job(1)]))
    old = received(some, 500.0, kept=kept_of(some, received(some, 0.0), [1.0], [0.0]))
    assert old.time.tolist() == [[500.0]]
    fresh = old.anew(np.array([[0.5]]), np.array([[7.0]]))
    assert (fresh.share.tolist(), fresh.deficit.tolist(), fresh.time.tolist()) == ([[0.5]], [[7.0]], [[0.0]])
    assert fresh.noted() == {"seconds": [500.0]}


def lying(**on: str) -> View:
    """Jobs 1, 2 and 3 on two types, of which some hold their GPU on a node (`j1="n2"`)."""
    at = {int(name[1:]): {where: 1} for name, where in on.items()}
    jobs = [
        job(base, state=JobState.RUNNING, start=1.0, on=at[base]) if base in at else job(base)
        for base in (1, 2, 3)
    ]
    return sight(jobs, {"n0": node(0, gpu_type="cpu"), **TWO}, over=at)


def test_on_several_types_time_counts_for_the_type_on_which_a_job_lies() -> None:
    first = crowd(lying(j1="n1", j2="n2"))
    noted = received(first, 10.0, 20.0, 0.0)
    kept = kept_of(first, noted, [0.5] * 6, [0.0] * 6)
    assert kept["on"] == [0, 1, -1]
    second = crowd(lying(j1="n1", j3="n2"))
    account = received(second, 110.0, 50.0, 5.0, kept=kept)
    assert account.time.tolist() == [[100.0, 0.0], [0.0, 30.0], [0.0, 5.0]], "job 2 lay there until now"
    third = received(
        crowd(lying(j1="n2")), 210.0, 90.0, 5.0, kept=kept_of(second, account, [0.5] * 6, [0.0] * 6)
    )
    assert third.time.tolist() == [[100.0, 100.0], [0.0, 30.0], [0.0, 5.0]]


def test_nobody_has_received_anything() -> None:
    nobody = Crowd(sight([job(1)]), np.zeros(0, dtype=np.int64))
    account = received(nobody)
    assert (account.share.shape, account.priority.shape) == ((0, 1), (0, 1))
    assert account.noted() == {"seconds": []}


def test_where_there_are_no_gpus_there_is_nothing_to_share() -> None:
    account = received(crowd(sight([job(1)], {"n1": node(0)})), 5.0, kept={"kinds": [0]})
    assert account.share.shape == account.time.shape == (1, 0)
