"""The worth of a plan beside the most that any could have: kept in memory, read back, and told."""

from __future__ import annotations

import pytest

from slurm_fair.policy.plan_value import GREEDY, SOLVED, PlanValue


def test_what_is_kept_is_read_back_and_the_rest_of_the_memory_stays() -> None:
    value = PlanValue(7.5, 8.0, SOLVED, asked=True, at=30.0)
    memory = value.kept({"came": 1})
    assert memory["came"] == 1
    assert PlanValue.of_memory(memory) == value
    assert PlanValue.of_memory({"came": 1}) is None


def test_a_memory_of_an_older_release_is_read_too() -> None:
    old = {"period": {"value": 1.0, "bound": 2.0, "how": "walk"}}
    assert PlanValue.of_memory(old) == PlanValue(1.0, 2.0, GREEDY)


def test_the_gap_is_a_part_of_the_bound_and_never_below_nothing() -> None:
    assert PlanValue(6.0, 8.0, GREEDY).gap == 0.25
    assert PlanValue(8.1, 8.0, GREEDY).gap == 0.0
    assert PlanValue(0.0, 0.0, GREEDY).gap == 0.0


def test_it_is_told_who_found_the_plan_and_whether_a_solver_was_asked() -> None:
    assert PlanValue(6.0, 8.0, SOLVED, asked=True).said_at(0.0).endswith("found by the solver")
    assert PlanValue(6.0, 8.0, GREEDY).said_at(0.0).endswith("found by the walk")
    asked = PlanValue(6.0, 8.0, GREEDY, asked=True)
    assert asked.said_at(0.0).endswith("found by the walk; the solver found no better one")


@pytest.mark.parametrize(
    ("at", "now", "said"),
    [(500.0, 500.0, "the plan is"), (500.0, 530.4, "the plan of 30 s ago is"), (0.0, 9e8, "the plan is")],
    ids=["of this look", "of an earlier look", "of a release that kept no time"],
)
def test_it_is_told_of_which_plan_it_is(at: float, now: float, said: str) -> None:
    assert (
        PlanValue(6.0, 8.0, GREEDY, at=at).said_at(now).startswith(f"{said} worth 6 of at most 8 (gap 25.0%)")
    )
