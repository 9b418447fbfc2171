"""No policy is trusted: each nonsense in a plan is named, and the plan that changes nothing is sound."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import Explanation, JobState, LeasePhase, Placement, Plan, Sizes, Verdict
from slurm_fair.policy import View
from slurm_fair.policy.check import objections, planned, standstill
from slurm_fair.policy.draft import Draft
from tests.support.accounts import reasons, verdicts, view
from tests.support.builders import job, lease, leases, node, snapshot

NOW = 5000.0
RUNNING = JobState.RUNNING

# n4 and n5 have GPUs, and too little beside them for job 9.
# Rows: 0 runs and its lease is over, 1 and 2 wait, 3 runs and its lease is not over, 4 cannot checkpoint and its
# lease is over, 5 is promised, 6 is held by its user, 7 wants any four GPUs on two nodes.
SEEN = snapshot(
    time=NOW,
    nodes={
        "n1": 8,
        "n2": 8,
        "n3": node(8, usable=False),
        "n4": node(8, cpus_others=60),
        "n5": node(8, memory_mb=7999),
    },
    jobs=[
        job(1, gpus=4, state=RUNNING, start=100, on={"n1": 4}),
        job(2, gpus=4, gpus_per_node=4),
        job(3, gpus=2),
        job(4, gpus=2, state=RUNNING, start=100, on={"n1": 2}),
        job(5, gpus=1, state=RUNNING, start=100, on={"n1": 1}, checkpoints=False),
        job(6, gpus=3),
        job(7, gpus=1, blocked=1),
        job(8, gpus=4, nodes=2, gpus_per_node=2),
        job(9, gpus=2, cpus=8, memory_mb=8000),
    ],
)
HELD = leases(
    lease(1, {"n1": 4}, end=NOW),
    lease(4, {"n1": 2}, end=NOW + 1),
    lease(5, {"n1": 1}, end=NOW - 1),
    lease(6, {"n2": 3}, phase=LeasePhase.GRANTED, granted=NOW - 5),
)
SIGHT = view(SEEN, HELD)


def plan(verdicts: dict[int, Verdict], *places: tuple[int, int, int], jobs: int = 9) -> Plan:
    """A plan by rows; everybody else as it should be."""
    usual = [Verdict.RENEW, Verdict.WAIT, Verdict.WAIT, Verdict.KEEP, Verdict.RENEW, Verdict.KEEP, Verdict.LEAVE,
             Verdict.WAIT, Verdict.WAIT]  # fmt: skip
    said = [verdicts.get(row, verdict) for row, verdict in enumerate(usual[:jobs])]
    nothing = np.zeros(len(said), dtype=np.int64)
    return Plan(
        np.array(said, dtype=np.int8),
        Placement.of(list(places)),
        Explanation(nothing, nothing - 1, np.full(len(nothing), np.nan), ("",)),
    )


GRANT, REVOKE, RENEW = Verdict.GRANT, Verdict.REVOKE, Verdict.RENEW
SOUND: dict[str, Plan] = {
    "renewing whoever may be renewed": plan({}),
    "granting free GPUs": plan({2: GRANT}, (2, 1, 2)),
    "granting what a job that is stopped leaves": plan({0: REVOKE, 1: GRANT}, (1, 0, 4)),
    "a gang over two nodes": plan({0: REVOKE, 7: GRANT}, (7, 0, 2), (7, 1, 2)),
    "half of the CPUs on each of two nodes": plan({8: GRANT}, (8, 1, 1), (8, 3, 1)),
    "the rest of a last node with a job that may be split anyhow": plan({2: GRANT}, (2, 1, 5)),
}
NONSENSE: dict[str, tuple[Plan, str]] = {
    "a verdict too few": (
        replace(plan({}), verdict=plan({}).verdict[:-1]),
        "8 verdicts for 9 jobs",
    ),
    "granting a job that runs": (plan({3: GRANT}, (3, 1, 2)), "cannot start now"),
    "granting a job that is held": (plan({6: GRANT}, (6, 1, 1)), "cannot start now"),
    "granting a job that was promised already": (plan({5: GRANT}, (5, 1, 3)), "cannot start now"),
    "stopping a job whose lease is not over": (plan({3: REVOKE}), "not over"),
    "renewing a job whose lease is not over": (plan({3: RENEW}), "not over"),
    "renewing a job that waits": (plan({1: RENEW}), "not over"),
    "stopping a job that cannot checkpoint": (plan({4: REVOKE}), "lose its work"),
    "GPUs on a node that is not there": (plan({2: GRANT}, (2, 9, 2)), "no node"),
    "GPUs on a node before the first": (plan({2: GRANT}, (2, -1, 2)), "no node"),
    "no GPUs on a node": (plan({2: GRANT}, (2, 1, 2), (2, 0, 0)), "no node"),
    "half a gang": (plan({2: GRANT}, (2, 1, 1)), "whole gang"),
    "a grant without places": (plan({2: GRANT}), "whole gang"),
    "GPUs for a job that was not granted any": (plan({}, (2, 1, 2)), "another gets GPUs"),
    "more than a gang of fixed shape": (plan({1: GRANT}, (1, 1, 5)), "more than its gang"),
    "GPUs that somebody has": (plan({1: GRANT}, (1, 0, 4)), "not free"),
    "GPUs that were promised to somebody": (plan({2: GRANT}, (2, 1, 6)), "not free"),
    "the same GPUs twice": (plan({1: GRANT, 2: GRANT}, (1, 1, 4), (2, 1, 2)), "not free"),
    "CPUs that somebody has": (plan({8: GRANT}, (8, 3, 2)), "CPUs or memory"),
    "CPUs that another gets too": (
        plan({2: GRANT, 8: GRANT}, (2, 3, 2), (8, 1, 1), (8, 3, 1)),
        "CPUs or memory",
    ),
    "memory that is not there": (plan({8: GRANT}, (8, 4, 2)), "CPUs or memory"),
    "GPUs of a node that takes no work": (plan({2: GRANT}, (2, 2, 2)), "not free"),
}


@pytest.mark.parametrize("sound", SOUND.values(), ids=SOUND)
def test_a_plan_that_can_be_is_accepted(sound: Plan) -> None:
    assert objections(sound, SIGHT) == ""


@pytest.mark.parametrize(("wrong", "said"), NONSENSE.values(), ids=NONSENSE)
def test_a_plan_that_cannot_be_is_refused(wrong: Plan, said: str) -> None:
    assert said in objections(wrong, SIGHT)


def test_nothing_is_wrong_with_an_empty_plan_of_an_empty_queue() -> None:
    empty = view(snapshot(time=NOW, nodes={"n1": 8}))
    assert objections(standstill(empty, "why"), empty) == ""


# -- standing still -----------------------------------------------------------------------------------------------


def test_a_standstill_changes_nothing_and_says_why_to_each_job() -> None:
    still = standstill(SIGHT, "the policy was late")
    assert objections(still, SIGHT) == ""
    assert still.note == "the policy was late"
    assert len(still.places) == 0
    kept, waits, left = Verdict.KEEP, Verdict.WAIT, Verdict.LEAVE
    expected = {
        "1": kept,
        "2": waits,
        "3": waits,
        "4": kept,
        "5": kept,
        "6": kept,
        "7": left,
        "8": waits,
        "9": waits,
    }
    assert verdicts(SEEN, still) == expected
    assert reasons(SEEN, still)["1"] == "keeps its GPUs until there is a plan again"
    assert reasons(SEEN, still)["2"] == "no plan could be made in this tick"


def test_a_standstill_tells_a_job_that_is_leaving_so() -> None:
    leaving = view(SEEN, leases(lease(1, {"n1": 4}, phase=LeasePhase.REVOKING)))
    assert reasons(SEEN, standstill(leaving, ""))["1"] == "is giving its GPUs back"


def test_a_standstill_keeps_what_the_policy_remembered() -> None:
    remembers: Any = {"window": 3}
    seen: View = replace(SIGHT, memory=remembers)
    assert standstill(seen, "").memory == {"window": 3}


def test_a_standstill_without_leases_or_jobs_is_possible() -> None:
    assert standstill(view(SEEN), "").verdict.tolist().count(Verdict.KEEP) == 0
    assert len(standstill(view(snapshot(nodes={"n1": 1})), "").verdict) == 0


def test_an_elastic_job_may_get_any_of_its_sizes() -> None:
    sizes = Sizes(np.array([2, 2, 2]), np.array([1, 2, 4]), np.array([False, True, False]))
    elastic = view(replace(SEEN, sizes=sizes), HELD)
    assert objections(plan({2: Verdict.GRANT}, (2, 1, 4)), elastic) == ""
    assert objections(plan({2: Verdict.GRANT}, (2, 1, 1)), elastic) == ""
    assert "more than its gang" in objections(plan({2: Verdict.GRANT}, (2, 1, 3)), elastic)
    assert "whole gang" in objections(plan({1: Verdict.GRANT}, (1, 1, 2)), elastic)
    assert "whole gang" in objections(plan({2: Verdict.GRANT}, (2, 1, 1)), SIGHT)


def test_another_size_lies_evenly_and_on_more_nodes_in_proportion() -> None:
    even = job(3, gpus=4, nodes=2, most_nodes=2, gpus_per_node=2, checkpoints=True)
    seen = snapshot(nodes={"n1": 4, "n2": 4, "n3": 4}, jobs=[even])
    sizes = Sizes(np.zeros(4, dtype=np.int64), np.array([2, 4, 6, 8]), np.array([False, True, False, False]))
    elastic = view(replace(seen, sizes=sizes))
    for places in ([(0, 0, 2)], [(0, 0, 4), (0, 1, 4)], [(0, 0, 2), (0, 1, 2), (0, 2, 2)]):
        assert objections(plan({0: Verdict.GRANT}, *places, jobs=1), elastic) == ""
    wide, uneven = [(0, 0, 1), (0, 1, 1)], [(0, 0, 4), (0, 1, 2), (0, 2, 2)]
    assert "more nodes" in objections(plan({0: Verdict.GRANT}, *wide, jobs=1), elastic)
    assert "unevenly" in objections(plan({0: Verdict.GRANT}, *uneven, jobs=1), elastic)


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (np.zeros(3), "float64 of shape (3,)"),
        (np.zeros((2, 1)), "float64 of shape (2, 1)"),
        (np.array(["1", "2"]), "<U1 of shape (2,)"),
        (60.0, "a float"),
        ([1.0, 2.0], "a list"),
    ],
)
def test_the_wait_of_gangs_is_one_number_for_each_job(after: Any, what: str) -> None:
    jobs = view(snapshot(jobs=[job(1), job(2)]))
    with pytest.raises(TypeError, match=re.escape(f"one number for each of 2 jobs, not {what}")):
        planned(lambda seen: replace(Draft(seen).unchanged(), reserve_after=after), jobs)
