"""The walk of `fair` is not always the best plan: fragments, GPU types, sizes; and what is kept of each period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from slurm_fair.model import JobState
from slurm_fair.model.sizes import Sizes
from slurm_fair.policy import View
from slurm_fair.policy.check import objections
from slurm_fair.policy.decided import decided
from slurm_fair.solve.linear import Effort
from slurm_fair.solve.lots import LotsAnswer, LotsProblem, best_lots
from slurm_fair_plugins.fair import Fair, choice
from tests.support.accounts import places, verdicts
from tests.support.any_view import NOW
from tests.support.builders import NodeSpec, job, lease, node
from tests.support.tight_views import tight
from tests.support.told_play import ToldPlay

HOUR = 3600.0
NO_GUARDS: Mapping[str, Any] = {"claim_weight": 0.0, "makespan_weight": 0.0, "inertia": 0.0}
NODES: Mapping[str, int | NodeSpec] = {"n1": 4, "n2": 2}
# Job 1 is worth most per GPU, but beside it neither of the others finds room for long on n1.
FRAGMENTS = [job(1, gpus=3), job(2, gpus=4), job(3, gpus=2)]
LEFT = {"1": 2.0 * HOUR, "2": 2.1 * HOUR, "3": 2.2 * HOUR}


def fair(**settings: Any) -> Fair:
    """The policy without guards."""
    return Fair(**{**NO_GUARDS, **settings})


def granted(policy: Fair, seen: View) -> dict[str, dict[str, int]]:
    return places(seen.snapshot, policy.plan(seen))


def test_the_walk_leaves_a_fragment_that_the_solver_fills() -> None:
    seen = ToldPlay(FRAGMENTS, NODES, left=LEFT).seen()
    assert granted(fair(solver="off"), seen) == {"1": {"n1": 3}, "3": {"n2": 2}}
    assert granted(fair(), seen) == {"1": {"n1": 3}, "3": {"n2": 2}}, "one GPU type, one size each"
    assert granted(fair(solver="always"), seen) == {"2": {"n1": 4}, "3": {"n2": 2}}


@pytest.mark.parametrize("gpus", [4, 5, 8])
@pytest.mark.parametrize(
    "lacks", [{"cpus_others": 64}, {"memory_others_mb": 512_000}], ids=["CPUs", "memory"]
)
def test_a_node_without_the_rest_does_not_keep_the_solver_from_what_it_finds(
    gpus: int, lacks: dict[str, int]
) -> None:
    nodes: Mapping[str, int | NodeSpec] = {"a0": node(gpus, **lacks), **NODES}
    jobs = [replace(each, cpus=8, memory_mb=8) for each in FRAGMENTS]
    seen = ToldPlay(jobs, nodes, left=LEFT).seen()
    assert granted(fair(solver="always"), seen) == {"2": {"n1": 4}, "3": {"n2": 2}}


def test_the_quick_plan_is_the_walk() -> None:
    seen = ToldPlay(FRAGMENTS, NODES, left=LEFT).seen()
    assert places(seen.snapshot, fair().quick_plan(seen)) == granted(fair(solver="off"), seen)


def test_of_two_types_each_job_gets_the_one_on_which_it_gains_most() -> None:
    nodes = {"a": node(4, gpu_type="a"), "b": node(4, gpu_type="b")}
    jobs = [job(1, gpus=4), job(2, gpus=4)]
    rates = {"1": (1.0, 1.2), "2": (1.0, 3.0)}
    seen = ToldPlay(jobs, nodes, left={"1": 2 * HOUR, "2": 2.1 * HOUR}, rates=rates).seen()
    assert granted(fair(), seen) == {"1": {"a": 4}, "2": {"b": 4}}


def test_the_solver_begins_with_the_plan_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Job 1 stays where it is, job 3 gets its GPUs of one node, and job 2 nothing."""
    asked: list[LotsProblem] = []

    def noted(problem: LotsProblem, effort: Effort, limit_seconds: float) -> LotsAnswer:
        asked.append(problem)
        return best_lots(problem, effort, limit_seconds)

    monkeypatch.setattr(choice, "best_lots", noted)
    play = ToldPlay(FRAGMENTS, NODES, left=LEFT)
    play.on, play.since = {"1": {"n1": 3}}, {"1": 1.0}
    seen = play.seen()
    fair(solver="always").plan(seen)
    (problem,) = asked
    assert problem.start is not None
    taken = problem.start[problem.start >= 0]
    part = np.isin(problem.lot, taken)
    names = [seen.snapshot.nodes.names[node] for node in problem.node[part]]
    assert list(zip(names, problem.gpus[part].tolist(), strict=True)) == [("n1", 3), ("n2", 2)]


