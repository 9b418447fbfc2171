"""The plans of a simulation that were weighed, as `simulate --json` tells of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.policy.plan_value import GREEDY, SOLVED, PlanValue
from slurm_fair.sim import Scenario, rules_for, simulate
from slurm_fair.sim.loop.weighed import PlansWeighed
from slurm_fair.trace import TraceWish, generate, uniform
from slurm_fair.trace.classes import WORKLOADS

HALVES = replace(uniform(32, 8), gpu_types=("a", "b"), gpu_type=np.array([0, 0, 1, 1]))


def test_each_plan_is_counted_once_and_one_of_an_earlier_look_is_not() -> None:
    seen = PlansWeighed()
    plans = [
        PlanValue(8.0, 8.0, GREEDY, at=1.0),
        PlanValue(6.0, 8.0, GREEDY, at=2.0),
        PlanValue(6.0, 8.0, GREEDY, asked=True, at=3.0),
        PlanValue(7.0, 8.0, SOLVED, asked=True, at=4.0),
    ]
    for plan in plans:
        seen.add(plan.kept({}), plan.at, 0.5)
        seen.add(plan.kept({}), plan.at + 0.1, 0.5)
    seen.add({}, 9.0, 0.5)
    assert seen.to_dict() == {
        "plans_weighed": 4,
        "plans_proven": 1,
        "plans_solved": 2,
        "plans_improved": 1,
        "plans_gap_mean": pytest.approx((0.25 + 0.25 + 0.125) / 4),
        "plans_solved_s": 1.0,
    }


def test_where_no_plan_is_weighed_nothing_is_said_of_the_gap() -> None:
    assert PlansWeighed().to_dict()["plans_gap_mean"] is None


@pytest.mark.parametrize("solver", ["auto", "off"])
def test_fair_is_counted_by_what_its_solver_did(solver: str) -> None:
    trace = generate(TraceWish(20, rate_per_hour=40.0, workload=WORKLOADS["hops"]), np.random.default_rng(2))
    told = simulate(Scenario(trace, HALVES), rules_for("fair", {"solver": solver}, lease=900.0)).to_dict()
    assert told["plans_weighed"] >= told["plans_proven"] + told["plans_solved"]
    assert told["plans_solved"] >= told["plans_improved"]
    assert 0 <= told["plans_gap_mean"] < 1
    assert (told["plans_proven"] > 0, told["plans_improved"] > 0) == (True, solver == "auto")
    assert (told["plans_solved_s"] > 0) == (solver == "auto")


def test_a_policy_that_weighs_nothing_has_no_figures() -> None:
    trace = generate(TraceWish(5, rate_per_hour=40.0), np.random.default_rng(2))
    told = simulate(Scenario(trace, HALVES), rules_for("srtf", {}, lease=900.0)).to_dict()
    assert (told["plans_weighed"], told["plans_gap_mean"]) == (0, None)
