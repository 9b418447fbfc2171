"""The demo's closing comparison: picture, figures, and words for gain and price."""

from __future__ import annotations

from dataclasses import replace

from slurm_fair.demo.comparison import Acts, bars_of, figures, gains_and_costs
from slurm_fair.demo.measure import Measures, TenantMeasures
from slurm_fair.demo.scenario import DemoJob, DemoScenario, Scheduler

JOBS = (DemoJob("ann-01", "ann", 1, 2, 0.0, 100), DemoJob("bo-01", "bo", 1, 2, 0.0, 25))
SCENARIO = DemoScenario(1, 4, 5.0, 2.0, JOBS, {"ann": 1, "bo": 3}, least_rho=0.6)


def act(ann: float, ann_ends: float, bo_ends: float) -> Measures:
    """An act in which ann got that part, and the tenants' jobs ended after so many seconds."""
    tenants = (
        TenantMeasures("ann", 1.0, ann, 1.0, 1.0, 1.0, 2.0, ann_ends),
        TenantMeasures("bo", 3.0, 1 - ann, 1.0, 1.0, 1.0, 2.0, bo_ends),
    )
    return Measures(tenants, 30, 1.0, 1.0, 2.0, 9.0, 40, 55, 0.9, 0)


ACTS: Acts = {
    Scheduler.SLURM_FAIR: replace(act(0.25, 30.0, 12.0), preemptions=3),
    Scheduler.FAIR_SHARE: act(0.5, 20.0, 15.0),
    Scheduler.FIFO: act(1.0, 20.0, 40.0),
}


def test_the_picture_has_a_bar_for_what_is_due_and_one_for_each_act() -> None:
    assert list(bars_of(SCENARIO, ACTS))[:5] == [
        "ann  due          25%  ##########",
        "     slurm_fair   25%  ##########",
        "     fair share   50%  ####################",
        "     FIFO        100%  ########################################",
        "bo   due          75%  ##############################",
    ]


def test_a_part_of_nothing_has_no_bar() -> None:
    assert list(bars_of(SCENARIO, ACTS))[-1] == "     FIFO          0%"


def test_the_figures_have_a_column_for_each_act_and_more_rows_when_asked() -> None:
    short, full = figures(SCENARIO, ACTS, False), figures(SCENARIO, ACTS, True)
    rows = {row["what"]: row for row in full}
    assert rows["bo's mean time from submission to end"] == {
        "what": "bo's mean time from submission to end",
        "slurm_fair": "12.0 s",
        "fair share": "15.0 s",
        "FIFO": "40.0 s",
    }
    assert {row["what"] for row in short} < set(rows)
    assert rows["GPU time held / needed (50 s)"]["FIFO"] == "1.10"


def test_gain_and_price_are_told_in_words_beside_each_scheduler() -> None:
    assert list(gains_and_costs(SCENARIO, ACTS)) == [
        "Beside fair share: bo's jobs end 3 s sooner, ann's jobs end 10 s later (means).",
        "Beside FIFO: bo's jobs end 28 s sooner, ann's jobs end 10 s later (means).",
        "The price: 3 pre-emptions, and 10% more GPU time than the work needs.",
    ]


def test_without_other_acts_only_the_price_is_told() -> None:
    alone = {Scheduler.SLURM_FAIR: ACTS[Scheduler.SLURM_FAIR]}
    assert [line.split(":")[0] for line in gains_and_costs(SCENARIO, alone)] == ["The price"]
    assert len(list(bars_of(SCENARIO, alone))) == 4