def elastic(seen: View, base: int, *sizes: int) -> View:
    """One job of the view can have these sizes; the largest is its usual one."""
    row = int(np.flatnonzero(seen.snapshot.jobs.record == base)[0])
    table = Sizes(np.full(len(sizes), row), np.array(sizes), np.array([size == max(sizes) for size in sizes]))
    return replace(seen, snapshot=replace(seen.snapshot, sizes=table))


def test_an_elastic_job_gets_the_size_that_fits() -> None:
    seen = ToldPlay([job(1, gpus=8)], {"n1": 4}, left={"1": HOUR}).seen()
    assert granted(fair(), elastic(seen, 1, 2, 4, 8)) == {"1": {"n1": 4}}
    assert granted(fair(solver="off"), elastic(seen, 1, 2, 4, 8)) == {}


def test_a_gang_on_several_nodes_gets_those_on_which_it_gains_most() -> None:
    nodes = {name: node(8, gpu_type=name[0]) for name in ("a1", "a2", "b1", "b2")}
    rates = {"1": (1.0, 3.0), "2": (1.0, 1.1)}
    jobs = [job(1, gpus=12), job(2, gpus=12)]
    seen = ToldPlay(jobs, nodes, left={"1": 8 * HOUR, "2": 9 * HOUR}, rates=rates).seen()
    where = {name: set(sites) for name, sites in granted(fair(), seen).items()}
    assert where == {"1": {"b1", "b2"}, "2": {"a1", "a2"}}
    assert granted(fair(solver="off"), seen).keys() == {"1", "2"}
    assert set(granted(fair(solver="off"), seen)["1"]) != {"b1", "b2"}


def test_an_elastic_job_grows_over_several_nodes() -> None:
    seen = elastic(ToldPlay([job(1, gpus=4)], {"n1": 8, "n2": 8}, left={"1": HOUR}).seen(), 1, 4, 14)
    assert sum(granted(fair(), seen)["1"].values()) == 14
    assert sum(granted(fair(solver="off"), seen)["1"].values()) == 4


def test_a_job_grows_on_the_node_on_which_it_runs() -> None:
    play = ToldPlay([job(1, gpus=4)], {"n1": 8}, left={"1": 9 * HOUR})
    play.on, play.since = {"1": {"n1": 4}}, {"1": 1.0}
    seen = elastic(play.seen(), 1, 4, 8)
    assert verdicts(seen.snapshot, fair().plan(seen))["1"].name == "REVOKE"
    assert verdicts(seen.snapshot, fair(solver="off").plan(seen))["1"].name == "RENEW"
    dear = fair(restart_seconds=900.0)
    assert verdicts(seen.snapshot, dear.plan(seen))["1"].name == "RENEW", "a restart takes the whole lease"


def test_a_gang_on_several_nodes_goes_on_where_it_is_faster() -> None:
    nodes = {name: node(4, gpu_type=name[0]) for name in ("a1", "a2", "b1", "b2")}
    play = ToldPlay([job(1, gpus=8)], nodes, left={"1": 9 * HOUR}, rates={"1": (1.0, 3.0)})
    play.on, play.since = {"1": {"a1": 4, "a2": 4}}, {"1": 1.0}
    seen = play.seen()
    assert verdicts(seen.snapshot, fair().plan(seen))["1"].name == "REVOKE"
    assert fair().plan(seen).memory["period"]["how"] == "solver"


