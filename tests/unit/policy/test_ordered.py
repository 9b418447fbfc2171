"""The walk down an order: who is renewed, placed, moved, passed over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState, LeasePhase, Leases, Snapshot, Verdict
from slurm_fair.policy import View
from slurm_fair.policy.orders.ordered import ordered
from tests.support.accounts import places, reasons, verdicts, view
from tests.support.builders import JobSpec, NodeSpec, job, lease, leases, node, snapshot

NOW = 10_000.0
GRANT, WAIT, RENEW, REVOKE, LEAVE = (
    Verdict.GRANT,
    Verdict.WAIT,
    Verdict.RENEW,
    Verdict.REVOKE,
    Verdict.LEAVE,
)


def running(base: int, on: dict[str, int], **columns: Any) -> JobSpec:
    """A job that runs there."""
    return job(base, gpus=sum(on.values()), on=on, state=JobState.RUNNING, **columns)


def over(*specs: JobSpec) -> Leases:
    """Leases of these jobs, all of them over."""
    return leases(*(lease(s.base, s.on or {}, end=NOW) for s in specs))


def cluster(*jobs: JobSpec, nodes: dict[str, int | NodeSpec] | None = None) -> Snapshot:
    """One node of eight GPUs, or those given."""
    return snapshot(time=NOW, nodes=nodes or {"n1": 8}, jobs=jobs)


def decided(seen: View, order: list[int], **how: Any) -> dict[str, Verdict]:
    return verdicts(seen.snapshot, ordered(seen, np.array(order, dtype=np.int64), **how))


def test_the_first_in_the_order_evicts_the_last() -> None:
    runs = [running(1, {"n1": 4}), running(2, {"n1": 4})]
    seen = view(cluster(*runs, job(3, gpus=4)), over(*runs))
    assert decided(seen, [2, 1, 0]) == {"1": REVOKE, "2": RENEW, "3": GRANT}
    assert decided(seen, [0, 2, 1]) == {"1": RENEW, "2": REVOKE, "3": GRANT}
    assert decided(seen, [0, 1, 2]) == {"1": RENEW, "2": RENEW, "3": WAIT}


def test_no_second_place_is_kept_for_a_job_that_stays() -> None:
    runs = running(1, {"n1": 4})
    nodes: dict[str, int | NodeSpec] = {"n1": 4, "n2": 4}
    seen = view(cluster(runs, job(2, gpus=4), nodes=nodes), over(runs))
    assert decided(seen, [0, 1]) == {"1": RENEW, "2": GRANT}
    assert decided(seen, [0, 1], preempt=False) == {"1": RENEW, "2": GRANT}
    assert decided(seen, [0, 1], keep=np.array([True, False])) == {"1": RENEW, "2": GRANT}


def test_who_is_not_in_the_order_gives_way_first_and_gets_nothing() -> None:
    runs = [running(1, {"n1": 4}), running(2, {"n1": 4})]
    seen = view(cluster(*runs, job(3, gpus=4), job(4, gpus=4)), over(*runs))
    assert decided(seen, [2, 0]) == {"1": RENEW, "2": REVOKE, "3": GRANT, "4": WAIT}


def test_without_preemption_only_free_gpus_are_given() -> None:
    runs = running(1, {"n1": 4})
    seen = view(cluster(runs, job(2, gpus=6), job(3, gpus=2)), over(runs))
    assert decided(seen, [1, 2, 0], preempt=False) == {"1": RENEW, "2": WAIT, "3": GRANT}


def test_nobody_overtakes_the_head_that_does_not_fit_when_blocking() -> None:
    runs = running(1, {"n1": 4})
    seen = view(cluster(runs, job(2, gpus=6), job(3, gpus=2)), over(runs))
    plan = ordered(seen, np.array([1, 2]), preempt=False, blocking=True)
    assert verdicts(seen.snapshot, plan) == {"1": RENEW, "2": WAIT, "3": WAIT}
    assert reasons(seen.snapshot, plan)["3"] == "a job ahead of it does not fit, and nobody overtakes it"


def test_a_head_that_can_never_run_holds_up_nobody() -> None:
    seen = view(cluster(job(1, gpus=18, gpus_per_node=9), job(2)))
    assert decided(seen, [0, 1], blocking=True) == {"1": WAIT, "2": GRANT}


def test_a_lane_is_shut_for_its_own_jobs_alone() -> None:
    seen = view(cluster(job(1, gpus=12), job(2), job(3), nodes={"n1": 8}))
    lanes = np.array([0, 0, 1])
    assert decided(seen, [0, 1, 2], lanes=lanes) == {"1": WAIT, "2": WAIT, "3": GRANT}


def test_kept_jobs_are_renewed_whatever_the_order() -> None:
    runs = [running(1, {"n1": 4}), running(2, {"n1": 4})]
    seen = view(cluster(*runs, job(3, gpus=8)), over(*runs))
    keep = np.array([True, False, False])
    assert decided(seen, [2, 0, 1], keep=keep) == {"1": RENEW, "2": RENEW, "3": WAIT}


TYPED: dict[str, int | NodeSpec] = {"n1": node(4, gpu_type="x"), "n2": node(4, gpu_type="y")}


def test_a_waiting_job_lies_on_the_type_that_was_chosen() -> None:
    seen = view(cluster(job(1, gpus=2), job(2, gpus=2), nodes=TYPED))
    plan = ordered(seen, np.array([0, 1]), on_type=np.array([1, 0]))
    assert places(seen.snapshot, plan) == {"1": {"n2": 2}, "2": {"n1": 2}}


def test_what_a_job_asks_for_itself_stands_above_the_chosen_type() -> None:
    seen = view(cluster(job(1, gpus=2, gpu_type="x"), nodes=TYPED))
    plan = ordered(seen, np.array([0]), on_type=np.array([1]))
    assert places(seen.snapshot, plan) == {"1": {"n1": 2}}


def test_a_running_job_moves_to_its_type_when_there_is_room_and_that_room_is_kept() -> None:
    runs = running(1, {"n1": 4})
    seen = view(cluster(runs, job(2, gpus=4), nodes=TYPED), over(runs))
    plan = ordered(seen, np.array([0, 1]), on_type=np.array([1, -1]))
    assert verdicts(seen.snapshot, plan) == {"1": REVOKE, "2": GRANT}
    assert places(seen.snapshot, plan) == {"2": {"n1": 4}}


def test_a_running_job_stays_where_its_type_has_no_room() -> None:
    runs = [running(1, {"n1": 4}), running(2, {"n2": 4})]
    seen = view(cluster(*runs, job(3, gpus=4), nodes=TYPED), over(*runs))
    assert decided(seen, [1, 0, 2], on_type=np.array([1, 1, -1])) == {"1": RENEW, "2": RENEW, "3": WAIT}


def test_two_that_run_on_each_others_type_change_places() -> None:
    runs = [running(1, {"n1": 4}), running(2, {"n2": 4})]
    seen = view(cluster(*runs, nodes=TYPED), over(*runs))
    assert decided(seen, [0, 1], on_type=np.array([1, 0])) == {"1": REVOKE, "2": REVOKE}


def test_room_is_kept_for_a_listed_job_that_is_giving_its_gpus_back() -> None:
    leaves = running(1, {"n1": 4})
    held = leases(lease(1, {"n1": 4}, phase=LeasePhase.REVOKING, end=NOW))
    seen = view(cluster(leaves, job(2, gpus=4), nodes=TYPED), held)
    on_type = np.array([1, -1])
    assert decided(seen, [0, 1], on_type=on_type) == {"1": LEAVE, "2": WAIT}
    assert decided(seen, [1, 0], on_type=on_type) == {"1": LEAVE, "2": GRANT}


def test_a_job_that_is_to_lie_elsewhere_moves_to_free_gpus_only() -> None:
    runs = [running(1, {"n1": 1}), running(2, {"n2": 3})]
    nodes: dict[str, int | NodeSpec] = {"n1": 4, "n2": 4}
    seen = view(cluster(*runs, nodes=nodes), over(*runs))
    move = np.array([True, False])
    assert decided(seen, [0, 1], move=move) == {"1": REVOKE, "2": RENEW}
    full = view(cluster(runs[0], running(2, {"n2": 4}), nodes=nodes), over(runs[0], running(2, {"n2": 4})))
    assert decided(full, [0, 1], move=move) == {"1": RENEW, "2": RENEW}


def resized(others: int, behind: bool = True) -> dict[str, Verdict]:
    """A job that runs with 4 GPUs is to have 8 of its node, on which another runs with so many."""
    grows, other = job(1, gpus=8, on={"n1": 4}, state=JobState.RUNNING), running(2, {"n1": others})
    seen = view(cluster(grows, other, job(3, gpus=4)), over(grows, other))
    flags = np.array([True, False, False])
    return decided(seen, [0, 1, 2] if behind else [1, 0, 2], move=flags, resize=flags)


def test_a_job_that_is_to_have_another_size_counts_on_its_own_gpus() -> None:
    assert resized(4) == {"1": REVOKE, "2": REVOKE, "3": WAIT}, "it needs those of the job behind it"
    assert resized(4, behind=False) == {"1": RENEW, "2": RENEW, "3": WAIT}, "no room beside one ahead of it"


def test_jobs_that_move_are_told_and_those_that_are_evicted_are_not() -> None:
    grows, other = job(1, gpus=8, on={"n1": 4}, state=JobState.RUNNING), running(2, {"n1": 4})
    first = job(3, gpus=8)
    seen = view(cluster(grows, other, first), over(grows, other))
    flags, moved = np.array([True, False, False]), list[list[int]]()
    for order, stopped in (([0, 1, 2], {"1", "2"}), ([1, 0, 2], set()), ([2, 0, 1], {"1", "2"})):
        said = decided(
            seen, order, move=flags, resize=flags, on_move=lambda rows: moved.append(rows.tolist())
        )
        assert {name for name, verdict in said.items() if verdict is REVOKE} == stopped
    assert moved == [[0], [], []]


def test_a_job_that_finds_no_room_for_another_size_takes_its_gpus_back() -> None:
    """Nobody behind it may be given them."""
    grows, other = job(1, gpus=8, on={"n1": 4}, state=JobState.RUNNING), running(2, {"n1": 3})
    seen = view(cluster(grows, other, job(3, gpus=4)), over(grows, other))
    flags = np.array([True, False, False])
    assert decided(seen, [1, 0, 2], move=flags, resize=flags) == {"1": RENEW, "2": RENEW, "3": WAIT}
    idle = view(cluster(grows, other, job(3, gpus=1)), over(grows, other))
    assert decided(idle, [1, 0, 2], move=flags, resize=flags) == {"1": RENEW, "2": RENEW, "3": GRANT}


def test_ranks_scores_and_memory_are_in_the_plan() -> None:
    seen = view(cluster(job(1), job(2)))
    plan = ordered(seen, np.array([1, 0]), score=np.array([5.0, 3.0]), memory={"a": 1})
    assert plan.explanation.rank.tolist() == [1, 0]
    assert plan.explanation.score.tolist() == [5.0, 3.0]
    assert plan.memory == {"a": 1}


def test_an_option_that_there_is_not_is_refused_with_the_nearest_one() -> None:
    wrong: dict[str, Any] = {"lane": np.array([0])}
    with pytest.raises(TypeError, match=r"^ordered\(\) has no option 'lane': did you mean 'lanes'\?$"):
        ordered(view(cluster(job(1))), np.array([0]), **wrong)
