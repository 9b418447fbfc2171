"""GPUs by weight: all that tenants are charged is what runs held, each GPU by the weight of its type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_fair.ledger.charging.timeline import totals
from slurm_fair.ledger.metrics.windows import exact_windows
from tests.support.any_scenario import EXAMPLES, FAST, SLOW, Case, cases, play

WEIGHTS = {FAST: 2.5, SLOW: 0.75}


@pytest.mark.parametrize("policy", ["astraea", "fifo", "tiresias", "yarn-cs"])
@EXAMPLES
@given(case=cases())
def test_what_tenants_are_charged_is_what_their_runs_held_by_weight(policy: str, case: Case) -> None:
    case = replace(case, scenario=replace(case.scenario, gpu_weights=WEIGHTS))
    played = play(case, policy)
    outcomes, runs, floor = played.result.outcomes, played.result.runs, case.scenario.machines
    kind_of = dict(zip(floor.names, floor.gpu_type.tolist(), strict=True))
    charged = dict.fromkeys(outcomes.tenants, 0.0)
    for each in played.over:
        weights = {WEIGHTS[floor.gpu_types[kind_of[name]]] for name in each.nodes}
        assert len(weights) == 1  # a gang lies on one type
        charged[each.tenant] += weights.pop() * each.gpus * (each.end - each.start)
    had = {tenant: account[0] for tenant, account in played.result.accounts.items() if tenant in charged}
    assert had == pytest.approx(charged, rel=1e-9, abs=1e-6)
    of_runs = totals(outcomes.tenant[runs.job], runs.weighed_gpus * (runs.end - runs.start), len(charged))
    assert of_runs == pytest.approx(np.array(list(charged.values())), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("policy", ["astraea", "gandiva-fair"])
@EXAMPLES
@given(case=cases())
def test_one_weight_for_all_changes_nothing_but_the_unit(policy: str, case: Case) -> None:
    plain = play(replace(case, scenario=replace(case.scenario, gpu_weights={})), policy).result
    twice = play(
        replace(case, scenario=replace(case.scenario, gpu_weights={FAST: 2.0, SLOW: 2.0})), policy
    ).result
    assert twice.outcomes.end.tolist() == plain.outcomes.end.tolist()
    assert twice.summary.gpu_seconds == pytest.approx(plain.summary.gpu_seconds)
    assert twice.summary.utilization == pytest.approx(plain.summary.utilization, nan_ok=True)
    assert twice.summary.jain_tenants == pytest.approx(plain.summary.jain_tenants, nan_ok=True)
    for tenant, (had, owed) in plain.accounts.items():
        assert twice.accounts[tenant] == pytest.approx((2 * had, 2 * owed))


@EXAMPLES
@given(case=cases(), weight=st.sampled_from((0.1, 0.3, 0.7, 1.1, 2.0)))
def test_metrics_of_tenants_are_the_same_whatever_one_weight_all_gpus_have(case: Case, weight: float) -> None:
    """The same jobs and runs, by another unit: sums of fractions must not look like demand, or hide it."""
    result = play(replace(case, scenario=replace(case.scenario, gpu_weights={})), "astraea").result
    outcomes, runs = result.outcomes, result.runs
    last = float(np.nanmax(outcomes.ended_or_now))
    edges = np.linspace(outcomes.submit.min(), last + 1_000.0, 40)
    shares, gpus = np.ones(len(outcomes.tenants)), float(case.scenario.machines.gpus.sum())
    plain = exact_windows(outcomes, runs, shares, gpus, edges)
    weighed = exact_windows(
        replace(outcomes, gpu_weight=np.full(len(outcomes.gpu_weight), weight)),
        replace(runs, gpu_weight=np.full(len(runs.gpu_weight), weight)),
        shares,
        weight * gpus,
        edges,
    )
    assert weighed.demanded.tolist() == plain.demanded.tolist()
    assert weighed.unfair == plain.unfair
    assert weighed.had == pytest.approx(weight * plain.had, abs=1e-6)