def test_who_runs_on_a_slow_type_goes_on_a_fast_one_though_nobody_waits() -> None:
    nodes = {"a": node(4, gpu_type="a"), "b": node(4, gpu_type="b")}
    rates = {"1": (1.0, 3.0)}
    play = ToldPlay([job(1, gpus=4)], nodes, left={"1": 9 * HOUR}, rates=rates)
    play.on, play.since = {"1": {"a": 4}}, {"1": 1.0}
    seen = play.seen()
    assert seen.snapshot.jobs.state.tolist() == [JobState.RUNNING]
    assert verdicts(seen.snapshot, fair().plan(seen))["1"].name == "REVOKE"
    dear = fair(restart_seconds=900.0)
    assert verdicts(seen.snapshot, dear.plan(seen))["1"].name == "RENEW", "a restart takes the whole lease"
    assert not fair().rests(seen.snapshot, {})
    assert fair(solver="off").rests(seen.snapshot, {})


def test_what_the_solver_proves_is_the_bound_also_where_who_runs_may_move() -> None:
    """The pool's bound has both jobs on the fast type; each has the nodes of one type to go to."""
    nodes = {"a": node(4, gpu_type="a"), "b": node(4, gpu_type="b")}
    rates = {"1": (1.0, 1.2), "2": (1.0, 3.0)}
    left = {"1": 2 * HOUR, "2": 2.1 * HOUR}
    play = ToldPlay([job(1, gpus=4), job(2, gpus=4)], nodes, left=left, rates=rates)
    play.on, play.since = {"1": {"a": 4}}, {"1": 1.0}
    period = fair().plan(play.seen()).memory["period"]
    assert period["asked"]
    assert period["value"] == pytest.approx(period["bound"])


def test_of_gangs_on_several_nodes_some_ways_are_left_out_so_that_nothing_is_proven() -> None:
    nodes = {name: node(8, gpu_type=name[0]) for name in ("a1", "a2", "b1", "b2")}
    jobs, rates = [job(1, gpus=12), job(2, gpus=12)], {"1": (1.0, 3.0), "2": (1.0, 1.1)}
    seen = ToldPlay(jobs, nodes, left={"1": 8 * HOUR, "2": 9 * HOUR}, rates=rates).seen()
    period = fair(price_hours=1000.0).plan(seen).memory["period"]
    assert period["how"] == "solver"
    assert period["value"] < 0.99 * period["bound"]


def test_the_solver_is_given_a_bounded_number_of_ways_however_many_jobs_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def counting(problem: LotsProblem, effort: Effort, limit_seconds: float) -> LotsAnswer:
        asked.append(len(problem.job) - problem.jobs)
        return best_lots(problem, effort, 0.0)

    monkeypatch.setattr(choice, "best_lots", counting)
    nodes = {f"n{at:02}": node(8, gpu_type="ab"[at % 2]) for at in range(50)}
    jobs = [job(base, gpus=2) for base in range(1, 401)]
    left = {str(base): HOUR * (1 + base % 13) for base in range(1, 401)}
    rates = {str(base): (1.0, 1.0 + base % 3) for base in range(1, 401)}
    play = ToldPlay(jobs, nodes, left=left, rates=rates)
    play.round(fair(solver="off"))
    fair().plan(play.seen())
    assert len(play.on) == 200
    assert asked
    assert max(asked) <= 5_000


