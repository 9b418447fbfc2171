"""The best choice among exact lots: against every choice there is, and within its limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from slurm_fair.model.columns import Floats
from slurm_fair.solve.answer import How
from slurm_fair.solve.linear import Effort
from slurm_fair.solve.lots import LotsProblem, Payers, Quotas, best_lots

EFFORT = Effort(nodes=1000, iterations=100_000, gap=1e-9)


def problem(free: list[int], lots: list[tuple[int, float, dict[int, int]]], jobs: int) -> LotsProblem:
    """`lots` are job, value and GPUs by node."""
    parts = [(at, node, gpus) for at, (_, _, on) in enumerate(lots) for node, gpus in on.items()]
    lot, node, gpus = (np.array([part[at] for part in parts], dtype=np.int64) for at in range(3))
    return LotsProblem(
        np.array(free),
        jobs,
        np.array([each[0] for each in lots], dtype=np.int64),
        np.array([each[1] for each in lots], dtype=np.float64),
        lot,
        node,
        gpus,
    )


def worth_of(asked: LotsProblem, lots: list[int]) -> float:
    """The values of the lots, and the price of each tenant's GPUs up to its quota."""
    worth = sum(asked.value[lot] for lot in lots)
    if asked.payers is None:
        return float(worth)
    payers = asked.payers
    for tenant, (quota, price) in enumerate(zip(*payers.quotas, strict=True)):
        mine = [lot for lot in lots if payers.tenant[asked.job[lot]] == tenant]
        room = quota + sum(payers.beyond[asked.job[lot]] for lot in mine)
        worth += price * min(room, sum(asked.gpus[np.isin(asked.lot, mine)]))
    return float(worth)


def best_by_trial(asked: LotsProblem) -> float:
    """The largest sum of all choices."""
    choices = [[-1, *np.flatnonzero(asked.job == job).tolist()] for job in range(asked.jobs)]
    best = 0.0
    for choice in product(*choices):
        taken = np.isin(asked.lot, choice)
        used = np.bincount(asked.node[taken], asked.gpus[taken], len(asked.free))
        if (used <= asked.free).all():
            best = max(best, worth_of(asked, [lot for lot in choice if lot >= 0]))
    return best


@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_better(seed: int, direct: bool) -> None:
    dice = np.random.default_rng(seed)
    lots = []
    for job in range(5):
        for _ in range(3):
            on = dict(zip(dice.permutation(3)[: dice.integers(1, 3)], dice.integers(1, 4, 2), strict=False))
            lots.append((job, float(dice.random() + 0.1), {int(n): int(g) for n, g in on.items()}))
    asked = problem([4, 3, 2], lots, 5)
    found = best_lots(asked, replace(EFFORT, direct=direct), np.inf)
    assert found.objective == pytest.approx(best_by_trial(asked))
    assert found.bound == pytest.approx(found.objective)
    assert found.how is How.EXACT
    assert (asked.job[found.lot[found.lot >= 0]] == np.flatnonzero(found.lot >= 0)).all()


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_better_where_quotas_have_a_price(seed: int, start: bool) -> None:
    dice = np.random.default_rng(seed)
    lots = [
        (job, float(dice.random() + 0.1), {int(dice.integers(0, 3)): int(dice.integers(1, 4))})
        for job in range(6)
        for _ in range(2)
    ]
    quotas = Quotas(np.array([2.5, 3.5]) * dice.random(2), np.array([1.0, 2.0]) * dice.random(2))
    over = np.where(dice.random(6) < 0.3, 1.5, 0.0)
    asked = replace(problem([4, 3, 2], lots, 6), payers=Payers(dice.integers(-1, 2, 6), over, quotas))
    known = best_lots(problem([4, 3, 2], lots, 6), EFFORT, np.inf).lot
    found = best_lots(replace(asked, start=known if start else None), EFFORT, np.inf)
    assert found.objective == pytest.approx(best_by_trial(asked))
    assert found.bound == pytest.approx(found.objective)


def test_a_quota_goes_to_whichever_of_its_tenants_jobs_fit() -> None:
    """Tenant 0 has a price for 2 GPUs: the lot of its second job is worth 3 with it, that of tenant 1 is 2."""
    lots = [(0, 9.0, {0: 4}), (1, 1.0, {0: 2}), (2, 2.0, {0: 2})]
    tenants, none_over = np.array([0, 0, 1]), np.zeros(3)

    def chosen(over: Floats, quota: float) -> list[int]:
        """The lot of each job."""
        payers = Payers(tenants, over, Quotas(np.array([quota, 0.0]), np.array([1.0, 0.0])))
        lot: list[int] = best_lots(replace(problem([2], lots, 3), payers=payers), EFFORT, np.inf).lot.tolist()
        return lot

    assert chosen(none_over, 2.0) == [-1, 1, -1]
    assert chosen(none_over, 0.0) == [-1, -1, 2]
    assert chosen(np.array([2.0, 0.0, 0.0]), 0.0) == [-1, -1, 2], "what a job is over its quota is its own"
    assert chosen(np.array([0.0, 2.0, 0.0]), 0.0) == [-1, 1, -1]


def test_without_time_nobody_has_a_lot_and_nothing_is_proven() -> None:
    found = best_lots(problem([4], [(0, 1.0, {0: 4})], 1), EFFORT, 0.0)
    assert (found.lot.tolist(), found.how) == ([-1], How.GREEDY)
    assert np.isnan(found.bound)


def test_without_lots_there_is_nothing_to_choose() -> None:
    found = best_lots(problem([4], [], 2), EFFORT, np.inf)
    assert (found.lot.tolist(), found.objective, found.bound, found.gap) == ([-1, -1], 0.0, 0.0, 0.0)


WRONG = {
    "a value that is none": ([4], [(0, float("nan"), {0: 1})], 1, "values are finite"),
    "a job that is not there": ([4], [(3, 1.0, {0: 1})], 1, "jobs are numbered from 0 to 0"),
}


@pytest.mark.parametrize(("free", "lots", "jobs", "why"), WRONG.values(), ids=WRONG)
def test_refused_is(
    free: list[int], lots: list[tuple[int, float, dict[int, int]]], jobs: int, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        problem(free, lots, jobs)


@pytest.mark.parametrize("start", [[0, -1], [-1, -1], [1, 3]], ids=["a part", "nothing", "the best"])
def test_a_choice_that_is_known_is_bettered(start: list[int]) -> None:
    lots = [(0, 1.0, {0: 1}), (0, 2.0, {1: 2}), (1, 3.0, {1: 2}), (1, 2.5, {0: 1})]
    asked = replace(problem([1, 2], lots, 2), start=np.array(start))
    found = best_lots(asked, EFFORT, np.inf)
    assert (found.lot.tolist(), found.objective, found.how) == ([1, 3], 4.5, How.EXACT)


def test_a_solver_that_may_take_no_step_answers_with_what_is_known() -> None:
    lots = [(job, 1.0 + job / 100 + node / 10, {node: 1 + job % 3}) for job in range(12) for node in range(6)]
    asked = problem([3] * 6, lots, 12)
    start = np.where(np.arange(12) < 6, np.arange(12) * 6 + np.arange(12), -1)
    none = Effort(nodes=0, iterations=0, direct=True)
    worth = float(asked.value[start[start >= 0]].sum())
    assert best_lots(asked, none, np.inf).objective < worth
    assert best_lots(replace(asked, start=start), none, np.inf).objective >= worth
