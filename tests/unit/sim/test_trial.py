"""Small simulated clusters for trials: the stages, and the views that a policy is shown on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from slurm_fair.model import Plan
from slurm_fair.policy import View
from slurm_fair.sim import NodeEvent
from slurm_fair.sim.trial import JOBS, TENANTS, Shown, TrialStage, simulated_views, stages
from tests.support import strange_policies as strange

PLAIN, ODD = stages()


@dataclass(frozen=True)
class _FailsAtLast:
    """Plans until all jobs together ran for 2000 s."""

    def plan(self, view: View) -> Plan:
        if view.ledger.jobs.ran.sum() > 2000.0:
            raise RuntimeError("enough")
        return strange.Plain().plan(view)


def shown(kind: type, stage: TrialStage = PLAIN, most: int = 6) -> Shown:
    """The views that a policy of this kind is shown there."""
    with strange.installed(mine=kind):
        return simulated_views("mine", {}, stage, most)


def instants(of: Shown) -> list[float]:
    return [kept.view().now for kept in of.views]


# --- the stages


def test_no_two_jobs_of_a_stage_are_alike_and_every_tenant_has_some() -> None:
    for stage in stages():
        jobs = stage.scenario.trace
        assert len(jobs) == JOBS
        assert set(jobs.tenant.tolist()) == set(range(TENANTS))
        assert len(np.unique(jobs.submit_s)) == len(np.unique(jobs.duration_s)) == JOBS
        assert (np.diff(jobs.submit_s) > 0).all()
        assert jobs.gpus.max() <= 8


def test_one_stage_has_one_type_and_the_other_two_an_outage_and_nothing_said() -> None:
    plain, odd = PLAIN.scenario, ODD.scenario
    assert len(set(plain.machines.gpu_type.tolist())) == 1
    assert np.isfinite(plain.trace.declared_s).all()
    assert set(odd.machines.gpu_type.tolist()) == {0, 1}
    assert np.isnan(odd.trace.declared_s).all()
    assert odd.undeclared == "unknown"
    assert [outage.event for outage in odd.outages] == [NodeEvent.DOWN, NodeEvent.UP]
    assert (PLAIN.aligned, ODD.aligned) == (True, False)


# --- the views


@pytest.mark.parametrize("stage", [PLAIN, ODD], ids=["one type", "two types"])
def test_views_are_spread_over_the_whole_simulation_with_its_first_and_its_last(stage: TrialStage) -> None:
    every, some = shown(strange.Plain, stage, 10**6), shown(strange.Plain, stage, 5)
    assert (every.error, some.error, len(some.views)) == (None, None, 5)
    times = instants(every)
    assert times == sorted(times)
    assert instants(some) == [times[round(quarter * (len(times) - 1) / 4)] for quarter in range(5)]


def test_one_view_is_shown_where_one_is_asked_for() -> None:
    assert len(shown(strange.Plain, most=1).views) == 1


def test_views_show_gangs_that_wait_and_leases_that_are_over() -> None:
    views = [kept.view() for kept in shown(strange.Plain, most=10**6).views]
    assert any(view.waiting_rows.size and view.over_rows.size for view in views)
    assert all(view.snapshot.told is not None for view in views)


def test_an_error_of_a_policy_ends_the_trial_and_is_told_with_the_view_that_it_came_up_on() -> None:
    ended = shown(strange.Raises)
    assert isinstance(ended.error, ZeroDivisionError)
    assert ended.views[-1].view().over.any()
    assert not any(kept.view().over.any() for kept in ended.views[:-1])


def test_an_error_at_the_very_first_look_is_told_with_that_view() -> None:
    @dataclass(frozen=True)
    class Never:
        def plan(self, view: View) -> Plan:
            raise ValueError("no")

    ended = shown(Never)
    assert str(ended.error) == "no"
    assert len(ended.views) == 1


def test_the_last_view_before_an_error_is_among_the_few_that_are_kept() -> None:
    few, every = shown(_FailsAtLast, most=3), shown(_FailsAtLast, most=10**6)
    assert str(few.error) == "enough"
    assert len(few.views) == 3 < len(every.views)
    assert instants(few)[-1] == instants(every)[-1]


def test_a_plan_that_is_none_is_an_error_too() -> None:
    assert shown(strange.Nothing).error is not None


def test_the_settings_of_a_policy_are_those_that_were_given() -> None:
    @dataclass(frozen=True)
    class Set:
        word: str = ""

        def plan(self, view: View) -> Plan:
            raise ValueError(self.word)

    with strange.installed(mine=Set):
        assert str(simulated_views("mine", {"word": "said"}, PLAIN, 1).error) == "said"
