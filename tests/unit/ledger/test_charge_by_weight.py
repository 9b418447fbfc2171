"""GPUs by weight: what is charged and owed where a GPU of one type counts less than one of another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.ledger import LedgerSettings, advance, fill_gap, outcomes_of, settle
from slurm_fair.model import Aside, Event, EventKind, JobState, Ledger, Snapshot
from slurm_fair.model.gpu_weight import fault_in, misfit, of_types
from tests.support.builders import JobSpec, job, node, run, runs, snapshot

BEGAN = 1000.0
RUNNING, DONE = JobState.RUNNING, JobState.DONE
WEIGHTS = {"a100": 1.0, "v100": 0.5}
NODES = {"fast": node(4, gpu_type="a100"), "slow": node(4, gpu_type="v100")}


def look(time: float, *jobs: JobSpec, weights: dict[str, float] | None = None, **more: Any) -> Snapshot:
    """Four GPUs of each type."""
    given = WEIGHTS if weights is None else weights
    return snapshot(time=time, nodes=NODES, jobs=jobs, gpu_weights=given, **more)


def folded(*looks: Snapshot) -> tuple[Ledger, list[Event]]:
    """The ledger after these looks, and all that it told."""
    told: list[Event] = []
    ledger = Ledger.new(BEGAN)
    for each in looks:
        ledger, events = advance(ledger, each)
        told += events
    return ledger, told


def on(name: str, base: int, gpus: int, tenant: str, start: float = BEGAN, **more: Any) -> JobSpec:
    """A job that runs on one of the nodes."""
    return job(
        base, gpus=gpus, tenant=tenant, state=RUNNING, submit=BEGAN, start=start, on={name: gpus}, **more
    )


def test_a_gpu_second_is_charged_by_the_weight_of_its_type_and_quotas_share_the_weighted_sum() -> None:
    both = on("fast", 1, 4, "a"), on("slow", 2, 4, "b")
    ledger, _ = folded(look(BEGAN, *both), look(BEGAN + 10, *both))
    assert ledger.tenants.had.tolist() == [40, 20]
    assert ledger.tenants.owed_quota.tolist() == [30, 30]  # half of 4 * 1 + 4 * 0.5 each
    assert ledger.tenants.owed_demand.tolist() == [30, 20]
    assert ledger.jobs.had.tolist() == [40, 20]
    assert (ledger.total_gpus, ledger.shared_gpus) == (8, 6)


def test_without_weights_each_counts_one() -> None:
    both = on("fast", 1, 4, "a"), on("slow", 2, 4, "b")
    ledger, told = folded(look(BEGAN, *both, weights={}), look(BEGAN + 10, *both, weights={}))
    assert ledger.tenants.had.tolist() == [40, 40]
    assert ledger.tenants.owed_quota.tolist() == [40, 40]
    assert not any("weight" in key for event in told for key in event.detail)


def test_who_waits_asks_for_its_type_or_for_a_gpu_on_average_and_who_runs_for_what_it_holds() -> None:
    seen = look(
        BEGAN,
        job(1, gpus=2, gpu_type="v100"),
        job(2, gpus=2, gpu_type="a100"),
        job(3, gpus=2),
        on("slow", 4, 2, "a"),
    )
    assert seen.jobs.gpu_weight.tolist() == [0.5, 1.0, 0.75, 0.5]
    assert seen.weighted_gpus == 6


def test_a_gang_on_both_types_counts_as_its_gpus_do() -> None:
    seen = look(BEGAN, job(1, gpus=4, state=RUNNING, start=BEGAN, on={"fast": 3, "slow": 1}))
    assert seen.jobs.gpu_weight.tolist() == [0.875]


def test_weights_that_are_given_later_hold_for_runs_that_begin_later() -> None:
    first = on("slow", 1, 4, "a")
    later = on("fast", 2, 4, "b", start=BEGAN + 20)
    new = {"a100": 3.0, "v100": 0.25}
    ledger, _ = folded(
        look(BEGAN, first),
        look(BEGAN + 10, first),
        look(BEGAN + 20, first, later, weights=new),
        look(BEGAN + 30, first, later, weights=new),
    )
    assert ledger.tenants.had.tolist() == [30 * 4 * 0.5, 10 * 4 * 3.0]
    assert ledger.shared_gpus == 4 * 3 + 4 * 0.25


def test_a_run_of_an_old_ledger_is_charged_as_it_was() -> None:
    first = on("slow", 1, 4, "a")
    ledger, _ = folded(look(BEGAN, first, weights={}), look(BEGAN + 10, first), look(BEGAN + 20, first))
    assert ledger.tenants.had.tolist() == [80]


def test_a_run_between_two_looks_counts_by_where_it_lay() -> None:
    over = on("slow", 1, 4, "a", start=BEGAN + 1)
    over = replace(over, state=DONE, end=BEGAN + 9, on={}, gpu_weight=1.0)
    seen = look(BEGAN + 10, over)
    seen = replace(seen, jobs=seen.jobs.with_columns(gpu_weight=np.array([0.5])))
    ledger, told = folded(look(BEGAN), seen)
    assert ledger.tenants.had.tolist() == [16]
    started = next(event for event in told if event.kind == EventKind.STARTED)
    assert started.detail["gpu_weight"] == 0.5


def test_jobs_left_alone_are_charged_by_weight_too() -> None:
    seen = look(BEGAN + 10)
    others = look(BEGAN + 10, on("slow", 7, 2, "a"))
    alone = replace(
        seen,
        tenants=others.tenants,
        users=others.users,
        aside=Aside(others.jobs, others.held, others.reasons),
        nodes=seen.nodes.with_columns(gpus_others=others.held.per_node(2)),
    )
    assert alone.weighted_gpus == 6
    ledger, _ = folded(look(BEGAN), alone)
    assert ledger.tenants.had.tolist() == [10]


def test_accounting_settles_what_was_seen_by_its_weight_and_other_runs_by_the_mean() -> None:
    seen = on("slow", 1, 4, "a")
    over = replace(seen, state=DONE, end=BEGAN + 8, on={})
    ledger, _ = folded(look(BEGAN, seen), look(BEGAN + 10, over))
    assert ledger.tenants.had.tolist() == [16]
    said = runs(
        run(1, gpus=4, tenant="a", submit=BEGAN, start=BEGAN, end=BEGAN + 6),
        run(2, gpus=4, tenant="a", submit=BEGAN, start=BEGAN, end=BEGAN + 2),
    )
    settled, moved = settle(ledger, said, ledger.time)
    assert settled.tenants.had.tolist() == [4 * 6 * 0.5 + 4 * 2 * 0.75]
    assert moved == 4 * 2 * 0.5 + 4 * 2 * 0.75
    assert settle(settled, said, settled.time)[1] == 0


def test_a_gap_is_charged_by_the_weight_that_was_seen() -> None:
    seen = on("slow", 1, 4, "a")
    ledger, _ = folded(look(BEGAN, seen))
    said = runs(run(1, gpus=4, tenant="a", submit=BEGAN, start=BEGAN, end=0.0))
    after = fill_gap(ledger, said, BEGAN + 30, LedgerSettings()).ledger
    assert after.tenants.had.tolist() == [60]
    assert after.tenants.owed_quota.tolist() == [180]


def test_the_size_of_the_cluster_is_told_with_its_weight_and_once_when_weights_change() -> None:
    _, told = folded(
        look(BEGAN), look(BEGAN + 10), look(BEGAN + 20, weights={"v100": 0.25}), look(BEGAN + 30)
    )
    sizes = [(event.time, event.gpus, event.detail) for event in told if event.kind == EventKind.CAPACITY]
    assert sizes == [
        (BEGAN, 8, {"by_weight": 6.0}),
        (BEGAN + 20, 8, {"by_weight": 5.0}),
        (BEGAN + 30, 8, {"by_weight": 6.0}),
    ]


def test_outcomes_tell_what_was_charged_and_what_was_held() -> None:
    seen = on("slow", 1, 4, "a")
    over = replace(seen, state=DONE, end=BEGAN + 8, on={})
    _, told = folded(look(BEGAN, seen), look(BEGAN + 10, over))
    outcomes, of_runs = outcomes_of(told)
    assert (outcomes.had.tolist(), outcomes.held.tolist()) == ([16], [32])
    assert of_runs.gpu_weight.tolist() == [0.5]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a100": -1}, "a100 must count 0, or from 0.001 to 1e+06, not -1"),
        ({"a100": float("nan")}, "not nan"),
        ({"a100": float("inf")}, "not inf"),
        ({"a100": True}, "not True"),
        ({"a100": "1"}, "not '1'"),
        ({"": 1}, "'' is no GPU type"),
        ({"a,b": 1}, "'a,b' is no GPU type"),
        ({"a100": 0, "v100": 1.5}, ""),
    ],
)
def test_a_bad_weight_is_told_in_a_few_words(given: dict[str, object], words: str) -> None:
    assert words in fault_in(given)
    assert bool(words) == bool(fault_in(given))


def test_weights_that_do_not_fit_the_cluster_are_told() -> None:
    assert "no GPUs of type 'a10'; did you mean 'a100'?" in misfit({"a10": 1.0}, ("a100", "v100"))
    assert "all GPUs would count 0" in misfit({"a100": 0.0}, ("a100",))
    assert not misfit({"a100": 0.0}, ("a100", "v100"))
    assert not misfit({"gpu": 2.0}, ("",))
    assert of_types({}, ("a100",)) is None
    assert of_types({"gpu": 2.0}, ("", "a100")) == pytest.approx([2.0, 1.0])
