"""No plan is worth more than the bound of `fair` says: against the best choice of small clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from slurm_fair.model import Plan
from slurm_fair.model.sizes import Sizes
from slurm_fair.policy import View
from slurm_fair.policy.plan_value import PlanValue
from slurm_fair.solve.linear import Effort
from slurm_fair.solve.lots import best_lots
from slurm_fair_plugins.fair import Fair, choice
from slurm_fair_plugins.fair.choice import PeriodChoice
from slurm_fair_plugins.fair.lots import Lots
from slurm_fair_plugins.fair.period import Stock
from tests.support.builders import job, node
from tests.support.told_play import ToldPlay

EVERYTHING = Effort(nodes=100_000, iterations=10_000_000, gap=1e-9)
LENGTHS = (600.0, 1800.0, 3600.0, 7200.0, 36_000.0, 200_000.0)


def drawn(dice: np.random.Generator, *, types: bool, elastic: bool) -> View:
    """Some jobs of three tenants, of which most say how long they take, on one to three nodes."""
    kinds = ["ab"[at % 2] if types else "a" for at in range(dice.integers(1, 4))]
    nodes = {f"n{at}": node(int(dice.integers(2, 9)), gpu_type=kind) for at, kind in enumerate(kinds)}
    bases = range(1, int(dice.integers(3, 9)))
    jobs = [job(base, gpus=int(dice.integers(1, 7)), tenant="abc"[dice.integers(0, 3)]) for base in bases]
    left = {str(base): 1.0 + dice.choice(LENGTHS) * dice.random() for base in bases if dice.random() < 0.85}
    speeds = {str(base): tuple(dice.choice((0.5, 1.0, 2.0, 3.0), len(set(kinds)))) for base in bases}
    seen = ToldPlay(jobs, nodes, left=left, rates=speeds if types else {}).seen()
    sizes = _some_elastic(seen, dice) if elastic else None
    return replace(seen, snapshot=replace(seen.snapshot, sizes=sizes))


def _some_elastic(seen: View, dice: np.random.Generator) -> Sizes | None:
    """Each second job can have half of its GPUs, and twice as many."""
    table = [
        (row, size, size == usual)
        for row, usual in enumerate(seen.snapshot.jobs.gpus.tolist())
        if dice.random() < 0.5
        for size in sorted({usual, max(usual // 2, 1), 2 * usual})
    ]
    return Sizes(*(np.array(column) for column in zip(*table, strict=True))) if table else None


@pytest.mark.parametrize("seed", range(40))
def test_the_best_choice_is_worth_no_more_than_the_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = np.random.default_rng(seed)
    seen = drawn(dice, types=seed % 3 == 0, elastic=seed % 2 == 0)
    choices: list[PeriodChoice] = []
    usual = PeriodChoice.best

    def noted(one: PeriodChoice, limit_seconds: float) -> tuple[Plan, PlanValue]:
        choices.append(one)
        return usual(one, limit_seconds)

    monkeypatch.setattr(choice.PeriodChoice, "best", noted)
    Fair(price_hours=float(dice.choice((0.0, 0.5, 1.0, 5.0))), solver="always").plan(seen)
    for one in choices:
        stock = Stock.of(seen)
        able = one._able(stock)
        lots = Lots.of(one.view, one.worth, stock, able, one.restart_seconds)
        best = best_lots(lots.problem, EVERYTHING, np.inf)
        walked = one._value(one._given(one.walked(), stock))
        assert max(best.objective, walked) <= one._bound(able, stock) * (1 + 1e-8)