@pytest.mark.parametrize(("solver", "how"), [("always", "solver"), ("auto", "walk"), ("off", "walk")])
def test_value_and_bound_of_each_period_are_kept_and_told(solver: str, how: str) -> None:
    """In GPUs x 1 / hours, the price of 1 an hour added: beside one of the others job 3 has it too."""
    seen = ToldPlay(FRAGMENTS, NODES, left=LEFT).seen()
    policy = fair(solver=solver, restart_seconds=0.0)
    plan = policy.plan(seen)
    period = plan.memory["period"]
    worth = {1: 1 + 1 / 2.0, 2: 1 + 1 / 2.1, 3: 1 + 1 / 2.2}
    best = 4 * worth[2] + 2 * worth[3] if how == "solver" else 3 * worth[1] + 2 * worth[3]
    assert period["value"] == pytest.approx(best)
    assert period["how"] == how
    assert period["bound"] == pytest.approx(best if how == "solver" else 3 * worth[1] + 3 * worth[2])
    assert f"the plan is worth {best:.4g} of at most" in decided(policy, plan, seen).about


@pytest.mark.parametrize("gang", [False, True])
def test_a_gang_that_fits_nowhere_hands_on_no_more_than_its_tenants_quota(gang: bool) -> None:
    """Each tenant has a quota of 8 of 16 GPUs; the gang of tenant a crosses its own by 8."""
    small = [job(base, tenant="a") for base in range(101, 116)]
    others = [job(base, tenant="b") for base in range(201, 215)]
    left = {str(each.base): 6 * HOUR for each in small} | {str(each.base): 9 * HOUR for each in others}
    jobs = [job(99, tenant="b"), *small, *others, job(300, gpus=2, tenant="b")]
    jobs += [job(1, gpus=16, tenant="a")] if gang else []
    play = ToldPlay(jobs, {"n1": 8, "n2": 8}, left=left | {"99": 90 * HOUR, "300": 9 * HOUR, "1": 5 * HOUR})
    play.on, play.since, play.settled = {"99": {"n1": 1}}, {"99": 1.0}, {"99"}
    given = granted(fair(), elastic(play.seen(), 300, 1, 2))
    assert sum(gpus for name, on in given.items() if name.startswith("1") for gpus in on.values()) == 8


def test_a_walk_that_is_proven_to_be_near_the_best_is_not_solved_again() -> None:
    seen = ToldPlay([job(base, gpus=1) for base in range(1, 9)], {"n1": 4}, left={}).seen()
    period = fair().plan(seen).memory["period"]
    assert (period["how"], period["value"]) == ("walk", pytest.approx(period["bound"]))


def test_a_larger_size_takes_no_cpus_that_the_smaller_one_does_not_give_back() -> None:
    """Job 1 asked for 2 CPUs a GPU and has one GPU; more would do it good, and its node has 2 CPUs left."""
    nodes = {"n1": node(4, cpus=8), "n2": node(4, cpus=8)}
    runs = [job(base, cpus=cpus, on={"n1": 1}, state=JobState.RUNNING) for base, cpus in ((1, 2), (2, 4))]
    jobs = [*runs, *(job(base, cpus=4, tenant="b") for base in (3, 4))]
    held = [lease(1, {"n1": 1}, end=NOW - 1), lease(2, {"n1": 1}, end=NOW + 500)]
    seen = tight(jobs, held, 1, nodes)
    plan = fair(claim_weight=10_000.0).plan(seen)
    assert plan.memory["period"]["how"] == "solver"
    assert objections(plan, seen) == ""


def test_nobody_waits_beside_a_node_because_the_solver_named_another() -> None:
    """The solver lays jobs 2 to 4 on one node, which has the GPUs for all and the CPUs for one."""
    nodes = {name: node(4, cpus=16) for name in ("n1", "n2", "n3")}
    jobs = [job(1, cpus=1), *(job(base, cpus=cpus, tenant="b") for base, cpus in ((2, 8), (3, 10), (4, 10)))]
    given = granted(fair(), tight(jobs, [], 1, nodes))
    assert {name: sum(on.values()) for name, on in given.items()} == {"1": 4, "2": 1, "3": 1}
